package console

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/app"
	"parley/desk"
)

const (
	// maxPasted is how many lines one form adds, pastedStep how many of them at a time.
	maxPasted  = 10_000
	pastedStep = 1000

	// shownRefused is how many refused lines a page lists.
	shownRefused = 50

	// checkSteps is how many thousands of people a step of a check looks at, after the first
	// thousand.
	checkSteps = 10
)

// A pastePage is the page that adds people.
type pastePage struct {
	Href, Back string
	Name       string
	People     string
	Some       bool
	Tabs       []tab
	Text       *field
	Refused    []rejectedRow
	More       string
}

// A rejectedRow is a row of a file, or a line, that was refused.
type rejectedRow struct{ Line, Reason, Row string }

// templateOf returns the template of a broadcast, or nil if its channel does not have it.
func (c *call) templateOf(b *desk.Broadcast) (*desk.Template, error) {
	var channel *desk.ID
	if !b.Channel.IsZero() {
		channel = &b.Channel
	}
	v, err := c.p.Settings.PickChannel(channel)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it has no template
	}
	l, err := c.s.app.Templates(c.r.Context(), c.p, app.TemplateQuery{Channel: &v.ID})
	if err != nil {
		return nil, err
	}
	return l.Library.Find(b.Template, b.Language), nil
}

// columnsOf lists the addresses of the variables that each line fills.
func (c *call) columnsOf(b *desk.Broadcast) (list []string, err error) {
	t, err := c.templateOf(b)
	if t == nil {
		return nil, err
	}
	for _, address := range t.Addresses() {
		i := slices.IndexFunc(b.Values, func(v desk.BroadcastValue) bool { return v.Address == address })
		if address != desk.MediaAddress && (i < 0 || b.Values[i].From == desk.FromRow) {
			list = append(list, address)
		}
	}
	return list, nil
}

// valueNames lists variables by name.
func valueNames(addresses []string) string {
	var list []string
	for _, address := range addresses {
		list = append(list, valueName(address))
	}
	return strings.Join(list, ", ")
}

func valueName(address string) string {
	if strings.HasPrefix(address, "button.") {
		return "End of the link"
	}
	return variableName(address)
}

func (c *call) pasteView(b *desk.Broadcast, columns []string) (view, *pastePage) {
	d := &pastePage{Href: broadcastPath(b.ID) + "/people", Back: broadcastPath(b.ID), Name: b.Name, People: peopleWords(b.Rows), Some: b.Rows > 0, Tabs: peopleTabs(b, fromPaste)}
	hint := "One person a line: a phone number, or the e-mail of a contact."
	if len(columns) > 0 {
		hint = "One person a line: a phone number, or the e-mail of a contact; then " + valueNames(columns) + ". They stand apart by a tab, a semicolon or a comma, as copied from a spreadsheet."
	}
	d.Text = c.form.Field("list", "People", hint+" Up to "+count(maxPasted)+" lines at a time.", "").Tall(10)
	return view{Title: "People of " + b.Name, Data: d}, d
}

func (s *Server) broadcastPeople(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	if b.Audience != nil {
		return c.see(audiencePath(b.ID), "")
	}
	columns, err := c.columnsOf(b)
	if err != nil {
		return err
	}
	v, _ := c.pasteView(b, columns)
	return c.show("broadcast-people", v)
}

// cellsOf splits a line as a spreadsheet or a person writes it.
func cellsOf(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.LazyQuotes, r.Comma = true, ','
	for _, mark := range []rune{'\t', ';'} {
		if strings.ContainsRune(line, mark) {
			r.Comma = mark
			break
		}
	}
	cells, err := r.Read()
	if err != nil {
		return nil, desk.Invalidf("a quotation mark is not closed")
	}
	return cells, nil
}

