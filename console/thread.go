package console

import (
	"net/url"
	"slices"

	"parley/desk"
)

// A thread is the page of a conversation.
type thread struct {
	ID                        desk.ID
	Path                      string // of the page, with the view of its list
	Query                     string // the view of its list
	Back                      string
	Next                      string // the conversation to go on with after this one is closed
	List                      listing
	Person                    person
	Channel                   string
	ChannelID                 desk.ID
	Closes                    func(*desk.Failure) bool // whether a failure closes the window to answer freely
	Status                    desk.ConversationStatus
	Standing                  string // who holds it, in words
	Holder                    string
	Mine                      bool
	SeenMessage, SeenAssignee string
	Members                   []memberChoice
	Team                      string      // the workspace's name
	Before                    *talkBefore // the person's last conversation, above the begin of this one
	Days                      []dayOfMessages
	Newest                    latest
	MoreNotes                 bool   // the page of the notes has more of the time that is shown
	Notes                     string // that page
	Earlier, Later            string
	News                      *news
	OptedOut                  moment
	MayChange, MaySend        bool
	Send                      string // the form that sends a template from here
	Sandbox                   bool
	Composer                  composer
}

// A person is the contact beside a conversation.
type person struct {
	ID      desk.ID
	Known   bool
	Name    string
	Address string
	Facts   []fact
	Others  []conversationLink
	Edit    *contactField // the field that is changed in the thread, one at a time
	Rename  string        // where the name can be changed; "": it may not be
	More    string        // where the fields are that are empty
	Shown   bool          // below 1280 pixels: beside the thread
	Open    string        // the thread with the person beside it
	Shut    string        // the thread without
}

// A fact is a label and a value. In a thread, Edit leads to the form that changes it.
type fact struct {
	Label, Value string
	Mail         string // an e-mail address, escaped: one may have what begins a header in a mailto URL
	Tel          string // a phone number, with +
	Site         string // an http or https URL
	Name         string // of its field
	Edit         string
}

// A conversationLink is a conversation in a list beside something else.
type conversationLink struct {
	Href, Label string
	At          moment
}

// A memberChoice is a member in the list to assign to.
type memberChoice struct {
	ID   desk.ID
	Name string
	Here bool
	Away bool
}

// News are what has changed since the member looked, and a form to do it anyway.
type news struct {
	Heading, Text  string
	Action, Button string
	Fields         []hiddenField
	Sends          bool // a message
}

type hiddenField struct{ Name, Value string }

func (s *Server) conversation(c *call) error {
	t, err := c.readThread(c.id("id"))
	if err != nil {
		return err
	}
	return c.show("conversation", t.view())
}

// EditQuery is the query of the form of the field that is changed beside the thread.
func (t *thread) EditQuery() string {
	return with(with(t.Query, "person", "open"), "edit", t.Person.Edit.Name)
}

func (t *thread) view() view {
	return view{Title: t.Person.Name, Live: true, Data: t}
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
	if c.onlyParts("views", "list", "title") { // another conversation has changed
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

// standing says who holds a conversation, or that it has ended.
func standing(v *desk.Conversation, holder string) string {
	switch {
	case v.Status == desk.StatusClosed:
		return "closed"
	case v.Status == desk.StatusArchived:
		return "archived"
	case holder == "":
		return "unassigned"
	case holder == "you":
		return "yours"
	}
	return "held by " + apart(holder)
}

// nextOf is the conversation after the open one in the list, or the one before it; "" if
// there is no other.
func nextOf(rows []conversationRow) string {
	at := slices.IndexFunc(rows, func(r conversationRow) bool { return r.Here })
	switch {
	case at+1 < len(rows):
		return rows[at+1].ID.String()
	case at > 0:
		return rows[at-1].ID.String()
	}
	return ""
}
