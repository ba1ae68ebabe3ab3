package console

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/app"
	"parley/desk"
)

// A broadcastForm is the page that makes or changes a broadcast: the choice of a template,
// or with Shown the form.
type broadcastForm struct {
	templateChoice
	Heading, Back string
	Problem       string // why no template can be chosen
	Seen          string // what the page shows of the broadcast
	Button        string
	Later, Ended  bool // it was started; it has ended: less can be changed

	Name              *field
	Values            []sourceField
	File              *fileField
	Consent, SkipOpen *field
	SendAt, StopAt    *field
	Zone              string
	Week              policyHours
	Pace              []*field
	MaxFailed         *field
	AtMost            *field // nil: its people are added one by one
	Shown             *shownTemplate
}

// A sourceField is what fills a variable: its source, and a text.
type sourceField struct {
	*valueField
	From *field
}

// fromText is the source of a variable whose value is the same for everybody.
const fromText = "text"

// seenBroadcast is a fingerprint of what a broadcast's form shows. The driver does not change
// it.
func seenBroadcast(b *desk.Broadcast) string {
	in := copyOf(b, 0)
	hours := seenHours(b.Hours)
	in.Hours = desk.Field[desk.HoursInput]{}
	return seenPart([]any{b.Name, *in, hours})
}