// readLine reads a line: who it is, and a value for each column.
func (c *call) readLine(line string, columns []string) (r desk.RowInput) {
	cells, err := cellsOf(line)
	if err != nil {
		return desk.RowInput{Err: err}
	}
	who, kind := strings.TrimSpace(cells[0]), desk.KindPhone
	if strings.Contains(who, "@") {
		kind = desk.KindEmail
	}
	if r.Find, err = desk.ParseIdentity(kind, who, c.p.Settings.Country); err != nil {
		r.Err = desk.Invalidf("%v", err)
	}
	for i, cell := range cells[1:] {
		switch cell = strings.TrimSpace(cell); {
		case cell == "":
		case len(columns) == 0:
			r.Err = desk.Invalidf("only the person stands in a line: no value of this broadcast comes from the lines")
		case i >= len(columns):
			r.Err = desk.Invalidf("it has more values than the %s that each line has", several(len(columns), "value"))
		default:
			r.Values = append(r.Values, desk.NamedValue{Address: columns[i], Value: cell})
		}
	}
	if len(line) > desk.MaxRowBytes {
		r.Err = desk.Invalidf("a line has at most %d characters", desk.MaxRowBytes)
	}
	return r
}

// addPeople adds the people of the form. The text stays if a line is refused.
func (s *Server) addPeople(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	columns, err := c.columnsOf(b)
	if err != nil {
		return err
	}
	var rows []desk.RowInput
	var at []int
	for i, line := range strings.Split(c.form.raw("list"), "\n") {
		if line = strings.TrimSpace(strings.Trim(line, "\r")); line != "" && len(rows) <= maxPasted {
			rows, at = append(rows, c.readLine(line, columns)), append(at, i+1)
		}
	}
	switch {
	case len(rows) == 0:
		err = desk.InvalidAt("/list", "paste at least one line")
	case len(rows) > maxPasted:
		err = desk.InvalidAt("/list", "these are more than %s lines: paste some of them, add them, and then the others", count(maxPasted))
	}
	var refused []rejectedRow
	added := 0
	for from := 0; err == nil && from < len(rows); from += pastedStep {
		part := rows[from:min(from+pastedStep, len(rows))]
		results, addErr := s.app.Broadcasts.Add(c.r.Context(), c.p, b.ID, part)
		if err = addErr; err != nil {
			break
		}
		for i, r := range results {
			if r.Err == nil {
				if r.Status == "added" {
					added++
				}
				continue
			}
			why := sentence(desk.AsError(r.Err).Message)
			if desk.IsType(r.Err, desk.NotFound) {
				why = "No contact has this e-mail."
			}
			refused = append(refused, rejectedRow{Line: strconv.Itoa(at[from+i]), Reason: why})
		}
	}
	if err == nil && len(refused) == 0 {
		return c.see(broadcastPath(b.ID)+"/people", "added")
	}
	if err == nil {
		err = desk.Invalidf("%s: %s refused. Mend them and add all again; nobody is added twice", peopleWords(int64(added))+" added", countOf(len(refused), "line was", "lines were"))
	}
	now, readErr := s.app.Broadcasts.Get(c.r.Context(), c.p, b.ID)
	if readErr != nil {
		return readErr
	}
	e := broadcastError(err)
	if at := desk.AsError(e); at.At == "/list" { // the field is made with its error
		c.form.wrong("list", sentence(at.Message))
		e = desk.Invalidf("nothing was added")
	}
	v, d := c.pasteView(now, columns)
	if more := len(refused) - shownRefused; more > 0 {
		d.More, refused = several(more, "more line"), refused[:shownRefused]
	}
	d.Refused = refused
	return c.again("broadcast-people", v, e)
}

func clearQuestion(b *desk.Broadcast) confirmation {
	return confirmation{
		Heading: "Take all people out of " + apart(b.Name) + "?", Button: "Take all out", Action: broadcastPath(b.ID) + "/people/remove", Back: broadcastPath(b.ID) + "/people",
		Text: []string{capital(peopleWords(b.Rows)) + ", with their values, are taken out of this broadcast. The contacts stay."},
	}
}

