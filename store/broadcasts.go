package store

import (
	"context"
	"time"

	"parley/desk"
)

// Broadcasts keeps broadcasts and their rows.
type Broadcasts interface {
	// Broadcast returns a broadcast with its counts, or nil. One that is being deleted counts
	// as missing.
	Broadcast(ctx context.Context, ws, id desk.ID) (*desk.Broadcast, error)

	// Broadcasts returns a page of broadcasts in a state ("": in any), newest first by id,
	// with their counts: up to limit broadcasts whose ids are smaller than before (nil: the
	// page begins with the newest). It also returns the value of before for the next page,
	// nil if this page is the last.
	Broadcasts(ctx context.Context, ws desk.ID, state desk.BroadcastState, before *desk.ID, limit int) ([]*desk.Broadcast, *desk.ID, error)

	// BroadcastsDue returns the workspaces with broadcasts that the driver has to look at,
	// and how long to wait until the first one of each is due (0: it is due).
	BroadcastsDue(ctx context.Context) (map[desk.ID]time.Duration, error)

	// DueBroadcasts returns up to limit broadcasts of a workspace that the driver has to look
	// at, oldest first, without counts. Some of them are not due yet.
	DueBroadcasts(ctx context.Context, ws desk.ID, limit int) ([]*desk.Broadcast, error)

	// EndedBroadcasts returns up to limit ids of broadcasts that ended before a moment and
	// still have rows.
	EndedBroadcasts(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]desk.ID, error)

	// BroadcastRows returns a page of the rows of a broadcast, in order: up to limit rows that
	// match the filter and whose ids are greater than after (zero: from the first on). It
	// looks at up to desk.MaxLooked rows. It also returns the value of after for the next
	// page, nil if this page is the last.
	BroadcastRows(ctx context.Context, ws, broadcast desk.ID, f desk.RowFilter, after desk.ID, limit int) ([]*desk.BroadcastRow, *desk.ID, error)

	// PendingRows returns up to limit pending rows, in order. Those that wait for their time
	// are asked for with again: their time has come. The others have ids greater than after.
	PendingRows(ctx context.Context, ws, broadcast desk.ID, again bool, after desk.ID, limit int) ([]*desk.BroadcastRow, error)

	// WaitingRows returns up to limit pending rows that wait for their time, whether or not it has
	// come, in order. Their ids are greater than after.
	WaitingRows(ctx context.Context, ws, broadcast, after desk.ID, limit int) ([]*desk.BroadcastRow, error)

	// NextRow is when the first pending row that waits is due; 0: none waits.
	NextRow(ctx context.Context, ws, broadcast desk.ID) (desk.Time, error)

	// ClaimedRows returns up to limit rows with the status sending or in_doubt, in order. Their
	// ids are greater than after.
	ClaimedRows(ctx context.Context, ws, broadcast desk.ID, status desk.RowStatus, after desk.ID, limit int) ([]*desk.BroadcastRow, error)

	// NewestClaims returns the rows of the newest attempts of a broadcast since a moment, as
	// they are now, newest first, each once: those of up to limit attempts. ClaimTimes returns
	// when these attempts were made, oldest first.
	NewestClaims(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) ([]*desk.BroadcastRow, error)
	ClaimTimes(ctx context.Context, ws, broadcast desk.ID, since desk.Time, limit int) ([]desk.Time, error)

	// RowFacts answers questions about people of a broadcast.
	RowFacts(ctx context.Context, ws desk.ID, q RowQuestion) (RowFacts, error)

	// RowsOfMessages returns the rows whose messages have these ids.
	RowsOfMessages(ctx context.Context, ws desk.ID, messages []desk.ID) ([]*desk.BroadcastRow, error)

	// RowsBefore returns, for each of the places, the row of the newest message that a broadcast
	// sent before; nil if there is none.
	RowsBefore(ctx context.Context, ws desk.ID, places []TalkPlace) ([]*desk.BroadcastRow, error)

	// BroadcastPlaces returns up to which event the deliveries and the replies of each workspace
	// were followed. A workspace in which no broadcast was started is missing.
	BroadcastPlaces(ctx context.Context, of []desk.ID) (map[desk.ID]desk.EventPlace, error)
}

