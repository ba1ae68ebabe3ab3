package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A Simulated is a message of a customer of a simulated provider.
type Simulated struct {
	From, Name string // the customer's phone number in any spelling, and name
	Text       string // the text, or the caption of File; may be "" with File, Reaction or Choice
	At         string // when it was sent; "": now
	ReplyTo    string // the message that it quotes or reacts to: its id, or its id at the provider; "": none
	Reaction   *string
	Choice     string // the id of the button that the customer tapped; "": none
	ExternalID string // of the message at the provider; "": a new one
	Echo       bool   // the business typed it in the phone app, to the customer
	File       *SimulatedFile

	number string // in place of From: digits
}

// A SimulatedFile is a file that a customer sent.
type SimulatedFile struct {
	Name, Type string // as the customer's phone reports them; either may be ""
	Fault      string // the fault of the fetch; "": the file is ready at once
	Content    io.Reader
}

// Simulate receives a message on a simulated channel, and returns it with its conversation.
// Both are nil if the message was dropped: because it is a reaction for which there is no
// conversation, or because a message with this id was erased with its person. It returns
// NotFound, and InvalidRequest for another kind of channel and for an invalid message.
func (a *App) Simulate(ctx context.Context, p desk.Principal, channel desk.ID, s Simulated) (*desk.Conversation, *desk.Message, error) {
	if err := p.Allow(desk.Simulate); err != nil {
		return nil, nil, err
	}
	c := p.Settings.Channel(channel)
	if c == nil {
		return nil, nil, errNoChannel
	}
	if err := a.simulates(c); err != nil {
		return nil, nil, err
	}
	in, file, err := a.simulated(ctx, p, c, s)
	var conversation *desk.Conversation
	if err == nil {
		conversation, err = a.Receive(ctx, p.Workspace(), c.ID, in)
	}
	if err != nil || conversation == nil {
		if file != nil && !errors.Is(err, store.ErrCommitLost) {
			// If this fails, the file is deleted after a day, like every upload that no message has.
			_ = a.Media.Delete(context.WithoutCancel(ctx), p, file.ID)
		}
		return nil, nil, err
	}
	list, err := a.store.MessagesBy(ctx, p.Workspace(), []desk.MessageRef{{Channel: c.ID, ExternalID: in.ExternalID}})
	if err != nil || len(list) == 0 {
		return nil, nil, cmp.Or(err, error(desk.NoConversation())) // erased meanwhile
	}
	if file != nil {
		err = a.belongsTo(ctx, p.Workspace(), file.ID, list[0])
	}
	return conversation, list[0], err
}

// belongsTo makes a file the customer's, so that it is erased with the customer.
func (a *App) belongsTo(ctx context.Context, ws, file desk.ID, m *desk.Message) error {
	return a.store.InTx(ctx, ws, func(tx store.Tx) error {
		still, err := tx.Message(m.ConversationID, m.ID)
		if err != nil || still == nil {
			return err
		}
		f, err := tx.Media(file)
		if err != nil || f == nil {
			return err
		}
		f.ContactID = still.ContactID
		return tx.PutMedia(f)
	})
}

// ReceiveSimulated is Simulate for a text.
func (a *App) ReceiveSimulated(ctx context.Context, p desk.Principal, channel desk.ID, from, name, text string) (*desk.Conversation, error) {
	c, _, err := a.Simulate(ctx, p, channel, Simulated{From: from, Name: name, Text: text})
	return c, err
}

// simulates returns an error for a channel of a real provider.
func (a *App) simulates(c *desk.Channel) error {
	if _, ok := a.providers[c.Kind].(provider.Simulator); !ok {
		return desk.InvalidAt("/channel", "customers write to a %s channel themselves; messages can be simulated on a simulated channel only", c.Kind)
	}
	return nil
}

// simulated checks a customer's message and stores its file. It returns the message as a
// provider would report it.
func (a *App) simulated(ctx context.Context, p desk.Principal, c *desk.Channel, s Simulated) (in provider.InboundMessage, file *desk.Media, err error) {
	in = provider.InboundMessage{ExternalID: cmp.Or(s.ExternalID, string(c.Kind)+"."+a.newID().String()), At: a.now(), Echo: s.Echo}
	if in.ExternalID, err = desk.ParseExternalID(in.ExternalID); err != nil {
		return in, nil, desk.InvalidAt("/external_id", "%v", err)
	}
	if in.Number = s.number; in.Number == "" {
		if in.Number, err = desk.ParsePhone(s.From, p.Settings.Country); err != nil {
			return in, nil, desk.InvalidAt("/from", "%v", err)
		}
	}
	if in.Name, err = desk.ParseName(s.Name); err != nil {
		return in, nil, desk.InvalidAt("/name", "%v", err)
	}
	if s.At != "" {
		at, ok := desk.ParseTime(s.At)
		if !ok || at > in.At+simulatedAhead {
			return in, nil, desk.InvalidAt("/at", "send a time such as 2026-11-21T10:00:00Z, at most a minute ahead")
		}
		in.At = at
	}
	named, err := a.simulatedReply(ctx, p, c, in.Number, s.ReplyTo)
	if err != nil {
		return in, nil, err
	}
	if in.ReplyTo = s.ReplyTo; named != nil {
		in.ReplyTo = named.ExternalID
	}
	if in.Text, err = s.content(&in, named); err != nil {
		return in, nil, err
	}
	if s.File == nil {
		return in, nil, nil
	}
	erased := false
	err = a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) (err error) {
		erased, err = tx.AnyErased([]desk.MessageRef{{Channel: c.ID, ExternalID: in.ExternalID}})
		return err
	})
	if erased || err != nil {
		return in, nil, err // before the file is stored, so that nothing is left behind
	}
	file, err = a.simulatedFile(ctx, p, c, s.File, &in)
	return in, file, err
}

