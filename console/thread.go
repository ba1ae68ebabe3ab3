package console

import (
	"slices"

	"parley/desk"
)

// A thread is the page of a conversation.
type thread struct {
	ID                        desk.ID
	Path                      string // the path of the page, with the view of its list
	Query                     string // the view of its list
	Back                      string
	Next                      string // the conversation to show after this one is closed
	List                      listing
	Person                    person
	Channel                   string
	ChannelID                 desk.ID
	Closes                    func(*desk.Failure) bool // whether a failure closes the window for free replies
	Status                    desk.ConversationStatus
	Standing                  string // who holds the conversation, in words
	Holder                    string
	Mine                      bool
	SeenMessage, SeenAssignee string
	Members                   []memberChoice
	Team                      string      // the workspace's name
	Before                    *talkBefore // the person's earlier conversation, above the beginning of this one
	Days                      []dayOfMessages
	Newest                    latest
	MoreNotes                 bool   // the page of notes has more notes from the time of these messages
	Notes                     string // the page of notes
	Earlier, Later            string
	News                      *news
	OptedOut                  moment
	MayChange, MaySend        bool
	Send                      string // the form that sends a template from this conversation
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
	Older   bool          // there are more than Others
	Edit    *contactField // the field that is being changed beside the thread
	Rename  string        // the link to change the name; "": not allowed
	More    string        // the link to the fields that are empty
	Shown   bool          // on screens narrower than 1280 pixels, the person is shown beside the thread
	Open    string        // the thread with the person beside it
	Shut    string        // the thread without the person
}

// A conversationLink is a link in a list of other conversations.
type conversationLink struct {
	Href, Label string
	At          moment
}

// A memberChoice is a member in the list of members to whom the conversation can be
// assigned.
type memberChoice struct {
	ID   desk.ID
	Name string
	Here bool
	Away bool
}

// News shows what has changed since the member opened the page. It has a form to do the
// action anyway.
type news struct {
	Heading, Text  string
	Action, Button string
	Fields         []hiddenField
	Sends          bool // the form sends a message
}

// EditQuery is the query of the form for the field that is being changed beside the
// thread.
func (t *thread) EditQuery() string {
	return with(with(t.Query, "person", "open"), "edit", t.Person.Edit.Name)
}

func (t *thread) view() view {
	return view{Title: t.Person.Name, Live: true, Data: t}
}

// standing returns a word for a conversation: closed, archived, unassigned, yours, or
// held by a member.
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

// nextOf returns the conversation after the open one in the list. If there is none, it
// returns the one before it, or "".
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

// notesPath returns the path of a conversation's notes.
func notesPath(conversation desk.ID, query string) string {
	return "/inbox/" + conversation.String() + "/notes" + query
}

// notePath returns the path that deletes a note.
func notePath(conversation, id desk.ID, query string) string {
	return "/inbox/" + conversation.String() + "/notes/" + id.String() + "/delete" + query
}

// A composer is the form that replies to a conversation, or the reason why there is
// none.
type composer struct {
	Key     string
	Text    string
	Titles  []choice // the titles of the buttons
	More    bool     // whether the fields of buttons and file are shown
	Quote   *quote
	File    *keptFile
	Doubt   bool   // it is not known whether the message was sent, so no second one is offered
	Blocked string // why nothing can be sent on the channel
	Shut    string // why no reply can be sent, but a template can
	Window  *windowBar
	Focus   bool
	Unread  int
	Reads   bool // messages that are shown count as read
	Saved   snippetList

	Customer customerForm
}

// A talkBefore is the end of the person's earlier conversation.
type talkBefore struct {
	Href, Label string
	At          moment
	Lines       []lineBefore
}

// A dayOfMessages has the messages and notes of one day.
type dayOfMessages struct {
	ID, Label string
	Messages  []bubble
}

// A latest describes the newest message.
type latest struct {
	Ours bool
	Text string
}

// A lineBefore is a message of the earlier conversation.
type lineBefore struct{ Author, Text string }

// customerForm is the form that writes as the customer.
type customerForm struct {
	Open, More bool
	Text       string
	Taps, To   []choice
	Reactions  []choice
}