func (s *Server) askPeopleRemoval(c *call) error { return c.askOf(clearQuestion) }

func (s *Server) removePeople(c *call) error {
	id := c.id("id")
	err := s.app.Broadcasts.Clear(c.r.Context(), c.p, id)
	if err == nil {
		return c.see(broadcastPath(id)+"/people", "removed")
	}
	b, readErr := s.app.Broadcasts.Get(c.r.Context(), c.p, id)
	if readErr != nil {
		return readErr
	}
	return c.confirmAgain(clearQuestion(b), broadcastError(err))
}

// A checkPage says what would become of the people that were looked at so far.
type checkPage struct {
	Href, Back, Name string
	Looked, Sendable string
	Of               string // ""; how many there are is not known
	Skips            []skipRow
	Samples          []sampleText
	Sums             []hiddenField
	Next             string // the cursor; "": all were looked at
	Start            string
}

// A sampleText is a message as one of the people would get it.
type sampleText struct{ Name, Text string }

// checkBroadcast looks at the next people, and adds up.
func (s *Server) checkBroadcast(c *call) error {
	ctx := c.r.Context()
	b, err := s.app.Broadcasts.Get(ctx, c.p, c.id("id"))
	if err != nil {
		return err
	}
	d := checkPage{Href: broadcastPath(b.ID) + "/check", Back: broadcastPath(b.ID), Name: b.Name}
	if !b.Collects() {
		d.Of = peopleWords(b.Rows)
	}
	sum := func(name string) int64 { return min(max(0, c.form.sum(name)), desk.MaxBroadcastRows) }
	looked, sendable, skips := sum("looked"), sum("sendable"), map[desk.RowReason]int64{}
	for _, reason := range desk.RowReasons {
		skips[reason] = sum("skip." + string(reason))
	}
	cursor, steps := c.form.text("cursor"), 1
	if cursor != "" {
		steps = checkSteps
	}
	for step := 0; step < steps && err == nil; step++ {
		checked, next, checkErr := s.app.Broadcasts.Check(ctx, c.p, b.ID, cursor)
		if err = checkErr; err != nil {
			break
		}
		looked, sendable = looked+int64(checked.LookedAt), sendable+int64(checked.Sendable)
		for reason, n := range checked.Skips {
			skips[reason] += int64(n)
		}
		if len(d.Samples) == 0 {
			ids := make([]desk.ID, 0, len(checked.Samples))
			for _, sample := range checked.Samples {
				ids = append(ids, sample.Contact)
			}
			known, readErr := s.app.ContactsByID(ctx, c.p, ids)
			if readErr != nil {
				return readErr
			}
			for _, sample := range checked.Samples {
				text := sampleText{Name: "Somebody new", Text: sample.Text}
				if v := known[sample.Contact]; v != nil {
					text.Name = nameOf(v)
				}
				d.Samples = append(d.Samples, text)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	d.Looked, d.Sendable, d.Next = count(int(looked)), count(int(sendable)), cursor
	d.Sums = []hiddenField{{"looked", strconv.FormatInt(looked, 10)}, {"sendable", strconv.FormatInt(sendable, 10)}}
	for _, reason := range desk.RowReasons {
		if skips[reason] > 0 {
			d.Skips = append(d.Skips, skipRow{Label: rowReasons[reason], Count: count(int(skips[reason]))})
			d.Sums = append(d.Sums, hiddenField{"skip." + string(reason), strconv.FormatInt(skips[reason], 10)})
		}
	}
	if c.may(desk.BroadcastsSend) && b.State == desk.BroadcastDraft {
		if d.Start = broadcastPath(b.ID) + "/start"; d.Of == "" && d.Next == "" {
			d.Start += "?people=" + strconv.FormatInt(looked, 10)
		}
	}
	v := view{Title: "Check " + b.Name, Data: d}
	if err != nil {
		return c.again("broadcast-check", v, broadcastError(err))
	}
	return c.show("broadcast-check", v)
}

// sum reads a number that the page before has added up.
func (f *form) sum(name string) int64 {
	n, _ := strconv.ParseInt(f.text(name), 10, 64)
	return n
}

// A startPage asks before a broadcast is started.
type startPage struct {
	Href, Back, Heading, Button string
	Template                    string
	Facts                       []fact
	Number                      *field
	Problem                     string
}

func (c *call) startView(b *desk.Broadcast) (view, *startPage) {
	to := peopleWords(b.Rows)
	label, hint := "Type how many people these are", fmt.Sprintf("So that nobody sends to more people than they meant: %s.", count(int(b.Rows)))
	if b.Audience != nil {
		to = "its people"
		label, hint = "Type how many people these are at most", "If more fit, it pauses before the first message is sent."
		if n, err := strconv.ParseInt(c.query("people"), 10, 64); err == nil && n >= 0 && n <= desk.MaxBroadcastPeople {
			hint = fmt.Sprintf("The check found %s. %s", peopleWords(n), hint)
		}
	}
	d := &startPage{Href: broadcastPath(b.ID) + "/start", Back: broadcastPath(b.ID), Heading: "Send to " + to, Button: "Send to " + to, Template: b.Template, Facts: c.broadcastFacts(b)}
	if b.SendAt > desk.TimeOf(c.now) {
		d.Button = "Schedule it for " + to
	}
	d.Number = c.form.Field("number", label, hint, "").Need()
	return view{Title: d.Heading, Data: d}, d
}

// askBroadcastStart asks before a broadcast is started, or says why it can't be.
func (s *Server) askBroadcastStart(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	if b.State == desk.BroadcastRunning || b.State == desk.BroadcastScheduled {
		return c.see(broadcastPath(b.ID), "")
	}
	v, d := c.startView(b)
	if b.State != desk.BroadcastDraft {
		err = b.InState()
	} else {
		_, _, err = s.app.Broadcasts.Check(c.r.Context(), c.p, b.ID, "")
	}
	if err != nil {
		d.Number = nil
		return c.again("broadcast-start", v, broadcastError(err))
	}
	return c.show("broadcast-start", v)
}

// startBroadcast starts a broadcast if the number of its people was typed. One that runs is
// left as it is, so a second click changes nothing.
func (s *Server) startBroadcast(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	typed, typeErr := strconv.ParseInt(strings.NewReplacer(",", "", ".", "", " ", "", "'", "").Replace(c.form.text("number")), 10, 64)
	started := b.State == desk.BroadcastRunning || b.State == desk.BroadcastScheduled
	wrong := ""
	switch {
	case started:
	case b.Audience == nil && (typeErr != nil || typed != b.Rows):
		wrong = "Type the number: " + count(int(b.Rows)) + "."
	case b.Audience != nil && (typeErr != nil || typed < 1 || typed > desk.MaxBroadcastPeople):
		wrong = "Type a whole number from 1 to " + count(desk.MaxBroadcastPeople) + "."
	}
	if wrong != "" {
		c.form.wrong("number", wrong)
		v, _ := c.startView(b)
		return c.again("broadcast-start", v, desk.Invalidf("nothing was started"))
	}
	begun, err := s.app.Broadcasts.StartFor(c.r.Context(), c.p, b.ID, typed)
	if err != nil {
		if b, readErr := s.app.Broadcasts.Get(c.r.Context(), c.p, b.ID); readErr == nil {
			v, _ := c.startView(b)
			return c.again("broadcast-start", v, broadcastError(err))
		}
		return err
	}
	done := "started"
	if begun.State == desk.BroadcastScheduled {
		done = "scheduled"
	}
	return c.see(broadcastPath(b.ID), done)
}
