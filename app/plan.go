package app

import (
	"context"
	"errors"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// plan checks a request in the contract's order (§5), up to the send itself. It returns the
// plan. It stores nothing.
func (a *App) plan(ctx context.Context, p desk.Principal, r *desk.SendRequest, request desk.ID) (*plannedSend, error) {
	if !r.OptInConfirmed {
		e := desk.Errorf(desk.OptInRequired, "must be true: it asserts, on every call, that the person agreed to be written to")
		e.At = "/opt_in_confirmed"
		return nil, e
	}
	channel, err := p.Settings.PickChannel(r.Channel)
	if err != nil {
		return nil, err
	}
	if err := a.usable(channel); err != nil {
		return nil, err
	}
	contact, created, number, err := a.recipient(ctx, p, r)
	if err != nil {
		return nil, err
	}
	var assignee desk.ID
	if r.Assignee.Has() {
		m, err := memberNamed(p.Settings, "/assignee", r.Assignee.Value)
		if err != nil {
			return nil, err
		}
		assignee = m.ID
	}
	library, err := a.libraries.of(ctx, p.Workspace(), channel)
	if err != nil {
		return nil, err
	}
	template, values, err := a.fill(ctx, p, library, number, contact, r)
	if err != nil {
		return nil, err
	}
	supplied := template.Supplied(r.Variables)
	file, sent, err := a.titleFile(ctx, p, template, supplied, contact)
	if err != nil {
		return nil, err
	}
	now := a.now()
	at := &desk.Attempt{ID: a.newID(), Key: r.Key, Hash: r.Hash, Actor: p.Actor, Phase: desk.Dispatching, CreatedAt: now, Plan: desk.Plan{
		Channel: channel.ID, Conversation: a.newID(), Message: a.newID(),
		Template: template.Name, Language: template.Language, Text: template.Text(values),
		OptIn: desk.NewOptIn(p.Actor, now, request), Assignee: assignee, Number: number, Links: template.Links(supplied),
	}}
	if file != nil {
		at.Plan.Media = file.ID
	}
	if contact != nil {
		at.Plan.Contact, at.Plan.Known = contact.ID, true
	} else {
		at.Plan.Contact, at.Plan.Profile = a.newID(), r.Profile
		contact = created
	}
	access, err := a.accessToSend(p.Workspace(), channel)
	d := &outgoing{Dispatch: provider.Dispatch{
		Access: access, Attempt: at.ID, Number: number,
		Template: template, Components: template.Components(values, supplied), File: sent,
	}}
	if len(template.Needs) > 0 {
		d.library = library.Version
	}
	return &plannedSend{at, d, contact, file}, err
}

// A plannedSend is a send of a template that passed all checks.
type plannedSend struct {
	attempt  *desk.Attempt
	dispatch *outgoing
	contact  *desk.Contact // it may not be stored yet
	file     *desk.Media   // in the template's title; nil: none
}

// titleTypes names the files that a template's title takes, by its kind.
var titleTypes = map[desk.MessageKind]string{
	desk.KindImage: "a JPEG or PNG picture", desk.KindVideo: "an MP4 or 3GPP video", desk.KindDocument: "a PDF",
}

// titleFile returns the file of a template's title, or nil if it has none. The file is an
// upload, or was sent by the contact (nil: not known yet).
func (a *App) titleFile(ctx context.Context, p desk.Principal, t *desk.Template, supplied []string, contact *desk.Contact) (*desk.Media, *provider.SentFile, error) {
	if !t.TakesFile() {
		return nil, nil, nil
	}
	id, _ := desk.ParseID(supplied[0]) // a malformed id is unknown
	var from desk.ID
	if contact != nil {
		from = contact.ID
	}
	file, err := a.attachable(ctx, p, from, id, t.Needs[0].Unsendable)
	if e := (*desk.Error)(nil); errors.As(err, &e) {
		if why, ok := e.Details.(desk.UnsendableMedia); ok && why.Max == 0 {
			e.Message = "the template's title takes " + titleTypes[t.Needs[0].Kind]
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return file, &provider.SentFile{Kind: file.Kind, Name: file.Name}, nil
}

// attachable returns a file that can be sent to a contact (zero: not known yet): an upload,
// or a file that the contact sent. unsendable says why a ready file can't be sent.
func (a *App) attachable(ctx context.Context, p desk.Principal, contact, id desk.ID, unsendable func(*desk.Media) *desk.UnsendableMedia) (*desk.Media, error) {
	m, err := a.Media.Record(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if !m.ContactID.IsZero() && m.ContactID != contact {
		return nil, desk.NoMedia()
	}
	if err := m.Unavailable(); err != nil {
		return nil, err
	}
	if why := unsendable(m); why != nil {
		e := desk.Errorf(desk.MediaNotSendable, "the provider does not take files of this type")
		switch why.Reason {
		case "size":
			e = desk.Errorf(desk.MediaNotSendable, "the provider takes files of this type up to %d bytes, and this one has %d", why.Max, why.Size)
		case "caption":
			e = desk.Errorf(desk.MediaNotSendable, "a file of this kind has no caption: leave it out, and send a text after it")
		}
		e.Details = *why
		return nil, e
	}
	return m, nil
}

// accessToSend decrypts the channel's secrets, or returns ChannelNotUsable if it can't.
func (a *App) accessToSend(ws desk.ID, channel *desk.Channel) (provider.Access, error) {
	access, err := a.access(ws, channel)
	var sealed *sealedError
	if errors.As(err, &sealed) {
		e := desk.Errorf(desk.ChannelNotUsable, "the channel's secrets don't open").Advise(desk.CheckChannel, channel.ID.String())
		e.Details, e.Err = desk.Unusable{Reason: "secrets"}, err
		err = e
	}
	return access, err
}

// usable returns ChannelNotUsable if no template can be sent on a channel now. Replies may
// be possible all the same.
func (a *App) usable(channel *desk.Channel) error {
	if err := a.usableToReply(channel); err != nil || !channel.Status.Refuses(a.now()) {
		return err
	}
	return blockedChannel(channel, "the provider lets this channel write to nobody first: people who wrote can be answered")
}

// usableToReply returns ChannelNotUsable if no reply can be sent on a channel now.
func (a *App) usableToReply(channel *desk.Channel) error {
	if !channel.Enabled {
		e := desk.Errorf(desk.ChannelNotUsable, "the channel is disabled").Advise(desk.EnableChannel, channel.ID.String())
		e.Details = desk.Unusable{Reason: "disabled"}
		return e
	}
	if channel.Status.RefusesReplies(a.now()) {
		return blockedChannel(channel, "the provider lets this channel send nothing")
	}
	return nil
}

func blockedChannel(channel *desk.Channel, why string) error {
	e := desk.Errorf(desk.ChannelNotUsable, "%s", why).Advise(desk.CheckChannel, channel.ID.String())
	e.Details = desk.Unusable{Reason: "blocked"}
	return e
}

// recipient returns the contact of a request, or the contact that the send will create, and
// the number to send to. A profile is checked like a contact write.
func (a *App) recipient(ctx context.Context, p desk.Principal, r *desk.SendRequest) (contact, created *desk.Contact, number string, err error) {
	op := &desk.Op{Kind: desk.OpPatch, ByID: true}
	if r.Profile != nil {
		op.Write = *r.Profile
	}
	if r.Contact != nil {
		op.Target = *r.Contact
	} else {
		op = findByNumber(r.Phone, r.Profile)
	}
	book, err := a.store.Book(ctx, p.Workspace(), op.Lookup())
	if err != nil {
		return nil, nil, "", err
	}
	if r.Contact != nil {
		if contact, err = book.ByID(*r.Contact); err != nil {
			return nil, nil, "", err
		}
	} else if contact, err = book.Holder(r.Phone); err != nil {
		return nil, nil, "", err
	}
	created = &desk.Contact{}
	if r.Profile != nil {
		if contact != nil {
			_, err = book.Apply(op, p.Actor, a.now(), a.newID)
		} else {
			op.New = true // a contact with an identity of the profile does not become the recipient
			var outcome desk.Outcome
			outcome, err = book.Apply(op, p.Actor, a.now(), a.newID)
			created = outcome.Contact
		}
		if err != nil {
			return nil, nil, "", desk.Within("/contact", err)
		}
	}
	if r.Contact == nil {
		return contact, created, r.Phone.Value, nil
	}
	if number = contact.Address(); number == "" {
		return nil, nil, "", desk.Errorf(desk.RecipientUnreachable, "the contact has no phone and no chat account: add one, or name the recipient by phone")
	}
	return contact, nil, number, nil
}

// findByNumber returns the operation that finds or creates the contact of a number.
func findByNumber(number desk.Identity, profile *desk.ContactWrite) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	if profile != nil {
		op.Write = *profile
	}
	op.Write.Phone = desk.Field[string]{Set: true, Value: number.Value}
	sent := []desk.Identity{number}
	for _, i := range op.Write.Sent {
		sent = desk.AddIdentity(sent, i)
	}
	op.Write.Sent = sent
	return op
}

// fill finds the template and checks that it may be sent with these values to this
// number, and to the contact if there is one.
func (a *App) fill(ctx context.Context, p desk.Principal, library *desk.Library, number string, contact *desk.Contact, r *desk.SendRequest) (*desk.Template, []string, error) {
	t := library.Find(r.Template, r.Language)
	if t == nil {
		return nil, nil, library.NoTemplate(r.Template, r.Language)
	}
	if reasons := t.ReasonsAgainst(r.Variables); len(reasons) > 0 {
		e := desk.Errorf(desk.TemplateNotSendable, "the template can't be sent: it must be approved, and every variable plain text").Advise(desk.SeeDetails)
		if t.Fillable() {
			e.Message = "the template needs more than the values of its variables: send " + t.NeededAddresses() + " too, in an object of values by address"
		}
		e.Details = desk.Unsendable{Status: t.Status, Reasons: reasons}
		return nil, nil, e
	}
	if t.Marketing() {
		since, err := a.optedOut(ctx, p.Workspace(), number, contact)
		if err != nil {
			return nil, nil, err
		}
		if since != 0 {
			e := desk.Errorf(desk.RecipientOptedOut, "this person asked for no marketing messages: send a template of another category, or wait until they send a start word, such as START")
			e.Details = desk.OptedOut{Since: since}
			return nil, nil, e
		}
	}
	values, err := t.Values(r.Variables)
	return t, values, err
}

// optedOut returns the time of a person's opt-out of marketing, or 0 if there is none. It
// checks the recipient's number and the provider's id of the contact.
func (a *App) optedOut(ctx context.Context, ws desk.ID, number string, contact *desk.Contact) (desk.Time, error) {
	handles := a.choiceHandles(ws, number, contact)
	choices, err := a.store.Choices(ctx, ws, handles)
	if err != nil {
		return 0, err
	}
	return firstOptOut(choices, handles), nil
}

// choiceHandles returns the hashes of the handles by which a person's marketing choice is
// stored.
func (a *App) choiceHandles(ws desk.ID, number string, contact *desk.Contact) []store.NumberHash {
	handles := []store.NumberHash{a.handleHash(ws, number)}
	if contact != nil {
		for _, i := range contact.Further {
			if i.OfProvider() {
				handles = append(handles, a.handleHash(ws, i.Value))
			}
		}
	}
	return handles
}

func firstOptOut(choices map[store.NumberHash]store.OptOut, handles []store.NumberHash) desk.Time {
	for _, handle := range handles {
		if since := choices[handle].Since; since != 0 {
			return since
		}
	}
	return 0
}

// An outgoing is a message for the provider, with data for the transaction that holds its key.
type outgoing struct {
	provider.Dispatch
	seen    *Seen // the state of the conversation that the author of a reply saw; nil: not checked
	library int64 // the version of the templates that say what the template needs; 0: not checked
}

// OptedOut returns the time of a contact's opt-out of marketing, or 0 if there is none.
func (a *App) OptedOut(ctx context.Context, p desk.Principal, contact *desk.Contact) (desk.Time, error) {
	return a.optedOut(ctx, p.Workspace(), contact.Address(), contact)
}