// A BroadcastTx reads and writes broadcasts and their rows.
type BroadcastTx interface {
	// Broadcast returns a broadcast without counts, or nil. No other transaction changes it,
	// or claims a row of it, meanwhile. BroadcastToClaim lets others claim rows of it. It also
	// tells whether driver has the lease of the workspace's broadcasts (see Leased).
	Broadcast(id desk.ID) (*desk.Broadcast, error)
	BroadcastToClaim(id, driver desk.ID) (b *desk.Broadcast, driven bool, err error)
	PutBroadcast(*desk.Broadcast) error

	// DropBroadcast deletes a broadcast that has no rows, with its counts.
	DropBroadcast(id desk.ID) error

	// BroadcastUse counts the broadcasts of the workspace.
	BroadcastUse() (BroadcastUse, error)

	// RowsToChange returns those of the rows that there are, by id. No other transaction changes
	// them meanwhile.
	RowsToChange(broadcast desk.ID, ids []desk.ID) (map[desk.ID]*desk.BroadcastRow, error)

	// SameRows returns the rows of a broadcast that have one of the contacts, or one of the
	// canonical numbers.
	SameRows(broadcast desk.ID, contacts []desk.ID, numbers []string) ([]*desk.BroadcastRow, error)

	// PutRows stores rows of a broadcast, and counts them.
	PutRows(broadcast desk.ID, rows []RowChange) error

	// CancelRows makes up to limit pending rows cancelled ones. DropRows deletes up to limit
	// rows; if counted, they count no longer. Both return how many rows there were. DropNumbers
	// deletes up to limit hashes of numbers.
	CancelRows(broadcast desk.ID, at desk.Time, limit int) (int, error)
	DropRows(broadcast desk.ID, counted bool, limit int) (int, error)
	DropNumbers(broadcast desk.ID, limit int) (int, error)

	// TakeNumbers claims hashes of numbers for a row. A hash that another row has is claimed only
	// if that is the row that passed has for it. It returns false if another row has one of them;
	// then the transaction must not claim the row.
	TakeNumbers(broadcast, row desk.ID, hashes []NumberHash, passed map[NumberHash]desk.ID) (bool, error)

	// RowFacts is the method of Store, in this transaction.
	RowFacts(q RowQuestion) (RowFacts, error)

	// BeginBroadcasts stores the place of the newest event as the place up to which deliveries
	// were followed, unless there is one. MoveBroadcasts moves the place. It returns false if
	// the place is not from.
	BeginBroadcasts() error
	MoveBroadcasts(from, to desk.EventPlace) (bool, error)

	// MoveRows gives the rows of one contact to another one, and returns them. ReturnRows
	// gives those that are left back.
	MoveRows(from, to desk.ID) ([]RowRef, error)
	ReturnRows(rows []RowRef, to desk.ID) error
}

// A RowRef identifies a row.
type RowRef = desk.RowRef

// A TalkPlace is a moment in what a contact and the workspace write to each other on a channel.
type TalkPlace struct {
	Channel      desk.ID
	Conversation desk.ID // the contact is the one of this conversation
	Contact      desk.ID // the contact; zero: see Conversation
	At           desk.Time
}

// A RowChange is a row that is stored.
type RowChange struct {
	Was []desk.RowKey // nil: it is new
	Row *desk.BroadcastRow
}

// Change notes how a row counts before it is changed.
func Change(r *desk.BroadcastRow) RowChange { return RowChange{r.Keys(), r} }

// A BroadcastUse has the numbers that limit a workspace's broadcasts.
type BroadcastUse struct {
	Running int
	Active  int   // running or paused
	Planned int   // drafts and scheduled
	Rows    int64 // of all
}

// A RowQuestion asks about people of a broadcast.
type RowQuestion struct {
	Broadcast desk.ID
	Channel   desk.ID
	Contacts  []desk.ID
	Numbers   []NumberHash // as in TakeNumbers
	Choices   []NumberHash // as in OptOuts
}

// RowFacts are the answers.
type RowFacts struct {
	Claimed map[desk.ID][]desk.RowClaim  // by contact: the rows that were claimed for it
	Taken   map[NumberHash]desk.RowClaim // which row has taken a number
	Choices map[NumberHash]OptOut        // the newest choices of the holders
	Open    map[desk.ID]bool             // contacts with an open conversation on the channel
}

// NewRowFacts returns facts without an answer.
func NewRowFacts() RowFacts {
	return RowFacts{map[desk.ID][]desk.RowClaim{}, map[NumberHash]desk.RowClaim{}, map[NumberHash]OptOut{}, map[desk.ID]bool{}}
}
