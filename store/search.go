package store

import (
	"context"

	"parley/desk"
)

// Search keeps what is made from the events of contacts: the terms by which a text finds them
// (desk.Contact.SearchTerms), and their history.
type Search interface {
	// SearchPlaces returns how far the contacts of each workspace are indexed. A workspace of
	// which nothing is indexed yet is missing.
	SearchPlaces(ctx context.Context, of []desk.ID) (map[desk.ID]SearchPlace, error)

	// ContactIDs returns up to limit ids of contacts that are greater than after, in order.
	ContactIDs(ctx context.Context, ws, after desk.ID, limit int) ([]desk.ID, error)

	// IndexContacts stores the terms that the contacts have now, and none for those that do
	// not exist. It adds the events of contacts that exist to their history, and drops there
	// what is older than the newest desk.MaxHistory changes of a contact. It moves the
	// workspace's place: it was from, and it becomes to. If the stored
	// place is another one, or another process is moving it, IndexContacts stores nothing and
	// returns false. Until it ends, the contacts are not deleted. So nothing of a deleted
	// contact stays behind. No contact may be named twice. If the place moves over contacts that
	// are built, it deletes the terms of those that are not named: they do not exist any more.
	IndexContacts(ctx context.Context, ws desk.ID, from, to SearchPlace, contacts []desk.ID, history []desk.FeedEvent) (bool, error)

	// History returns up to limit events of the history of contacts, newest first, whose
	// numbers are smaller than before (0: the page begins with the newest).
	History(ctx context.Context, ws desk.ID, contacts []desk.ID, before int64, limit int) ([]desk.FeedEvent, error)

	// SearchBehind returns how many changes are not indexed yet: contacts, up to most, and events
	// of these types among the next most events.
	SearchBehind(ctx context.Context, ws desk.ID, types []desk.EventType, most int) (int, error)

	// CountTerms counts for each list of prefixes the terms of contacts that begin with one of
	// them, up to most.
	CountTerms(ctx context.Context, ws desk.ID, prefixes [][]string, most int) ([]int, error)

	// TermPairs returns up to limit terms of contacts that begin with one of the sorted
	// prefixes, in the order of desk.TermPlace, after a place. A pair fits if its contact also
	// has, for each list of others, a term that begins with one of these prefixes.
	TermPairs(ctx context.Context, ws desk.ID, prefixes []string, others [][]string, after desk.TermPlace, limit int) ([]desk.TermPair, error)

	// ContactsBefore returns up to limit contacts whose ids are smaller than before (zero: all
	// are), the greatest id first, and whether more follow. A page also ends at the size of a
	// desk.PageSize.
	ContactsBefore(ctx context.Context, ws, before desk.ID, limit int) (list []*desk.Contact, more bool, err error)
}

// BuiltUpTo returns the greatest id of a contact that is built.
func (p SearchPlace) BuiltUpTo() desk.ID {
	if p.Building {
		return p.Built
	}
	return desk.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
}

// Had returns how many of the oldest events of the feed are not needed any more, by the terms
// and by the history.
func (p SearchPlace) Had(oldest []desk.FeedEvent) int {
	for i := range oldest {
		e := &oldest[i]
		if e.Type.Kind() == "contact" && (e.Place.Seq > p.History.Seq || e.Place.Seq > p.Event.Seq && p.Rules > 0) {
			return i
		}
	}
	return len(oldest)
}

// A SearchPlace says how far the contacts of a workspace are indexed. The zero place: not at
// all.
type SearchPlace struct {
	Rules    int             // desk.SearchRules of the terms
	Event    desk.EventPlace // the changes up to this event are indexed
	Building bool            // contacts after Built are not indexed yet
	Built    desk.ID
	History  desk.EventPlace // the history has the events up to this one
}
