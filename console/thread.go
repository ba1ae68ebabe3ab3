package console

import (
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

// EditQuery is the query of the form of the field that is changed beside the thread.
func (t *thread) EditQuery() string {
	return with(with(t.Query, "person", "open"), "edit", t.Person.Edit.Name)
}

func (t *thread) view() view {
	return view{Title: t.Person.Name, Live: true, Data: t}
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

// notesPath is the page of a conversation's notes.
func notesPath(conversation desk.ID, query string) string {
	return "/inbox/" + conversation.String() + "/notes" + query
}

// notePath is where a note is deleted.
func notePath(conversation, id desk.ID, query string) string {
	return "/inbox/" + conversation.String() + "/notes/" + id.String() + "/delete" + query
}

// A composer is the form that answers a conversation, or why it can't be answered now.
type composer struct {
	Key     string
	Text    string
	Titles  []choice // of the buttons
	More    bool     // whether the fields of buttons and file are shown
	Quote   *quote
	File    *keptFile
	Doubt   bool   // whether the message was sent is unknown: no second one
	Blocked string // why nothing can be sent on the channel
	Shut    string // why no reply can be sent, but a template can
	Window  *windowBar
	Focus   bool
	Unread  int
	Reads   bool // whether what is seen counts as read
	Saved   snippetList

	Customer customerForm
}

// A talkBefore is the end of the person's last conversation before the one that is shown.
type talkBefore struct {
	Href, Label string
	At          moment
	Lines       []lineBefore
}

// A dayOfMessages are the messages and notes of one day.
type dayOfMessages struct {
	ID, Label string
	Messages  []bubble
}

// A latest is what a page says of the newest message.
type latest struct {
	Ours bool
	Text string
}

// A lineBefore is a message of it.
type lineBefore struct{ Author, Text string }

// customerForm is what the form has that writes as the customer.
type customerForm struct {
	Open, More bool
	Text       string
	Taps, To   []choice
	Reactions  []choice
}
