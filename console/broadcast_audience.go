package console

import (
	"strconv"
	"strings"

	"parley/desk"
)

// Where the people of a broadcast come from, as the page of its people has it.
const (
	fromPaste     = ""
	fromFile      = "file"
	fromSegment   = "segment"
	fromFilter    = "filter"
	fromBroadcast = "broadcast"
)

// An audiencePage is the page that chooses the audience of a broadcast.
type audiencePage struct {
	Href, Back string
	Name       string
	Now        string // the audience that it has; ""; its people are added one by one
	Tabs       []tab
	From       string
	Rows       bool // people were added one by one: they have to go first
	Segment    *field
	Conditions *conditionForm
	Count      string // how many contacts fit the conditions
	Source     *field
	Statuses   *field
	Boxes      []choice // of Statuses
	Code       *field
	Replied    *field
	Empty      *nothing // instead of a form
}

func audiencePath(id desk.ID) string { return broadcastPath(id) + "/audience" }

// filesPath is the page with the files of people of a broadcast.
func filesPath(id desk.ID) string { return broadcastPath(id) + "/import" }

// peopleTabs lead to the ways in which a broadcast gets its people. One with an audience takes
// none by pasting or from files; a button of its page changes that.
func peopleTabs(b *desk.Broadcast, from string) (list []tab) {
	if b.Audience == nil {
		list = []tab{{Label: "Paste people", Href: broadcastPath(b.ID) + "/people", Here: from == fromPaste}, {Label: "A file", Href: filesPath(b.ID), Here: from == fromFile}}
	}
	for _, t := range []struct{ from, label string }{{fromSegment, "A segment"}, {fromFilter, "Conditions"}, {fromBroadcast, "An earlier broadcast"}} {
		list = append(list, tab{Label: t.label, Href: audiencePath(b.ID) + "?from=" + t.from, Here: t.from == from})
	}
	return list
}

// broadcastAudience shows the audience of a broadcast, or the choice of one.
func (s *Server) broadcastAudience(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	from := c.query("from")
	switch {
	case from == fromSegment || from == fromFilter || from == fromBroadcast:
	case b.Audience != nil && b.Audience.Filter != nil:
		from = fromFilter
	case b.Audience != nil && !b.Audience.Broadcast.IsZero():
		from = fromBroadcast
	default:
		from = fromSegment
	}
	v, err := c.audienceView(b, from, nil)
	if err != nil {
		return err
	}
	return c.show("broadcast-audience", v)
}

// audienceView reads the page that chooses an audience. problems are those of conditions, by name
// of the field.
func (c *call) audienceView(b *desk.Broadcast, from string, problems map[string]string) (view, error) {
	d := &audiencePage{Href: audiencePath(b.ID), Back: broadcastPath(b.ID), Name: b.Name, Tabs: peopleTabs(b, from), From: from, Rows: b.Rows > 0}
	if b.Audience != nil {
		words, err := c.audienceWords(b.Audience)
		if err != nil {
			return view{}, err
		}
		d.Now = words
	}
	v := view{Title: "People of " + b.Name, Data: d}
	now := desk.Audience{}
	if b.Audience != nil {
		now = *b.Audience
	}
	switch from {
	case fromSegment:
		return v, c.segmentFields(d, now)
	case fromFilter:
		return v, c.filterFields(d, now, problems)
	case fromBroadcast:
		return v, c.sourceFields(d, now)
	}
	return v, nil
}

