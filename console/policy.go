package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

// The parts of the reply policy, each with a form of its own.
const (
	assignPart  = "assign"
	hoursPart   = "hours"
	datesPart   = "dates"
	repliesPart = "replies"
	ownPart     = "own" // a channel gets a policy of its own
)

// A policyPage is the reply policy of the workspace, or of a channel.
type policyPage struct {
	Path     string
	Tabs     []tab
	Channel  string // its name; "" for the workspace
	Own      bool   // the channel has a policy of its own
	Nothing  bool   // neither has a policy
	Assign   policyAssign
	Hours    policyHours
	Dates    policyDates
	Replies  policyReplies
	Standing []string // what is in force, in words
}

// A policyAssign is the part that assigns conversations.
type policyAssign struct {
	Now, Seen, Button string
	Mode, Max, Away   *field
	Members           []policyMember
	Error             string
}

// A policyMember is a line of the members who get conversations, in their order.
type policyMember struct {
	ID          desk.ID
	Name        string
	Listed      bool
	Away        bool
	First, Last bool // of those who are listed
}

// A policyHours is the part with the hours of a week.
type policyHours struct {
	Now, Seen, Button string
	Mode, Zone        *field
	Zones             []string
	Days              []policyDay
}

// A policyDay is a day of the week.
type policyDay struct {
	Name, Key, Error string
	Spans            []spanFields
	More             []spanFields // further ones
	Open             bool         // some of those further ones are used
}

// spanFields are the two times of a span.
type spanFields struct{ Name, From, To string }

// A policyDates is the part with the dates that have hours of their own.
type policyDates struct {
	On    bool // there are hours at all
	Rows  []policyDate
	More  int // dates that are not shown
	All   string
	Date  *field
	Spans []spanFields
	Error string
}

// A policyDate is a date with hours of its own.
type policyDate struct{ Date, Shown, Open string }

// A policyReplies is the part with the texts that are sent by themselves.
type policyReplies struct {
	Now, Seen, Button          string
	Away, Queued, Every, Holds *field
}

const (
	always  = "always"
	byHours = "hours"
	// shownSpans are the spans of a day that a form shows at once, of mostSpans.
	shownSpans, mostSpans = 2, 4
	// shownDates is how many dates the page shows without being asked for all.
	shownDates = 60
)

// weekdayNames are the days of desk.Weekdays in words.
var weekdayNames = map[string]string{"mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday", "fri": "Friday", "sat": "Saturday", "sun": "Sunday"}

var assignModes = []choice{
	{Value: string(desk.AssignNone), Label: "Nobody: they wait under Unassigned"},
	{Value: string(desk.AssignRoundRobin), Label: "The ticked members in turn, down the list"},
	{Value: string(desk.AssignLeastOpen), Label: "Whichever ticked member has the fewest open"},
}

var ownerChoices = []choice{
	{Value: string(desk.OwnerKeeps), Label: "The owner, who finds it on coming back"},
	{Value: string(desk.OwnerPool), Label: "Whoever gets those without an owner"},
}

// policyOf is the channel of the path, zero for the workspace.
func (c *call) policyOf() (desk.ID, error) {
	if c.r.PathValue("id") == "" {
		return desk.ID{}, nil
	}
	v, err := c.aChannel()
	if err != nil {
		return desk.ID{}, err
	}
	return v.ID, nil
}

func policyPath(channel desk.ID) string {
	if channel.IsZero() {
		return "/settings/policy"
	}
	return "/settings/policy/" + channel.String()
}

func (s *Server) policy(c *call) error {
	channel, err := c.policyOf()
	if err != nil {
		return err
	}
	_, v, err := c.policyView(channel)
	if err != nil {
		return err
	}
	return c.show("policy", v)
}

