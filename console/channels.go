package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// A channelRow is a channel in the list.
type channelRow struct {
	ID         desk.ID
	Name, Text string // Text is its state in words
	State      pill
	Made       moment
}

// channelState returns the state of a channel as a pill and in words.
func (c *call) channelState(v *desk.Channel) (state pill, text string) {
	status := &v.Status
	switch why := status.BlockedAt(desk.TimeOf(c.now)); {
	case !v.Enabled:
		return pill{"Turned off", ""}, "Nothing is sent on it. What customers write still comes in."
	case why == "":
		return pill{"Works", "good"}, "Messages can be sent."
	case status.ByCall:
		text = "WhatsApp refuses its messages since " + c.named(status.Since) + ": " + sentence(why)
		if status.Code != 0 {
			text += " (Code " + strconv.Itoa(status.Code) + ".)"
		}
		return pill{"Refused", "bad"}, text + " It works again once WhatsApp accepts a message."
	case status.Replies:
		return pill{"Replies only", "bad"}, "Since " + c.named(status.Since) + ", people who wrote can be answered, and no template can be sent: " + sentence(why)
	default:
		return pill{"Blocked", "bad"}, "WhatsApp lets it send nothing since " + c.named(status.Since) + ": " + sentence(why)
	}
}

func (c *call) channelRow(v *desk.Channel) channelRow {
	row := channelRow{ID: v.ID, Name: channelName(c.p.Settings, v, true), Made: c.when(v.CreatedAt)}
	row.State, row.Text = c.channelState(v)
	return row
}

func (s *Server) channels(c *call) error {
	var rows []channelRow
	for _, v := range c.p.Settings.Channels() {
		rows = append(rows, c.channelRow(v))
	}
	return c.show("channels", view{Title: "Channels", Data: rows})
}

// A channelPage is the page of a channel.
type channelPage struct {
	channelRow
	WhatsApp         bool
	External         string // the external id of a sandbox
	Number, Business string // the ids of the number and of the business account at WhatsApp
	Enabled          bool
	Callback         string // the callback URL
	Reporting        string
	Fetched, Called  moment
	Asked            moment
	Checked          bool
	Problems         []problemRow
	Templates        string
	NameField        *field
	PerSecond        *field
	Secrets          []*field
}

// A problemRow is a problem of a channel.
type problemRow struct {
	Text, Advice string
	Blocking     bool
}

func (c *call) aChannel() (*desk.Channel, error) {
	if v := c.p.Settings.Channel(c.id("id")); v != nil {
		return v, nil
	}
	return nil, errNotHere
}

func (c *call) channelView(v *desk.Channel) (view, error) {
	d := channelPage{channelRow: c.channelRow(v), WhatsApp: v.Kind == desk.WhatsAppChannel, Enabled: v.Enabled, Templates: "/templates?channel=" + v.ID.String()}
	health, err := c.s.app.ChannelHealth(c.r.Context(), c.p, v.ID)
	if err != nil {
		return view{}, err
	}
	d.Fetched, d.Called, d.Asked, d.Reporting = c.when(health.Synced), c.when(health.Callback), c.when(health.Asked), sentence(health.Reporting)
	d.NameField = c.channelNameField(v.Name)
	if d.External = v.ExternalID; d.WhatsApp {
		d.External = ""
		d.Number, d.Business = v.ExternalID, v.Account.BusinessID
		d.Callback = c.base() + app.CallbackPath(v.Kind, v.ID.String())
		limit := ""
		if v.Account.PerSecond != 0 {
			limit = strconv.Itoa(v.Account.PerSecond)
		}
		d.PerSecond = c.form.Field("per_second", "Messages a second", perSecondHint, limit)
		d.Secrets = c.secretFields("It is set. Leave this empty to keep it.", "It is set. The one before stays valid for messages that are under way.", "It is set. WhatsApp asks for it when you enter the callback URL.")
	}
	return view{Title: d.Name, Data: &d}, nil
}

// channelNameField is the field of a channel's name.
func (c *call) channelNameField(name string) *field {
	return c.form.Field("channel_name", "Name", "What your team calls it, to tell it from other channels. Optional.", name)
}

// secretFields are the fields for a WhatsApp channel's secrets. They are never filled
// in.
func (c *call) secretFields(token, appSecret, verify string) []*field {
	list := []*field{
		c.form.Field("token", "Access token", token, "").As("password"),
		c.form.Field("app_secret", "App secret", appSecret, "").As("password"),
		c.form.Field("verify_token", "Verify token", verify, "").As("password"),
	}
	for _, f := range list {
		f.Value = ""
	}
	return list
}

