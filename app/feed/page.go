package feed

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// A Page is a page of the feed, with the records that the store does not add to it.
type Page struct {
	*store.EventPage

	Libraries map[desk.ID]*desk.Library // of channels
	Webhooks  map[desk.ID]*Webhook
	Snippets  map[string]*desk.Snippet // by shortcut
	Segments  map[string]*desk.Segment // by key
	Merges    map[desk.ID]*desk.Merge
	Conflicts map[desk.ID]*desk.Conflict

	// ConflictNames are the names of the contacts of conflicts.
	ConflictNames map[desk.ID]string

	Broadcasts map[desk.ID]*desk.Broadcast

	types []desk.EventType // the types that the reader gets
}

// Template returns the template that an event is about, with its channel. The template is
// nil if it no longer exists, or was not read.
func (p *Page) Template(e *desk.FeedEvent) (*desk.Channel, *desk.Template) {
	channel, name, language := e.TemplateKey()
	c, l := p.Settings.Channel(channel), p.Libraries[channel]
	if c == nil || l == nil {
		return c, nil
	}
	return c, l.Find(name, language)
}

// DataBytes is the size of an event's record as JSON, or somewhat more.
func (p *Page) DataBytes(e *desk.FeedEvent) int {
	switch e.Type.Kind() {
	case "template":
		if _, t := p.Template(e); t != nil {
			return t.ListBytes()
		}
	case "snippet":
		if s := p.Snippets[e.Key]; s != nil {
			return s.ListBytes()
		}
	case "segment":
		if s := p.Segments[e.Key]; s != nil {
			return s.ListBytes()
		}
	case "merge":
		if m := p.Merges[e.Subject]; m != nil {
			return m.ListBytes()
		}
	case "broadcast":
		if b := p.Broadcasts[e.Subject]; b != nil {
			return b.ListBytes()
		}
	case "conflict":
		if c := p.Conflicts[e.Subject]; c != nil {
			return c.ListBytes()
		}
	}
	return p.EventPage.DataBytes(e)
}

// complete adds the records that the store does not add to a page.
func (a *Service) complete(ctx context.Context, read *store.EventPage) (*Page, error) {
	page := &Page{EventPage: read}
	if err := a.addLibraries(ctx, page); err != nil {
		return nil, err
	}
	if err := a.addSnippets(ctx, page); err != nil {
		return nil, err
	}
	if err := a.addSegments(ctx, page); err != nil {
		return nil, err
	}
	if err := a.addMerges(ctx, page); err != nil {
		return nil, err
	}
	if err := a.addBroadcasts(ctx, page); err != nil {
		return nil, err
	}
	if err := a.addConflicts(ctx, page); err != nil {
		return nil, err
	}
	page.Trim(page.DataBytes) // now that the sizes of the records are known
	a.identify(read)
	return page, a.addWebhooks(ctx, page)
}

// addBroadcasts adds the broadcasts that a page's events are about.
func (a *Service) addBroadcasts(ctx context.Context, page *Page) error {
	for i := range page.Events {
		e := &page.Events[i]
		if e.Type.Kind() != "broadcast" {
			continue
		}
		if page.Broadcasts == nil {
			page.Broadcasts = map[desk.ID]*desk.Broadcast{}
		}
		if _, known := page.Broadcasts[e.Subject]; known {
			continue
		}
		b, err := a.Store.Broadcast(ctx, page.Settings.ID, e.Subject)
		if err != nil {
			return err
		}
		page.Broadcasts[e.Subject] = b
	}
	return nil
}

// identify gives the events of a page their ids.
func (a *Service) identify(page *store.EventPage) {
	for i := range page.Events {
		page.Events[i].ID = a.EventID(page.Settings.ID, page.Events[i].Place)
	}
}

// addWebhooks adds the webhooks, if the page has events about webhooks.
func (a *Service) addWebhooks(ctx context.Context, page *Page) error {
	if !slices.ContainsFunc(page.Events, func(e desk.FeedEvent) bool { return e.Type.Kind() == "webhook" }) {
		return nil
	}
	list, err := a.Webhooks(ctx, page.Settings, page.Settings.Webhooks()...)
	page.Webhooks = make(map[desk.ID]*Webhook, len(list))
	for i := range list {
		page.Webhooks[list[i].ID] = &list[i]
	}
	return err
}

