package console

import (
	"strings"

	"parley/app"
	"parley/desk"
)

// mostQuoted is the number of messages among which the form offers to choose the message
// that the customer answers.
const mostQuoted = 10

// customerForm fills the form for writing as the customer. The newest of messages comes
// first.
func (c *call) customerForm(f *customerForm, messages []*desk.Message) {
	if c.form.has("text") {
		f.Open, f.Text = true, c.form.raw("text")
	}
	pick := func(name string, list []choice) []choice {
		for i := range list {
			list[i].Selected = list[i].Value == c.form.text(name)
			f.More = f.More || list[i].Selected && list[i].Value != ""
		}
		return list
	}
	f.Taps, f.To = []choice{{Label: "No button"}}, []choice{{Label: "No message"}}
	for _, m := range messages {
		if m.ExternalID == "" || m.Kind == desk.KindReaction {
			continue
		}
		f.To = append(f.To, choice{Value: m.ID.String(), Label: excerpt(plain(m.Text))})
		if m.Extra == nil {
			continue
		}
		for _, b := range m.Extra.Buttons {
			f.Taps = append(f.Taps, choice{Value: m.ID.String() + "/" + b.ID, Label: b.Title})
		}
	}
	f.Taps, f.To = pick("tap", f.Taps), pick("to", f.To)
	f.Reactions = pick("reaction", []choice{{Label: "None"}, {Value: "👍", Label: "👍"}, {Value: "❤️", Label: "❤️"}, {Value: "😂", Label: "😂"}, {Value: "🙏", Label: "🙏"}, {Value: noReaction, Label: "Take it back"}})
}

// noReaction is the value of the choice that removes a reaction.
const noReaction = "none"

// writeAsCustomer adds a message of the customer to a sandbox.
func (s *Server) writeAsCustomer(c *call) error {
	m := app.Simulated{Text: c.form.raw("text"), ReplyTo: c.form.text("to")}
	if tapped, button, ok := strings.Cut(c.form.text("tap"), "/"); ok {
		m.ReplyTo, m.Choice = tapped, button
	}
	if emoji := c.form.text("reaction"); emoji != "" {
		if emoji == noReaction {
			emoji = ""
		}
		m.Reaction = &emoji
	}
	f := c.form.file
	if f != nil {
		m.File = &app.SimulatedFile{Name: f.Name, Type: f.Type, Content: f.Content}
	}
	v, err := s.app.WriteAsCustomer(c.r.Context(), c.p, c.id("id"), m)
	if f != nil {
		err = c.uploaded(err)
	}
	if desk.IsType(err, desk.InvalidRequest) && desk.AsError(err).At == "/reply_to" {
		err = desk.Invalidf("choose the message to which the customer reacts")
	}
	if err != nil {
		return c.refused(err)
	}
	return c.backTo(v.ID, "")
}
