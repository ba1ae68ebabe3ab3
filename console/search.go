package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/app/search"
	"parley/desk"
)

// A searchPage is the search for people, their conversations and pages. The script shows it
// as a palette.
type searchPage struct {
	Sought string
	Hits   []searchHit
	All    string // the URL of all people who fit; "": they are shown
	None   bool   // nothing fits
}

// A searchHit is a link to what was found.
type searchHit struct{ ID, Href, Name, Note string }

const (
	searchPeople = 8 // how many people are shown
	searchTalks  = 3 // of how many people the newest conversation is shown
)

// places are the pages that a member can go to by their name.
var places = []struct {
	path, name string
	needs      desk.Permission
}{
	{"/inbox", "Inbox", desk.ConversationsRead},
	{"/inbox?view=unassigned", "Unassigned conversations", desk.ConversationsRead},
	{"/contacts", "Contacts", desk.ContactsRead},
	{"/conflicts", "Conflicts between contacts", desk.ContactsRead},
	{"/contacts/new", "New contact", desk.ContactsWrite},
	{"/contacts/import", "Import contacts", desk.Administer},
	{"/contacts/export", "Export contacts", desk.Administer},
	{"/templates", "Templates", desk.TemplatesRead},
	{"/send", "Send a template", desk.MessagesSend},
	{"/broadcasts", "Broadcasts", desk.BroadcastsRead},
	{"/sends", "Sends", desk.AttemptsRead},
	{"/sends?failed=yes", "Failed sends", desk.AttemptsRead},
	{"/sends?doubt=yes", "Sends in doubt", desk.AttemptsRead},
	{"/overview", "Overview", desk.ConversationsRead},
	{"/me", "Your name, look and password", anyone},
	{"/settings", "Settings: workspace", desk.Administer},
	{"/settings/members", "Settings: members", desk.Administer},
	{"/settings/keys", "Settings: API keys", desk.Administer},
	{"/settings/attributes", "Settings: attributes", desk.Administer},
	{"/settings/channels", "Settings: channels", desk.Administer},
	{"/settings/segments", "Settings: segments", desk.SegmentsWrite},
	{"/settings/snippets", "Settings: saved replies", desk.SnippetsWrite},
	{"/settings/policy", "Settings: reply policy, hours", desk.PolicyWrite},
	{"/settings/webhooks", "Settings: webhooks", desk.Administer},
	{"/settings/events", "Settings: log of events", desk.Administer},
}

func (s *Server) search(c *call) error {
	d := searchPage{Sought: strings.TrimSpace(c.query("q"))}
	if err := c.searchPeople(&d); err != nil {
		return err
	}
	words := strings.Fields(strings.ToLower(d.Sought))
	for _, place := range places {
		if !c.may(place.needs) || !begins(strings.ToLower(place.name), words) {
			continue
		}
		d.Hits = append(d.Hits, searchHit{Href: place.path, Name: place.name})
	}
	for i := range d.Hits {
		d.Hits[i].ID = "hit-" + strconv.Itoa(i)
	}
	d.None = len(d.Hits) == 0 && d.All == ""
	return c.show("search", view{Title: "Search", Data: d})
}

// begins reports whether each of the words begins a word of a name.
func begins(name string, words []string) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == ':' || r == ',' })
	for _, word := range words {
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, word) }) {
			return false
		}
	}
	return true
}

// searchPeople adds people, and the newest conversations of the first of them.
func (c *call) searchPeople(d *searchPage) error {
	text, err := desk.ParseSearch(d.Sought)
	if err != nil { // nothing is typed, or too much
		return nil
	}
	q := search.Query{Sought: d.Sought, Limit: searchPeople}
	q.Text = text
	page, err := c.found(q)
	if err != nil {
		return err
	}
	for i, v := range page.Contacts {
		d.Hits = append(d.Hits, searchHit{Href: "/contacts/" + v.ID.String(), Name: nameOf(v), Note: addressOf(v)})
		if i >= searchTalks {
			continue
		}
		list, _, err := c.s.app.ContactConversations(c.r.Context(), c.p, v.ID, "", "", 1)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return err
		}
		for _, talk := range list {
			d.Hits = append(d.Hits, searchHit{Href: "/inbox/" + talk.ID.String(), Name: nameOf(v), Note: "conversation, " + string(talk.Status)})
		}
	}
	if page.Next != "" {
		d.All = "/contacts?q=" + url.QueryEscape(d.Sought)
	}
	return nil
}
