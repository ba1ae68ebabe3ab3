package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/desk"
)

// of is a method that returns the form of a part. The form has values only if this part
// was sent.
func (f *form) of(part string) *form {
	if f.values.Get("part") == part {
		return f
	}
	return &form{}
}

// seenPart returns a fingerprint of a part. The browser sends it back with the form, so
// that a save can find out whether the part has changed since the page was shown.
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

// seenHours is the fingerprint of the hours without the dates, because each date is
// added and removed by itself.
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
		Max:  f.Field("max_open", "At most this many open conversations each", "From 1 to "+count(desk.MaxOpenEach)+". Empty: no limit.", most).As("number"),
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

// ids parses a list of ids. Invalid ones are left out.
func ids(list []string) (out []desk.ID) {
	for _, text := range list {
		if id, ok := desk.ParseID(text); ok && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (c *call) hoursFields(h *desk.Hours) policyHours {
	out := c.weekFields(c.form.of(hoursPart), h, "When you are open", []choice{{Value: always, Label: "Always"}, {Value: byHours, Label: "At these hours"}})
	out.Seen, out.Button = seenHours(h), "Save hours"
	return out
}

// weekFields are the fields of the hours of a week.
func (c *call) weekFields(f *form, h *desk.Hours, label string, choices []choice) policyHours {
	out := policyHours{Zones: desk.TimeZones()}
	mode := byHours
	if h == nil { // usual shop hours, to begin with
		mode, h = always, &desk.Hours{TimeZone: c.zone.String(), Week: map[string][]desk.Span{}}
		for _, day := range desk.Weekdays[:5] {
			h.Week[day] = []desk.Span{{9 * 60, 18 * 60}}
		}
	}
	out.Mode = f.Field("open", label, "", mode).Of(choices)
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

// spansOf returns the fields of a day's spans. The end of a day is shown as 00:00,
// because browsers do not have 24:00.
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

// typedSpans reads the fields of a day's spans. whole is false if a span lacks one of
// its times.
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
	today := c.now.Add(-24 * time.Hour).UTC().Format(time.DateOnly) // yesterday, for zones where it is still that day
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

func (c *call) replyFields(r *desk.AutoReply) policyReplies {
	f := c.form.of(repliesPart)
	out := policyReplies{Seen: seenReplies(r), Button: "Save texts"}
	if r == nil {
		r = &desk.AutoReply{EveryHours: usualEveryHours}
	}
	out.Away = f.Field("away", "When you are closed", "Up to "+count(desk.MaxAutoReply)+" characters. Empty: nothing is sent.", r.Away)
	out.Queued = f.Field("queued", "When you are open, but nobody can take the conversation", "Because everybody is away or has enough, or because conversations are given to nobody. Empty: nothing is sent.", r.Queued)
	out.Every = f.Field("every_hours", "To one person, at most once in so many hours", fmt.Sprintf("From 1 to %d.", desk.MaxEveryHours), strconv.Itoa(r.EveryHours)).As("number")
	out.Holds = f.Box("when_held", "Send the text for closed hours also if somebody holds the conversation", "", r.WhenHeld)
	return out
}

// usualEveryHours is the first value in a new policy.
const usualEveryHours = 12

// inputOf turns a policy into the input that would store it. For nil, everything is off.
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

// readPart finds mistakes that only a form can have: a span with only one time, or a
// text where a number belongs.
func (c *call) readPart(part string) error {
	f := c.form
	number := func(name, text string) {
		if v := f.text(name); v != "" {
			if _, err := strconv.ParseInt(v, 10, 64); err != nil {
				f.wrong(name, text)
			}
		}
	}
	switch part {
	case assignPart:
		number("max_open", maxOpenWords)
	case hoursPart:
		if f.has("weekdays") {
			f.copyMonday()
		}
		f.checkWeek()
	case datesPart:
		if _, whole := typedSpans(f, "at", shownSpans); !whole && !f.has("remove") {
			f.wrong("at", bothTimes)
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
	maxOpenWords    = "Give a whole number from 1 to " + count(desk.MaxOpenEach) + ", or leave it empty."
	everyHoursWords = fmt.Sprintf("Give a whole number from 1 to %d.", desk.MaxEveryHours)
)

const bothTimes = "Give both times of each span, or leave both empty."

// checkWeek notes the days with a span that has only one time.
func (f *form) checkWeek() {
	for _, day := range desk.Weekdays {
		if _, whole := typedSpans(f, day, mostSpans); !whole && f.text("open") != always {
			f.wrong("day."+strings.ToLower(weekdayNames[day]), bothTimes)
		}
	}
}

// week reads the hours of a week into in, or into a new input. It returns nil for always.
func (f *form) week(in *desk.HoursInput) *desk.HoursInput {
	if f.text("open") != byHours {
		return nil
	}
	zone := f.text("time_zone")
	if in == nil {
		in = &desk.HoursInput{}
	}
	in.TimeZone, in.Week = &zone, map[string][][]string{}
	for _, day := range desk.Weekdays {
		if spans, _ := typedSpans(f, day, mostSpans); len(spans) > 0 {
			in.Week[day] = spans
		}
	}
	return in
}

// copyMonday copies the times that were typed for Monday to the days until Friday.
func (f *form) copyMonday() {
	for _, day := range desk.Weekdays[1:5] {
		for i, s := range spansOf(f, desk.Weekdays[0], nil, mostSpans) {
			name := day + "." + strconv.Itoa(i)
			f.values.Set(name+".from", s.From)
			f.values.Set(name+".to", s.To)
		}
	}
}

// putPart replaces a part of the policy by the typed values. It returns Changed if the
// part has changed since the form's page was made.
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
		return in.Check()
	case hoursPart:
		if seen != seenHours(own.Hours) {
			return errPartChanged
		}
		in.Hours = f.week(in.Hours)
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

// assign reads the form of the assignment, including the buttons that move a member up or
// down.
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

// putDate adds a date, replacing the hours of the same date, or removes one.
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

// policyError returns the field of an error of a policy, and the text for its form.
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
		return at[1], "Give at most " + count(desk.MaxAutoReply) + " characters."
	}
	return "", ""
}

// spanError describes an error in the hours of a day.
func spanError(e *desk.Error) string {
	switch {
	case errors.Is(e, desk.ErrSpanEnds):
		return "A span must end after it begins. For hours past midnight, end this day at 00:00 and begin the next one at 00:00."
	case errors.Is(e, desk.ErrSpanOverlaps):
		return "Give the spans in order, and so that they do not overlap."
	}
	return "Give times such as 09:00."
}

// A policyPage is the reply policy of the workspace, or of a channel.
type policyPage struct {
	Path     string
	Tabs     []tab
	Channel  string // the channel's name; "" for the workspace
	Own      bool   // the channel has a policy of its own
	Nothing  bool   // neither the channel nor the workspace has a policy
	Assign   policyAssign
	Hours    policyHours
	Dates    policyDates
	Replies  policyReplies
	Standing []string // the policy in force, in words
}

// A policyAssign is the part of the page about assignment.
type policyAssign struct {
	Now, Seen, Button string
	Mode, Max, Away   *field
	Members           []policyMember
	Error             string
}

// A policyMember is a line in the list of members who get conversations.
type policyMember struct {
	ID          desk.ID
	Name        string
	Listed      bool
	Away        bool
	First, Last bool // in the list
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
	More             []spanFields // further spans
	Open             bool         // further spans are in use
}

// spanFields are the two times of a span.
type spanFields struct{ Name, From, To string }

// A policyDates is the part with the dates that have their own hours.
type policyDates struct {
	On    bool // there are hours at all
	Rows  []policyDate
	More  int // dates that are not shown
	All   string
	Date  *field
	Spans []spanFields
	Error string
}

// A policyDate is a date with its own hours.
type policyDate struct{ Date, Shown, Open string }

// A policyReplies is the part with the automatic replies.
type policyReplies struct {
	Now, Seen, Button          string
	Away, Queued, Every, Holds *field
}

func policyPath(channel desk.ID) string {
	if channel.IsZero() {
		return "/settings/policy"
	}
	return "/settings/policy/" + channel.String()
}
