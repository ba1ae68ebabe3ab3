package console

import (
	"parley/desk"
)

// The parts of the reply policy, each with a form of its own.
const (
	assignPart  = "assign"
	hoursPart   = "hours"
	datesPart   = "dates"
	repliesPart = "replies"
	ownPart     = "own" // the form that gives a channel its own policy
)

const (
	always  = "always"
	byHours = "hours"
	// shownSpans is the number of spans that a form shows at first for a day; mostSpans
	// is the greatest possible number.
	shownSpans, mostSpans = 2, 4
	// shownDates is the number of dates that the page shows, unless the request asks for
	// all.
	shownDates = 60
)

// weekdayNames are the words for desk.Weekdays.
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

// policyOf returns the channel in the path, zero for the workspace.
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

// policyView returns the page of a policy. If a form was sent, it keeps the typed values.
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

// savePolicy stores one part of a policy. The other parts stay as they are.
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
				return inputOf(workspace), nil // a copy of the workspace's policy, to begin with
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

// policyRefused shows the page again with the error beside its field.
func (c *call) policyRefused(channel desk.ID, part string, err error) error {
	if e := desk.AsError(err); e.Type == desk.InvalidRequest && !c.form.Refused() {
		if name, text := policyError(e, part); name != "" {
			c.form.wrong(name, text)
			err = errNotSaved
		}
	}
	if alone(err) {
		return err
	}
	p, readErr := c.s.app.Access.Member(c.r.Context(), c.p.Workspace(), c.p.Actor.ID)
	if readErr != nil {
		return readErr
	}
	c.p = p
	d, v, readErr := c.policyView(channel)
	if readErr != nil {
		return readErr
	}
	if desk.IsType(err, desk.Changed) {
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
