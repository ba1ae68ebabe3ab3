package desk

// The page sizes of a list (contract §2).
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// A ContactFilter narrows the list of contacts; its zero value lets all through.
type ContactFilter struct {
	Held         []Identity // the contact holds each of these
	Owner        ID         // zero: any
	UpdatedSince Time       // inclusive
}

// A ContactPlace is where a contact stands in the export order: oldest change
// first. A contact only ever moves towards the end, so a walk that starts after
// the last place seen misses none that existed when it began.
type ContactPlace struct {
	UpdatedAt Time
	ID        ID
}

// Place is the contact's own.
func (c *Contact) Place() ContactPlace { return ContactPlace{c.UpdatedAt, c.ID} }