func (s *Server) newBroadcast(c *call) error {
	v, _, err := c.broadcastForm(nil, c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.show("broadcast-edit", v)
}

func (s *Server) askBroadcastEdit(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	v, _, err := c.broadcastForm(b, c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.show("broadcast-edit", v)
}

// broadcastForm reads the page that changes b or, for nil, that makes a broadcast. q may have a
// channel and a template.
func (c *call) broadcastForm(b *desk.Broadcast, q url.Values) (view, *broadcastForm, error) {
	d := &broadcastForm{templateChoice: choiceOf("/broadcasts/new", q), Heading: "New broadcast", Back: "/broadcasts", Button: "Save, then add people"}
	if b != nil {
		d.To, d.Heading, d.Back, d.Button = broadcastPath(b.ID)+"/edit", "Change "+b.Name, broadcastPath(b.ID), "Save"
		d.Seen, d.Later, d.Ended = seenBroadcast(b), b.State != desk.BroadcastDraft, b.State.Ended()
		if !q.Has("template") && !q.Has("words") && !q.Has("channel") {
			d.Template = b.Template + "/" + b.Language
		}
		if !q.Has("channel") && !b.Channel.IsZero() {
			d.Channel = b.Channel.String()
		}
	}
	v := view{Title: d.Heading, Data: d}
	if d.Later {
		c.settingsFields(d, b)
		return v, d, nil
	}
	channel := c.chooseChannel(&d.templateChoice, d.Channel)
	if channel == nil {
		return v, d, nil
	}
	l, err := c.s.app.Templates(c.r.Context(), c.p, app.TemplateQuery{Channel: &channel.ID})
	if err != nil {
		return v, d, err
	}
	name, language, _ := strings.Cut(d.Template, "/")
	t := l.Library.Find(name, language)
	if t == nil || !t.Sendable() && !t.Fillable() {
		if d.Template != "" {
			d.Problem = "This template can't be sent on this channel now. Choose another one."
		}
		d.find(l, func(t *desk.Template) map[string]string { return c.samples(channel, t) })
		return v, d, nil
	}
	d.Title, d.Other = t.Name+" · "+languageName(t.Language), d.href("")
	c.settingsFields(d, b)
	return v, d, c.templateFields(d, b, channel, t)
}

// settingsFields adds the fields that do not depend on the template.
func (c *call) settingsFields(d *broadcastForm, b *desk.Broadcast) {
	if b == nil {
		b = &desk.Broadcast{MaxFailed: desk.UsualMaxFailed}
	}
	f := c.form
	d.Name = f.Field("name", "Name", "Your team sees it, the people do not.", b.Name).Need()
	consent, open := "", ""
	switch {
	case b.Consent == nil:
	case b.Consent.Confirmed:
		consent = "confirmed"
	default:
		consent = "attributes." + b.Consent.Attribute
	}
	choices := []choice{{Label: "Not said yet: it can't start"}, {Value: "confirmed", Label: "I have the agreement of each of these people"}}
	for _, a := range c.p.Settings.SortedAttributes() {
		if a.Type == desk.BooleanAttribute && !a.Archived {
			choices = append(choices, choice{Value: "attributes." + a.Key, Label: "Only people with a yes in " + a.Label})
		}
	}
	d.Consent = f.Field("consent", "How they agreed to get messages like this", "WhatsApp requires it. parley keeps who said so, and when.", consent).Of(choices)
	if b.SkipOpen != nil {
		open = map[bool]string{true: "yes", false: "no"}[*b.SkipOpen]
	}
	d.SkipOpen = f.Field("skip_open", "People whose conversation is open", "", open).Of([]choice{{Label: "Passed over if the template is marketing"}, {Value: "yes", Label: "Passed over"}, {Value: "no", Label: "Sent to as well"}})
	d.Zone = c.zone.String()
	d.SendAt = f.Field("send_at", "Begin at", "Empty: as soon as it is started. Times of "+d.Zone+".", c.localTime(b.SendAt)).As("datetime-local")
	d.StopAt = f.Field("stop_at", "Stop at", "Who was not sent to by then is passed over. Empty: it goes on to the end.", c.localTime(b.StopAt)).As("datetime-local")
	d.Week = c.weekFields(f, b.Hours, "Hours", []choice{{Value: always, Label: "At any hour"}, {Value: byHours, Label: "Only at these hours"}})
	people, minutes := "", strconv.Itoa(desk.MaxBroadcastMinutes)
	if b.Pace != nil {
		people, minutes = strconv.Itoa(b.Pace.People), strconv.Itoa(b.Pace.Minutes)
	}
	d.Pace = []*field{
		f.Field("pace.people", "At most so many people", "Empty: as fast as the channel may. Take 80 % of what WhatsApp lets your number write to in a day: for 2,000 these are 1,600.", people).As("number"),
		f.Field("pace.minutes", "in any so many minutes", "1,440 are a day.", minutes).As("number"),
	}
	f.call("pace.people", "Pace")
	f.call("pace.minutes", "Minutes of the pace")
	d.MaxFailed = f.Field("max_failed_percent", "Pause if more than so many percent of the newest 200 fail", "From 1 to 100.", strconv.Itoa(b.MaxFailed)).As("number")
	f.call("max_failed_percent", "Failures")
	if b.Audience != nil && d.Later && !d.Ended {
		d.AtMost = f.Field("at_most", "At most so many people", "If more fit, it pauses before the first message is sent.", strconv.FormatInt(b.AtMost, 10)).As("number").Need()
	}
}

// templateFields adds the fields of the template, with what b has for them.
func (c *call) templateFields(d *broadcastForm, b *desk.Broadcast, channel *desk.Channel, t *desk.Template) error {
	stored := map[string]desk.BroadcastValue{}
	if b != nil {
		for _, v := range b.Values {
			stored[v.Address] = v
		}
	}
	sources := []choice{{Value: fromText, Label: "The same text for everybody"}, {Value: desk.FromRow, Label: broadcastFrom[desk.FromRow]}}
	for _, known := range desk.Bindings {
		if known != desk.Free {
			sources = append(sources, choice{Value: string(known), Label: broadcastFrom[string(known)]})
		}
	}
	labels := map[string]string{}
	for _, a := range c.p.Settings.SortedAttributes() {
		if !a.Archived {
			sources = append(sources, choice{Value: "attributes." + a.Key, Label: "The contact's " + a.Label})
		}
	}
	for _, s := range sources {
		labels[s.Value] = s.Label
	}
	values := map[string]string{}
	add := func(v *valueField, address string, usual desk.Binding, sample string) {
		from, now := fromText, stored[address]
		switch {
		case now.From != "":
			from = now.From
		case now.Value == "" && b != nil:
			from = desk.FromRow
		case now.Value == "" && usual != desk.Free:
			from = string(usual)
		}
		if v.Required = false; c.form.values == nil {
			v.Value = cmp.Or(now.Value, now.Else)
		}
		if v.Hint = "The text, or what stands there if a person has none."; sample != "" {
			v.Hint += " For example: " + sample
		}
		field := sourceField{v, c.form.Field("from."+address, capital(v.Label)+" comes from", "", from).Of(sources)}
		c.form.call(field.From.Name, v.Label+" comes from")
		switch field.From.Value {
		case fromText:
			values[address] = v.Value
		case desk.FromRow:
		default:
			values[address] = labels[field.From.Value]
		}
		d.Values = append(d.Values, field)
	}
	bindings := channel.Binds(t)
	for i, v := range t.Variables {
		add(c.variableField(t, v, "", ""), v.Address(), bindings[i], t.Look.Samples[v.Address()])
	}
	for _, n := range t.Needs {
		if !n.IsFile() {
			add(c.linkField(n, "", ""), n.Address, desk.Free, t.Look.Samples[n.Address])
		}
	}
	if d.Shown = shown(t, values); d.Shown.File != nil {
		media := c.form.text("media")
		if c.form.values == nil && b != nil {
			media = b.TitleFile()
		}
		return c.titleFile(d.Shown, &d.File, t.Needs[0].Kind, media)
	}
	return nil
}

const localLayout = "2006-01-02T15:04"

// localTime is a time as an input shows it; "" for none.
func (c *call) localTime(t desk.Time) string {
	if t == 0 {
		return ""
	}
	return time.UnixMilli(int64(t)).In(c.zone).Format(localLayout)
}

func (s *Server) makeBroadcast(c *call) error {
	return c.putBroadcast(func() (*desk.Broadcast, error) { return nil, nil }) //nolint:nilnil // there is none yet
}

func (s *Server) editBroadcast(c *call) error {
	return c.putBroadcast(func() (*desk.Broadcast, error) { return s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id")) })
}

// putBroadcast stores the form of the broadcast that read returns; for nil, it makes one.
func (c *call) putBroadcast(read func() (*desk.Broadcast, error)) error {
	_, err := c.formFile()
	b, readErr := read()
	if readErr != nil {
		return readErr
	}
	if alone(err) {
		return err
	}
	if err != nil && c.fileRefused(desk.AsError(err)) {
		err = desk.Invalidf("nothing was saved: the file could not be stored")
	}
	v, d, readErr := c.broadcastForm(b, c.form.values)
	if readErr != nil {
		return readErr
	}
	if c.form.has("preview") || c.query("preview") != "" {
		return c.show("broadcast-edit", v)
	}
	if err == nil && !d.Later && d.Shown == nil {
		err = desk.Invalidf("choose a template")
	}
	if err == nil && b != nil && c.form.text("seen") != d.Seen {
		err = desk.Errorf(desk.Changed, "somebody has changed this broadcast meanwhile, so nothing was saved. If you save again, that replaces it")
	}
	if err == nil {
		if in := c.broadcastInput(d, b); c.form.Refused() {
			err = errNotSaved
		} else if b == nil {
			b, err = c.s.app.Broadcasts.Create(c.r.Context(), c.p, in)
			if err == nil {
				return c.see(broadcastPath(b.ID)+"/people", "saved")
			}
		} else if _, err = c.s.app.Broadcasts.Edit(c.r.Context(), c.p, b.ID, in); err == nil {
			return c.see(broadcastPath(b.ID), "saved")
		}
	}
	return c.formAgain(v, err)
}

// formAgain shows the form with an error, beside its field if there is one.
func (c *call) formAgain(v view, err error) error {
	e := desk.AsError(err)
	name, text := policyError(e, hoursPart)
	if address, found := strings.CutPrefix(e.At, "/variables/"); found {
		name, text = "value."+strings.TrimSuffix(address, "/else"), sentence(e.Message)
	}
	if name != "" {
		c.form.wrong(name, text)
		e = desk.AsError(errNotSaved)
	} else if name = fieldOf(e.At); name != "" && c.form.values.Has(name) {
		c.form.wrong(name, sentence(e.Message))
		e = desk.AsError(errNotSaved)
	}
	// The fields were made before the error was known.
	d, ok := v.Data.(*broadcastForm)
	if ok {
		fields := append([]*field{d.Name, d.Consent, d.SkipOpen, d.SendAt, d.StopAt, d.MaxFailed, d.Week.Zone}, d.Pace...)
		for _, s := range d.Values {
			fields = append(fields, s.field, s.From)
		}
		if d.File != nil {
			fields = append(fields, d.File.field)
		}
		if d.AtMost != nil {
			fields = append(fields, d.AtMost)
		}
		for _, f := range fields {
			if f != nil {
				f.Error = c.form.errors[f.Name]
			}
		}
		for i := range d.Week.Days {
			d.Week.Days[i].Error = c.form.errors["day."+d.Week.Days[i].Key]
		}
	}
	return c.again("broadcast-edit", v, e)
}

// broadcastInput reads the form. It notes mistakes that only a form can have.
func (c *call) broadcastInput(d *broadcastForm, b *desk.Broadcast) *desk.BroadcastInput {
	f := c.form
	in := &desk.BroadcastInput{Name: desk.Field[string]{Set: true, Value: f.text("name")}}
	if in.Name.Value == "" {
		f.wrong("name", "Give it a name.")
	}
	if d.Ended {
		return in
	}
	if b == nil {
		b = &desk.Broadcast{}
	}
	in.StopAt = c.typedTime("stop_at", b.StopAt)
	f.checkWeek()
	hours := f.week(inputOf(&desk.Policy{Hours: b.Hours}).Hours)
	if in.Hours = (desk.Field[desk.HoursInput]{Set: true, Null: hours == nil}); hours != nil {
		in.Hours.Value = *hours
	}
	in.Pace = desk.Field[desk.BroadcastPace]{Set: true, Null: f.text("pace.people") == ""}
	if !in.Pace.Null {
		in.Pace.Value = desk.BroadcastPace{People: int(f.number("pace.people")), Minutes: int(f.number("pace.minutes"))}
	}
	in.MaxFailed = desk.Field[int64]{Set: true, Value: f.number("max_failed_percent")}
	if d.AtMost != nil {
		in.AtMost = desk.Field[int64]{Set: true, Value: f.number("at_most")}
	}
	if d.Later {
		return in
	}
	name, language, _ := strings.Cut(d.Template, "/")
	in.Template = desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: name, Language: language}}
	in.Channel.Set = true
	in.Channel.Value, _ = desk.ParseID(d.Channel)
	in.SendAt = c.typedTime("send_at", b.SendAt)
	in.SkipOpen = desk.Field[bool]{Set: true, Null: f.text("skip_open") == "", Value: f.text("skip_open") == "yes"}
	key, attribute := strings.CutPrefix(f.text("consent"), "attributes.")
	in.Consent = desk.Field[desk.Consent]{Set: true, Null: f.text("consent") == ""}
	if in.Consent.Value.Confirmed = f.text("consent") == "confirmed"; attribute {
		in.Consent.Value.Attribute = key
	}
	in.Values.Set = true
	for _, s := range d.Values {
		v := desk.BroadcastValue{Address: strings.TrimPrefix(s.Name, "value.")}
		text := strings.TrimSpace(s.Value)
		if from := s.From.Value; from != fromText {
			v.From, v.Else = from, text
		} else if v.Value = text; text == "" {
			f.wrong(s.Name, "Fill this in, or choose where it comes from.")
		}
		in.Values.Value = append(in.Values.Value, v)
	}
	if d.File != nil {
		if d.File.Kept == nil {
			f.wrong(d.File.Name, "Choose a file.")
		} else {
			in.Values.Value = append(in.Values.Value, desk.BroadcastValue{Address: desk.MediaAddress, Value: d.File.Kept.ID.String()})
		}
	}
	return in
}

// number reads a whole number. What is no number is noted.
func (f *form) number(name string) int64 {
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", " ", "").Replace(f.text(name)), 10, 32)
	if err != nil {
		f.wrong(name, "Give a whole number.")
	}
	return n
}

// typedTime reads a time. One that was not changed keeps its
// seconds.
func (c *call) typedTime(name string, stored desk.Time) desk.Field[desk.Time] {
	text := c.form.text(name)
	if text == "" {
		return desk.Field[desk.Time]{Set: true, Null: true}
	}
	at, err := time.ParseInLocation(localLayout, text[:min(len(text), len(localLayout))], c.zone)
	if err != nil {
		c.form.wrong(name, "Give a date and a time.")
		return desk.Field[desk.Time]{}
	}
	const minute = 60_000
	if t := desk.TimeOf(at); stored/minute != t/minute {
		return desk.Field[desk.Time]{Set: true, Value: t}
	}
	return desk.Field[desk.Time]{Set: true, Value: stored}
}
