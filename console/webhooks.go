package console

import (
	"slices"
	"strconv"
	"strings"

	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
	"parley/provider"
)

// A webhookRow is a webhook in the list.
type webhookRow struct {
	ID    desk.ID
	URL   string
	State pill
	Text  string // the state in words
	Types string
	Lag   string
}

// webhookState describes the state of a webhook.
func (c *call) webhookState(w *feed.Webhook) (state pill, text string) {
	switch {
	case w.Enabled && w.FailingSince == 0:
		return pill{"Works", "good"}, "Events are delivered as they happen."
	case w.Enabled:
		return pill{"Failing", "warn"}, "Attempts have failed since " + c.named(w.FailingSince) + ". parley goes on trying. If they still fail at " + c.named(w.FailingSince+desk.Time(c.s.app.Deliver.Rules.GiveUp.Milliseconds())) + ", it turns the webhook off."
	case w.DisabledReason == desk.DisabledFailing:
		return pill{"Gave up", "bad"}, "Attempts failed for so long that parley has turned it off. Nothing is lost while events are kept: it goes on where it was."
	case w.DisabledReason == desk.DisabledGone:
		return pill{"Gone", "bad"}, "The receiver answered that it is gone (410), so parley has turned it off."
	}
	return pill{"Turned off", ""}, "Nothing is delivered. It goes on where it was once it is turned on."
}

// lag returns a text that says how far a webhook is behind.
func (c *call) lag(w *feed.Webhook) (string, error) {
	since, lost, err := c.s.app.Deliver.Behind(c.r.Context(), c.p, w)
	switch {
	case err != nil:
		return "", err
	case lost:
		return "Events have expired before they were delivered", nil
	case since == 0:
		return "None", nil
	}
	return "Since " + c.named(since), nil
}

func (c *call) webhookRow(w *feed.Webhook) (row webhookRow, err error) {
	row = webhookRow{ID: w.ID, URL: w.URL, Types: typesOf(w.Types)}
	row.State, row.Text = c.webhookState(w)
	row.Lag, err = c.lag(w)
	return row, err
}

// typesOf returns a text that says which events a webhook gets.
func typesOf(types []string) string {
	if slices.Contains(types, "*") {
		return "Everything"
	}
	words := make([]string, len(types))
	for i, t := range types {
		kind, change, _ := strings.Cut(t, ".")
		words[i] = kindWords[kind]
		if change != "*" {
			words[i] += ": " + changeWord(change)
		}
	}
	return strings.Join(words, ", ")
}

// kindWords are the names of the kinds of records that events have.
var kindWords = map[string]string{
	"contact": "Contacts", "conversation": "Conversations", "message": "Messages", "note": "Notes", "send": "Sends", "template": "Templates", "snippet": "Saved replies", "segment": "Segments", "attribute": "Attributes",
	"broadcast": "Broadcasts", "merge": "Merges", "conflict": "Conflicts",
	"channel": "Channels", "policy": "Reply policy", "member": "Members", "key": "Keys", "workspace": "Workspace", "webhook": "Webhooks",
}

func changeWord(change string) string { return strings.ReplaceAll(change, "_", " ") }

func (s *Server) webhooks(c *call) error {
	list, err := s.app.Deliver.Webhooks(c.r.Context(), c.p)
	if err != nil {
		return err
	}
	rows := make([]webhookRow, len(list))
	for i := range list {
		if rows[i], err = c.webhookRow(&list[i]); err != nil {
			return err
		}
	}
	return c.show("webhooks", view{Title: "Webhooks", Data: rows})
}

// A webhookForm is the form of a new or existing webhook.
type webhookForm struct {
	Path   string
	URL    *field
	All    bool
	Groups []typeGroup
}

// A typeGroup has the event types of one kind of record.
type typeGroup struct {
	Kind, Label string
	All         bool
	Types       []permissionBox
	Open        bool
}

func (c *call) webhookForm(path, url string, types []string) webhookForm {
	if c.form.values != nil {
		types = c.form.list("types")
	}
	f := webhookForm{Path: path, URL: c.form.Field("url", "URL", "Where parley sends the events: an address that begins with https://.", url).As("url").Need(), All: slices.Contains(types, "*")}
	for _, t := range desk.EventTypes {
		kind, change, _ := strings.Cut(string(t), ".")
		if len(f.Groups) == 0 || f.Groups[len(f.Groups)-1].Kind != kind {
			f.Groups = append(f.Groups, typeGroup{Kind: kind, Label: kindWords[kind], All: slices.Contains(types, kind+".*")})
		}
		g := &f.Groups[len(f.Groups)-1]
		ticked := slices.Contains(types, string(t))
		g.Types, g.Open = append(g.Types, permissionBox{string(t), capital(changeWord(change)), ticked}), g.Open || ticked
	}
	return f
}

