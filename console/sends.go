package console

import (
	"net/url"
	"slices"
	"strconv"

	"parley/app"
	"parley/desk"
)

// A sendsPage is the list of attempts to send.
type sendsPage struct {
	Tabs        []tab
	Rows        []sendRow
	First, Next string
	Empty       nothing
	Choose      bool // the member may settle several at once
	Also        *tab // whether those of broadcasts are listed as well
	Broadcast   *tab // only those of this broadcast are listed; All leads to the others
}

// A releasesPage asks before several attempts are settled.
type releasesPage struct {
	Heading, Text, Button, Outcome string
	Rows                           []sendRow
}

// A sendRow is one attempt.
type sendRow struct {
	ID         desk.ID
	Href, Name string
	Template   string
	Reply      bool // the attempt has no template
	State      pill
	Reason     string
	By         string
	At         moment
	failure    *desk.Failure // why the provider refused or did not deliver it
}

// An attemptPage is an attempt with its outcome.
type attemptPage struct {
	sendRow
	Language     string
	TemplateHref string
	Person       string // the page of the contact, or ""
	Conversation string // the page of the conversation, once it has the message
	Channel      string
	Key          string
	Settled      moment
	Message, Fix string
	Code         string
	External     string
	LeftOut      []string
	OptIn        *optIn
	Doubt        *doubt
	Broadcast    string // the page of the broadcast that sent it; ""
}

// An optIn says who confirmed that the person agreed to get such messages, and when.
type optIn struct {
	By string
	At moment
	In string // the name of the contact's attribute that says so; "": By said so
}

// optIn returns an opt-in in words, or nil for none.
func (c *call) optIn(o *desk.OptIn) *optIn {
	if o == nil || o.At == 0 {
		return nil
	}
	v := &optIn{By: c.actorName(o.Actor()), At: c.when(o.At)}
	if o.Attribute != "" {
		v.In = c.attributeLabel(o.Attribute)
	}
	return v
}

// A doubt says what to look up at the provider about a send with an unknown outcome.
type doubt struct {
	Number, Text string
	Action       string
	MayRelease   bool
	Admins       []string
}

// phases are the words for the phases of an attempt.
var phases = map[desk.Phase]pill{
	desk.Dispatching: {"On its way", ""},
	desk.Done:        {"Sent", "good"},
	desk.Refused:     {"Not sent", "bad"},
	desk.InDoubt:     {"In doubt", "warn"},
	desk.Released:    {"Settled as not sent", ""},
}

// deliveries are the words for the delivery of a message that the provider accepted.
var deliveries = map[desk.DeliveryStatus]pill{
	desk.Queued:    phases[desk.Done],
	desk.Sent:      phases[desk.Done],
	desk.Failed:    {"Not delivered", "bad"},
	desk.Delivered: {"Delivered", "good"},
	desk.Read:      {"Read", "good"},
}

// sendsOf returns the broadcast whose sends the page lists: nil for all sends, and zero for
// those of no broadcast.
func (c *call) sendsOf(page *sendsPage, rest string) (of *desk.ID, query string, err error) {
	of = &desk.ID{}
	page.Also = &tab{Label: "Also those of broadcasts", Href: "/sends" + with(rest, "broadcast", "any")}
	id, given := desk.ParseID(c.query("broadcast"))
	switch {
	case given && !id.IsZero():
		b, err := c.s.app.Broadcasts.Get(c.r.Context(), c.p, id)
		if err != nil {
			return nil, "", err
		}
		page.Also, page.Broadcast = nil, &tab{Label: b.Name, Href: broadcastPath(id)}
		return &id, with(rest, "broadcast", id.String()), nil
	case c.query("broadcast") == "any":
		page.Also.Here, page.Also.Href = true, "/sends"+rest
		return nil, with(rest, "broadcast", "any"), nil
	}
	return of, rest, nil
}

