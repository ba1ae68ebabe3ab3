package console

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"parley/app"
	"parley/desk"
)

// pageRows is the number of rows in a list of the console. Beside an open conversation,
// the inbox first shows only the rows around it. Then the script fetches the whole list.
const (
	pageRows   = 50
	besideRows = 24
)

// maxAfter is the greatest length in bytes of a cursor that the inbox's links repeat. The
// cursors that parley makes are shorter.
const maxAfter = 200

// rowText is the number of characters of the newest message in a row. More characters
// would not be visible.
const rowText = 80

// The views of the inbox. A member's id is a view as well: it has the conversations that
// are assigned to this member.
const (
	viewMine       = "mine"
	viewUnassigned = "unassigned"
	viewOpen       = "open"
	viewClosed     = "closed"
	viewArchived   = "archived"

	viewBroadcasts = "broadcasts" // archived ones, also those in which only broadcasts wrote
)

// A listing is the inbox's list with the links around it.
type listing struct {
	Views       []tab
	More        []tab
	Sorts       []tab
	Query       []hiddenField // the parameters of the list in the URL
	Other       string        // the name of the view, if the view is in More
	Rows        []conversationRow
	Renew       int64 // the time at which a row shows another text, in milliseconds; 0: never
	First, Next string
	Whole       string // the URL of the whole list, if only a part is shown
	Place       string // the list's own URL, by which the script stores the scroll position
	Empty       nothing
}

// A tab is a link to a view.
type tab struct {
	Label, Href string
	Heading     string // the heading above it
	Count       string
	Here        bool
}

// A conversationRow is a conversation in a list.
type conversationRow struct {
	ID            desk.ID
	Href          string
	Name, Preview string
	At            moment // the time of the newest message, or the start of the wait
	Waits         bool
	renew         desk.Time // when At or Left changes; 0: never
	Unread        string    // the number of unread messages; "" for none
	Left          string    // the time that is left for free replies
	Holder        string
	Channel       string // the channel, if the page has the same person on another channel as well; otherwise ""
	Here          bool
}

// A nothing is shown instead of an empty list. It says what the list is for, and has a
// link to one action.
type nothing struct{ Title, Text, Link, Action string }

func (s *Server) inbox(c *call) error {
	list, err := c.listing(desk.ID{})
	if err != nil {
		return err
	}
	return c.show("inbox", view{Title: "Inbox", Live: true, Data: struct{ List listing }{list}})
}

// inboxView reads the view and the channel from the URL. An unknown view means mine.
func (c *call) inboxView() (name string, channel desk.ID, f desk.ConversationFilter) {
	name = c.query("view")
	channel, _ = desk.ParseID(c.query("channel"))
	if c.p.Settings.Channel(channel) == nil {
		channel = desk.ID{}
	}
	f.Channel, f.Longest, f.Unread = channel, c.query("order") == "waiting", c.query("unread") == "true"
	switch name {
	case viewUnassigned:
		f.Status, f.Unassigned = desk.StatusOpen, true
	case viewOpen:
		f.Status = desk.StatusOpen
	case viewClosed:
		f.Status = desk.StatusClosed
	case viewArchived:
		f.Status, f.Awake = desk.StatusArchived, true
	case viewBroadcasts:
		f.Status = desk.StatusArchived
	default:
		f.Status, f.Assignee = desk.StatusOpen, c.p.Actor.ID
		if id, ok := desk.ParseID(name); ok && c.p.Settings.Member(id) != nil {
			f.Assignee = id
		} else {
			name = viewMine
		}
	}
	return name, channel, f
}

// listQuery returns the query that leads to the same view and page as this request's URL.
func (c *call) listQuery() string {
	name, channel, f := c.inboxView()
	query := inboxQuery(name, channel, f.Longest, f.Unread)
	if after := c.query("after"); after != "" && len(after) <= maxAfter {
		query = with(query, "after", after)
	}
	return query
}

// rowMark returns the fragment with which a browser without script scrolls to a row.
func rowMark(id desk.ID) string { return "#c-" + id.String() }

