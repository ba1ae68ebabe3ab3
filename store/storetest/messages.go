package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

func newMessage(c *desk.Conversation) *desk.Message {
	return &desk.Message{ID: newID(), ConversationID: c.ID, ChannelID: c.ChannelID, Direction: desk.Inbound, Text: "hello", TS: now(), Kind: desk.KindText}
}

func messageFieldsSurvive(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	want := newMessage(newConversation(newID(), newID()))
	put := store.Tx.PutMessage
	check := func() {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return put(tx, want) })
		list, _, err := s.Messages(t.Context(), ws, want.ConversationID, nil, 10)
		must(t, err)
		equal(t, "messages", list, []*desk.Message{want})
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.Message(want.ConversationID, want.ID)
			equal(t, "message", got, want)
			return err
		})
		got, err := s.Message(t.Context(), ws, want.ConversationID, want.ID)
		must(t, err)
		equal(t, "message that is only read", got, want)
	}
	check()
	want.Direction, want.Delivery, want.ExternalID, want.Text = desk.Outbound, desk.Sent, "wamid.1", "*a'b*\n\"c\" 😀\\"
	want.Template = "hello/en"
	want.OptIn = &desk.OptIn{Key: newID(), At: now(), Request: newID()}
	check()
	want.OptIn = &desk.OptIn{Member: newID(), At: now(), Request: newID(), Attribute: "marketing_ok"}
	check()
	want.Kind, want.ReplyTo, want.Author = desk.KindButtons, newID(), desk.Author{Type: desk.AuthorMember, ID: newID(), Name: "A\"da"}
	want.Extra = &desk.Extra{Buttons: []desk.Button{{ID: "a", Title: "Yes"}, {ID: "b", Title: "No"}}}
	check()
	want.Kind, want.Media = desk.KindTemplate, newID()
	want.Extra = &desk.Extra{Links: []desk.Link{{Title: "A\"b", URL: "https://a.example/?b=ü"}, {URL: "https://b.example"}}}
	check()
	want.Media = desk.ID{}
	want.Kind, want.Author = desk.KindReaction, desk.Author{Type: desk.AuthorRule, Name: "away"}
	want.Extra = &desk.Extra{Reaction: &desk.Reaction{}}
	check()
	want.Extra = &desk.Extra{Location: &desk.Location{Latitude: -41.25, Longitude: 179.5, Name: "Home"}}
	check()
	put = store.Tx.PutMessageDelivery
	want.Delivery, want.Failure = desk.Failed, &desk.Failure{Code: 131026, Title: "Not \"delivered\"", Fix: "ü"}
	check()
	want.Delivery, want.Failure = desk.Read, nil
	check()
	put = store.Tx.PutMessage
	want.ExternalID, want.Text, want.OptIn, want.Failure = "", "", &desk.OptIn{At: now()}, &desk.Failure{}
	check()
}

func messageOrder(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	c := newConversation(newID(), newID())
	var want []*desk.Message
	for i := range 12 {
		m := newMessage(c)
		m.TS = desk.Time(i % 3)
		want = append(want, m)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, m := range want {
			if err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return tx.PutMessage(newMessage(newConversation(c.ChannelID, c.ContactID)))
	})
	slices.SortFunc(want, func(a, b *desk.Message) int {
		return -cmp.Or(cmp.Compare(a.TS, b.TS), slices.Compare(a.ID[:], b.ID[:]))
	})
	for size := 1; size <= len(want)+1; size++ {
		got := walk(t, size, func(after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error) {
			return s.Messages(t.Context(), ws, c.ID, after, limit)
		})
		equal(t, fmt.Sprintf("messages in pages of %d", size), got, want)
	}
}

func messageExternalIDs(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	c := newConversation(newID(), newID())
	first, unknown, second := newMessage(c), newMessage(c), newMessage(c)
	first.ExternalID, second.ExternalID = "x", "x"
	elsewhere := newMessage(newConversation(newID(), newID()))
	elsewhere.ExternalID = "x"
	commit(t, s, ws, func(tx store.Tx) error {
		for _, m := range []*desk.Message{first, unknown, newMessage(c), elsewhere} {
			if err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutMessage(second) }); err == nil {
		t.Error("two messages of a channel have one external id")
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for external, want := range map[string]*desk.Message{"x": first, "": nil, "y": nil} {
			got, err := tx.MessageBy(c.ChannelID, external)
			if err != nil {
				return err
			}
			equal(t, fmt.Sprintf("message by %q", external), got, want)
		}
		got, err := tx.Message(c.ID, second.ID)
		equal(t, "the second message", got, (*desk.Message)(nil))
		return err
	})
}

