package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A TemplateQuery is the input of GET /templates.
type TemplateQuery struct {
	Channel *desk.ID
	Agent   *string  // a member's id or e-mail
	Contact *desk.ID // at most one of Contact and Phone is given
	Phone   desk.Identity
	Name    string // the caller's own name for the customer
}

// A TemplateList is a channel's library, with the values for hints.
type TemplateList struct {
	Channel  *desk.Channel
	Library  *desk.Library
	Agent    *desk.Member     // nil if not asked for, or unknown
	Customer *TemplateContact // nil if not asked for
	Values   map[desk.Binding]desk.HintValue
}

// A TemplateContact is the customer for whom the hints are.
type TemplateContact struct {
	ID   desk.ID // zero if no contact is known
	Name string  // "" if no name is known
}

// Templates returns a channel's templates, sendable or not, and the values for their
// hints. It returns NotFound for an unknown channel or contact, and InvalidRequest if
// several channels are possible.
func (a *App) Templates(ctx context.Context, p desk.Principal, q TemplateQuery) (l TemplateList, err error) {
	if l.Channel, err = p.Settings.PickChannel(q.Channel); err != nil {
		if desk.IsType(err, desk.AmbiguousChannel) { // this type of error is only for sends
			err = desk.InvalidAt("/channel_id", "this workspace has several chat-app channels: name one").Advise(desk.ListChannels)
		}
		return l, err
	}
	if q.Agent != nil {
		l.Agent = p.Settings.ResolveMember(desk.ReferTo(*q.Agent))
	}
	contact, err := a.templateContact(ctx, p, q)
	if err != nil {
		return l, err
	}
	name, source := strings.TrimSpace(q.Name), desk.FromContact
	if contact != nil || q.Phone.Value != "" || name != "" {
		l.Customer = &TemplateContact{}
	}
	if contact != nil {
		l.Customer.ID, l.Customer.Name = contact.ID, contact.Name
	}
	if name != "" {
		l.Customer.Name, source = name, desk.FromRequest
	}
	customer := ""
	if l.Customer != nil && (q.Agent != nil || q.Contact != nil || q.Phone.Value != "") { // a name alone gives no hint (spec, VariableHint)
		customer = l.Customer.Name
	}
	l.Values = desk.HintValues(l.Agent, customer, source)
	l.Library, err = a.libraries.of(ctx, p.Workspace(), l.Channel)
	return l, err
}

// templateContact finds the contact for whom the hints are; nil if none is asked for,
// or no contact has the number.
func (a *App) templateContact(ctx context.Context, p desk.Principal, q TemplateQuery) (*desk.Contact, error) {
	switch {
	case q.Contact != nil:
		return a.contact(ctx, p.Workspace(), *q.Contact)
	case q.Phone.Value != "":
		book, err := a.store.Book(ctx, p.Workspace(), desk.Lookup{Identities: []desk.Identity{q.Phone}})
		if err != nil {
			return nil, err
		}
		return book.Holder(q.Phone)
	}
	return nil, nil
}

// TemplatesOf returns the whole library of a channel, or NotFound.
func (a *App) TemplatesOf(ctx context.Context, p desk.Principal, channel desk.ID) (*desk.Library, error) {
	c, err := administered(p, channel)
	if err != nil {
		return nil, err
	}
	return a.libraries.of(ctx, p.Workspace(), c)
}

// SyncChannel fetches a channel's templates from its provider now, and returns how
// many there are and how many of them could not be read. It returns NotFound.
func (a *App) SyncChannel(ctx context.Context, p desk.Principal, id desk.ID) (count, unreadable int, err error) {
	if _, err := administered(p, id); err != nil {
		return 0, 0, err
	}
	return a.sync(ctx, p.Workspace(), id)
}

// sync fetches the templates of a channel. It waits while this process fetches those of
// another channel of the workspace.
func (a *App) sync(ctx context.Context, ws, id desk.ID) (count, unreadable int, err error) {
	end, err := a.libraries.fetches.Begin(ctx, ws)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	for try := 1; ; try++ {
		count, unreadable, err = a.syncOnce(ctx, id)
		if !errors.Is(err, errMoved) || try == syncTries {
			return count, unreadable, err
		}
	}
}

// syncTries is how many times a library is fetched again if it has changed during the
// fetch.
const syncTries = 3

// errMoved means that the stored library has changed since it was read, so the fetched
// one may be older.
var errMoved = desk.Errorf(desk.Unavailable, "the templates have changed while they were fetched: try again")

