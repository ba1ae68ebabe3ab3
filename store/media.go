package store

import (
	"context"
	"io"
	"time"

	"parley/desk"
)

// Media keeps files: their records, and their content. The content is stored apart from
// the records. Files of one workspace with equal content share it.
type Media interface {
	// Media returns the record of a file, or nil.
	Media(ctx context.Context, ws, id desk.ID) (*desk.Media, error)

	// MediaList returns up to limit records of files, newest first by id. Their ids are
	// smaller than the given one (zero: the list begins with the newest). If failed is set,
	// it returns only records of files that have failed.
	MediaList(ctx context.Context, ws desk.ID, failed bool, before desk.ID, limit int) ([]*desk.Media, error)

	// MediaUsed returns how many bytes of content a workspace has. Equal content counts
	// once. CountMedia counts the bytes again, from the stored content.
	MediaUsed(ctx context.Context, ws desk.ID) (int64, error)
	CountMedia(ctx context.Context, ws desk.ID) error

	// Room returns how many bytes are free in the file system with the content, and the
	// total size of the file system. If the content is in the database, known is false.
	Room() (free, total int64, known bool, err error)

	// NewContent begins to store content. OpenContent opens content for reading; it
	// returns NotFound if the content is not stored.
	NewContent(ctx context.Context, ws desk.ID) (Draft, error)
	OpenContent(ctx context.Context, ws desk.ID, sha256 []byte) (io.ReadSeekCloser, error)

	// DropContents deletes up to limit contents, of any workspaces, that no file uses any
	// more. It returns how many contents it has looked at.
	DropContents(ctx context.Context, limit int) (int, error)

	// DropDrafts deletes drafts that are older than age.
	DropDrafts(ctx context.Context, age time.Duration) error

	// MediaDue returns the workspaces with files to fetch, and how long to wait until the
	// first file of each is due by the database's clock (0: it is due). If a file's due
	// time is further ahead than longest, the clock was set back. Such a file is due now.
	MediaDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeMediaJob gives a holder the job of a workspace that has been due for the longest
	// time. The holder has the job until its lease ends. TakeMediaJob returns nil if no job
	// is due.
	TakeMediaJob(ctx context.Context, ws, holder desk.ID, lease, longest time.Duration) (*MediaJob, error)

	// HoldMediaJob extends the holder's lease. It returns false if the holder no longer
	// has the job.
	HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (bool, error)

	// MediaRef returns the id by which a channel's provider knows a file, and when the
	// file was uploaded to the provider; "" if it was not uploaded.
	MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error)
	PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error
}

// A Draft is content that is being stored. If the machine fails, its methods return
// Unavailable.
type Draft interface {
	// Write takes the next bytes.
	io.Writer

	// Keep makes the content durable. Unless a Tx uses the content (UseContent), it is
	// deleted after KeptContent. Keep returns MediaQuota if the workspace would then have
	// more bytes of content than most (0: no limit).
	Keep(ctx context.Context, most int64) (sha256 []byte, size int64, err error)

	// Drop deletes a draft that was not kept. Calling it after Keep is allowed.
	Drop()
}

// KeptContent is how long content without a file is kept.
const KeptContent = time.Hour

// A MediaJob is a file that is to be fetched from a provider.
type MediaJob struct {
	Media, Channel, Contact, Conversation, Message desk.ID

	TS     desk.Time // of the message
	Ref    string    // the provider's id of the file
	MIME   string    // this and the next two are as the provider reports them; "", 0 and nil: not reported
	Size   int64
	SHA256 []byte
	Tries  int
	Due    desk.Time // while a process has the job, the end of its lease
	Holder desk.ID   // zero: no process has the job
	Ended  bool      // the fetch has failed for good; the job is kept so that a person can start it again
}

// A MediaTx reads and writes records of files. Deleting a contact deletes the files that
// the person sent, and the uploads that no other person's message and no broadcast uses.
// PutMessage ties an upload to its message.
type MediaTx interface {
	Media(id desk.ID) (*desk.Media, error)
	PutMedia(*desk.Media) error

	// MediaInUse tells whether a file is used by a message, by one that is being sent or whose
	// outcome is unknown, or by a broadcast that has not ended. DropMedia deletes the record
	// and all that belongs to it.
	MediaInUse(id desk.ID) (bool, error)
	DropMedia(id desk.ID) error

	// DropMediaRef makes the next message with a file give it to the channel's provider
	// again: MediaRef returns "".
	DropMediaRef(media, channel desk.ID) error

	// UseContent must be called when a transaction stores a file with kept content. It
	// returns Unavailable if the content was kept too long ago.
	UseContent(sha256 []byte) error

	// PutMediaJob inserts or replaces a job. MediaJob returns a job, and DropMediaJob
	// deletes it.
	PutMediaJob(MediaJob) error
	MediaJob(media desk.ID) (*MediaJob, error)
	DropMediaJob(media desk.ID) error

	// OldMedia returns up to limit ready files that were stored before a time, oldest
	// first. DropUploads looks at up to limit uploads that were stored before a time, and
	// deletes those that no message uses. It returns how many uploads it has looked at. Both
	// pass over the files of broadcasts that have not ended.
	OldMedia(before desk.Time, limit int) ([]*desk.Media, error)
	DropUploads(before desk.Time, limit int) (int, error)

	// ReleaseContent must be called after a file's record was stored without its content:
	// the file may have been the last one that used this content.
	ReleaseContent(sha256 []byte) error

	// MessagesOf returns up to limit messages that use a file.
	MessagesOf(media desk.ID, limit int) ([]*desk.Message, error)
}
