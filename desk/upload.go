package desk

import "time"

// The limits and lifetimes of uploads to import (contract-data §3).
const (
	// MaxUpload is the greatest size of a file in bytes. MaxUploads is how many uploads of a
	// workspace may have a file.
	MaxUpload  = 64 << 20
	MaxUploads = 4

	// MaxRejected and MaxRejectedBytes are how many rejected rows, and how many bytes of them,
	// stop an upload.
	MaxRejected      = 10_000
	MaxRejectedBytes = 16 << 20

	// KeepUpload is how long the record and the rejected rows stay after the end. The file goes
	// at the end, or after UploadLife.
	KeepUpload = 7 * 24 * time.Hour
)

// An UploadState is what happens to an upload.
type UploadState string

// The states.
const (
	UploadOpen      UploadState = "open"   // a member chooses how it is read
	UploadChecking  UploadState = "check"  // a dry run waits or is at work
	UploadImporting UploadState = "import" // the import waits or is at work
	UploadDone      UploadState = "done"   // all rows were read
	UploadStopped   UploadState = "stopped"
	UploadFull      UploadState = "full" // too many rows were rejected
	UploadFailed    UploadState = "failed"
)

// An Upload is a file of contacts, or of people of a broadcast, that a member imports in the
// console.
type Upload struct {
	ID        ID
	Slot      int // 1 to MaxUploads, unlike those of other uploads with a file; 0: it has ended
	MediaID   ID
	MemberID  ID // who uploaded it, and then who started the import
	Broadcast ID // whose people it has; zero: it has contacts
	Name      string
	Size      int64
	Rows      int64  // of the file; 0: not known yet
	Options   string // how it is read
	State     UploadState
	Problem   string // why it was not read, or has failed; "": nothing
	ProblemAt string // the option that is to be changed; "": none
	CreatedAt Time
	QueuedAt  Time // since when a check or the import waits or is at work; 0: neither
	EndedAt   Time
	RunID     ID        // of the last check, or of the import; zero: none
	Run       ImportRun // with this id
}

// End ends an upload.
func (u *Upload) End(state UploadState, problem string, now Time) {
	u.State, u.Problem, u.ProblemAt = state, problem, ""
	u.Slot, u.QueuedAt, u.EndedAt = 0, 0, now
}

// Checked tells whether a check of the upload has ended.
func (u *Upload) Checked() bool { return u.State == UploadOpen && u.Run.EndedAt != 0 }

// Expired tells whether the upload's file has been there for too long.
func (u *Upload) Expired(now Time) bool {
	return u.EndedAt == 0 && u.CreatedAt <= Ago(UploadLife, now, now)
}

// TooManyRejected tells whether so many rows were rejected that an upload stops.
func (r ImportRun) TooManyRejected() bool {
	return r.Rejected >= MaxRejected || r.ErrorBytes >= MaxRejectedBytes
}
