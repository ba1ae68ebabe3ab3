package api

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/desk"
)

// query reads the query parameters that a route defines. It refuses an unknown or
// repeated one, so a misspelt filter is never ignored.
func query(rawQuery string, defined ...string) (url.Values, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, desk.Invalidf("the query string can't be read: separate parameters by & and escape other characters")
	}
	known := map[string]bool{}
	for _, name := range defined {
		known[name] = true
	}
	for name, list := range values {
		switch {
		case !known[name]:
			if nearest := desk.Nearest(name, defined); nearest != "" {
				return nil, desk.Invalidf("the query parameter %q is unknown here: did you mean %s?", name, nearest)
			}
			if len(defined) == 0 {
				return nil, desk.Invalidf("the query parameter %q is unknown here: this request takes none", name)
			}
			return nil, desk.Invalidf("the query parameter %q is unknown here; known are %s", name, strings.Join(defined, ", "))
		case len(list) > 1:
			return nil, desk.Invalidf("the query parameter %s is there %d times; send it once", name, len(list))
		case !utf8.ValidString(list[0]):
			return nil, desk.Invalidf("the query parameter %s is not UTF-8", name)
		}
	}
	return values, nil
}

// idParameter reads an id; nil if it is absent.
func idParameter(q url.Values, name string) (*desk.ID, error) {
	if !q.Has(name) {
		return nil, nil
	}
	id, ok := desk.ParseID(q.Get(name))
	if !ok {
		return nil, desk.InvalidAt("/"+name, "send an id, a UUID")
	}
	return &id, nil
}

// A page says which part of a list to return.
type page struct {
	limit  int
	cursor string // "" for the first
}

// listQuery reads the query parameters of a paged list: limit, cursor and filters.
func listQuery(rawQuery string, filters ...string) (q url.Values, p page, err error) {
	if q, err = query(rawQuery, append(filters, "limit", "cursor")...); err != nil {
		return nil, p, err
	}
	p = page{limit: desk.DefaultLimit, cursor: q.Get("cursor")}
	if q.Has("limit") {
		p.limit, err = strconv.Atoi(q.Get("limit"))
		if err != nil || p.limit < 1 || p.limit > desk.MaxLimit || strconv.Itoa(p.limit) != q.Get("limit") {
			return nil, p, desk.InvalidAt("/limit", "send a whole number from 1 to %d", desk.MaxLimit)
		}
	}
	if q.Has("cursor") && p.cursor == "" { // no list returns an empty cursor
		return nil, p, desk.InvalidAt("/cursor", "it is empty; leave it out for the first page")
	}
	return q, p, nil
}

// sinceFilter reads a time to filter by; 0 without one.
func sinceFilter(q url.Values, name string) (desk.Time, error) {
	if !q.Has(name) {
		return 0, nil
	}
	at, ok := desk.ParseTime(q.Get(name))
	if !ok {
		return 0, desk.InvalidAt("/"+name, "send an RFC 3339 time, such as 2026-01-31T09:30:00Z (in a URL, write + as %%2B)")
	}
	return at, nil
}