// secrets reads the fields of the secrets.
func (c *call) secrets() (s provider.Secrets, err error) {
	for _, into := range []struct {
		name   string
		secret *provider.Secret
	}{{"token", &s.Token}, {"app_secret", &s.AppSecret}, {"verify_token", &s.VerifyToken}} {
		text := c.form.text(into.name)
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return s, desk.InvalidAt("/"+into.name, "this has a space or a letter that no secret has: copy it again")
		}
		if text != "" {
			*into.secret = provider.NewSecret(text)
		}
	}
	return s, nil
}

// perSecondHint is the hint of the field for the number of messages that a phone number
// may send in a second.
var perSecondHint = fmt.Sprintf("What WhatsApp allows the number: %d if this is empty, up to %s once it has raised that.", desk.PerSecond, count(desk.MaxPerSecond))

// perSecond reads the field per_second. It returns 0 if the field is empty.
func (c *call) perSecond() (int, error) {
	text := c.form.text("per_second")
	n, err := strconv.Atoi(text)
	if text != "" && (err != nil || n < 1) {
		return 0, desk.InvalidAt("/per_second", "give a number from 1 to %d", desk.MaxPerSecond)
	}
	return n, nil
}

func (s *Server) channel(c *call) error {
	v, err := c.aChannel()
	if err != nil {
		return err
	}
	page, err := c.channelView(v)
	if err != nil {
		return err
	}
	return c.show("channel", page)
}

func (s *Server) editChannel(c *call) error {
	v, err := c.aChannel()
	if err != nil {
		return err
	}
	var edit app.ChannelEdit
	if name := c.form.text("channel_name"); c.form.has("channel_name") {
		edit.Name = &name
	}
	if v.Kind == desk.WhatsAppChannel || c.form.has("per_second") {
		var n int
		if n, err = c.perSecond(); err == nil {
			edit.PerSecond = &n
			edit.Secrets, err = c.secrets()
		}
	}
	if err == nil {
		_, err = s.app.EditChannel(c.r.Context(), c.p, v.ID, edit)
	}
	if err != nil {
		return c.channelRefused(v, channelFormError(err))
	}
	return c.see("/settings/channels/"+v.ID.String(), "saved")
}

// channelFormError returns the error of a form that has a channel's name. The form's
// field is channel_name, because a sandbox's page also has a customer's name.
func channelFormError(err error) *desk.Error {
	e := *desk.AsError(err)
	if e.At == "/name" {
		e.At = "/channel_name"
	}
	return &e
}

func (c *call) channelRefused(v *desk.Channel, err error) error {
	c.form.refuse(desk.AsError(err))
	page, readErr := c.channelView(v)
	if readErr != nil {
		return err
	}
	return c.again("channel", page, err)
}

func (s *Server) enableChannel(c *call) error {
	v, err := c.aChannel()
	if err != nil {
		return err
	}
	on, done := c.form.text("enabled") == "yes", "turned-off"
	if on {
		done = "turned-on"
	}
	if _, err := s.app.EditChannel(c.r.Context(), c.p, v.ID, app.ChannelEdit{Enabled: &on}); err != nil {
		return c.channelRefused(v, err)
	}
	return c.see("/settings/channels/"+v.ID.String(), done)
}

// checkChannel checks a channel with the provider, and shows the problems.
func (s *Server) checkChannel(c *call) error {
	v, err := c.aChannel()
	if err != nil {
		return err
	}
	problems, err := s.app.CheckChannel(c.r.Context(), c.p, v.ID)
	if err != nil {
		return c.channelRefused(v, err)
	}
	page, err := c.channelView(v)
	if err != nil {
		return err
	}
	d := page.Data.(*channelPage)
	d.Checked, d.Problems = true, problemRows(problems)
	return c.show("channel", page)
}

// channelAdvices say what to do about a problem, on the page of its channel.
var channelAdvices = map[desk.AdviceKind]string{
	desk.StoreToken:     "Store the new access token below.",
	desk.StoreAppSecret: "Store the right app secret below.",
	desk.SyncChannel:    "Fetch the templates now.",
	desk.EnableChannel:  "Turn it on below.",
}

func problemRows(list []provider.Problem) (rows []problemRow) {
	for _, p := range list {
		rows = append(rows, problemRow{sentence(p.Text), p.Advice.Worded(channelAdvices), p.Blocking})
	}
	return rows
}

// A newChannelPage is the form that connects a WhatsApp number.
type newChannelPage struct {
	Fields, Secrets, More []*field
	MoreOpen              bool
}

