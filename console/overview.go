package console

import (
	"fmt"
	"strconv"

	"parley/app"
	"parley/app/daily"
	"parley/desk"
)

// An overviewPage has the pictures, and the first steps until they are done.
type overviewPage struct {
	Periods []tab
	Setup   []step
	Left    int // how many steps are not done
	Charts  []*chart
	Quiet   bool // no messages have been counted yet
	Team    []teamRow
}

// A teamRow has the conversations of a member or, if the row has no state, the unassigned
// ones.
type teamRow struct {
	ID, Name, Href string
	State          pill
	Open           string
	Waiting        string
	Since          moment // the start of the longest wait
}

// A step is one of the first steps.
type step struct {
	Text, Href, Action string
	Done               bool
}

// periods are the numbers of days that the pictures can show.
var periods = []int{7, 30, 90}

const (
	// usualPeriod is the period without a query.
	usualPeriod = 30
	// shownReasons and shownTemplates are the numbers of bars in a picture. The table of
	// the picture has all values.
	shownReasons   = 8
	shownTemplates = 10
)

// team lists the workloads of members, and the unassigned conversations.
func (c *call) team() ([]teamRow, error) {
	team, err := c.s.app.Team(c.r.Context(), c.p)
	if err != nil {
		return nil, err
	}
	row := func(name, view string, load desk.Workload) teamRow {
		r := teamRow{ID: "t-" + view, Name: name, Href: "/inbox?view=" + view, Open: upTo99(load.Open), Since: c.when(load.Waiting)}
		switch {
		case load.Waiting != 0:
			r.Waiting = span(desk.TimeOf(c.now) - load.Waiting)
		case load.Open > 0 && team.Later != 0:
			r.Waiting = "under " + span(desk.TimeOf(c.now)-team.Later)
		}
		return r
	}
	rows := []teamRow{row("Unassigned", viewUnassigned, team.Pool)}
	for _, m := range team.Members {
		r := row(m.Name, m.ID.String(), m.Workload)
		if m.ID == c.p.Actor.ID {
			r.Href = "/inbox"
		}
		r.State = pill{"Here", "good"}
		if m.Away {
			r.State = pill{"Away", "warn"}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *Server) overview(c *call) error {
	days := usualPeriod
	page := overviewPage{}
	for _, n := range periods {
		if c.query("days") == strconv.Itoa(n) {
			days = n
		}
	}
	for _, n := range periods {
		href := "/overview"
		if n != usualPeriod {
			href += "?days=" + strconv.Itoa(n)
		}
		page.Periods = append(page.Periods, tab{Label: fmt.Sprintf("%d days", n), Href: href, Here: n == days})
	}
	var err error
	if page.Team, err = c.team(); err != nil {
		return err
	}
	if c.onlyParts("team") {
		return c.show("overview", view{Title: "Overview", Data: page})
	}
	d, err := s.app.Daily.Last(c.r.Context(), c.p, days)
	if err != nil {
		return err
	}
	page.Charts = []*chart{messagesChart(d), funnelChart(d.Sends), reasonsChart(d.Reasons)}
	templates, err := c.templatesChart(d.Templates)
	if err != nil {
		return err
	}
	page.Charts = append(page.Charts, templates)
	page.Quiet = page.Charts[0].Empty() && page.Charts[1].Empty()
	if c.may(desk.Administer) {
		if page.Setup, err = c.setup(); err != nil {
			return err
		}
		for _, v := range page.Setup {
			if !v.Done {
				page.Left++
			}
		}
	}
	return c.show("overview", view{Title: "Overview", Data: page})
}

func messagesChart(d daily.Report) *chart {
	days := make([]dayCount, len(d.Days))
	var in, out int64
	for i, v := range d.Days {
		days[i] = dayCount{v.Day, v.Received, v.Sent}
		in, out = in+v.Received, out+v.Sent
	}
	return columnsOf("days", "Messages by day", sentences(count(int(in))+" received", count(int(out))+" sent"), days)
}

func funnelChart(f daily.Funnel) *chart {
	n := func(v int64) string { return count(int(v)) }
	c := barsOf("funnel", "Templates sent", sentences(n(f.Sent)+" sent", n(f.Delivered)+" delivered", n(f.Read)+" read", n(f.Failed)+" failed"), f.Sent, []string{"Reached", "Messages", "Share"})
	if f == (daily.Funnel{}) {
		return c
	}
	for _, v := range []struct {
		label, kind string
		n           int64
	}{{"Sent", "", f.Sent}, {"Delivered", "", f.Delivered}, {"Read", "good", f.Read}, {"Failed", "bad", f.Failed}} {
		share := percent(v.n, f.Sent)
		c.bar(v.label, n(v.n)+" · "+share, v.kind, v.n, v.label, n(v.n), share)
	}
	return c
}

func reasonsChart(list []daily.FailureCount) *chart {
	total, most := int64(0), int64(0)
	for _, r := range list {
		total, most = total+r.N, max(most, r.N)
	}
	c := barsOf("reasons", "Why messages failed", fmt.Sprintf("%s failed, for %s.", count(int(total)), several(len(list), "reason")), most, []string{"Reason", "Code", "Messages"})
	for i, r := range list {
		label, n := r.Title, count(int(r.N))
		if label == "" {
			label = "Code " + r.Code
		}
		if i < shownReasons {
			c.bar(label, n, "bad", r.N, label, r.Code, n)
		} else {
			c.Lines = append(c.Lines, []string{label, r.Code, n})
		}
	}
	return c
}

// templatesChart shows how many messages of each template were read, and the provider's
// rating.
func (c *call) templatesChart(uses []daily.TemplateUse) (*chart, error) {
	p := barsOf("templates", "Templates that are read", sentences(several(len(uses), "template")+" used"), 100, []string{"Template", "Quality", "Sent", "Read", "Share"})
	libraries := map[desk.ID]*desk.Library{}
	for i, u := range uses {
		if u.Sent == 0 {
			continue
		}
		library, known := libraries[u.Channel]
		if !known && c.p.Settings.Channel(u.Channel) != nil {
			list, err := c.s.app.Templates(c.r.Context(), c.p, app.TemplateQuery{Channel: &u.Channel})
			if err != nil {
				return nil, err
			}
			library = list.Library
			libraries[u.Channel] = library
		}
		quality := ""
		if library != nil {
			if t := library.Find(u.Name, u.Language); t != nil {
				quality = t.Quality
			}
		}
		name, share, rating := u.Name+" ("+u.Language+")", percent(u.Read, u.Sent), "not rated"
		if quality != "" {
			rating = "rated " + quality
		}
		line := []string{name, rating, count(int(u.Sent)), count(int(u.Read)), share}
		if i < shownTemplates {
			p.bar(name, share+" of "+count(int(u.Sent))+" · "+rating, map[string]string{"green": "good", "red": "bad"}[quality], u.Read*100/u.Sent, line...)
		} else {
			p.Lines = append(p.Lines, line)
		}
	}
	return p, nil
}

// setup lists the first steps of a workspace.
func (c *call) setup() ([]step, error) {
	ctx, a, s := c.r.Context(), c.s.app, c.p.Settings
	sendable := false
	for _, v := range s.Channels() {
		list, err := a.Templates(ctx, c.p, app.TemplateQuery{Channel: &v.ID})
		if err != nil {
			return nil, err
		}
		for _, t := range list.Library.Templates {
			sendable = sendable || t.Sendable() || t.Fillable()
		}
	}
	people, _, err := a.NewestContacts(ctx, c.p, desk.ID{}, "", 1)
	if err != nil {
		return nil, err
	}
	sends, _, err := a.Attempts(ctx, c.p, app.AttemptFilter{}, "", 1)
	if err != nil {
		return nil, err
	}
	return []step{
		{"Connect a channel", "/settings/channels", "Channels", len(s.Channels()) > 0},
		{"Have a template that can be sent", "/templates", "Templates", sendable},
		{"Make a key for your systems", "/settings/keys/new", "New key", len(s.Keys()) > 0},
		{"Store a contact", "/contacts/new", "New contact", len(people) > 0},
		{"Send a template", "/send", "Send", len(sends) > 0},
		{"Let a colleague in", "/settings/members", "Members", len(s.Members()) > 1},
	}, nil
}
