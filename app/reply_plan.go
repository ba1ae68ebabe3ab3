package app

import (
	"context"
	"errors"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// wouldWake returns the dormant conversation that a send to a contact would open, or nil.
func (a *App) wouldWake(ctx context.Context, ws, channel, contact desk.ID) (c *desk.Conversation, err error) {
	list, _, err := a.store.Conversations(ctx, ws, desk.ConversationFilter{Channel: channel, Contact: contact}, nil, desk.MaxLimit)
	for _, v := range list {
		if c == nil || v.CreatedAt > c.CreatedAt || v.CreatedAt == c.CreatedAt && v.ID.Compare(c.ID) > 0 {
			c = v
		}
	}
	if c == nil || !c.Wakes(a.now()) {
		return nil, err
	}
	return c, err
}

// A plannedReply is a reply that passed all checks.
type plannedReply struct {
	attempt      *desk.Attempt
	dispatch     *outgoing
	conversation *desk.Conversation
	file         *desk.Media // nil: none
}

// planReply checks a request in the contract's order (contract-talk §2), up to the send
// itself. It stores nothing. If a merge, or its undo, gives the conversation to another
// contact meanwhile, planReply checks again: a refusal may be of the contact before.
func (a *App) planReply(ctx context.Context, p desk.Principal, r *desk.ReplyRequest, request desk.ID) (*plannedReply, error) {
	c, err := a.Conversation(ctx, p, r.Conversation)
	for again := 0; err == nil; again++ {
		plan, refused := a.planReplyIn(ctx, p, c, r, request)
		if refused == nil || again == plansAgain {
			return plan, refused
		}
		before := c.ContactID
		if c, err = a.Conversation(ctx, p, r.Conversation); err == nil && c.ContactID == before {
			return nil, refused
		}
	}
	return nil, err
}

func (a *App) planReplyIn(ctx context.Context, p desk.Principal, c *desk.Conversation, r *desk.ReplyRequest, request desk.ID) (*plannedReply, error) {
	ws := p.Workspace()
	if c.Status != desk.StatusOpen {
		open, err := store.OpenConversation(ctx, a.store, ws, c.ChannelID, c.ContactID)
		if err != nil {
			return nil, err
		}
		return nil, notOpen(c, open)
	}
	plan := &desk.Reply{Kind: desk.KindText, Author: p.Settings.AuthorOf(p.Actor), Buttons: r.Buttons}
	if r.Buttons != nil {
		plan.Kind = desk.KindButtons
	}
	if p.Member != nil {
		plan.Member = p.Member.ID
	}
	if r.Rule != "" {
		plan.Author = desk.Author{Type: desk.AuthorRule, Name: string(r.Rule)}
	}
	if r.Member.Has() {
		m, err := memberNamed(p.Settings, "/member", r.Member.Value)
		if err != nil {
			return nil, err
		}
		plan.Author, plan.Member = desk.Author{Type: desk.AuthorMember, ID: m.ID, Name: m.Name}, m.ID
	}
	if r.ReplyTo.Has() {
		quoted, err := a.quotable(ctx, p, c.ID, r.ReplyTo.Value)
		if err != nil {
			return nil, err
		}
		plan.ReplyTo, plan.Quote = quoted.ID, quoted.ExternalID
	}
	text, file, sent := r.Text, (*desk.Media)(nil), (*provider.SentFile)(nil)
	if r.Attachment != nil {
		unsendable := func(m *desk.Media) *desk.UnsendableMedia { return m.Unsendable(r.Attachment.Caption != "") }
		var err error
		if file, err = a.attachable(ctx, p, c.ContactID, r.Attachment.Media, unsendable); err != nil {
			return nil, err
		}
		plan.Kind, plan.Media, text = file.Kind, file.ID, file.AttachmentText(r.Attachment.Caption)
		sent = &provider.SentFile{Kind: file.Kind, Name: file.Name, Caption: r.Attachment.Caption}
	}
	channel := p.Settings.Channel(c.ChannelID)
	if channel == nil {
		return nil, ErrStale
	}
	if err := a.usableToReply(channel); err != nil {
		return nil, err
	}
	windows, err := a.store.Windows(ctx, ws, []desk.WindowRef{{Channel: c.ChannelID, Contact: c.ContactID}})
	if err != nil {
		return nil, err
	}
	window := windows[desk.WindowRef{Channel: c.ChannelID, Contact: c.ContactID}]
	number, userID := addressOf(&window)
	if number == "" && userID == "" { // nobody wrote, or an earlier release did not store from where
		contact, err := a.contact(ctx, ws, c.ContactID)
		if err != nil {
			return nil, err
		}
		number = contact.Address()
	}
	if number == "" && userID == "" {
		return nil, desk.Errorf(desk.RecipientUnreachable, "the contact has no phone and no chat account: add one")
	}
	now := a.now()
	state := window.State(now)
	if state.Reason == desk.WindowExpired { // this server's clock may be ahead: check with the database's
		at, _, err := a.store.Clock(ctx)
		if err != nil {
			return nil, err
		}
		state = window.State(at)
	}
	if !state.Open {
		return nil, windowClosed(state)
	}
	plan.UserID = userID
	at := &desk.Attempt{ID: a.newID(), Key: r.Key, Hash: r.Hash, Actor: p.Actor, Phase: desk.Dispatching, CreatedAt: now, Plan: desk.Plan{
		Channel: c.ChannelID, Contact: c.ContactID, Conversation: c.ID, Message: a.newID(), Known: true, Text: text, Number: number,
		OptIn: desk.OptIn{Request: request}, Reply: plan,
	}}
	access, err := a.accessToSend(ws, channel)
	d := &outgoing{Dispatch: provider.Dispatch{Access: access, Attempt: at.ID, Number: number, UserID: userID, Text: r.Text, Buttons: r.Buttons, File: sent, Quote: plan.Quote}}
	return &plannedReply{at, d, c, file}, err
}

// quotable returns a message of a conversation that can be quoted.
func (a *App) quotable(ctx context.Context, p desk.Principal, conversation, id desk.ID) (*desk.Message, error) {
	m, err := a.Message(ctx, p, conversation, id)
	if desk.IsType(err, desk.NotFound) || err == nil && (m.ExternalID == "" || m.Kind == desk.KindReaction) {
		err = desk.InvalidAt("/reply_to", "name a message of this conversation that has an external_id, and is no reaction")
	}
	return m, err
}

// addressOf returns the address from which the person wrote last, if it is known.
func addressOf(w *desk.Window) (number, userID string) {
	if w.Number != "" {
		return w.Number, ""
	}
	return "", w.UserID
}

// mayStillReply repeats, in the transaction that holds the key, the checks whose result may
// have changed since the plan was made. If the person has written from another address
// meanwhile, it changes the recipient to that address.
func (a *App) mayStillReply(tx store.Tx, at *desk.Attempt, d *outgoing) error {
	plan := &at.Plan
	c, err := tx.Conversation(plan.Conversation)
	switch {
	case err != nil:
		return err
	case c == nil:
		return desk.NoConversation()
	}
	if err := d.seen.alone(tx, c); err != nil {
		return err
	}
	plan.Contact = c.ContactID // contacts may have been merged since
	if c.Status != desk.StatusOpen {
		open, err := tx.OpenConversation(c.ChannelID, c.ContactID)
		if err != nil {
			return err
		}
		return notOpen(c, open)
	}
	w, err := tx.Window(plan.Channel, plan.Contact)
	if err != nil {
		return err
	}
	if state := w.State(tx.Now()); !state.Open {
		return windowClosed(state)
	}
	if plan.Reply.Author.Type == desk.AuthorRule {
		out, err := a.hasOptedOut(tx, plan.Contact, "")
		if err != nil {
			return err
		}
		if out || w.JustReplied(tx.Now()) {
			return errSilent
		}
	}
	if err := stillHasFile(tx, plan); err != nil {
		return err
	}
	if w.Number != "" || w.UserID != "" {
		plan.Number, plan.Reply.UserID = addressOf(&w)
		d.Number, d.UserID = plan.Number, plan.Reply.UserID
	}
	return nil
}

// stillHasFile checks, in the transaction that holds the key, the file of a message. From
// now on the file can't be deleted: see Attempt.Holds.
func stillHasFile(tx store.Tx, plan *desk.Plan) error {
	if plan.File().IsZero() {
		return nil
	}
	m, err := tx.Media(plan.File())
	switch {
	case err != nil:
		return err
	case m == nil, !m.ContactID.IsZero() && m.ContactID != plan.Contact: // contacts may have been separated since
		return desk.NoMedia()
	}
	return m.Unavailable()
}

// alone makes the same check as still. It also returns Changed if another reply is being
// sent, because this reply is not in the list of messages yet.
func (s *Seen) alone(tx store.Tx, c *desk.Conversation) error {
	if err := s.still(tx, c); err != nil || s == nil {
		return err
	}
	list, err := tx.AttemptsTo(c.ContactID)
	for _, other := range list {
		if other.Phase == desk.Dispatching && other.Plan.Conversation == c.ID && other.Plan.Reply != nil {
			return changed(c)
		}
	}
	return err
}

func windowClosed(state desk.WindowState) *desk.Error {
	e := desk.Errorf(desk.WindowClosed, "this person can't be answered freely now, because they did not write in the last 24 hours: send a template")
	switch state.Reason {
	case desk.NeverWrote:
		e = desk.Errorf(desk.WindowClosed, "this person can't be answered freely, because they never wrote on this channel: send a template")
	case desk.ByTheProvider:
		e = desk.Errorf(desk.WindowClosed, "the provider lets nobody answer this person freely now: send a template, or wait until they write again")
	case desk.NumberChanged:
		e = desk.Errorf(desk.WindowClosed, "this person has a new number, and did not write from it yet: send a template")
	}
	e.Details = state
	return e
}

func notOpen(c, open *desk.Conversation) *desk.Error {
	details := desk.NotOpen{Status: c.Status}
	e := desk.Errorf(desk.ConversationNotOpen, "the conversation is %s: open it first", c.Status)
	if open != nil {
		details.Open = open.ID
		e = desk.Errorf(desk.ConversationNotOpen, "the conversation is %s: answer in the open one", c.Status)
	}
	e.Details = details
	return e
}

// replied returns the message of an accepted reply. The message belongs to its conversation
// even if the conversation was closed meanwhile. An unassigned open conversation is
// assigned to the member who is the author.
func replied(s *desk.Settings, at *desk.Attempt, c *desk.Conversation, externalID string, sent desk.Time) *desk.SentMessage {
	plan, r := &at.Plan, at.Plan.Reply
	m := &desk.SentMessage{Kind: s.Channel(plan.Channel).Kind, Existing: true, Reply: true, Conversation: *c}
	if !r.Member.IsZero() && c.AssignedMember.IsZero() && c.Status == desk.StatusOpen && s.Member(r.Member) != nil {
		m.Conversation.Assign(r.Member)
	}
	m.Message = desk.Message{
		ID: plan.Message, ConversationID: c.ID, ChannelID: plan.Channel, Direction: desk.Outbound, ExternalID: externalID,
		Text: plan.Text, Delivery: desk.Sent, TS: sent, Kind: r.Kind, Author: r.Author, ReplyTo: r.ReplyTo, Media: r.Media, Attempt: at.ID,
	}
	if r.Buttons != nil {
		m.Message.Extra = &desk.Extra{Buttons: r.Buttons}
	}
	m.Conversation.Note(&m.Message)
	return m
}

// attach hands the file of a message to the provider; handed tells that it did not have it before.
func (a *App) attach(ctx context.Context, d *outgoing, file *desk.Media) (handed bool, err error) {
	talker, ok := a.providers[d.Channel.Kind].(provider.Talker)
	if !ok {
		return false, desk.Errorf(desk.MediaNotSendable, "no files can be sent on this channel")
	}
	d.File.Ref, handed, err = a.Media.HandOver(context.WithoutCancel(ctx), d.Access, talker, file)
	var refusal *desk.Refusal
	switch {
	case errors.As(err, &refusal):
		return false, refusal.Answer()
	case err != nil && desk.AsError(err).Type == desk.Internal:
		e := desk.Errorf(desk.ProviderUnavailable, "the provider did not take the file, so nothing was sent: try again")
		e.Err = err
		return false, e
	}
	return handed, err
}