func (c *call) newChannelView() view {
	f := c.form
	d := newChannelPage{
		Fields: []*field{
			f.Field("phone_number_id", "Phone number ID", "In WhatsApp Manager, under the number. It is not the number itself.", "").Need(),
			f.Field("waba_id", "WhatsApp Business Account ID", "The account that the number belongs to.", "").Need(),
			c.channelNameField(""),
		},
		Secrets: c.secretFields("Of a system user with the permissions whatsapp_business_messaging and whatsapp_business_management; one that never expires.",
			"Of the Meta app, under App settings, Basic. It proves that callbacks come from WhatsApp.", "Optional. parley makes one if this is empty."),
		More: []*field{
			f.Field("per_second", "Messages a second", perSecondHint, ""),
			f.Field("graph_version", "Version of the Graph API", "Empty for the usual one.", ""),
		},
	}
	if c.s.app.OwnAddresses() {
		d.More = append(d.More, f.Field("graph_url", "Address of the Graph API", "Empty for Meta's own.", ""))
	}
	d.Secrets[0].Need()
	d.Secrets[1].Need()
	for _, f := range d.More {
		d.MoreOpen = d.MoreOpen || f.Value != "" || f.Error != ""
	}
	return view{Title: "Connect a WhatsApp number", Data: d}
}

func (s *Server) newChannel(c *call) error { return c.show("channel-new", c.newChannelView()) }

// A madeChannel is the page after a number was connected, with the next steps. It shows
// the verify token, once.
type madeChannel struct {
	ID               desk.ID
	Name             string
	Callback, Verify string // Verify is "" if the admin gave it
	Reporting        string
	Problems         []problemRow
}

func (s *Server) addChannel(c *call) error {
	n := app.NewChannel{Kind: desk.WhatsAppChannel, ExternalID: c.form.text("phone_number_id"), Name: c.form.text("channel_name"), Account: desk.Account{
		BusinessID: c.form.text("waba_id"), BaseURL: c.form.text("graph_url"), Version: c.form.text("graph_version"),
	}}
	var err error
	if n.Account.PerSecond, err = c.perSecond(); err == nil {
		n.Secrets, err = c.secrets()
	}
	var at provider.Access
	var problems []provider.Problem
	if err == nil {
		at, problems, err = s.app.AddChannel(c.r.Context(), c.p, n)
	}
	if err != nil {
		e := *channelFormError(err)
		if e.At == "/external_id" {
			e.At, e.Message = "/phone_number_id", "this workspace has this number already"
		}
		c.form.refuse(&e)
		return c.again("channel-new", c.newChannelView(), &e)
	}
	d := madeChannel{ID: at.Channel.ID, Name: channelName(c.p.Settings, at.Channel, true), Callback: c.base() + app.CallbackPath(at.Channel.Kind, at.Channel.ID.String()), Problems: problemRows(problems)}
	if c.form.text("verify_token") == "" {
		d.Verify = at.Secrets.VerifyToken.Reveal()
	}
	d.Reporting = sentence(s.app.Reporting(at.Channel))
	// It needs no turn: it is short, and has what is shown only once.
	return c.render(http.StatusOK, "channel-made", view{Title: d.Name, Data: d})
}

func (c *call) newSandboxView() view {
	return view{Title: "New sandbox", Data: []*field{
		c.channelNameField(""),
		c.form.Field("external_id", "External ID", "Optional, and unique in the workspace: by it your programs know the channel.", ""),
	}}
}

func (s *Server) newSandbox(c *call) error { return c.show("sandbox-new", c.newSandboxView()) }

func (s *Server) addSandbox(c *call) error {
	at, _, err := s.app.AddChannel(c.r.Context(), c.p, app.NewChannel{Kind: desk.SandboxChannel, ExternalID: c.form.text("external_id"), Name: c.form.text("channel_name")})
	if err != nil {
		e := *channelFormError(err)
		if e.At == "/external_id" {
			e.Message = "another channel of this workspace has this external id, or it is not a valid one"
		}
		c.form.refuse(&e)
		return c.again("sandbox-new", c.newSandboxView(), &e)
	}
	return c.see("/settings/channels/"+at.Channel.ID.String(), "added")
}

// writeIn simulates a new customer who writes to a sandbox.
func (s *Server) writeIn(c *call) error {
	v, err := c.aChannel()
	if err != nil {
		return err
	}
	written, err := s.app.ReceiveSimulated(c.r.Context(), c.p, v.ID, c.form.text("from"), c.form.text("name"), c.form.raw("text"))
	if err != nil {
		return c.channelRefused(v, err)
	}
	return c.see("/inbox/"+written.ID.String()+"?view=open", "written")
}
