package search

import (
	"context"
	"fmt"
	"time"

	"parley/app/cursors"
	"parley/desk"
)

// A Query says which contacts are sought, and which page of them.
type Query struct {
	desk.ContactSearch
	Sought string // the text as it was sent; the cursor belongs to it
	Cursor string // "" for the first page
	Limit  int
}

// A Page has contacts that were found.
type Page struct {
	Contacts []*desk.Contact
	Next     string // the cursor of the next page; "": this is the last
	Behind   int    // changes that the search does not know yet
}

// mostCounted is up to which number the changes are counted that are not indexed yet.
const mostCounted = 10_000

// Find returns a page of the contacts that a search finds. A page looks at a limited number of
// contacts, so it may be short, or empty, and have a next one. Find returns InvalidRequest for
// a cursor of another search.
func (a *Service) Find(ctx context.Context, p desk.Principal, q Query) (page Page, err error) {
	f := finder{service: a, ws: p.Workspace(), query: &q, size: desk.NewPageSize(q.Limit)}
	attribute := ""
	if q.Attribute != nil {
		attribute = q.Attribute.Key + ":" + q.Value
	}
	f.list = cursors.List{Workspace: f.ws, Name: "search", Filter: fmt.Sprintf("%d %q %q %s", desk.SearchRules, q.Sought, attribute, q.Owner)}
	if q.Text == nil {
		page.Next, err = f.all(ctx)
		page.Contacts = f.found
		return page, err
	}
	if page.Behind, err = a.Store.SearchBehind(ctx, f.ws, changes, mostCounted); err != nil {
		return page, err
	}
	page.Next, err = f.text(ctx)
	page.Contacts = f.found
	return page, err
}

// A finder reads one page.
type finder struct {
	service *Service
	ws      desk.ID
	query   *Query
	list    cursors.List
	size    desk.PageSize
	found   []*desk.Contact
	bytes   int // of the contacts that were looked at
}

// take looks at a contact. It returns false if the page ends before it.
func (f *finder) take(c *desk.Contact, passes bool) bool {
	bytes := c.Size()
	if f.bytes > 0 && f.bytes+bytes > desk.MaxSearchBytes {
		return false
	}
	if passes && !f.size.Add(c.ListBytes()) {
		return false
	}
	f.bytes += bytes
	if passes {
		f.found = append(f.found, c)
	}
	return true
}

// all reads contacts without a text, newest first. It returns the cursor of the next page.
func (f *finder) all(ctx context.Context) (next string, err error) {
	var before desk.ID
	if f.query.Cursor != "" {
		place, err := f.service.Cursors.Open(f.list, f.query.Cursor)
		if err != nil {
			return "", err
		}
		before = desk.ID(place)
	}
	for looked, more := 0, true; more && looked < desk.MaxSearchPairs && len(f.found) < f.query.Limit; {
		var list []*desk.Contact
		list, more, err = f.service.Store.ContactsBefore(ctx, f.ws, before, min(chunk, desk.MaxSearchPairs-looked))
		if err != nil {
			return "", err
		}
		for _, c := range list {
			if len(f.found) == f.query.Limit || !f.take(c, f.query.Passes(c)) {
				return f.service.Cursors.Seal(f.list, before[:]), nil
			}
			before = c.ID
			looked++
		}
		next = ""
		if more {
			next = f.service.Cursors.Seal(f.list, before[:])
		}
	}
	return next, nil
}

const (
	chunk = 500 // how many pairs of a term and a contact are read at a time
	few   = 25  // how many contacts are read at a time, because each may have hundreds of KiB

	// patience is how long a page looks for hits before it ends with those that it has. Somebody
	// is typing: the rest is on the next page.
	patience = 30 * time.Millisecond
)

// text reads the contacts that a text finds. It returns the cursor of the next page.
func (f *finder) text(ctx context.Context) (next string, err error) {
	prefixes := f.query.Text.Prefixes()
	lead, place := 0, desk.TermPlace{}
	switch {
	case f.query.Cursor != "":
		if lead, place, err = f.open(); err != nil {
			return "", err
		}
	case len(prefixes) > 1:
		counts, err := f.service.Store.CountTerms(ctx, f.ws, prefixes, desk.SearchCounted)
		if err != nil {
			return "", err
		}
		lead = f.query.Text.Lead(counts)
	}
	size := min(2*f.query.Limit, chunk)
	began := time.Now()
	for looked := 0; looked < desk.MaxSearchPairs && (looked < chunk || time.Since(began) < patience); size = chunk {
		most := min(size, desk.MaxSearchPairs-looked)
		pairs, err := f.service.Store.TermPairs(ctx, f.ws, prefixes[lead], f.query.Text.Others(lead), place, most)
		if err != nil {
			return "", err
		}
		at, full, err := f.look(ctx, lead, pairs)
		if err != nil {
			return "", err
		}
		looked += at
		if at > 0 {
			place = pairs[at-1].TermPlace
		}
		switch {
		case full:
			return f.seal(lead, place), nil
		case len(pairs) < most:
			return "", nil
		}
	}
	return f.seal(lead, place), nil
}

// look looks at pairs. It returns how many it has looked at, and whether the page is full.
func (f *finder) look(ctx context.Context, lead int, pairs []desk.TermPair) (looked int, full bool, err error) {
	for began := time.Now(); looked < len(pairs); {
		if looked > 0 && len(f.found) > 0 && time.Since(began) > patience { // the database is far away
			return looked, true, nil
		}
		// The stored terms tell for most pairs that they are no hits.
		var ids []desk.ID
		end := looked
		for ; end < len(pairs) && len(ids) < few; end++ {
			if pairs[end].Fits {
				ids = append(ids, pairs[end].Contact)
			}
		}
		var book *desk.Book // nil: no pair fits
		if len(ids) > 0 {
			if book, err = f.service.Store.Book(ctx, f.ws, desk.Lookup{IDs: ids}); err != nil {
				return looked, false, err
			}
		}
		for ; looked < end; looked++ {
			pair := pairs[looked]
			if !pair.Fits {
				continue
			}
			c := book.Contact(pair.Contact)
			if c == nil { // it was deleted
				continue
			}
			// What was found is checked against the contact as it is now. By another term, it
			// comes at another place.
			by, passes := f.query.Text.Hit(c.SearchTerms(), lead)
			passes = passes && by == pair.Term && f.query.Passes(c)
			if passes && len(f.found) == f.query.Limit || !f.take(c, passes) {
				return looked, true, nil
			}
		}
	}
	return looked, false, nil
}

// seal returns the cursor of a place among the terms that the leading part finds.
func (f *finder) seal(lead int, place desk.TermPlace) string {
	return f.service.Cursors.Seal(f.list, append(append([]byte{byte(lead)}, place.Contact[:]...), place.Term...))
}

func (f *finder) open() (lead int, place desk.TermPlace, err error) {
	b, err := f.service.Cursors.Open(f.list, f.query.Cursor)
	if err != nil {
		return 0, place, err
	}
	place.Contact = desk.ID(b[1:])
	place.Term = string(b[1+len(place.Contact):])
	return int(b[0]), place, nil
}
