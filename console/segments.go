package console

import (
	"slices"

	"parley/app/segments"
	"parley/desk"
)

// segmentRows is the number of segments on a page of the list.
const segmentRows = 100

// shownFilter is the number of characters that the list shows of a filter.
const shownFilter = 160

// A segmentsPage is the list of segments.
type segmentsPage struct {
	Rows        []segmentRow
	First, Next string
	Full        bool
	Most        int
}

// A segmentRow is a segment in the list.
type segmentRow struct {
	Key, Name, Href, Filter string
	Changed                 moment
}

func segmentPath(key string) string { return "/settings/segments/" + key }

func (s *Server) segments(c *call) error {
	list, err := s.app.Segments.Segments(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	page := segmentsPage{Full: len(list) >= desk.MaxSegments, Most: desk.MaxSegments}
	if after := c.query("after"); after != "" {
		page.First = "/settings/segments"
		list = slices.DeleteFunc(list, func(v desk.Segment) bool { return v.Key <= after })
	}
	for i := range list {
		if len(page.Rows) == segmentRows {
			page.Next = with("/settings/segments", "after", page.Rows[segmentRows-1].Key)
			break
		}
		v := &list[i]
		page.Rows = append(page.Rows, segmentRow{v.Key, v.Name, segmentPath(v.Key) + "/edit", firstOf(c.filterWords(&v.Filter), shownFilter), c.when(v.UpdatedAt)})
	}
	return c.show("segments", view{Title: "Segments", Data: page})
}

// A segmentPage is a segment, or the form for a new one.
type segmentPage struct {
	Path, Action string // Path is "" for a new one
	Heading      string
	Seen         string // what the page shows of the segment
	Name         *field
	Key          *field // nil: it can't be changed
	Conditions   conditionForm
	Count        string // how many contacts fit
	Changed      moment
	Button       string

	matcher *desk.Matcher // nil: the conditions are not complete
}

// segmentView returns the form of a segment. For nil, it returns the form for a new one. saves
// tells that its mistakes are shown.
func (c *call) segmentView(v *desk.Segment, saves bool) (*segmentPage, view, error) {
	f, d := c.form, &segmentPage{Action: "/settings/segments/new", Heading: "New segment", Button: "Add"}
	typed := c.typedConditions(f.values)
	name := ""
	if v != nil {
		d.Path, d.Action, d.Heading, d.Changed, d.Button = segmentPath(v.Key), segmentPath(v.Key)+"/edit", v.Name, c.when(v.UpdatedAt), "Save"
		d.Seen, name = seenPart([]string{v.Name, string(v.Filter.AppendJSON(nil))}), v.Name
		if f.values == nil {
			typed = c.typed(&v.Filter)
		}
	} else {
		d.Key = f.Field("key", "Key", "Programs name the segment by it. Empty: made from the name.", "")
	}
	d.Name = f.Field("name", "Name", "Such as: silent for 90 days.", name).Need()
	m, problems := c.filterOf(typed)
	if len(problems) == 0 {
		n, whole, err := c.s.app.Segments.Count(c.r.Context(), c.p, m)
		if err != nil {
			return nil, view{}, err
		}
		d.matcher, d.Count = m, fitWords(n, whole)
	}
	if !saves {
		problems = nil
	}
	d.Conditions = c.conditions(typed, problems)
	return d, view{Title: d.Heading, Data: d}, nil
}

// fitWords says how many contacts fit.
func fitWords(n int, whole bool) string {
	switch {
	case !whole && n == 0:
		return "Nobody fits so far. Only the first contacts were looked at."
	case !whole:
		return "At least " + count(n) + " contacts fit. Only the first contacts were looked at."
	case n == 0:
		return "Nobody fits now."
	case n == 1:
		return "1 contact fits now."
	}
	return count(n) + " contacts fit now."
}

func (c *call) aSegment() (*desk.Segment, error) {
	v, err := c.s.app.Segments.Segment(c.r.Context(), c.p, c.r.PathValue("key"))
	if desk.IsType(err, desk.NotFound) {
		return nil, errNotHere
	}
	return v, err
}

func (s *Server) newSegment(c *call) error { return c.showSegment(nil) }

func (s *Server) segment(c *call) error {
	stored, err := c.aSegment()
	if err != nil {
		return err
	}
	return c.showSegment(stored)
}

func (c *call) showSegment(v *desk.Segment) error {
	_, page, err := c.segmentView(v, false)
	if err != nil {
		return err
	}
	return c.show("segment", page)
}

func (s *Server) addSegment(c *call) error { return c.putSegment(nil) }

func (s *Server) editSegment(c *call) error {
	stored, err := c.aSegment()
	if err != nil {
		return err
	}
	return c.putSegment(stored)
}

// putSegment stores the form. If another member has changed the segment meanwhile, it asks for
// confirmation.
func (c *call) putSegment(stored *desk.Segment) error {
	f := c.form
	if f.has("preview") || f.editsConditions() {
		return c.showSegment(stored)
	}
	d, v, err := c.segmentView(stored, true)
	if err != nil {
		return err
	}
	e := segments.Edit{Name: f.text("name"), Seen: &desk.Segment{}}
	if stored != nil {
		e.Key, e.Seen = stored.Key, stored
	} else if e.Key = f.text("key"); e.Key == "" {
		if e.Key, err = c.freeSegmentKey(e.Name); err != nil {
			return err
		}
	}
	switch {
	case d.matcher == nil:
		err = errNotSaved
	case stored != nil && f.text("seen") != d.Seen:
		err = desk.Errorf(desk.Changed, "")
	default:
		e.Filter = d.matcher.Filter
		_, _, err = c.s.app.Segments.Put(c.r.Context(), c.p, e)
	}
	switch {
	case err == nil && stored == nil:
		return c.see("/settings/segments", "added")
	case err == nil:
		return c.see("/settings/segments", "saved")
	case desk.IsType(err, desk.Changed) && stored == nil:
		err = desk.InvalidAt("/key", "another segment has this key")
	case desk.IsType(err, desk.Changed):
		err = desk.Errorf(desk.Changed, "somebody has changed this segment meanwhile, so nothing was saved. If you save again, that replaces it")
	}
	f.refuse(desk.AsError(err))
	d.Name.Error = f.errors["name"]
	if d.Key != nil {
		d.Key.Error = f.errors["key"]
	}
	return c.again("segment", v, err)
}

// freeSegmentKey makes an unused key from a name.
func (c *call) freeSegmentKey(name string) (string, error) {
	list, err := c.s.app.Segments.Segments(c.r.Context(), c.p)
	return keyFrom(name, "segment", func(key string) bool {
		return slices.ContainsFunc(list, func(v desk.Segment) bool { return v.Key == key })
	}), err
}

func (c *call) segmentDeletion() (confirmation, error) {
	stored, err := c.aSegment()
	if err != nil {
		return confirmation{}, err
	}
	return confirmation{Heading: "Delete " + stored.Name + "?", Action: segmentPath(stored.Key) + "/delete", Button: "Delete", Back: segmentPath(stored.Key) + "/edit",
		Text: []string{firstOf(c.filterWords(&stored.Filter), 400), "Its contacts stay. A broadcast that was started goes on to the same people."}}, nil
}

func (s *Server) askSegmentDeletion(c *call) error {
	v, err := c.segmentDeletion()
	if err != nil {
		return err
	}
	return c.confirm(v)
}

func (s *Server) deleteSegment(c *call) error {
	stored, err := c.aSegment()
	if err == nil {
		err = s.app.Segments.Delete(c.r.Context(), c.p, stored.Key)
	}
	if err != nil {
		return err
	}
	return c.see("/settings/segments", "deleted")
}