func (s *Server) sends(c *call) error {
	doubt, phase, query := c.query("doubt") != "", desk.Phase(""), ""
	page := sendsPage{Empty: nothing{"Nothing was sent yet", "Every try to send a template will be here, with what came of it.", "/send", "Send a template"}}
	if doubt {
		phase, query = desk.InDoubt, "?doubt=yes"
		page.Empty = nothing{"Nothing is in doubt", "A send whose answer was lost will be here until it is known whether it arrived.", "/sends", "See all sends"}
	}
	failed := c.query("failed") != "" && !doubt
	if failed {
		query = "?failed=yes"
		page.Empty = nothing{"Nothing failed", "A message that could not be sent, or did not arrive, will be here for " + count(desk.KeyLife/24) + " days, with the reason.", "/sends", "See all sends"}
	}
	of, query, err := c.sendsOf(&page, query)
	if err != nil {
		return err
	}
	var list []*desk.Attempt
	next := ""
	attempts := func(after string) (err error) {
		if failed {
			list, next, err = s.app.FailedAttempts(c.r.Context(), c.p, of, after, pageRows)
		} else {
			list, next, err = s.app.Attempts(c.r.Context(), c.p, app.AttemptFilter{Phase: phase, Broadcast: of}, after, pageRows)
		}
		return err
	}
	for _, t := range []tab{{Label: "All", Href: "/sends", Here: !doubt && !failed}, {Label: "In doubt", Href: "/sends?doubt=yes", Here: doubt}, {Label: "Failed", Href: "/sends?failed=yes", Here: failed}} {
		if b := c.query("broadcast"); b != "" && len(b) <= 64 {
			t.Href = with(t.Href, "broadcast", b)
		}
		page.Tabs = append(page.Tabs, t)
	}
	after, err := c.fromCursor(attempts)
	if err != nil {
		return err
	}
	if page.Rows, err = c.sendRows(list...); err != nil {
		return err
	}
	page.Choose = doubt && len(page.Rows) > 0 && c.may(desk.AttemptsWrite)
	if after != "" {
		page.First = "/sends" + query
	}
	if next != "" {
		page.Next = "/sends" + with(query, "after", next)
		if len(list) == 0 {
			page.Empty = nothing{"Nothing among these", "The sends before them were not looked at yet.", page.Next, "Look at older ones"}
			if failed {
				page.Empty.Title = "Nothing failed among these"
			}
		}
	}
	return c.show("sends", view{Title: "Sends", Data: page})
}

func (c *call) sendRows(list ...*desk.Attempt) ([]sendRow, error) {
	ids := make([]desk.ID, len(list))
	for i, at := range list {
		ids[i] = at.Plan.Contact
	}
	people, err := c.s.app.ContactsByID(c.r.Context(), c.p, ids)
	if err != nil {
		return nil, err
	}
	messages, err := c.s.app.MessagesSent(c.r.Context(), c.p, list)
	if err != nil {
		return nil, err
	}
	rows := make([]sendRow, len(list))
	for i, at := range list {
		row := sendRow{
			ID: at.ID, Href: "/sends/" + at.ID.String(), Template: at.Plan.Template, Reply: at.Plan.Reply != nil, State: phases[at.Phase], By: c.actorName(at.Actor), At: c.when(at.CreatedAt),
		}
		switch contact := people[at.Plan.Contact]; {
		case contact != nil:
			row.Name = nameOf(contact)
		case at.Erased || at.Plan.Known || at.Phase == desk.Done:
			row.Name = nameOf(nil)
		case at.Plan.Number != "":
			row.Name = phone(at.Plan.Number)
		default:
			row.Name = "Somebody new"
		}
		if r := at.Refusal; r != nil {
			row.Reason, row.failure = message(r.Answer()), r.Failure
		}
		if m := messages[at.ID]; m != nil {
			if row.State = deliveries[m.Delivery]; m.Delivery == desk.Failed {
				row.failure = m.Failure
			}
		}
		if row.failure != nil {
			row.Reason = sentence(row.failure.Title)
		}
		rows[i] = row
	}
	return rows, nil
}

// actorName names an actor.
func (c *call) actorName(a desk.Actor) string {
	s := c.p.Settings
	switch a.Kind {
	case desk.ByMember:
		if m := s.Member(a.ID); m != nil {
			return m.Name
		}
		return "a former member"
	case desk.ByKey:
		if k := s.Key(a.ID); k != nil {
			return "the key " + k.Name
		}
		return "a key"
	case desk.ByProvider:
		if v := s.Channel(a.ID); v != nil {
			return channelName(s, v, false)
		}
		return "a provider"
	case desk.ByCLI:
		return "the command line"
	}
	return "parley"
}

func (s *Server) attempt(c *call) error {
	page, err := c.attemptPage()
	if err != nil {
		return err
	}
	return c.show("attempt", view{Title: "Send to " + page.Name, Data: page})
}

func (c *call) attemptPage() (*attemptPage, error) {
	at, err := c.s.app.Attempt(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return nil, err
	}
	rows, err := c.sendRows(at)
	if err != nil {
		return nil, err
	}
	plan := at.Plan
	p := &attemptPage{sendRow: rows[0], Language: plan.Language, Key: at.Key, Settled: c.when(at.SettledAt), External: at.ExternalID, LeftOut: at.Notes, OptIn: c.optIn(at.OptIn())}
	if !at.Broadcast.IsZero() {
		p.Key, p.Broadcast = "", broadcastPath(at.Broadcast) // the key is made of the broadcast's own ids
	}
	if at.Erased {
		p.Key = "" // the key may contain the person's name
	}
	for i := range p.LeftOut {
		p.LeftOut[i] = sentence(p.LeftOut[i])
	}
	p.TemplateHref = "/templates/" + plan.Channel.String() + "/" + url.PathEscape(plan.Template) + "/" + url.PathEscape(plan.Language)
	if v := c.p.Settings.Channel(plan.Channel); v != nil {
		p.Channel = channelName(c.p.Settings, v, true)
	}
	people, err := c.s.app.ContactsByID(c.r.Context(), c.p, []desk.ID{plan.Contact})
	if err != nil {
		return nil, err
	}
	if people[plan.Contact] != nil {
		p.Person = "/contacts/" + plan.Contact.String()
		if at.Phase == desk.Done {
			p.Conversation = "/inbox/" + plan.Conversation.String()
		}
	}
	if r := at.Refusal; r != nil {
		e := r.Answer()
		p.Message, p.Fix = message(e), advise(e)
	}
	if f := p.failure; f != nil {
		p.Message, p.Fix, p.Code = sentence(f.Title), sentence(f.Fix), strconv.Itoa(f.Code)
	}
	if at.Phase == desk.InDoubt {
		p.Doubt = &doubt{Number: phone(plan.Number), Text: plan.Text, Action: p.Href + "/release", MayRelease: c.may(desk.AttemptsWrite)}
		if !p.Doubt.MayRelease {
			p.Doubt.Admins = admins(c.p.Settings)
		}
	}
	return p, nil
}

