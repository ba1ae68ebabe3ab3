package console

import (
	"fmt"
	"slices"
	"strings"

	"parley/app/merges"
	"parley/app/search"
	"parley/desk"
)

// A mergePage is the page that makes two contacts of one person one: the search for the other
// contact or, with Other, both side by side.
type mergePage struct {
	Stays mergeSide
	Other *mergeSide

	Sought string
	Hits   []searchHit
	None   bool
	More   bool // more people fit than are shown

	Rows   []mergeRow
	Result []string
	Closed []conversationLink // the conversations that the merge closes
	Seen   string             // the versions of both that the page shows
}

// A mergeSide is one of the two contacts.
type mergeSide struct {
	ID              desk.ID
	Path, Name      string
	Address         string
	Changed, Known  moment
	MergePath, Swap string
}

// A mergeRow is a field of which at least one of the two has a value.
type mergeRow struct {
	ID, Name     string
	Label        string
	Stays, Other string
	Choose       bool // both have a value, and they differ
	Take         bool // the other's value is chosen
	Added        bool // only the other has a value
}

// mergeHits is how many people are offered to merge.
const mergeHits = 20

func sideOf(c *call, v *desk.Contact) mergeSide {
	path := "/contacts/" + v.ID.String()
	return mergeSide{ID: v.ID, Path: path, Name: nameOf(v), Address: addressOf(v), Changed: c.when(v.UpdatedAt), Known: c.when(v.CreatedAt), MergePath: path + "/merge"}
}

func undoPath(merge desk.ID) string { return "/contacts/merges/" + merge.String() + "/undo" }

// askMerge shows the search for the other contact, or both contacts.
func (s *Server) askMerge(c *call) error {
	if c.query("with") == "" {
		return c.chooseOther(nil)
	}
	p, err := c.mergePage()
	if desk.IsType(err, desk.InvalidRequest) { // these two can't be merged
		return c.chooseOther(err)
	}
	if err != nil {
		return err
	}
	return c.show("merge", view{Title: "Merge " + p.Stays.Name, Data: p})
}

