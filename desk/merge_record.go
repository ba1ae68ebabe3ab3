package desk

import "time"

// UndoMerge is how long a merge can be undone (contract-data §6).
const UndoMerge = 30 * 24 * time.Hour

// A Merge is the record of two contacts of one person that became one (contract-data §6).
type Merge struct {
	ID          ID
	Into, From  ID
	Survivor    ID // the contact that From is part of now; zero once the merge is undone
	At          Time
	Actor       Actor
	UndoneAt    Time          // 0: in force
	Changes     []FieldChange // empty once the merge can't be undone any more
	Moved       Moved
	NotRestored []NotRestored
	Undo        *Undo // nil once the merge can't be undone any more
}

// UndoUntil is the time until which the merge can be undone.
func (m *Merge) UndoUntil() Time { return m.At + Time(UndoMerge.Milliseconds()) }

// Expired tells whether the merge can't be undone any more.
func (m *Merge) Expired(now Time) bool { return m.Undo == nil || now >= m.UndoUntil() }

// ListBytes is an upper limit for the size of the merge in a list, as JSON.
func (m *Merge) ListBytes() int {
	n := recordRoom + 40*len(m.Moved.Closed)
	for _, c := range m.Changes {
		n += detailFrame + jsonBytes(c.Field) + jsonBytes(c.Kept) + jsonBytes(c.Lost) + 2*memberRoom
	}
	for _, r := range m.NotRestored {
		n += detailFrame + jsonBytes(r.Field)
	}
	return n
}

// memberRoom is the space that a list reserves for the member that an owner's id stands for.
const memberRoom = 3 * 1024

// A FieldChange is a field of which both contacts had a value, or which the surviving contact
// got. The values are texts: digits of a phone, an owner's id, an attribute's JSON. "" is null.
type FieldChange struct {
	Field      string // name, or attributes.KEY
	Kept, Lost string
	Taken      bool // the surviving contact got Kept, and had Lost before
}

// Given tells whether the surviving contact got the value from the other one.
func (c *FieldChange) Given() bool { return c.Taken || c.Lost == "" }

// Moved counts what a merge has moved.
type Moved struct {
	Identities    int
	Conversations int
	Closed        []ID // the conversations that the merge closed: a channel has one open one
}

// A NotRestored is a part that an undo could not restore.
type NotRestored struct {
	Field  string
	Reason NotRestoredReason
}

// A NotRestoredReason says why an undo could not restore a part.
type NotRestoredReason string

// The reasons (contract-data §6).
const (
	RestoreChanged NotRestoredReason = "changed" // it was changed after the merge
	RestoreTaken   NotRestoredReason = "taken"   // another contact has it now
	RestoreGone    NotRestoredReason = "gone"    // it was deleted after the merge
)

// An Undo has what is needed to undo a merge.
type Undo struct {
	From          Person         // the merged contact, as it was
	Shared        []Claim        // the claims that both contacts had, since an older release
	Conversations []ID           // those that moved
	Windows       []MergedWindow // of all channels on which one of the contacts had a window
	Merges        []ID           // the earlier merges into the merged contact
	Conflicts     []ID           // those that the merge resolved
	Renamed       []Renamed      // the other conflicts of the merged contact
	Rows          []RowRef       // of broadcasts
}

// A Renamed is a conflict that names the surviving contact in the place of the merged one.
type Renamed struct {
	Conflict ID
	Both     bool // the surviving contact belongs to it, too: it did before, or it became one with another conflict
}

// A Person has the values of a contact.
type Person struct {
	ExternalID, Name, Email, Phone, Note string
	Attributes                           string // JSON
	Owner                                ID
	Further                              []Identity
	CreatedAt                            Time
	Version                              int64
}

// A MergedWindow is the windows of two contacts on a channel, and what a merge made of them.
type MergedWindow struct {
	Channel          ID
	Into, From, Both Window
}

// A Merged says which contact an id leads to that was merged, and by which merge.
type Merged struct{ Into, Merge ID }

// NoContactBut is like NoContact, for an id that may be of a merged contact.
func NoContactBut(m Merged) *Error {
	if m.Merge.IsZero() {
		return NoContact()
	}
	e := NotFoundf("the contact with this id was merged into another contact")
	e.Details = m
	return e
}

// Shown returns the record as callers see it at a moment: without what an undo needs, and
// without values once the merge can't be undone any more.
func (m *Merge) Shown(now Time) *Merge {
	shown := *m
	shown.Undo = nil
	if m.At != 0 && now >= m.UndoUntil() {
		shown.Changes = nil
	}
	return &shown
}

// Event returns an event of the merge.
func (m *Merge) Event(t EventType, actor Actor, now Time) Event {
	return Event{Type: t, Subject: m.ID, Contact: m.Into, Actor: actor, At: now}
}

// A BlockedUndo is the detail of an undo before which another merge has to be undone.
type BlockedUndo struct{ Merge ID }

// NoContact is the error for an id that no contact of the workspace has. A contact of
// another workspace gets the same error (spec, Authentication 7).
func NoContact() *Error { return NotFoundf("no contact in this workspace has this id") }