// simulatedAhead is how far in the future the time of a message may be, in milliseconds. The
// clock of a real provider may be as far ahead.
const simulatedAhead = desk.Time(60 * 1000)

// content sets the kind of a message and its content besides the text, and returns its
// text. The parameter named is the message to which it replies, or nil if this message is
// not known.
func (s *Simulated) content(in *provider.InboundMessage, named *desk.Message) (string, error) {
	in.Kind = desk.KindText
	several := 0
	for _, set := range []bool{s.Reaction != nil, s.Choice != "", s.File != nil} {
		if set {
			several++
		}
	}
	text, err := s.Text, error(nil)
	if text != "" || several == 0 {
		if text, err = desk.ParseMessage(s.Text); err != nil {
			return "", desk.InvalidAt("/text", "%v", err)
		}
	}
	switch {
	case several > 1 || s.Reaction != nil && s.Text != "":
		return "", desk.Invalidf("a message is a text, a file, a reaction or a choice")
	case s.Reaction != nil:
		if s.ReplyTo == "" {
			return "", desk.InvalidAt("/reply_to", "say to which message this reacts")
		}
		emoji, err := desk.ParseName(*s.Reaction)
		if err != nil {
			return "", desk.InvalidAt("/reaction", "%v", err)
		}
		in.Kind, in.Extra = desk.KindReaction, &desk.Extra{Reaction: &desk.Reaction{Emoji: emoji}}
		if emoji == "" {
			return "[reaction removed]", nil
		}
		return "[reaction] " + emoji, nil
	case s.Choice != "":
		id, err := desk.ParseName(s.Choice)
		if err != nil {
			return "", desk.InvalidAt("/choice", "%v", err)
		}
		chosen := desk.Button{ID: id, Title: cmp.Or(text, id)}
		if named != nil && named.Extra != nil {
			for _, b := range named.Extra.Buttons {
				if b.ID == id {
					chosen.Title = b.Title
				}
			}
		}
		in.Kind, in.Extra = desk.KindChoice, &desk.Extra{Choice: &chosen}
		return chosen.Title, nil
	}
	return text, nil
}

// simulatedReply searches in up to mostSimulated conversations of a customer.
const mostSimulated = 100

// simulatedReply finds the message to which a simulated message replies. It returns nil for
// an id of the provider, and NotFound for an unknown id of parley's own.
func (a *App) simulatedReply(ctx context.Context, p desk.Principal, c *desk.Channel, number, replyTo string) (named *desk.Message, err error) {
	id, ours := desk.ParseID(replyTo)
	if !ours {
		return nil, nil
	}
	who := person{number: number, identities: a.providers[c.Kind].Identities(number, "")}
	book, err := a.store.Book(ctx, p.Workspace(), who.lookup())
	if err != nil {
		return nil, err
	}
	if contact := who.known(book); contact != nil {
		list, _, err := a.store.Conversations(ctx, p.Workspace(), desk.ConversationFilter{Channel: c.ID, Contact: contact.ID}, nil, mostSimulated)
		if err != nil {
			return nil, err
		}
		err = a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) (err error) {
			named = nil
			for i := 0; i < len(list) && named == nil && err == nil; i++ {
				named, err = tx.Message(list[i].ID, id)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if named == nil {
		return nil, desk.InvalidAt("/reply_to", "the customer's conversations on this channel have no message %s", id)
	}
	return named, nil
}

// simulatedFile stores the file of a message. It may return both the file and an error, which
// refuses the message.
func (a *App) simulatedFile(ctx context.Context, p desk.Principal, c *desk.Channel, f *SimulatedFile, in *provider.InboundMessage) (m *desk.Media, err error) {
	in.Media = &provider.InboundMedia{}
	simulator, _ := a.providers[c.Kind].(provider.Simulator) // as simulates has checked
	if f.Fault != "" {
		if _, err := simulator.FileRef(desk.ID{}, f.Fault); err != nil {
			return nil, desk.InvalidAt("/fault", "%s", desk.AsError(err).Message)
		}
	}
	if m, err = a.Media.Upload(ctx, p, desk.FileHead{Name: f.Name, Type: f.Type}, f.Content); err != nil {
		return nil, err
	}
	in.Kind, in.Media.MIME, in.Media.Name = m.Kind, m.MIME, m.Name
	what := string(m.Kind)
	if m.Kind == desk.KindDocument && m.Name != "" {
		what += ": " + m.Name
	}
	if in.Text, err = desk.ParseMessage(strings.TrimSpace("[" + what + "] " + in.Text)); err != nil {
		return m, desk.InvalidAt("/text", "%v", err)
	}
	if f.Fault == "" {
		in.Media.Stored = m.ID
		return m, nil
	}
	in.Media.Ref, err = simulator.FileRef(m.ID, f.Fault)
	return m, err
}

// WriteAsCustomer receives a message of a conversation's customer, and returns the
// conversation that it went to: a new one if this one is not open. It returns the errors
// of Simulate.
func (a *App) WriteAsCustomer(ctx context.Context, p desk.Principal, conversation desk.ID, s Simulated) (*desk.Conversation, error) {
	c, err := a.Conversation(ctx, p, conversation)
	if err != nil {
		return nil, err
	}
	contact, err := a.contact(ctx, p.Workspace(), c.ContactID)
	if err != nil {
		return nil, err
	}
	if s.number = contact.Address(); s.number == "" {
		return nil, desk.Invalidf("this person has no number any more, and so can't write")
	}
	to, _, err := a.Simulate(ctx, p, c.ChannelID, s)
	if to == nil && err == nil { // the message was dropped
		to = c
	}
	return to, err
}