// chooseOther shows the search for the other contact. It begins with those of the same name.
func (c *call) chooseOther(problem error) error {
	contact, err := c.s.app.Contact(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	p := &mergePage{Stays: sideOf(c, contact), Sought: contact.Name}
	if q := c.r.URL.Query(); q.Has("q") {
		p.Sought = strings.TrimSpace(q.Get("q"))
	}
	if text, err := desk.ParseSearch(p.Sought); err == nil {
		q := search.Query{Sought: p.Sought, Limit: mergeHits}
		q.Text = text
		found, err := c.found(q)
		if err != nil {
			return err
		}
		for _, v := range found.Contacts {
			if v.ID != contact.ID {
				p.Hits = append(p.Hits, searchHit{Href: with(p.Stays.MergePath, "with", v.ID.String()), Name: nameOf(v), Note: addressOf(v)})
			}
		}
		p.More = found.Next != ""
		p.None = len(p.Hits) == 0 && !p.More
	}
	v := view{Title: "Merge " + p.Stays.Name, Data: p}
	if problem != nil {
		return c.again("merge", v, problem)
	}
	return c.show("merge", v)
}

// mergePage reads both contacts, and what their merge would do.
func (c *call) mergePage() (*mergePage, error) {
	ctx := c.r.Context()
	request := c.mergeRequest()
	stays, err := c.s.app.Contact(ctx, c.p, request.Into)
	if err != nil {
		return nil, err
	}
	other, err := c.s.app.Contact(ctx, c.p, request.From)
	if err != nil {
		return nil, err
	}
	dry, err := c.s.app.Merges.Try(ctx, c.p, request)
	if err != nil {
		return nil, err
	}
	p := &mergePage{Stays: sideOf(c, stays), Seen: fmt.Sprint(stays.Version, ".", other.Version)}
	side := sideOf(c, other)
	side.Swap = with(side.MergePath, "with", stays.ID.String())
	p.Other = &side
	differ := map[string]bool{}
	for _, change := range dry.Changes {
		differ[change.Field] = true
	}
	a, b := c.mergeTexts(stays), c.mergeTexts(other)
	for _, name := range c.mergeFields() {
		row := mergeRow{ID: strings.ReplaceAll(name, ".", "-"), Name: "keep." + name, Label: c.mergeLabel(name), Stays: a[name], Other: b[name]}
		if row.Stays == "" && row.Other == "" {
			continue
		}
		row.Added = row.Stays == ""
		row.Choose = row.Other != "" && !row.Added && differ[name]
		row.Take = row.Choose && c.form.text(row.Name) == "other"
		p.Rows = append(p.Rows, row)
	}
	return p, c.mergeResult(p, dry)
}

// mergeRequest returns the merge for which the page's address and form ask.
func (c *call) mergeRequest() merges.Request {
	r := merges.Request{Into: c.id("id")}
	r.From, _ = desk.ParseID(c.query("with"))
	for _, name := range c.mergeFields() {
		if c.form.text("keep."+name) == "other" {
			r.Take = append(r.Take, name)
		}
	}
	return r
}

// mergeFields lists the fields about which a merge decides, in the order of a contact's page.
func (c *call) mergeFields() []string {
	list := []string{"name", "phone", "email", "external_id", "owner", "note"}
	for _, a := range c.p.Settings.SortedAttributes() {
		list = append(list, attributeName(a.Key))
	}
	return list
}

// longestShown is how much of a value the page shows.
const longestShown = 500

// mergeTexts returns the fields of a contact as people read them.
func (c *call) mergeTexts(v *desk.Contact) map[string]string {
	texts := map[string]string{"name": v.Name, "phone": phone(v.Phone), "email": v.Email, "external_id": v.ExternalID, "note": beginning(v.Note, longestShown)}
	if v.Owner != nil {
		texts["owner"] = v.Owner.Name
	}
	values := attributesOf(v)
	for _, a := range c.p.Settings.SortedAttributes() {
		if value, held := values[a.Key]; held {
			texts[attributeName(a.Key)] = beginning(c.attributeText(a, value), longestShown)
		}
	}
	return texts
}

// mergeLabel returns the name of a field, or of another part that a merge moves, in words.
func (c *call) mergeLabel(field string) string {
	if key, ok := strings.CutPrefix(field, "attributes."); ok && c.p.Settings.Attributes[key] != nil {
		return c.p.Settings.Attributes[key].Label
	}
	if field == "identities" {
		return "Further addresses"
	}
	return labelOf(field)
}

// mostClosed is how many of the conversations that a merge closes are listed.
const mostClosed = 10

// mergeResult says what the dry run of a merge has said.
func (c *call) mergeResult(p *mergePage, dry *desk.Merge) error {
	stays, other := apart(p.Stays.Name), apart(p.Other.Name)
	p.Result = []string{
		fmt.Sprintf("%s gets what %s has: %s, with all messages, notes and files.", stays, other, moved(dry.Moved)),
		"An address that is not kept above stays as a further address, so this person is still found by it.",
		fmt.Sprintf("The page of %s leads to %s from then on.", other, stays),
		"Opt-outs stay as they are.",
		"The merge can be undone for 30 days.",
	}
	for i, id := range dry.Moved.Closed {
		if i == mostClosed {
			p.Result = append(p.Result, fmt.Sprintf("%s more are closed.", count(len(dry.Moved.Closed)-i)))
			break
		}
		v, err := c.s.app.Conversation(c.r.Context(), c.p, id)
		if desk.IsType(err, desk.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		whose := p.Stays.Name
		if v.ContactID == p.Other.ID {
			whose = p.Other.Name
		}
		label := "The one of " + apart(whose)
		if channel := c.p.Settings.Channel(v.ChannelID); channel != nil {
			label += ", " + channelName(c.p.Settings, channel, false)
		}
		p.Closed = append(p.Closed, conversationLink{Href: "/inbox/" + id.String(), Label: label, At: c.when(v.LastMessageAt)})
	}
	return nil
}

// moved returns what a merge moves in words.
func moved(m desk.Moved) string {
	addresses := "1 address"
	if m.Identities != 1 {
		addresses = count(m.Identities) + " addresses"
	}
	if m.Conversations == 0 {
		return addresses
	}
	return addresses + " and " + several(m.Conversations, "conversation")
}

// merge merges the other contact into the one of the page, if both are still as the page
// showed them.
func (s *Server) merge(c *call) error {
	p, err := c.mergePage()
	switch {
	case err == nil && p.Seen != c.form.text("seen"):
		err = desk.Errorf(desk.Changed, "one of the two was changed since this page was opened, so nothing was merged: look again")
	case err == nil || desk.IsType(err, desk.NotFound): // not found: perhaps this form was sent twice
		var m *desk.Merge
		if m, err = s.app.Merges.Do(c.r.Context(), c.p, c.mergeRequest()); err == nil {
			return c.see("/contacts/"+m.Into.String(), "merged")
		}
	}
	switch e := desk.AsError(err); {
	case p != nil && (e.Type == desk.Changed || e.Type == desk.InvalidRequest):
		return c.again("merge", view{Title: "Merge " + p.Stays.Name, Data: p}, e)
	case e.Type == desk.InvalidRequest:
		return c.chooseOther(e)
	}
	return err
}

// A mergedRow is a merge that can be undone.
type mergedRow struct {
	ID, Name, Who, Undo string
	At                  moment
}

// mostMerges is how many merges a contact's page shows.
const mostMerges = 10

// mergesOf returns the newest merges into a contact that can be undone.
func (c *call) mergesOf(contact desk.ID) (rows []mergedRow, err error) {
	now, cursor := desk.Time(c.now.UnixMilli()), ""
	for range seekPages {
		list, next, err := c.s.app.Merges.Merges(c.r.Context(), c.p, contact, cursor, pageRows)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if now >= m.UndoUntil() || len(rows) == mostMerges {
				return rows, nil
			}
			if m.Survivor == contact {
				rows = append(rows, mergedRow{m.ID.String(), mergedName(m), c.actorName(m.Actor), undoPath(m.ID), c.when(m.At)})
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	return rows, nil
}

// mergedName returns the name of the contact that was merged, as far as the record knows it.
func mergedName(m *desk.Merge) string {
	values := map[string]string{}
	for _, change := range m.Changes {
		values[change.Field] = change.Lost
		if change.Given() {
			values[change.Field] = change.Kept
		}
	}
	name := nameOf(&desk.Contact{Name: values["name"], Phone: values["phone"], Email: values["email"], ExternalID: values["external_id"]})
	if len(values) == 0 || name == nameOf(&desk.Contact{}) {
		return "a contact of the same name"
	}
	return name
}

// An unmerged is the page of a merge that was undone.
type unmerged struct {
	Both    []conversationLink // the two contacts
	Missing []string           // what could not be restored
}

// askUndo says what an undo would do; of an undone merge, what it has done.
func (s *Server) askUndo(c *call) error {
	m, err := s.app.Merges.TryUndo(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	if m.UndoneAt != 0 {
		people, err := s.app.ContactsByID(c.r.Context(), c.p, []desk.ID{m.Into, m.From})
		if err != nil {
			return err
		}
		data := unmerged{Missing: c.missing(m)}
		for _, id := range []desk.ID{m.From, m.Into} {
			if v := people[id]; v != nil {
				data.Both = append(data.Both, conversationLink{Href: "/contacts/" + id.String(), Label: nameOf(v)})
			}
		}
		return c.show("unmerged", view{Title: "The merge is undone", Data: data})
	}
	return c.confirm(c.undoQuestion(m))
}

func (c *call) undoQuestion(m *desk.Merge) confirmation {
	name := apart(mergedName(m))
	v := confirmation{
		Heading: "Undo the merge of " + name + "?", Action: undoPath(m.ID), Button: "Undo the merge", Back: "/contacts/" + m.Into.String(),
		Text: []string{fmt.Sprintf("%s is a contact of its own again, with what it had before the merge: its values, %s, with all that came since.",
			capital(name), moved(m.Moved))},
	}
	var given []string
	for _, change := range m.Changes {
		lost := slices.ContainsFunc(m.NotRestored, func(r desk.NotRestored) bool { return r.Field == change.Field })
		if change.Given() && !lost {
			given = append(given, c.mergeLabel(change.Field))
		}
	}
	if len(given) > 0 {
		v.Text = append(v.Text, "The contact that stayed gets back what it had before in: "+strings.Join(given, ", ")+".")
	}
	if len(m.Moved.Closed) > 0 {
		v.Text = append(v.Text, "What the merge closed is open again, unless somebody has opened it since, or another conversation is open.")
	}
	if list := c.missing(m); len(list) > 0 {
		v.Text = append(append(v.Text, "This can't be restored:"), list...)
	}
	return v
}

// missingWords say why an undo can't restore a part.
var missingWords = map[desk.NotRestoredReason]string{
	desk.RestoreChanged: "was changed since, and stays as it is",
	desk.RestoreTaken:   "another contact has it now",
	desk.RestoreGone:    "is gone since",
}

// missing lists what an undo can't restore.
func (c *call) missing(m *desk.Merge) (list []string) {
	for _, r := range m.NotRestored {
		text := missingWords[r.Reason]
		if r.Field == "conversations" {
			text = "some were deleted, or changed, since and stay as they are"
		}
		list = append(list, c.mergeLabel(r.Field)+": "+text+".")
	}
	return list
}

func (s *Server) undoMerge(c *call) error {
	m, err := s.app.Merges.Undo(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	return c.see(undoPath(m.ID), "")
}