// unknownMessage: a message is found only by its workspace, conversation and id
// together. It is returned with its contact.
func unknownMessage(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	c, elsewhere := newConversation(newID(), newID()), newConversation(newID(), newID())
	m, unheard := newMessage(c), newMessage(elsewhere)
	commit(t, s, ws, func(tx store.Tx) error {
		return errors.Join(tx.PutConversation(c, elsewhere), tx.PutMessage(m), tx.PutMessage(unheard))
	})
	m.ContactID = c.ContactID
	got, err := s.Message(t.Context(), ws, c.ID, m.ID)
	must(t, err)
	equal(t, "message", got, m)
	for _, at := range [][3]desk.ID{{other, c.ID, m.ID}, {ws, elsewhere.ID, m.ID}, {ws, c.ID, unheard.ID}, {ws, c.ID, newID()}, {newID(), c.ID, m.ID}} {
		missing(s.Message(t.Context(), at[0], at[1], at[2]))(t)
	}
}

// messagesByReferences: each existing message is found, with its fields. Messages of
// other channels or workspaces are not found.
func messagesByReferences(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	c, elsewhere := newConversation(newID(), newID()), newConversation(newID(), newID())
	sent := func(ws desk.ID, c *desk.Conversation, external string) *desk.Message {
		m := newMessage(c)
		m.Direction, m.Delivery, m.ExternalID = desk.Outbound, desk.Failed, external
		m.Failure, m.OptIn = &desk.Failure{Code: 131026, Title: "Not delivered", Fix: "ü"}, &desk.OptIn{Key: newID(), At: now(), Request: newID()}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutMessage(m) })
		return m
	}
	x, y, there := sent(ws, c, "x"), sent(ws, c, "y\" ü"), sent(ws, elsewhere, "x")
	sent(ws, c, "not asked for")
	sent(ws, c, "")
	foreign := sent(other, c, "x")
	sent(other, c, "z")
	for _, v := range []struct {
		ws   desk.ID
		refs []desk.MessageRef
		want []*desk.Message
	}{
		{ws, nil, nil},
		{ws, []desk.MessageRef{{Channel: c.ChannelID, ExternalID: "x"}}, []*desk.Message{x}},
		{ws, []desk.MessageRef{
			{Channel: elsewhere.ChannelID, ExternalID: "x"}, {Channel: c.ChannelID, ExternalID: y.ExternalID}, {Channel: c.ChannelID, ExternalID: "x"},
			{Channel: c.ChannelID}, {Channel: c.ChannelID, ExternalID: "X"}, {Channel: c.ChannelID, ExternalID: "z"}, {Channel: elsewhere.ChannelID, ExternalID: y.ExternalID},
		}, []*desk.Message{x, y, there}},
		{other, []desk.MessageRef{{Channel: c.ChannelID, ExternalID: "x"}, {Channel: elsewhere.ChannelID, ExternalID: "x"}}, []*desk.Message{foreign}},
		{newID(), []desk.MessageRef{{Channel: c.ChannelID, ExternalID: "x"}}, nil},
	} {
		got, err := s.MessagesBy(t.Context(), v.ws, v.refs)
		must(t, err)
		slices.SortFunc(got, func(a, b *desk.Message) int { return cmp.Compare(a.TS, b.TS) })
		equal(t, fmt.Sprintf("messages by %d references", len(v.refs)), got, v.want)
	}
}

func newestMessage(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	foreign, _ := newWorkspace(t, s)
	c, other := newConversation(newID(), newID()), newConversation(newID(), newID())
	last := map[desk.Time]desk.ID{} // the greater id of two messages with the same time
	put := func(ws desk.ID, of *desk.Conversation, at desk.Time) {
		m := newMessage(of)
		m.TS = at
		if id := last[at]; ws != foreign && of == c && string(m.ID[:]) > string(id[:]) {
			last[at] = m.ID
		}
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutMessage(m) })
	}
	for _, at := range []desk.Time{10, 40, 20, 20} {
		put(ws, c, at)
	}
	put(ws, other, 30)
	put(foreign, c, 30)
	commit(t, s, ws, func(tx store.Tx) error {
		for span, want := range map[[2]desk.Time]desk.Time{{10, 41}: 40, {10, 40}: 20, {20, 21}: 20, {10, 20}: 10, {0, 10}: 0, {21, 40}: 0, {41, 99}: 0} {
			got, err := tx.NewestMessage(c.ID, span[0], span[1])
			if err != nil {
				return err
			}
			if (got != desk.MessagePlace{TS: want, ID: last[want]}) {
				t.Errorf("from %d to %d: %v, want %d", span[0], span[1], got, want)
			}
		}
		return nil
	})
}