func (s *Server) releaseAttempt(c *call) error {
	sent := c.form.text("outcome") == "sent"
	var err error
	if !sent && c.form.text("outcome") != "not-sent" {
		err = desk.Invalidf("choose whether the message arrived")
	} else {
		_, err = s.app.Release(c.r.Context(), c.p, c.id("id"), sent)
	}
	if err == nil {
		return c.see("/sends/"+c.id("id").String(), "settled")
	}
	if !desk.IsType(err, desk.InvalidRequest) && !desk.IsType(err, desk.AttemptSettled) && !desk.IsType(err, desk.SendInProgress) {
		return err
	}
	page, readErr := c.attemptPage()
	if readErr != nil {
		return readErr
	}
	return c.again("attempt", view{Title: "Send to " + page.Name, Data: page}, err)
}

// chosen returns the attempts that a form names: without duplicates, and no more than a
// page has.
func chosen(list []string) (ids []desk.ID) {
	for _, text := range list {
		if id, ok := desk.ParseID(text); ok && !slices.Contains(ids, id) && len(ids) < pageRows {
			ids = append(ids, id)
		}
	}
	return ids
}

// releasesView asks before settling those attempts that are still in doubt.
func (c *call) releasesView(ids []desk.ID, outcome string) (view, error) {
	var list []*desk.Attempt
	for _, id := range ids {
		at, err := c.s.app.Attempt(c.r.Context(), c.p, id)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return view{}, err
		}
		if err == nil && at.Phase == desk.InDoubt {
			list = append(list, at)
		}
	}
	rows, err := c.sendRows(list...)
	if err != nil {
		return view{}, err
	}
	v := releasesPage{Heading: "Settle " + countOf(len(rows), "send", "sends") + " as not sent?", Button: "They were not sent", Outcome: "not-sent", Rows: rows,
		Text: "The same calls may send again: if a message arrived after all, the person gets it twice."}
	if outcome == "sent" {
		v = releasesPage{Heading: "Settle " + countOf(len(rows), "send", "sends") + " as sent?", Button: "They arrived", Outcome: "sent", Rows: rows,
			Text: "The messages are put into their conversations. Nothing is sent."}
	}
	return view{Title: v.Heading, Data: v}, nil
}

func (s *Server) askReleases(c *call) error {
	query := c.r.URL.Query()
	ids := chosen(query["id"])
	if len(ids) == 0 {
		return c.see("/sends?doubt=yes", "")
	}
	v, err := c.releasesView(ids, query.Get("outcome"))
	if err != nil {
		return err
	}
	return c.show("releases", v)
}

func (s *Server) releaseMany(c *call) error {
	ids, outcome := chosen(c.form.list("id")), c.form.text("outcome")
	if len(ids) == 0 {
		return c.see("/sends?doubt=yes", "")
	}
	err := error(desk.Invalidf("choose whether the messages arrived"))
	if outcome == "sent" || outcome == "not-sent" {
		var r app.Releases
		if r, err = s.app.ReleaseMany(c.r.Context(), c.p, ids, outcome == "sent"); err != nil {
			return err
		}
		switch {
		case r.Otherwise == 0 && r.Running == 0:
			return c.see("/sends?doubt=yes", "settled")
		case r.Running == 0:
			err = desk.Errorf(desk.AttemptSettled, "%s settled; %s settled otherwise meanwhile", countOf(r.Released+r.Same, "send was", "sends were"), countOf(r.Otherwise, "send was", "sends were"))
		default:
			err = desk.Errorf(desk.SendInProgress, "%s settled; %s under way: wait half a minute", countOf(r.Released+r.Same, "send was", "sends were"), countOf(r.Running, "send may still be", "sends may still be"))
		}
	}
	v, readErr := c.releasesView(ids, outcome)
	if readErr != nil {
		return readErr
	}
	return c.again("releases", v, err)
}