// policyView is the page of a policy. What was typed into one part's form stays there.
func (c *call) policyView(channel desk.ID) (*policyPage, view, error) {
	s := c.p.Settings
	d := &policyPage{Path: policyPath(channel), Own: s.OwnPolicy(channel) != nil, Tabs: []tab{{Label: "Workspace", Href: policyPath(desk.ID{}), Here: channel.IsZero()}}}
	title := "Reply policy"
	for _, v := range s.Channels() {
		d.Tabs = append(d.Tabs, tab{Label: channelName(c.p.Settings, v, true), Href: policyPath(v.ID), Here: v.ID == channel})
		if v.ID == channel {
			d.Channel = channelName(c.p.Settings, v, true)
			title = d.Channel
		}
	}
	p := s.Policy(channel)
	d.Nothing = p == nil
	if p == nil {
		p = &desk.Policy{}
	}
	open, err := c.openWords(channel, p.Hours)
	if err != nil {
		return nil, view{}, err
	}
	d.Standing = []string{c.assignWords(p), open, replyWords(p.AutoReply)}
	if channel.IsZero() || d.Own {
		d.Assign = c.assignFields(p)
		d.Hours = c.hoursFields(p.Hours)
		d.Dates = c.dateFields(d.Path, p.Hours)
		d.Replies = c.replyFields(p.AutoReply)
		d.Assign.Now, d.Hours.Now, d.Replies.Now = d.Standing[0], d.Standing[1], d.Standing[2]
	}
	return d, view{Title: title, Data: d}, nil
}

// of is the form of a part: what was sent, if it was that part.
func (f *form) of(part string) *form {
	if f.values.Get("part") == part {
		return f
	}
	return &form{}
}

