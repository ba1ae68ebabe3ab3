package api

import (
	"net/url"
	"strconv"
	"unicode/utf8"

	"parley/desk"
)

// query reads the query parameters that an endpoint defines. An unknown or repeated
// one is refused, so that a misspelt filter never lets everything through.
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
			return nil, desk.Invalidf("the query parameter %q is unknown here; known are %q", name, defined)
		case len(list) > 1:
			return nil, desk.Invalidf("the query parameter %s is there %d times; send it once", name, len(list))
		case !utf8.ValidString(list[0]):
			return nil, desk.Invalidf("the query parameter %s is not UTF-8", name)
		}
	}
	return values, nil
}

// pageSize reads limit.
func pageSize(q url.Values) (int, error) {
	if !q.Has("limit") {
		return desk.DefaultLimit, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > desk.MaxLimit || strconv.Itoa(n) != q.Get("limit") {
		return 0, desk.Invalidf("limit: send a whole number from 1 to %d", desk.MaxLimit)
	}
	return n, nil
}

// cursorOf reads cursor. One that is there but empty was never given out.
func cursorOf(q url.Values) (string, error) {
	if q.Has("cursor") && q.Get("cursor") == "" {
		return "", desk.Invalidf("cursor: it is empty; leave it out for the first page")
	}
	return q.Get("cursor"), nil
}
