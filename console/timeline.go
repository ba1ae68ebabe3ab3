package console

import "parley/desk"

// exportContact sends all data of a contact as a file.
func (s *Server) exportContact(c *call) error {
	id := c.id("id")
	h := c.w.Header()
	h.Set("Content-Disposition", `attachment; filename="contact-`+id.String()+`.json"`)
	err := s.export(c.w, c.r, s.app, c.p, id)
	if err != nil && !c.w.Begun() {
		h.Del("Content-Disposition")
	}
	return err
}

// A timeline is a page of the changes of a contact, newest first.
type timeline struct {
	Rows        []eventRow
	First, Next string
}

// timelineRows is how many changes a contact's page shows.
const timelineRows = 10

// timelineWords say what a change was, before the name of who made it. The fields of an update
// stand before these words.
var timelineWords = map[desk.EventType][2]string{
	desk.ContactCreated:  {"Created", "by"},
	desk.ContactUpdated:  {"Changed", "by"},
	desk.ContactOptedOut: {"Opted out", "noted by"},
	desk.ContactOptedIn:  {"Opted in", "noted by"},
}

// timeline returns the changes of a contact after the place that the page's address names.
func (c *call) timeline(contact desk.ID) (t timeline, err error) {
	page, next := "/contacts/"+contact.String(), ""
	var events []desk.FeedEvent
	after, err := c.fromCursor(func(after string) (err error) {
		events, next, err = c.s.app.Search.History(c.r.Context(), c.p, contact, after, timelineRows)
		return err
	})
	if err != nil {
		return t, err
	}
	for i := range events {
		e := &events[i]
		words := timelineWords[e.Type]
		row := eventRow{Number: e.Place.Seq, Changed: words[0], What: words[1], Who: c.actorName(e.Actor), At: c.when(e.At)}
		if len(e.Changed) > 0 {
			row.Changed = capital(fieldWords(e.Changed))
		}
		t.Rows = append(t.Rows, row)
	}
	if after != "" {
		t.First = page
	}
	if next != "" {
		t.Next = page + with("", "after", next)
	}
	return t, nil
}
