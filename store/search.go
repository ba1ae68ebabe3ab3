package store

import (
	"context"

	"parley/desk"
)

// Search keeps the terms by which a text finds contacts (desk.Contact.SearchTerms).
type Search interface {
	// SearchPlaces returns how far the contacts of each workspace are indexed. A workspace of
	// which no contact is indexed yet is missing.
	SearchPlaces(ctx context.Context, of []desk.ID) (map[desk.ID]SearchPlace, error)

	// ContactIDs returns up to limit ids of contacts that are greater than after, in order.
	ContactIDs(ctx context.Context, ws, after desk.ID, limit int) ([]desk.ID, error)

	// IndexContacts stores the terms that the contacts have now, and none for those that do
	// not exist. It moves the workspace's place: it was from, and it becomes to. If the stored
	// place is another one, or another process is moving it, IndexContacts stores nothing and
	// returns false. Until it ends, the contacts are not deleted. So no terms of a deleted
	// contact stay behind. No contact may be named twice. If the place moves over contacts that
	// are built, it deletes the terms of those that are not named: they do not exist any more.
	IndexContacts(ctx context.Context, ws desk.ID, from, to SearchPlace, contacts []desk.ID) (bool, error)

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

// A SearchPlace says how far the contacts of a workspace are indexed. The zero place: not at
// all.
type SearchPlace struct {
	Rules    int             // desk.SearchRules of the terms
	Event    desk.EventPlace // the changes up to this event are indexed
	Building bool            // contacts after Built are not indexed yet
	Built    desk.ID
}
