package desk

import (
	"bytes"
	"cmp"
	"strings"
)

// The limits of a page (contract §2).
const (
	DefaultLimit = 50
	MaxLimit     = 200

	// MaxPage is the greatest size of a page's body, in bytes. Only a page with a single
	// record may be larger.
	MaxPage = 4 << 20

	// MaxLooked is the greatest number of records that are read for one page of a filtered
	// list.
	MaxLooked = 5000

	// MaxMemberLooked is the limit in place of MaxLooked for a page of the console.
	MaxMemberLooked = 2000
)

// pageRoom is the size of a page's body without its records: the envelope and a cursor.
const pageRoom = 4096

// A PageSize counts the records of a page while they are read, so that reading stops at
// the end of the page.
type PageSize struct {
	limit          int // records
	records, bytes int
}

// NewPageSize limits a page to a number of records and to MaxPage.
func NewPageSize(limit int) PageSize { return PageSize{limit: limit} }

// Add tells whether the page has space for another record of this many bytes, and
// counts it if so. The first record is always accepted.
func (s *PageSize) Add(bytes int) bool {
	if s.records == s.limit || s.records > 0 && s.bytes+bytes > MaxPage-pageRoom {
		return false
	}
	s.records++
	s.bytes += bytes
	return true
}

// A ContactFilter narrows the list of contacts; its zero value matches all.
type ContactFilter struct {
	Held         []Identity // the contact holds each of these; app applies it, stores do not
	Owner        ID         // zero: any
	UpdatedSince Time       // inclusive
}

// Passes tells whether a contact matches the filter. It does not check Held.
func (f ContactFilter) Passes(c *Contact) bool {
	return (f.Owner.IsZero() || ownerID(c.Owner) == f.Owner) && c.UpdatedAt >= f.UpdatedSince
}

// A ContactPlace is the position of a contact in the export order: oldest change first.
// Contacts only move towards the end. So a reader who continues after the last position
// misses no contact that existed at the start.
type ContactPlace struct {
	UpdatedAt Time
	ID        ID
}

// After tells whether the position comes after another.
func (p ContactPlace) After(other ContactPlace) bool {
	return cmp.Or(cmp.Compare(p.UpdatedAt, other.UpdatedAt), bytes.Compare(p.ID[:], other.ID[:])) > 0
}

// Place is the contact's position.
func (c *Contact) Place() ContactPlace { return ContactPlace{c.UpdatedAt, c.ID} }

// ListBytes is the contact's size in a page: the length of its JSON, or somewhat more. It
// includes values that were read and are not shown.
func (c *Contact) ListBytes() int {
	n := recordRoom + jsonBytes(c.ExternalID) + jsonBytes(c.Name) + jsonBytes(c.Email) + jsonBytes(c.Note) + len(c.Attributes.JSON())
	if c.Owner != nil {
		n += jsonBytes(c.Owner.Name) + jsonBytes(c.Owner.Email)
	}
	for _, i := range c.Further {
		n += len(i.Kind) + len(i.Value)
	}
	return n
}

// ListBytes is the conversation's size in a page.
func (c *Conversation) ListBytes() int { return recordRoom + jsonBytes(c.Preview) }

// ListBytes is the message's size in a page.
func (m *Message) ListBytes() int {
	n := 2*recordRoom + jsonBytes(m.ExternalID) + jsonBytes(m.Text) + jsonBytes(m.Author.Name)
	if m.Failure != nil {
		n += jsonBytes(m.Failure.Title) + jsonBytes(m.Failure.Fix)
	}
	if !m.Media.IsZero() {
		n += attachmentRoom // the record may not be read yet
	}
	if c := m.Extra; c != nil {
		for _, v := range c.Buttons {
			n += recordRoom + jsonBytes(v.ID) + jsonBytes(v.Title)
		}
		for _, v := range c.Links {
			n += len(`{"title":,"url":},`) + jsonBytes(v.Title) + jsonBytes(v.URL)
		}
		if c.Choice != nil {
			n += jsonBytes(c.Choice.ID) + jsonBytes(c.Choice.Title)
		}
		if c.Location != nil {
			n += jsonBytes(c.Location.Name) + jsonBytes(c.Location.Address)
		}
		if c.Reaction != nil {
			n += jsonBytes(c.Reaction.Emoji)
		}
	}
	return n
}

// ListBytes is the note's size in a page.
func (n *Note) ListBytes() int { return recordRoom + jsonBytes(n.Text) + jsonBytes(n.Author.Name) }

// ListBytes is the attempt's size in a page.
func (a *Attempt) ListBytes() int {
	n := 2*recordRoom + jsonBytes(a.Key) + jsonBytes(a.Plan.Template) + jsonBytes(a.Plan.Language) + jsonBytes(a.ExternalID)
	for _, note := range a.Notes {
		n += jsonBytes(note) + 1
	}
	if r := a.Refusal; r != nil {
		n += recordRoom + jsonBytes(r.Message)
		if r.Failure != nil {
			n += jsonBytes(r.Failure.Title) + jsonBytes(r.Failure.Fix)
		}
	}
	return n
}

// ListBytes is the template's size in a page.
func (t *Template) ListBytes() int {
	n := recordRoom + jsonBytes(t.Name) + jsonBytes(t.Header) + jsonBytes(t.Body)
	for _, v := range t.Variables {
		n += recordRoom + 4*jsonBytes(v.Key) // two lists contain the name
	}
	return n
}

// ListBytes is the attribute's size in a page.
func (a *Attribute) ListBytes() int { return a.jsonLength() }

// ListBytes is the webhook's size in a page.
func (w *Webhook) ListBytes() int {
	return recordRoom + jsonBytes(w.URL) + jsonBytes(strings.Join(w.Types, `","`))
}

// ListBytes is the member's size in a page.
func (m *Member) ListBytes() int { return recordRoom + jsonBytes(m.Name) + jsonBytes(m.Email) }

// MostLooked is the greatest number of conversations that are examined for one page.
func (f ConversationFilter) MostLooked() int { return cmp.Or(f.Looked, MaxLooked) }
