package desk

import (
	"crypto/sha256"
	"slices"
	"time"
)

// How many conflicts a workspace keeps, and how long; and how many identities one names
// (contract-data §6).
const (
	MaxConflicts          = 10_000
	KeepConflict          = 90 * 24 * time.Hour
	MaxConflictIdentities = 50
)

// How many different sets of contacts a server remembers at once for a workspace, and how many
// more a second (contract-data §6).
const (
	ConflictBurst = 1000
	ConflictRate  = 100
)

// A Conflict says that writes were refused because their identities belong to different
// contacts (contract-data §6). One set of contacts has one conflict.
type Conflict struct {
	ID         ID
	Contacts   []ID // sorted
	Identities []Identity
	Count      int64 // refusals
	FirstAt    Time
	LastAt     Time
	Actor      Actor // of the newest refusal
	Status     ConflictStatus
	Resolution *Resolution // nil while it is open
}

// A ConflictStatus says whether somebody has decided about a conflict.
type ConflictStatus string

// The statuses.
const (
	ConflictOpen      ConflictStatus = "open"
	ConflictResolved  ConflictStatus = "resolved"
	ConflictDismissed ConflictStatus = "dismissed"
)

// ParseConflictStatus accepts one of the statuses.
func ParseConflictStatus(s string) (ConflictStatus, error) {
	switch status := ConflictStatus(s); status {
	case ConflictOpen, ConflictResolved, ConflictDismissed:
		return status, nil
	}
	return "", InvalidAt("/status", "send open, resolved or dismissed")
}

// A ConflictAction is what somebody decides about a conflict.
type ConflictAction string

// The actions.
const (
	ConflictMerge   ConflictAction = "merge"   // the contacts are one person
	ConflictMove    ConflictAction = "move"    // an identity belongs to another one of them
	ConflictDismiss ConflictAction = "dismiss" // all is right as it is
)

// A ConflictDecision is what a caller asks to do about a conflict.
type ConflictDecision struct {
	Action   ConflictAction
	Into     ID       // merge
	Take     []string // merge
	Identity Identity // move
	To       ID       // move
}

// Equal tells whether two requests are the same.
func (d *ConflictDecision) Equal(e *ConflictDecision) bool {
	return d.Action == e.Action && d.Into == e.Into && d.To == e.To && d.Identity.Same(e.Identity) && slices.Equal(d.Take, e.Take)
}

// A Resolution is a decision that was carried out.
type Resolution struct {
	Decision ConflictDecision
	At       Time
	Actor    Actor
	Merges   []ID
}

// Key identifies the set of contacts.
func (c *Conflict) Key() [32]byte {
	h := sha256.New()
	for _, id := range c.Contacts {
		h.Write(id[:])
	}
	return [32]byte(h.Sum(nil))
}

// Add counts another refusal of the same set, or another conflict of what is the same set now. It
// tells whether the status changes: a resolved one is opened again, or is dismissed if the other
// one was.
func (c *Conflict) Add(o *Conflict) (changed bool) {
	c.Count += o.Count
	c.FirstAt = min(c.FirstAt, o.FirstAt)
	if o.LastAt >= c.LastAt {
		c.LastAt, c.Actor = o.LastAt, o.Actor
	}
	c.name(o.Identities)
	if c.Status == ConflictResolved && o.Status != ConflictResolved {
		c.Status, c.Resolution = o.Status, o.Resolution
		return true
	}
	return false
}

// name adds identities, and keeps the newest.
func (c *Conflict) name(list []Identity) {
	for _, i := range list {
		c.Identities = append(slices.DeleteFunc(slices.Clone(c.Identities), i.Same), i.further())
	}
	if n := len(c.Identities) - MaxConflictIdentities; n > 0 {
		c.Identities = c.Identities[n:]
	}
}

// Rename puts one contact in the place of another that was merged into it. alone tells that
// the conflict was of just these two: then it stays as it is.
func (c *Conflict) Rename(from, into ID) (alone bool) {
	rest := slices.DeleteFunc(slices.Clone(c.Contacts), func(id ID) bool { return id == from || id == into })
	if len(rest) == 0 {
		return true
	}
	rest = append(rest, into)
	slices.SortFunc(rest, ID.Compare)
	c.Contacts = rest
	return false
}

// Return is for the undo of a merge after which the conflict names the surviving contact: it
// names the contact again that is back. It names the other one, too, if that may belong to it:
// if it became one with another conflict, or if there were refusals since the merge.
func (c *Conflict) Return(m *Merge, both bool) {
	if both || c.LastAt >= m.At {
		c.Contacts = append(slices.Clone(c.Contacts), m.From)
		slices.SortFunc(c.Contacts, ID.Compare)
		c.Contacts = slices.Compact(c.Contacts)
		return
	}
	c.Rename(m.Into, m.From)
}

// Event returns an event of the conflict.
func (c *Conflict) Event(t EventType, actor Actor, now Time, changed ...string) Event {
	return Event{Type: t, Subject: c.ID, Actor: actor, At: now, Changed: changed}
}

// ListBytes is an upper limit for the size of the conflict in a list, as JSON.
func (c *Conflict) ListBytes() int {
	n := 2*recordRoom + len(c.Contacts)*(maxContactName+recordRoom/4)
	for _, i := range c.Identities {
		n += jsonBytes(i.Kind) + jsonBytes(i.Value) + recordRoom/8
	}
	if c.Resolution != nil {
		n += 40 * len(c.Resolution.Merges)
	}
	return n
}

// maxContactName is the greatest size of a contact's name as JSON.
const maxContactName = 6 * 255

// ConflictOf returns the conflict that a refusal is, or nil if it is none between at least two
// contacts. Its times are not set.
func ConflictOf(err error, actor Actor) *Conflict {
	if !IsType(err, IdentityConflict) {
		return nil
	}
	e := AsError(err)
	if len(e.Between) < 2 {
		return nil
	}
	c := &Conflict{Contacts: e.Between, Count: 1, Actor: actor, Status: ConflictOpen}
	list, _ := e.Details.([]Identity)
	c.name(list)
	return c
}

// Check refuses a decision that does not fit the conflict.
func (d *ConflictDecision) Check(c *Conflict, s *Settings) error {
	switch d.Action {
	case ConflictMerge:
		if !slices.Contains(c.Contacts, d.Into) {
			return InvalidAt("/into", "this is no contact of the conflict")
		}
		return CheckTake(d.Take, s)
	case ConflictMove:
		if !slices.Contains(c.Contacts, d.To) {
			return InvalidAt("/to", "this is no contact of the conflict")
		}
		if !slices.ContainsFunc(c.Identities, func(i Identity) bool { return i.Claim() == d.Identity.Claim() }) {
			return InvalidAt("/identity", "the conflict does not name this identity")
		}
	}
	return nil
}
