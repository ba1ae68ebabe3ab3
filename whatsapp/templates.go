package whatsapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"parley/desk"
	"parley/provider"
)

const (
	templateFields = "id,name,language,status,category,sub_category,parameter_format,components,quality_score,rejected_reason,previous_category,correct_category"
	pageSize       = 100
	maxPages       = 500
	maxPage        = 16 << 20 // bytes: a hundred templates of the greatest length
)

// From this share of the hourly call limit on, pages are read more slowly.
const (
	slowAt   = 80 // percent
	slowPace = 2 * time.Second
)

// Templates returns the account's whole library, or an error, but never a part of it.
func (p *Provider) Templates(ctx context.Context, at provider.Access) ([]desk.TemplateSource, error) {
	templates := []desk.TemplateSource{}
	size := 0
	err := p.pages(ctx, at, "message_templates", templateFields, func(raw json.RawMessage) error {
		var t struct {
			Name     text `json:"name"`
			Language text `json:"language"`
		}
		if !decodeObject(raw, &t) {
			return errors.New("one of the templates is no JSON object")
		}
		size += len(raw)
		if len(templates) == desk.MaxTemplates || size > desk.MaxLibraryBytes {
			return errTooLarge
		}
		templates = append(templates, desk.TemplateSource{Name: string(t.Name), Language: string(t.Language), Source: string(raw)})
		return nil
	})
	switch {
	case errors.Is(err, errTooLarge):
		return nil, desk.LibraryTooLarge()
	case err != nil:
		return nil, plain(err, "read the templates")
	}
	return templates, nil
}

var errTooLarge = errors.New("there are more templates than a channel may have")

// pages calls element for each element of a list of the business account. It reads the
// list page by page. The last page is the one without a next page. A page before it may
// be empty.
func (p *Provider) pages(ctx context.Context, at provider.Access, edge, fields string, element func(json.RawMessage) error) error {
	query := url.Values{"fields": {fields}, "limit": {strconv.Itoa(pageSize)}}
	seen := map[string]bool{}
	for range maxPages {
		var page struct {
			Data   json.RawMessage `json:"data"`
			Paging struct {
				Next text `json:"next"`
			} `json:"paging"`
		}
		a, err := p.get(ctx, call{at: at, path: []string{at.Channel.Account.BusinessID, edge}, query: query, most: maxPage}, &page)
		if err != nil {
			return err
		}
		// One element at a time: a page may have millions of small ones.
		elements := json.NewDecoder(bytes.NewReader(page.Data))
		if opening, err := elements.Token(); err != nil || opening != json.Delim('[') {
			return errors.New("an answer contains no list")
		}
		for elements.More() {
			var raw json.RawMessage
			if err := elements.Decode(&raw); err != nil {
				return errors.New("an answer contains no list")
			}
			if err := element(raw); err != nil {
				return err
			}
		}
		if page.Paging.Next == "" {
			return nil
		}
		// Only the cursor is used: the address in the answer is always Meta's, even if
		// the channel uses another server.
		next, err := url.Parse(string(page.Paging.Next))
		if err != nil || next.Query().Get("after") == "" {
			return errors.New("an answer names a next page without its cursor")
		}
		after := next.Query().Get("after")
		if seen[after] {
			return errors.New("a page names an earlier page as the next one")
		}
		seen[after] = true
		query.Set("after", after)
		if a.usage() >= slowAt {
			if err := p.pause(ctx, slowPace); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("there are more than %d pages", maxPages)
}

// get reads a JSON object into v. Its error is a *failure, a *graphError, or describes an
// answer that can't be used.
func (p *Provider) get(ctx context.Context, c call, v any) (answer, error) {
	if c.method == "" {
		c.method = http.MethodGet
	}
	a, err := p.do(ctx, c)
	if err != nil {
		return a, err
	}
	if e := errorOf(a, p.now()); e != nil {
		return a, e
	}
	switch {
	case a.status < 200 || a.status > 299:
		return a, fmt.Errorf("HTTP %d without an explanation", a.status)
	case !a.whole:
		return a, errors.New("an answer was cut short")
	case !decodeObject(a.body, v):
		return a, errors.New("an answer is no JSON object")
	}
	return a, nil
}

// Error implements error. The text is for logs, not for people.
func (e *graphError) Error() string {
	return fmt.Sprintf("whatsapp: code %d, subcode %d, trace %q", e.code, e.subcode, e.Trace)
}

// plain turns an error of get into an error that says which step failed, and how to
// continue.
func plain(err error, what string) *desk.Error {
	var e *graphError
	var f *failure
	switch {
	case errors.As(err, &e):
		kind := desk.InvalidRequest
		if e.forNow() {
			kind = desk.Unavailable
		}
		shown := e.failure()
		d := desk.Errorf(kind, "WhatsApp does not let us %s (code %d, %s): %s", what, e.code, shown.Title, shown.Fix)
		if kind == desk.Unavailable {
			d.RetryAfter = e.refusal().RetryAfter
		}
		d.Err = err
		return d
	case errors.As(err, &f):
		d := desk.Errorf(desk.Unavailable, "WhatsApp could not be reached to %s: check the network and the channel's API address, then try again", what)
		d.Err = err
		return d
	}
	d := desk.Errorf(desk.Unavailable, "WhatsApp's answer could not be used to %s, since %v: try again later, and check the channel's API address", what, err)
	d.Err = err
	return d
}