// replaceLibrary replaces the stored templates of a channel, if the library still has
// the given version.
func (a *App) replaceLibrary(ctx context.Context, ws, channel desk.ID, version int64, stored, list []desk.TemplateSource) error {
	return store.UpdateSettings(ctx, a.store, ws, byProvider(channel), a.now, func(s *desk.Settings) (desk.Change, error) {
		if s.Channel(channel).Library != version {
			return desk.Change{}, errMoved
		}
		return desk.Change{Templates: &desk.ChannelLibrary{Channel: channel, Templates: list, Replaced: stored}}, nil
	})
}

func (a *App) syncOnce(ctx context.Context, id desk.ID) (count, unreadable int, err error) {
	settings, at, err := a.accessOf(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	ws := settings.ID
	version, stored, err := a.store.Templates(ctx, ws, id)
	if err != nil {
		return 0, 0, err
	}
	fetched, err := a.fetch(ctx, at)
	a.fetchAnswered(ctx, ws, at.Channel, err)
	if err != nil {
		return 0, 0, err
	}
	var list, vanished, deleted []desk.TemplateSource
	for _, s := range fetched {
		if _, err := desk.ParseTemplate([]byte(s.Source)); err != nil {
			a.log.WarnContext(ctx, "a template can't be read; it is left out", "channel_id", id, "template", s.Name, "language", s.Language, "err", err)
			unreadable++
			continue
		}
		list = append(list, s)
	}
	// A provider that lists templates in pages may list one twice if the list changes
	// meanwhile.
	slices.SortStableFunc(list, compareSources)
	list = slices.CompactFunc(list, func(a, b desk.TemplateSource) bool { return compareSources(a, b) == 0 })
	slices.SortFunc(stored, compareSources)
	for _, t := range stored { // a template that no longer exists is shown, but not sent
		if _, found := slices.BinarySearchFunc(list, t, compareSources); !found {
			gone, err := t.WithStatus(desk.DeletedStatus)
			if err != nil {
				return 0, 0, err
			}
			if gone == t {
				deleted = append(deleted, t)
			} else {
				vanished = append(vanished, gone)
			}
		}
	}
	count = len(list)
	list = withDeleted(append(list, vanished...), deleted)
	slices.SortFunc(list, compareSources)
	if slices.Equal(list, stored) {
		return count, unreadable, a.synced(ctx, ws, id)
	}
	err = a.replaceLibrary(ctx, ws, id, version, stored, list)
	if err == nil {
		err = a.synced(ctx, ws, id)
	}
	return count, unreadable, err
}

// fetch asks a channel's provider for its library, for a limited time.
func (a *App) fetch(ctx context.Context, at provider.Access) ([]desk.TemplateSource, error) {
	within, cancel := context.WithTimeout(ctx, a.bounds.Templates)
	defer cancel()
	list, err := a.providers[at.Channel.Kind].Templates(within, at)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &desk.Error{Type: desk.Unavailable, Message: fmt.Sprintf("the provider did not tell all templates within %s: try again later", a.bounds.Templates), Err: err}
	}
	return list, err
}

// withDeleted returns a library with the templates that were deleted before, as far as they
// fit into the size limit of a library.
func withDeleted(list, deleted []desk.TemplateSource) []desk.TemplateSource {
	size := 0
	for _, t := range list {
		size += len(t.Source)
	}
	for _, t := range deleted {
		if size += len(t.Source); len(list) >= desk.MaxTemplates || size > desk.MaxLibraryBytes {
			break
		}
		list = append(list, t)
	}
	return list
}

// synced stores the present time as the time at which a channel's library was last fetched.
func (a *App) synced(ctx context.Context, ws, channel desk.ID) error {
	return a.store.NoteChannel(ctx, ws, channel, store.SignSynced)
}

func compareSources(a, b desk.TemplateSource) int {
	if n := strings.Compare(a.Name, b.Name); n != 0 {
		return n
	}
	return strings.Compare(a.Language, b.Language)
}

// PutTemplate puts a template, in the provider's JSON form, into the library of a
// simulated channel, replacing one with the same name and language. It returns
// NotFound, and InvalidRequest for any other channel and for a template that can't be
// read.
func (a *App) PutTemplate(ctx context.Context, p desk.Principal, channel desk.ID, source []byte) (*desk.Template, error) {
	c, err := administered(p, channel)
	if err != nil {
		return nil, err
	}
	simulator, ok := a.providers[c.Kind].(provider.Simulator)
	if !ok {
		return nil, desk.Invalidf("the templates of a %s channel are made at the provider; only a simulated channel's library can be written", c.Kind).Advise(desk.SyncChannel, channel.String())
	}
	t, err := desk.ParseTemplate(source)
	if err != nil {
		return nil, desk.Within("/file", err)
	}
	err = simulator.PutTemplate(ctx, p.Workspace(), channel, desk.TemplateSource{Name: t.Name, Language: t.Language, Source: string(source)})
	if err == nil {
		_, _, err = a.sync(ctx, p.Workspace(), channel)
	}
	return t, err
}