// webhookEdit reads the form.
func (c *call) webhookEdit() (edit desk.WebhookEdit, err error) {
	url, types := c.form.text("url"), c.form.list("types")
	if slices.Contains(types, "*") {
		types = deliver.AllTypes
	}
	// If the box of a kind is ticked, it stands for all types of the kind.
	types = slices.DeleteFunc(slices.Clone(types), func(t string) bool {
		kind, change, _ := strings.Cut(t, ".")
		return change != "*" && slices.Contains(types, kind+".*")
	})
	if len(types) == 0 {
		return edit, desk.Invalidf("tick at least one kind of event")
	}
	return desk.WebhookEdit{URL: &url, Types: &types}, nil
}

func (s *Server) newWebhook(c *call) error {
	return c.show("webhook-new", view{Title: "New webhook", Data: c.webhookForm("/settings/webhooks/new", "", deliver.AllTypes)})
}

// A madeSecret is the page of a new secret, which is shown once.
type madeSecret struct {
	Heading, Text, Verified string
	Back                    string
}

func (s *Server) addWebhook(c *call) error {
	edit, err := c.webhookEdit()
	var w feed.Webhook
	var secret provider.Secret
	if err == nil {
		w, secret, err = s.app.Deliver.AddWebhook(c.r.Context(), c.p, edit, nil)
	}
	if err != nil {
		e := webhookError(err)
		c.form.refuse(e)
		return c.again("webhook-new", view{Title: "New webhook", Data: c.webhookForm("/settings/webhooks/new", "", nil)}, e)
	}
	return c.show("webhook-made", view{Title: "New webhook", Data: madeSecret{"The webhook is made", secret.Reveal(),
		"The receiver checks with it that a request comes from parley.", "/settings/webhooks/" + w.ID.String()}})
}

// webhookError puts an error of the URL beside the URL's field.
func webhookError(err error) *desk.Error {
	e := *desk.AsError(err)
	if e.Type == desk.WebhookExists {
		e.At, e.Message = "/url", "another webhook of this workspace has this URL already"
	}
	return &e
}

// A webhookPage is the page of a webhook.
type webhookPage struct {
	webhookRow
	Path       string
	Enabled    bool
	Form       webhookForm
	Pinged     *attemptRow
	Views      []tab
	Deliveries []deliveryRow
	First      string
	Next       string
}

func (s *Server) webhook(c *call) error {
	page, err := c.webhookView()
	if err != nil {
		return err
	}
	return c.show("webhook", page)
}

func (c *call) webhookView() (view, error) {
	w, err := c.s.app.Deliver.Webhook(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return view{}, err
	}
	d := webhookPage{Path: "/settings/webhooks/" + w.ID.String(), Enabled: w.Enabled}
	if d.webhookRow, err = c.webhookRow(&w); err != nil {
		return view{}, err
	}
	d.Form = c.webhookForm(d.Path, w.URL, w.Types)
	q, query := deliver.Query{Status: desk.WebhookDeliveryStatus(c.query("status")), Limit: deliveryRows}, ""
	for _, v := range []struct {
		status desk.WebhookDeliveryStatus
		label  string
	}{{"", "All"}, {desk.DeliveryPending, "Waiting"}, {desk.DeliveryFailed, "Failed"}, {desk.DeliveryDelivered, "Delivered"}} {
		t := tab{Label: v.label, Href: d.Path, Here: v.status == q.Status}
		if v.status != "" {
			t.Href += "?status=" + string(v.status)
		}
		if t.Here {
			query = strings.TrimPrefix(t.Href, d.Path)
		}
		d.Views = append(d.Views, t)
	}
	if query == "" {
		q.Status, d.Views[0].Here = "", true
	}
	var list []deliver.Delivery
	next := ""
	_, err = c.fromCursor(func(after string) (err error) {
		q.Cursor = after
		list, next, err = c.s.app.Deliver.Deliveries(c.r.Context(), c.p, w.ID, q)
		return err
	})
	if err != nil {
		return view{}, err
	}
	for i := range list {
		d.Deliveries = append(d.Deliveries, c.deliveryRow(w.ID, &list[i]))
	}
	if q.Cursor != "" {
		d.First = d.Path + query
	}
	if next != "" {
		d.Next = d.Path + with(query, "after", next)
	}
	return view{Title: "Webhook", Data: &d}, nil
}

// webhookRefused shows the webhook with the reason why an action was refused.
func (c *call) webhookRefused(err error) error {
	e := webhookError(err)
	c.form.refuse(e)
	page, readErr := c.webhookView()
	if readErr != nil {
		return readErr
	}
	return c.again("webhook", page, e)
}

func (s *Server) editWebhook(c *call) error {
	edit, err := c.webhookEdit()
	if err == nil {
		_, err = s.app.Deliver.EditWebhook(c.r.Context(), c.p, c.id("id"), edit)
	}
	if err != nil {
		return c.webhookRefused(err)
	}
	return c.toWebhook("saved")
}

func (c *call) toWebhook(done string) error {
	return c.see("/settings/webhooks/"+c.id("id").String(), done)
}