// inboxQuery returns the query for a view.
func inboxQuery(name string, channel desk.ID, longest, unread bool) string {
	q := url.Values{}
	if name != viewMine {
		q.Set("view", name)
	}
	if !channel.IsZero() {
		q.Set("channel", channel.String())
	}
	if longest {
		q.Set("order", "waiting")
	}
	if unread {
		q.Set("unread", "true")
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// listing reads the list of the view in the URL. open is the conversation that is open,
// or zero.
func (c *call) listing(open desk.ID) (l listing, err error) {
	name, channel, f := c.inboxView()
	counts, err := c.s.app.InboxCounts(c.r.Context(), c.p, channel)
	if err != nil {
		return l, err
	}
	l.views(c, name, channel, f, counts)
	query := c.listQuery()
	values, _ := url.ParseQuery(strings.TrimPrefix(query, "?")) // the query was made above
	for _, name := range slices.Sorted(maps.Keys(values)) {
		l.Query = append(l.Query, hiddenField{name, values.Get(name)})
	}
	after := c.query("after")
	page, next, err := c.s.app.Inbox(c.r.Context(), c.p, f, after, pageRows)
	if desk.IsType(err, desk.InvalidRequest) || err == nil && after != "" && len(page) == 0 { // the cursor belongs to the list of another view, or no conversations are left after it
		after = ""
		page, next, err = c.s.app.Inbox(c.r.Context(), c.p, f, "", pageRows)
	}
	if err != nil {
		return l, err
	}
	l.Rows = c.conversationRows(page, name, query, open)
	first := "/inbox" + inboxQuery(name, channel, f.Longest, f.Unread)
	if after != "" {
		l.First = first
	}
	if next != "" {
		l.Next = with(first, "after", next)
	}
	if l.Place = "/inbox" + query; !open.IsZero() && len(l.Rows) > besideRows && !c.asks("list") {
		at := max(0, slices.IndexFunc(l.Rows, func(r conversationRow) bool { return r.Here }))
		from := min(max(0, at-besideRows/2), len(l.Rows)-besideRows)
		l.Rows, l.Next, l.Whole = l.Rows[from:from+besideRows], "", l.Place+rowMark(open)
	}
	for _, r := range l.Rows {
		if at := int64(r.renew); at > 0 && (l.Renew == 0 || at < l.Renew) {
			l.Renew = at
		}
	}
	l.Empty = emptyView(name, counts.Unassigned)
	switch plain := "/inbox" + inboxQuery(name, channel, false, false); {
	case f.Unread:
		l.Empty = nothing{"Nothing unread", "What customers write will be here until somebody has read it.", plain, "See all of this view"}
	case f.Longest:
		l.Empty = nothing{"Nobody waits", "Customers who wrote, and got no answer yet, will be here.", plain, "See all of this view"}
	}
	return l, nil
}

// with returns a path or a query that has one more parameter.
func with(path, name, value string) string {
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	return path + mark + name + "=" + url.QueryEscape(value)
}

func (c *call) conversationRows(page []app.InboxItem, view, query string, open desk.ID) []conversationRow {
	now := desk.TimeOf(c.now)
	rows := make([]conversationRow, len(page))
	for i, item := range page {
		v, talk := item.Conversation, item.State.Talk
		r := conversationRow{
			ID: v.ID, Href: "/inbox/" + v.ID.String() + query + rowMark(v.ID), Name: nameOf(item.Contact), Preview: beginning(glimpse(v.Preview), rowText),
			At: c.when(v.LastMessageAt), Holder: c.holderOf(v, view), Here: v.ID == open,
		}
		if v.Status == desk.StatusOpen { // in a conversation that is not open, nobody waits
			if talk.Unread > 0 {
				r.Unread = upTo99(talk.Unread)
			}
			if talk.WaitingSince > 0 {
				r.Waits, r.At = true, c.when(talk.WaitingSince)
				r.At.Text = "waiting " + span(now-talk.WaitingSince)
				longer, _ := spanLasts(now - talk.WaitingSince)
				r.renew = now + longer
			}
			switch {
			case item.State.Window.Open:
				left := item.State.Window.ClosesAt - now
				r.Left = span(left) + " left"
				if _, shorter := spanLasts(left); r.renew == 0 || now+shorter < r.renew {
					r.renew = now + shorter
				}
			case r.Waits:
				r.Left = "window closed"
			}
		}
		if slices.ContainsFunc(page, func(other app.InboxItem) bool {
			return other.Conversation.ContactID == v.ContactID && other.Conversation.ChannelID != v.ChannelID
		}) {
			r.Channel = channelName(c.p.Settings, c.p.Settings.Channel(v.ChannelID), false)
		}
		rows[i] = r
	}
	return rows
}

// holderOf returns the holder of a conversation as the list of a view shows it. It
// returns "" for an unassigned conversation, and in a view that has only one member's
// conversations.
func (c *call) holderOf(v *desk.Conversation, view string) string {
	if view == viewMine || view == v.AssignedMember.String() {
		return ""
	}
	if v.AssignedMember == c.p.Actor.ID {
		return "yours"
	}
	return c.memberName(v.AssignedMember)
}

// memberName returns a member's name, or "you". It returns "" for a removed member and
// for the zero id.
func (c *call) memberName(id desk.ID) string {
	if m := c.p.Settings.Member(id); m != nil {
		if m.ID == c.p.Actor.ID {
			return "you"
		}
		return m.Name
	}
	return ""
}

func (l *listing) views(c *call, here string, channel desk.ID, f desk.ConversationFilter, counts desk.ConversationCounts) {
	link := func(name, label string, n int) tab {
		t := tab{Label: label, Href: "/inbox" + inboxQuery(name, channel, f.Longest, f.Unread), Here: name == here}
		if n > 0 {
			t.Count = upTo99(n)
		}
		return t
	}
	l.Views = []tab{link(viewMine, "Mine", counts.Held), link(viewUnassigned, "Unassigned", counts.Unassigned), link(viewOpen, "All open", counts.Open)}
	l.Sorts = []tab{
		{Label: "Newest", Href: "/inbox" + inboxQuery(here, channel, false, f.Unread), Here: !f.Longest},
		{Label: "Longest waiting", Href: "/inbox" + inboxQuery(here, channel, true, f.Unread), Here: f.Longest},
		{Label: "Unread", Href: "/inbox" + inboxQuery(here, channel, f.Longest, !f.Unread), Here: f.Unread},
	}
	if here == viewMine && counts.Waiting > 0 {
		l.Sorts[1].Count = upTo99(counts.Waiting)
	}
	l.More = []tab{link(viewClosed, "Closed", 0), link(viewArchived, "Archived", 0)}
	if here == viewArchived || here == viewBroadcasts {
		l.More[1].Here = true
		also := tab{Label: "Also of broadcasts", Href: "/inbox" + inboxQuery(viewBroadcasts, channel, f.Longest, f.Unread)}
		if here == viewBroadcasts {
			also.Here, also.Href = true, "/inbox"+inboxQuery(viewArchived, channel, f.Longest, f.Unread)
		}
		l.Sorts = append(l.Sorts, also)
	}
	heading := "Held by"
	for _, m := range c.p.Settings.Members() {
		if m.ID == c.p.Actor.ID {
			continue
		}
		t := link(m.ID.String(), m.Name, 0)
		t.Heading, heading = heading, ""
		l.More = append(l.More, t)
	}
	if i := slices.IndexFunc(l.More, func(t tab) bool { return t.Here }); i >= 0 {
		l.Other = l.More[i].Label
	}
	if channels := c.p.Settings.Channels(); len(channels) > 1 {
		l.More = append(l.More, tab{Heading: "Channel", Label: "All channels", Href: "/inbox" + inboxQuery(here, desk.ID{}, f.Longest, f.Unread), Here: channel.IsZero()})
		for _, v := range channels {
			l.More = append(l.More, tab{Label: channelName(c.p.Settings, v, true), Href: "/inbox" + inboxQuery(here, v.ID, f.Longest, f.Unread), Here: v.ID == channel})
		}
	}
}

// channelName returns the name of a channel, or its kind if it has no name. It adds the
// provider's id if another channel has the same name. If exact is set, it also adds the
// id to every kind.
func channelName(s *desk.Settings, v *desk.Channel, exact bool) string {
	name := shortName(v)
	alike := func(other *desk.Channel) bool { return other.ID != v.ID && shortName(other) == name }
	if exact && v.Name == "" || slices.ContainsFunc(s.Channels(), alike) {
		name += " " + v.ExternalID
	}
	return name
}

func shortName(v *desk.Channel) string {
	switch {
	case v.Name != "":
		return v.Name
	case v.Kind == desk.SandboxChannel:
		return "Sandbox"
	}
	return "WhatsApp"
}

// emptyView describes a view that is empty.
func emptyView(name string, unassigned int) nothing {
	switch name {
	case viewMine:
		if unassigned > 0 {
			verb := "are"
			if unassigned == 1 {
				verb = "is"
			}
			return nothing{"Nothing is yours", upTo99(unassigned) + " " + verb + " unassigned.", "/inbox?view=unassigned", "See unassigned"}
		}
		return nothing{"Nothing is yours", "Conversations that you take, or that come from contacts you own, will be here.", "/inbox?view=open", "See all open"}
	case viewUnassigned:
		return nothing{"Everybody is looked after", "Conversations that nobody holds will be here.", "/inbox?view=open", "See all open"}
	case viewOpen:
		return nothing{"No open conversations", "When a customer writes, or you send a template, the conversation will be here.", "/contacts", "Choose a contact"}
	case viewClosed:
		return nothing{"No closed conversations", "What the team closes will be here, and can be opened again.", "/inbox", "See yours"}
	case viewArchived:
		return nothing{"No archived conversations", "What the team archives will be here. Conversations in which only broadcasts wrote are apart.", "/inbox?view=broadcasts", "See those as well"}
	case viewBroadcasts:
		return nothing{"No archived conversations", "What the team archives will be here, and what broadcasts wrote to people who have not answered.", "/inbox", "See yours"}
	}
	return nothing{"Nothing here", "This member holds no open conversation.", "/inbox?view=open", "See all open"}
}
