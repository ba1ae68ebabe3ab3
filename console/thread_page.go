package console

import (
	"net/url"

	"parley/desk"
)

func (s *Server) conversation(c *call) error {
	t, err := c.readThread(c.id("id"))
	if err != nil {
		return err
	}
	return c.show("conversation", t.view())
}

func (c *call) readThread(id desk.ID) (*thread, error) {
	ctx, a := c.r.Context(), c.s.app
	conv, err := a.Conversation(ctx, c.p, id)
	if err != nil {
		return nil, err
	}
	people, err := a.ContactsByID(ctx, c.p, []desk.ID{conv.ContactID})
	if err != nil {
		return nil, err
	}
	contact := people[conv.ContactID]
	t := &thread{
		ID: id, Query: c.listQuery(), Team: c.p.Settings.Name, Status: conv.Status, ChannelID: conv.ChannelID,
		Closes: func(f *desk.Failure) bool { return a.ClosesWindow(c.p.Settings, conv.ChannelID, f) },
		Holder: c.memberName(conv.AssignedMember), Mine: conv.AssignedMember == c.p.Actor.ID, SeenAssignee: conv.AssignedMember.String(),
		MayChange: c.may(desk.ConversationsWrite), MaySend: c.may(desk.MessagesSend) && contact != nil,
	}
	t.Path, t.Back, t.Standing = "/inbox/"+id.String()+t.Query, "/inbox"+t.Query+rowMark(id), standing(conv, t.Holder)
	t.Notes = notesPath(id, t.Query)
	t.Send = "/send?" + url.Values{"contact": {conv.ContactID.String()}, "channel": {conv.ChannelID.String()}, "conversation": {id.String()}, "list": {t.Query}}.Encode()
	if t.List, err = c.listing(id); err != nil {
		return nil, err
	}
	t.Next = nextOf(t.List.Rows)
	t.Person = person{ID: conv.ContactID, Known: contact != nil, Name: nameOf(contact)}
	if c.onlyParts("views", "list", "title") { // the parts that change with another conversation
		return t, nil
	}
	if err := c.readPerson(t, contact, conv); err != nil {
		return nil, err
	}
	if err := c.readMessages(t); err != nil {
		return nil, err
	}
	for _, m := range c.p.Settings.Members() {
		t.Members = append(t.Members, memberChoice{m.ID, m.Name, m.ID == conv.AssignedMember, m.Away})
	}
	if v := c.p.Settings.Channel(conv.ChannelID); v != nil {
		t.Channel = channelName(c.p.Settings, v, false)
	}
	return t, c.readComposer(t, conv)
}