func (s *Server) enableWebhook(c *call) error {
	on, done := c.form.text("enabled") == "yes", "turned-off"
	if on {
		done = "turned-on"
	}
	if _, err := s.app.Deliver.EditWebhook(c.r.Context(), c.p, c.id("id"), desk.WebhookEdit{Enabled: &on}); err != nil {
		return c.webhookRefused(err)
	}
	return c.toWebhook(done)
}

// pingWebhook makes one attempt now, and shows the result.
func (s *Server) pingWebhook(c *call) error {
	attempt, err := s.app.Deliver.Ping(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return c.webhookRefused(err)
	}
	if c.p, err = s.app.Access.Member(c.r.Context(), c.p.Workspace(), c.p.Actor.ID); err != nil { // the ping may have turned it off
		return err
	}
	page, err := c.webhookView()
	if err != nil {
		return err
	}
	row := c.attemptRow(attempt)
	page.Data.(*webhookPage).Pinged = &row
	return c.show("webhook", page)
}

// overlaps are the choices for how long the old secret continues to sign.
var overlaps = []choice{{Value: "86400", Label: "For a day"}, {Value: "3600", Label: "For an hour"}, {Value: "604800", Label: "For a week"}, {Value: "0", Label: "Not at all"}}

// A webhookChange is the page of a change that needs a choice.
type webhookChange struct {
	Path, URL string
	Field     *field
	Event     *field
}

func (c *call) aWebhook() (*desk.Webhook, error) {
	if w := c.p.Settings.Webhook(c.id("id")); w != nil {
		return w, nil
	}
	return nil, errNotHere
}

func (c *call) rotationView(w *desk.Webhook) view {
	return view{Title: "New secret", Data: webhookChange{Path: "/settings/webhooks/" + w.ID.String(), URL: w.URL,
		Field: c.form.Field("overlap", "How long the one before goes on signing beside it", "", "86400").Of(overlaps)}}
}

func (s *Server) askRotation(c *call) error {
	w, err := c.aWebhook()
	if err != nil {
		return err
	}
	return c.show("webhook-rotate", c.rotationView(w))
}

func (s *Server) rotateWebhook(c *call) error {
	w, err := c.aWebhook()
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(c.form.text("overlap"), 10, 64)
	if err != nil {
		seconds = -1
	}
	_, secret, err := s.app.Deliver.RotateWebhook(c.r.Context(), c.p, w.ID, seconds)
	if err != nil {
		return c.again("webhook-rotate", c.rotationView(w), err)
	}
	return c.show("webhook-made", view{Title: "New secret", Data: madeSecret{"The webhook has a new secret", secret.Reveal(),
		"Give it to the receiver before the one before stops signing.", "/settings/webhooks/" + w.ID.String()}})
}

func (c *call) replayView(w *desk.Webhook) view {
	return view{Title: "Deliver again", Data: webhookChange{
		Path: "/settings/webhooks/" + w.ID.String(), URL: w.URL,
		Field: c.form.Field("from", "Go on", "", "oldest").Of([]choice{
			{Value: "oldest", Label: "From the oldest event that is kept"}, {Value: "latest", Label: "From now on, without what waits"}, {Value: "event", Label: "After this event:"},
		}),
		Event: c.form.Field("cursor", "Event", "Its id, such as the receiver has it. Only for the last choice.", ""),
	}}
}

func (s *Server) askReplay(c *call) error {
	w, err := c.aWebhook()
	if err != nil {
		return err
	}
	return c.show("webhook-replay", c.replayView(w))
}

func (s *Server) replayWebhook(c *call) error {
	w, err := c.aWebhook()
	if err != nil {
		return err
	}
	cursor := c.form.text("from")
	if cursor != "oldest" && cursor != "latest" {
		cursor = c.form.text("cursor")
	}
	if _, err := s.app.Deliver.Replay(c.r.Context(), c.p, w.ID, cursor); err != nil {
		e := *desk.AsError(err)
		if e.At == "/cursor" {
			e.Message = "this workspace has no event with this id"
		}
		c.form.refuse(&e)
		return c.again("webhook-replay", c.replayView(w), &e)
	}
	return c.toWebhook("replaying")
}

func webhookRemoval(w *desk.Webhook) confirmation {
	path := "/settings/webhooks/" + w.ID.String()
	return confirmation{Heading: "Remove this webhook?", Action: path + "/remove", Button: "Remove it", Back: path,
		Text: []string{w.URL, "Nothing more is delivered to it, and the list of its deliveries goes. It can't be undone."}}
}

func (s *Server) askWebhookRemoval(c *call) error {
	w, err := c.aWebhook()
	if err != nil {
		return err
	}
	return c.confirm(webhookRemoval(w))
}

func (s *Server) removeWebhook(c *call) error {
	w, err := c.aWebhook()
	if err == nil {
		err = s.app.Deliver.RemoveWebhook(c.r.Context(), c.p, w.ID)
	}
	if err != nil {
		return err
	}
	return c.see("/settings/webhooks", "removed")
}