// seenPart names what a part says, so that a form tells what its page showed.
func seenPart(part any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", part))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

func seenAssign(p *desk.Policy) string {
	pool := p.OwnerAway == desk.OwnerPool
	if p.Assign == nil {
		return seenPart(pool)
	}
	return seenPart([]any{*p.Assign, pool})
}

// seenHours leaves the dates out: each of them is added and removed by itself.
func seenHours(h *desk.Hours) string {
	if h == nil {
		return seenPart(nil)
	}
	return seenPart([]any{h.TimeZone, h.Week})
}

func seenReplies(r *desk.AutoReply) string {
	if r == nil {
		return seenPart(nil)
	}
	return seenPart(*r)
}

func (c *call) assignFields(p *desk.Policy) policyAssign {
	f, seen, a := c.form.of(assignPart), seenAssign(p), p.Assign
	if a == nil {
		a = &desk.Assign{Mode: desk.AssignNone}
	}
	most := ""
	if a.MaxOpen > 0 {
		most = strconv.Itoa(a.MaxOpen)
	}
	listed := a.Members
	if f.values != nil {
		listed = ids(f.list("members"))
	}
	out := policyAssign{
		Seen: seen, Button: "Save assignment", Error: f.errors["members"],
		Mode: f.Field("mode", "Who gets new conversations", "", string(a.Mode)).Of(assignModes),
		Max:  f.Field("max_open", "At most this many open conversations each", "From 1 to 1,000. Empty: no limit.", most).As("number"),
		Away: f.Field("owner_away", "Who gets a new conversation whose customer has an owner who is away",
			"If the owner gets it, the customer is sent one of the texts below.", string(cmp.Or(p.OwnerAway, desk.OwnerKeeps))).Of(ownerChoices),
	}
	for _, id := range listed {
		if m := c.p.Settings.Member(id); m != nil {
			out.Members = append(out.Members, policyMember{ID: id, Name: m.Name, Listed: true, Away: m.Away})
		}
	}
	if n := len(out.Members); n > 0 {
		out.Members[0].First, out.Members[n-1].Last = true, true
	}
	for _, m := range c.p.Settings.Members() {
		if !slices.Contains(listed, m.ID) {
			out.Members = append(out.Members, policyMember{ID: m.ID, Name: m.Name, Away: m.Away})
		}
	}
	return out
}

// ids are the ids of a list; what is none is left out.
func ids(list []string) (out []desk.ID) {
	for _, text := range list {
		if id, ok := desk.ParseID(text); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (c *call) hoursFields(h *desk.Hours) policyHours {
	f := c.form.of(hoursPart)
	out := policyHours{Seen: seenHours(h), Button: "Save hours", Zones: desk.TimeZones()}
	mode := byHours
	if h == nil { // what many shops have, to begin with
		mode, h = always, &desk.Hours{TimeZone: c.zone.String(), Week: map[string][]desk.Span{}}
		for _, day := range desk.Weekdays[:5] {
			h.Week[day] = []desk.Span{{9 * 60, 18 * 60}}
		}
	}
	out.Mode = f.Field("open", "When you are open", "", mode).Of([]choice{{Value: always, Label: "Always"}, {Value: byHours, Label: "At these hours"}})
	out.Zone = f.Field("time_zone", "Time zone", "Such as Europe/Istanbul. The hours follow its clocks, in summer and winter.", h.TimeZone)
	for _, day := range desk.Weekdays {
		d := policyDay{Name: weekdayNames[day], Key: strings.ToLower(weekdayNames[day])}
		d.Error = f.errors["day."+d.Key]
		all := spansOf(f, day, h.Week[day], mostSpans)
		d.Spans, d.More = all[:shownSpans], all[shownSpans:]
		d.Open = slices.ContainsFunc(d.More, func(s spanFields) bool { return s.From != "" || s.To != "" })
		out.Days = append(out.Days, d)
	}
	return out
}

// spansOf are the fields of a day's spans. The end of a day is 00:00, as browsers know no
// 24:00.
func spansOf(f *form, name string, spans []desk.Span, n int) []spanFields {
	list := make([]spanFields, n)
	for i := range list {
		s := &list[i]
		s.Name = name + "." + strconv.Itoa(i)
		switch {
		case f.values != nil:
			s.From, s.To = f.text(s.Name+".from"), f.text(s.Name+".to")
		case i < len(spans):
			s.From, s.To = spans[i][0].String(), strings.Replace(spans[i][1].String(), "24:00", "00:00", 1)
		}
	}
	return list
}

// typedSpans reads the fields of a day's spans; whole tells whether none lacks a time.
func typedSpans(f *form, name string, n int) (spans [][]string, whole bool) {
	spans, whole = [][]string{}, true
	for _, s := range spansOf(f, name, nil, n) {
		if s.From == "" && s.To == "" {
			continue
		}
		whole = whole && s.From != "" && s.To != ""
		if s.To == "00:00" {
			s.To = "24:00"
		}
		spans = append(spans, []string{s.From, s.To})
	}
	return spans, whole
}

func (c *call) dateFields(path string, h *desk.Hours) policyDates {
	f := c.form.of(datesPart)
	if h == nil {
		return policyDates{}
	}
	out := policyDates{On: true, Date: f.Field("date", "Date", "", "").As("date").Need(), Spans: spansOf(f, "at", nil, shownSpans), Error: f.errors["at"]}
	list := slices.Clone(h.Exceptions)
	slices.SortStableFunc(list, func(a, b desk.Exception) int { return cmp.Compare(a.Date, b.Date) })
	today := c.now.Add(-24 * time.Hour).UTC().Format(time.DateOnly) // wherever it is yesterday still
	for _, e := range list {
		if c.query("dates") == "all" || e.Date >= today && len(out.Rows) < shownDates {
			out.Rows = append(out.Rows, policyDate{e.Date, dateWords(e.Date), spanWords(e.Open)})
		} else {
			out.More++
		}
	}
	out.All = path + "?dates=all#dates"
	return out
}

// dateWords is a date as people read it: Fri 25 Dec 2026.
func dateWords(date string) string {
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return date
	}
	return at.Format("Mon 2 Jan 2006")
}

// spanWords are hours as people read them: 09:00–12:30, 13:30–18:00.
func spanWords(spans []desk.Span) string {
	if len(spans) == 0 {
		return "Closed"
	}
	words := make([]string, len(spans))
	for i, s := range spans {
		words[i] = s[0].String() + "–" + s[1].String()
	}
	return strings.Join(words, ", ")
}

func (c *call) replyFields(r *desk.AutoReply) policyReplies {
	f := c.form.of(repliesPart)
	out := policyReplies{Seen: seenReplies(r), Button: "Save texts"}
	if r == nil {
		r = &desk.AutoReply{EveryHours: usualEveryHours}
	}
	out.Away = f.Field("away", "When you are closed", "Up to 1,024 characters. Empty: nothing is sent.", r.Away)
	out.Queued = f.Field("queued", "When you are open, but nobody can take the conversation", "Because everybody is away or has enough, or because conversations are given to nobody. Empty: nothing is sent.", r.Queued)
	out.Every = f.Field("every_hours", "To one person, at most once in so many hours", "From 1 to 168.", strconv.Itoa(r.EveryHours)).As("number")
	out.Holds = f.Box("when_held", "Send the text for closed hours also if somebody holds the conversation", "", r.WhenHeld)
	return out
}

// usualEveryHours is what a new policy begins with.
const usualEveryHours = 12

// assignWords say who gets conversations.
func (c *call) assignWords(p *desk.Policy) string {
	words := c.givenWords(p.Assign)
	if p.OwnerAway == desk.OwnerPool {
		words += " So it is for customers whose owner is away."
	}
	return words
}

// givenWords say who gets the conversations that nobody holds.
func (c *call) givenWords(a *desk.Assign) string {
	var names []string
	if a != nil {
		for _, id := range a.Members {
			if m := c.p.Settings.Member(id); m != nil {
				names = append(names, apart(m.Name))
			}
		}
	}
	if a == nil || a.Mode == desk.AssignNone || len(names) == 0 {
		return "Nobody gets conversations by themselves: they wait under Unassigned until somebody takes them."
	}
	most := ""
	if a.MaxOpen > 0 {
		most = ", up to " + count(a.MaxOpen) + " open ones each"
	}
	if len(names) == 1 {
		return names[0] + " gets new conversations" + strings.TrimSuffix(most, " each") + "."
	}
	who := together(names)
	if a.Mode == desk.AssignRoundRobin {
		return who + " get new conversations in turn" + most + "."
	}
	return "New conversations go to whichever of " + who + " has the fewest open" + most + "."
}

// together joins names: Ada, Bo and 3 others.
func together(names []string) string {
	const most = 3
	if len(names) > most+1 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d others", len(names)-most))
	}
	n := len(names)
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

// openWords say whether it is open now, and until when.
func (c *call) openWords(channel desk.ID, h *desk.Hours) (string, error) {
	if h == nil {
		return "You are always open.", nil
	}
	open, until, changes, err := c.s.app.Hours(c.p, channel, nil)
	if err != nil {
		return "", err
	}
	words := "Closed now"
	if open {
		words = "Open now"
	}
	if !changes {
		return words + ", and for the next 15 days.", nil
	}
	zone, err := time.LoadLocation(h.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	at, now := time.UnixMilli(int64(until)).In(zone), c.now.In(zone)
	layout := "Mon 2 Jan 15:04"
	if daysBetween(at, now) == 0 {
		layout = "15:04"
	}
	return words + ", until " + at.Format(layout) + " (" + zone.String() + ").", nil
}

// replyWords say what is sent by itself.
func replyWords(r *desk.AutoReply) string {
	switch {
	case r == nil || r.Away == "" && r.Queued == "":
		return "Nothing is answered by itself."
	case r.Queued == "":
		return "A text is sent while you are closed."
	case r.Away == "":
		return "A text is sent while you are open and nobody can take the conversation."
	}
	return "A text is sent while you are closed, and another while you are open and nobody can take the conversation."
}

// inputOf is a policy as it would be sent; nil is one in which everything is off.
func inputOf(p *desk.Policy) (in desk.PolicyInput) {
	if p == nil {
		return in
	}
	in.OwnerAway = orNil(string(p.OwnerAway))
	if a := p.Assign; a != nil {
		mode := string(a.Mode)
		in.Assign = &desk.AssignInput{Mode: &mode}
		for _, id := range a.Members {
			in.Assign.Members = append(in.Assign.Members, desk.ReferTo(id.String()))
		}
		if n := int64(a.MaxOpen); n > 0 {
			in.Assign.MaxOpen = &n
		}
	}
	if h := p.Hours; h != nil {
		in.Hours = &desk.HoursInput{TimeZone: &h.TimeZone, Week: map[string][][]string{}}
		for day, spans := range h.Week {
			in.Hours.Week[day] = spanTexts(spans)
		}
		for _, e := range h.Exceptions {
			in.Hours.Exceptions = append(in.Hours.Exceptions, desk.ExceptionInput{Date: &e.Date, Open: spanTexts(e.Open)})
		}
	}
	if r := p.AutoReply; r != nil {
		every := int64(r.EveryHours)
		in.AutoReply = &desk.AutoReplyInput{EveryHours: &every, WhenHeld: r.WhenHeld, Away: orNil(r.Away), Queued: orNil(r.Queued)}
	}
	return in
}

func spanTexts(spans []desk.Span) [][]string {
	list := make([][]string, len(spans))
	for i, s := range spans {
		list[i] = []string{s[0].String(), s[1].String()}
	}
	return list
}

func orNil(text string) *string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return &text
}

// savePolicy stores one part of a policy; the others stay as they are.
func (s *Server) savePolicy(c *call) error {
	channel, err := c.policyOf()
	if err != nil {
		return err
	}
	part, done := c.form.text("part"), "saved"
	if c.form.has("remove") {
		done = "removed"
	}
	if err = c.readPart(part); err == nil {
		workspace := c.p.Settings.OwnPolicy(desk.ID{})
		_, err = s.app.EditPolicy(c.r.Context(), c.p, channel, func(own *desk.Policy) (desk.PolicyInput, error) {
			if part == ownPart && own == nil {
				return inputOf(workspace), nil // to begin with
			}
			if own == nil && !channel.IsZero() {
				return desk.PolicyInput{}, desk.Errorf(desk.Changed, "this channel goes by the workspace's policy now, so nothing was saved")
			}
			in := inputOf(own)
			return in, c.putPart(part, own, &in)
		})
	}
	if err != nil {
		return c.policyRefused(channel, part, err)
	}
	at := with(policyPath(channel), "done", done)
	if part != ownPart {
		at += "#" + part
	}
	return c.see(at, "")
}

// readPart checks what only a form can have wrong: a time without its other, a number that
// is none.
func (c *call) readPart(part string) error {
	f := c.form
	number := func(name, text string) {
		if v := f.text(name); v != "" {
			if _, err := strconv.ParseInt(v, 10, 64); err != nil {
				f.wrong(name, text)
			}
		}
	}
	const both = "Give both times of each span, or leave both empty."
	switch part {
	case assignPart:
		number("max_open", maxOpenWords)
	case hoursPart:
		if f.has("weekdays") {
			f.copyMonday()
		}
		for _, day := range desk.Weekdays {
			if _, whole := typedSpans(f, day, mostSpans); !whole && f.text("open") != always {
				f.wrong("day."+strings.ToLower(weekdayNames[day]), both)
			}
		}
	case datesPart:
		if _, whole := typedSpans(f, "at", shownSpans); !whole && !f.has("remove") {
			f.wrong("at", both)
		}
	case repliesPart:
		if f.text("every_hours") == "" {
			f.wrong("every_hours", everyHoursWords)
		}
		number("every_hours", everyHoursWords)
		for _, name := range []string{"away", "queued"} {
			if placeholder := unfilled(f.raw(name)); placeholder != "" {
				f.wrong(name, "Leave "+placeholder+" out: it is filled in only in saved replies.")
			}
		}
	case ownPart:
	default:
		return errNotHere
	}
	if f.Refused() {
		return errNotSaved
	}
	return nil
}

var (
	errNotSaved     = desk.Invalidf("nothing was saved: something is not right yet")
	errPartChanged  = desk.Errorf(desk.Changed, "somebody has changed this meanwhile, so nothing was saved. The page says what is in force now; saving again replaces that")
	maxOpenWords    = "Give a whole number from 1 to 1,000, or leave it empty."
	everyHoursWords = "Give a whole number from 1 to 168."
)

// copyMonday gives the days until Friday the times that were typed for Monday.
func (f *form) copyMonday() {
	for _, day := range desk.Weekdays[1:5] {
		for i, s := range spansOf(f, desk.Weekdays[0], nil, mostSpans) {
			name := day + "." + strconv.Itoa(i)
			f.values.Set(name+".from", s.From)
			f.values.Set(name+".to", s.To)
		}
	}
}

// putPart puts what was typed in place of a part of the policy. It returns Changed if the
// part is no longer what the form's page showed.
func (c *call) putPart(part string, own *desk.Policy, in *desk.PolicyInput) error {
	if own == nil {
		own = &desk.Policy{}
	}
	f := c.form
	switch seen := f.text("seen"); part {
	case assignPart:
		if seen != seenAssign(own) {
			return errPartChanged
		}
		in.Assign, in.OwnerAway = f.assign(), orNil(f.text("owner_away"))
	case hoursPart:
		if seen != seenHours(own.Hours) {
			return errPartChanged
		}
		if f.text("open") != byHours {
			in.Hours = nil
			return nil
		}
		zone := f.text("time_zone")
		if in.Hours == nil {
			in.Hours = &desk.HoursInput{}
		}
		in.Hours.TimeZone, in.Hours.Week = &zone, map[string][][]string{}
		for _, day := range desk.Weekdays {
			if spans, _ := typedSpans(f, day, mostSpans); len(spans) > 0 {
				in.Hours.Week[day] = spans
			}
		}
	case datesPart:
		if in.Hours == nil {
			return errPartChanged
		}
		c.putDate(in.Hours)
	case repliesPart:
		if seen != seenReplies(own.AutoReply) {
			return errPartChanged
		}
		in.AutoReply = nil
		away, queued := orNil(f.raw("away")), orNil(f.raw("queued"))
		if away != nil || queued != nil {
			every, _ := strconv.ParseInt(f.text("every_hours"), 10, 64)
			in.AutoReply = &desk.AutoReplyInput{Away: away, Queued: queued, EveryHours: &every, WhenHeld: f.has("when_held")}
		}
	}
	return nil
}

// assign reads the form of that part, with the button that moves a member.
func (f *form) assign() *desk.AssignInput {
	mode := f.text("mode")
	in := &desk.AssignInput{Mode: &mode}
	members := ids(f.list("members"))
	for name, step := range map[string]int{"up": -1, "down": 1} {
		id, _ := desk.ParseID(f.text(name))
		from := slices.Index(members, id)
		if to := from + step; from >= 0 && to >= 0 && to < len(members) {
			members[from], members[to] = members[to], members[from]
		}
	}
	for _, id := range members {
		in.Members = append(in.Members, desk.ReferTo(id.String()))
	}
	if n, err := strconv.ParseInt(f.text("max_open"), 10, 64); err == nil {
		in.MaxOpen = &n
	}
	if mode == string(desk.AssignNone) && len(in.Members) == 0 && in.MaxOpen == nil {
		return nil
	}
	return in
}

// putDate adds a date, in place of what is there for it, or removes one.
func (c *call) putDate(h *desk.HoursInput) {
	date := c.form.text("date")
	if c.form.has("remove") {
		date = c.form.text("remove")
	}
	h.Exceptions = slices.DeleteFunc(h.Exceptions, func(e desk.ExceptionInput) bool { return *e.Date == date })
	if !c.form.has("remove") {
		spans, _ := typedSpans(c.form, "at", shownSpans)
		h.Exceptions = append(h.Exceptions, desk.ExceptionInput{Date: &date, Open: spans})
	}
}

// policyRefused shows the page again with the reason beside its field.
func (c *call) policyRefused(channel desk.ID, part string, err error) error {
	if e := desk.AsError(err); e.Type == desk.InvalidRequest && !c.form.Refused() {
		if name, text := policyError(e, part); name != "" {
			c.form.wrong(name, text)
			err = errNotSaved
		}
	}
	changed := desk.IsType(err, desk.Changed)
	if !changed && !desk.IsType(err, desk.InvalidRequest) {
		return err
	}
	p, readErr := c.s.app.Member(c.r.Context(), c.p.Workspace(), c.p.Actor.ID)
	if readErr != nil {
		return readErr
	}
	c.p = p
	d, v, readErr := c.policyView(channel)
	if readErr != nil {
		return readErr
	}
	if changed {
		for _, button := range []struct {
			part string
			text *string
		}{{assignPart, &d.Assign.Button}, {hoursPart, &d.Hours.Button}, {repliesPart, &d.Replies.Button}} {
			if button.part == part {
				*button.text = "Save anyway"
			}
		}
	}
	return c.again("policy", v, err)
}

// policyError is the field of an error of a policy, and what its form says of it.
func policyError(e *desk.Error, part string) (name, text string) {
	at := strings.Split(strings.TrimPrefix(e.At, "/"), "/")
	switch {
	case strings.HasPrefix(e.At, "/assign/members"):
		return "members", "Tick at least one member, and at most 200."
	case e.At == "/assign/max_open":
		return "max_open", maxOpenWords
	case e.At == "/hours/time_zone":
		return "time_zone", sentence(e.Message)
	case strings.HasPrefix(e.At, "/hours/week/") && len(at) > 2:
		return "day." + strings.ToLower(weekdayNames[at[2]]), spanError(e)
	case strings.HasPrefix(e.At, "/hours/exceptions") && part == datesPart:
		switch {
		case len(at) < 4:
			return "date", sentence(e.Message)
		case at[3] == "date":
			return "date", "Give a date."
		}
		return "at", spanError(e)
	case e.At == "/auto_reply/every_hours":
		return "every_hours", everyHoursWords
	case strings.HasPrefix(e.At, "/auto_reply/"):
		return at[1], "Give at most 1,024 characters."
	}
	return "", ""
}

// spanError words what is wrong with the hours of a day.
func spanError(e *desk.Error) string {
	switch {
	case strings.Contains(e.Message, "is not before"):
		return "A span must end after it begins. For hours past midnight, end this day at 00:00 and begin the next one at 00:00."
	case strings.Contains(e.Message, "begins before"):
		return "Give the spans in order, and so that they do not overlap."
	}
	return "Give times such as 09:00."
}

func (c *call) policyRemoval() (channel desk.ID, v confirmation, err error) {
	if channel, err = c.policyOf(); err != nil {
		return channel, v, err
	}
	name := channelName(c.p.Settings, c.p.Settings.Channel(channel), true)
	path := policyPath(channel)
	v = confirmation{Heading: "Remove the policy of " + apart(name) + "?", Action: path + "/remove", Button: "Remove", Back: path,
		Text: []string{"Its members, hours and texts go. From then on, the workspace's policy counts for this channel."}}
	return channel, v, nil
}

func (s *Server) askPolicyRemoval(c *call) error {
	_, v, err := c.policyRemoval()
	if err != nil {
		return err
	}
	return c.confirm(v)
}

func (s *Server) removePolicy(c *call) error {
	channel, _, err := c.policyRemoval()
	if err == nil {
		err = s.app.ClearPolicy(c.r.Context(), c.p, channel)
	}
	if err != nil {
		return err
	}
	return c.see(policyPath(channel), "removed")
}