// addLibraries adds the templates that the page's events are about.
func (a *Service) addLibraries(ctx context.Context, page *Page) error {
	for i := range page.Events {
		e := &page.Events[i]
		if e.Type.Kind() != "template" {
			continue
		}
		id, _, _ := e.TemplateKey()
		c := page.Settings.Channel(id)
		if c == nil || page.Libraries[id] != nil {
			continue
		}
		library, err := a.Library(ctx, page.Settings.ID, c)
		if err != nil {
			return err
		}
		if page.Libraries == nil {
			page.Libraries = map[desk.ID]*desk.Library{}
		}
		page.Libraries[id] = library
	}
	return nil
}

// keysOf returns the keys of the records of a kind that a page's events are about.
func (p *Page) keysOf(kind string) map[string]bool {
	wanted := map[string]bool{}
	for i := range p.Events {
		if e := &p.Events[i]; e.Type.Kind() == kind {
			wanted[e.Key] = true
		}
	}
	return wanted
}

// addSegments adds the segments that a page's events are about.
func (a *Service) addSegments(ctx context.Context, page *Page) error {
	wanted := page.keysOf("segment")
	if len(wanted) == 0 {
		return nil
	}
	list, err := a.Store.Segments(ctx, page.Settings.ID)
	page.Segments = make(map[string]*desk.Segment, len(wanted))
	for i := range list {
		if wanted[list[i].Key] {
			page.Segments[list[i].Key] = &list[i]
		}
	}
	return err
}

// addSnippets adds the snippets that a page's events are about.
func (a *Service) addSnippets(ctx context.Context, page *Page) error {
	wanted := page.keysOf("snippet")
	if len(wanted) == 0 {
		return nil
	}
	list, err := a.Store.Snippets(ctx, page.Settings.ID)
	page.Snippets = make(map[string]*desk.Snippet, len(wanted))
	for i := range list {
		if wanted[list[i].Shortcut] {
			page.Snippets[list[i].Shortcut] = &list[i]
		}
	}
	return err
}

// mergesAtOnce is how many merges are read in one step: one may have 512 KiB.
const mergesAtOnce = 16

// addMerges adds the merges that a page's events are about, until the page is full.
func (a *Service) addMerges(ctx context.Context, page *Page) error {
	size := desk.NewPageSize(len(page.Events))
	var ids []desk.ID
	for i := range page.Events {
		if e := &page.Events[i]; e.Type.Kind() == "merge" && !slices.Contains(ids, e.Subject) {
			ids = append(ids, e.Subject)
		}
	}
	for part := range slices.Chunk(ids, mergesAtOnce) {
		list, err := a.Store.MergesByID(ctx, page.Settings.ID, part)
		if err != nil {
			return err
		}
		if page.Merges == nil {
			page.Merges = map[desk.ID]*desk.Merge{}
		}
		for _, id := range part {
			page.Merges[id] = nil // unless it is found
		}
		for _, m := range list {
			shown := m.Shown(a.Now())
			page.Merges[m.ID] = shown
			if !size.Add(shown.ListBytes()) {
				i := slices.IndexFunc(page.Events, func(e desk.FeedEvent) bool {
					_, read := page.Merges[e.Subject]
					return e.Type.Kind() == "merge" && !read
				})
				if i > 0 {
					page.Cut(i)
				}
				return nil
			}
		}
	}
	return nil
}

// addConflicts adds the conflicts that a page's events are about, with the names of their
// contacts.
func (a *Service) addConflicts(ctx context.Context, page *Page) error {
	var ids, contacts []desk.ID
	for i := range page.Events {
		if e := &page.Events[i]; e.Type.Kind() == "conflict" && !slices.Contains(ids, e.Subject) {
			ids = append(ids, e.Subject)
		}
	}
	if ids == nil {
		return nil
	}
	list, err := a.Store.ConflictsByID(ctx, page.Settings.ID, ids)
	if err != nil {
		return err
	}
	page.Conflicts = make(map[desk.ID]*desk.Conflict, len(list))
	for _, c := range list {
		page.Conflicts[c.ID] = c
		contacts = append(contacts, c.Contacts...)
	}
	page.ConflictNames, err = a.Store.ContactNames(ctx, page.Settings.ID, contacts)
	return err
}