func (c *call) segmentFields(d *audiencePage, now desk.Audience) error {
	list, err := c.s.app.Segments.Segments(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	choices := []choice{{Label: "Choose…"}}
	for _, s := range list {
		choices = append(choices, choice{Value: s.Key, Label: s.Name})
	}
	if len(list) == 0 {
		d.Empty = &nothing{"No segments yet", "A segment is a filter of contacts with a name.", "/settings/segments", "Segments"}
	}
	d.Segment = c.form.Field("segment", "Segment", "Its conditions count as they are when the broadcast is started.", now.Segment).Of(choices).Need()
	return nil
}

func (c *call) filterFields(d *audiencePage, now desk.Audience, problems map[string]string) error {
	typed := c.typedConditions(c.form.values)
	if c.form.values == nil && now.Filter != nil {
		typed = c.typed(now.Filter)
	}
	if m, wrong := c.filterOf(typed); len(wrong) == 0 {
		n, whole, err := c.s.app.Segments.Count(c.r.Context(), c.p, m)
		if err != nil {
			return err
		}
		d.Count = fitWords(n, whole)
	}
	conditions := c.conditions(typed, problems)
	d.Conditions = &conditions
	return nil
}

func (c *call) sourceFields(d *audiencePage, now desk.Audience) error {
	choices := []choice{{Label: "Choose…"}}
	for _, state := range []desk.BroadcastState{desk.BroadcastDone, desk.BroadcastCancelled} {
		list, _, err := c.s.app.Broadcasts.List(c.r.Context(), c.p, state, "", pageRows)
		if err != nil {
			return err
		}
		for _, b := range list {
			choices = append(choices, choice{Value: b.ID.String(), Label: b.Name + ", " + peopleWords(b.Rows) + ", " + c.named(b.EndedAt)})
		}
	}
	if len(choices) == 1 {
		d.Empty = &nothing{"No broadcast has ended yet", "People of a broadcast that has ended can get another one, by what became of them.", "/broadcasts", "Broadcasts"}
	}
	source, code, replied := "", "", ""
	if !now.Broadcast.IsZero() {
		source = now.Broadcast.String()
	}
	if now.Code != 0 {
		code = strconv.Itoa(now.Code)
	}
	if now.Replied != nil {
		replied = map[bool]string{true: "yes", false: "no"}[*now.Replied]
	}
	f := c.form
	d.Source = f.Field("broadcast", "Broadcast", "One that is done or cancelled. Each person keeps the values of the lines there.", source).Of(choices).Need()
	d.Statuses = f.Field("status", "What became of them there", "Who is in doubt is never among them: they may have got the message.", "")
	ticked := map[string]bool{}
	for _, status := range now.Status {
		ticked[string(status)] = true
	}
	if f.values != nil {
		clear(ticked)
		for _, status := range f.list("status") {
			ticked[status] = true
		}
	}
	for _, status := range desk.AudienceStatuses {
		d.Boxes = append(d.Boxes, choice{Value: string(status), Label: rowStates[status].Text, Selected: ticked[string(status)]})
	}
	d.Code = f.Field("code", "Only if it failed with this code", "Such as 131049. Empty: whatever the code.", code).As("number")
	d.Replied = f.Field("replied", "Replies", "", replied).Of([]choice{{Label: "Whether they replied or not"}, {Value: "yes", Label: "Only who replied"}, {Value: "no", Label: "Only who did not reply"}})
	return nil
}

// setAudience stores the audience of the form.
func (s *Server) setAudience(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	from := c.form.text("from")
	if c.form.has("preview") || c.form.editsConditions() {
		v, err := c.audienceView(b, from, nil)
		if err != nil {
			return err
		}
		return c.show("broadcast-audience", v)
	}
	var problems map[string]string
	in := &desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Null: from == fromPaste}, AtMost: desk.Field[int64]{Set: true, Null: from == fromPaste}}
	if from != fromPaste {
		in.Audience.Value, problems = c.typedAudience(from)
		// The number that is typed at the start replaces it.
		in.AtMost.Value = desk.MaxBroadcastPeople
	}
	if c.form.Refused() || len(problems) > 0 {
		err = errNotSaved
	} else if _, err = s.app.Broadcasts.Edit(c.r.Context(), c.p, b.ID, in); err == nil {
		if from == fromPaste {
			return c.see(broadcastPath(b.ID)+"/people", "saved")
		}
		return c.see(broadcastPath(b.ID), "saved")
	}
	e := broadcastError(err)
	if name, found := strings.CutPrefix(desk.AsError(e).At, "/audience/"); found && c.form.values.Has(name) {
		c.form.wrong(name, sentence(desk.AsError(e).Message))
		e = errNotSaved
	}
	v, readErr := c.audienceView(b, from, problems)
	if readErr != nil {
		return readErr
	}
	return c.again("broadcast-audience", v, e)
}

// typedAudience reads the audience of the form. It notes mistakes that only a form can have.
// problems are those of conditions.
func (c *call) typedAudience(from string) (a desk.Audience, problems map[string]string) {
	f := c.form
	switch from {
	case fromSegment:
		if a.Segment = f.text("segment"); a.Segment == "" {
			f.wrong("segment", "Choose a segment.")
		}
		return a, nil
	case fromFilter:
		m, problems := c.filterOf(c.typedConditions(f.values))
		if m != nil {
			a.Filter = &m.Filter
		}
		return a, problems
	}
	var known bool
	if a.Broadcast, known = desk.ParseID(f.text("broadcast")); !known {
		f.wrong("broadcast", "Choose a broadcast.")
	}
	for _, status := range f.list("status") {
		a.Status = append(a.Status, desk.RowStatus(status))
	}
	if len(a.Status) == 0 {
		f.wrong("status", "Tick at least one.")
	}
	if f.text("code") != "" {
		if a.Code = int(f.number("code")); a.Code == 0 {
			f.wrong("code", "Give a whole number from 1, or nothing.")
		}
	}
	if replied := f.text("replied"); replied != "" {
		yes := replied == "yes"
		a.Replied = &yes
	}
	return a, nil
}
