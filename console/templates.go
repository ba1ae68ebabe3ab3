package console

import (
	"cmp"
	"net/url"
	"sort"
	"strings"

	"parley/app"
	"parley/desk"
)

// A templateRow is a template in the list.
type templateRow struct {
	Href, Name, Language, Category string
	State, Quality                 pill
	Begin                          string // the beginning of its text
}

// A pill is a state in a word or two.
type pill struct{ Text, Kind string } // Kind: good, warn, bad, or "" for plain

// templatesPage is the data of the list.
type templatesPage struct {
	Channels []tab
	Channel  desk.ID
	Sandbox  bool
	Rows     []templateRow
	Empty    nothing

	First, Next string
}

// templateRows is how many templates the list shows on a page.
const templateRows = 100

func (s *Server) templates(c *call) error {
	d := templatesPage{}
	channels := c.p.Settings.Channels()
	v := pick(channels, c.query("channel"))
	if v == nil {
		d.Empty = nothing{Title: "No channel yet", Text: "Templates come from a channel. Once there is one, its templates will be here."}
		if c.may(desk.Administer) {
			d.Empty.Link, d.Empty.Action = "/settings/channels", "Add a channel"
		}
		return c.show("templates", view{Title: "Templates", Data: d})
	}
	for _, other := range channels {
		d.Channels = append(d.Channels, tab{Label: channelName(c.p.Settings, other, true), Href: "/templates?channel=" + other.ID.String(), Here: other.ID == v.ID})
	}
	d.Channel, d.Sandbox = v.ID, v.Kind == desk.SandboxChannel
	l, err := s.app.Templates(c.r.Context(), c.p, app.TemplateQuery{Channel: &v.ID})
	if err != nil {
		return err
	}
	page, after := "?channel="+v.ID.String(), c.query("after")
	if after != "" {
		d.First = "/templates" + page
	}
	list := templatesAfter(l.Library, after)
	if len(list) > templateRows {
		list = list[:templateRows]
		last := list[templateRows-1]
		d.Next = "/templates" + with(page, "after", last.Name+"/"+last.Language)
	}
	for _, t := range list {
		d.Rows = append(d.Rows, templateRow{
			Href: templatePath(v.ID, t), Name: t.Name, Language: t.Language, Category: strings.ToLower(t.Category), State: templateState(t), Quality: templateQuality(t), Begin: desk.Preview(plain(t.Body)),
		})
	}
	d.Empty = nothing{Title: "No templates yet", Text: "They are written and reviewed at the provider. What it has approved will be here."}
	if d.Sandbox {
		d.Empty.Text = "A sandbox has the templates that an admin puts into it."
	}
	return c.show("templates", view{Title: "Templates", Data: d})
}

// templatesAfter returns the templates of a library after the one with a name and a language; "":
// all.
func templatesAfter(l *desk.Library, after string) []*desk.Template {
	if after == "" {
		return l.Templates
	}
	name, language, _ := strings.Cut(after, "/")
	return l.Templates[sort.Search(len(l.Templates), func(i int) bool {
		t := l.Templates[i]
		return cmp.Or(strings.Compare(t.Name, name), strings.Compare(t.Language, language)) > 0
	}):]
}

// pick returns the channel with this id. Without an id, it returns the first enabled
// channel, or nil.
func pick(channels []*desk.Channel, id string) *desk.Channel {
	var first *desk.Channel
	for _, v := range channels {
		if v.ID.String() == id {
			return v
		}
		if first == nil || !first.Enabled && v.Enabled {
			first = v
		}
	}
	return first
}

func templatePath(channel desk.ID, t *desk.Template) string {
	return "/templates/" + channel.String() + "/" + url.PathEscape(t.Name) + "/" + url.PathEscape(t.Language)
}

func templateState(t *desk.Template) pill {
	switch {
	case t.Sendable(), t.Fillable():
		return pill{"Can be sent", "good"}
	case t.Status == "approved":
		return pill{"Approved, can't be sent", "warn"}
	}
	word := capital(strings.ReplaceAll(t.Status, "_", " "))
	switch t.Status {
	case "pending", "in_appeal", "limit_exceeded":
		return pill{word, "warn"}
	case "deleted", "archived":
		return pill{word, ""}
	}
	return pill{word, "bad"}
}

// templateQuality returns the provider's rating; its text is "" if there is none.
func templateQuality(t *desk.Template) pill {
	switch t.Quality {
	case "green":
		return pill{"Good", "good"}
	case "yellow":
		return pill{"Falling", "warn"}
	case "red":
		return pill{"Low", "bad"}
	}
	return pill{}
}

// reasonWords say why a template can't be sent.
var reasonWords = map[string]string{
	desk.ReasonNotApproved:      "The provider has not approved it.",
	desk.ReasonAuthentication:   "It is for one-time codes, which need a button that repeats the code.",
	desk.ReasonHeaderMedia:      "Its title is a picture, a video, a document or a place.",
	desk.ReasonBodyMissing:      "It has no message.",
	desk.ReasonPlaceholders:     "Its placeholders can't be filled: they are misnumbered, misspelt or in the wrong place.",
	desk.ReasonButtonVariable:   "A button's link has a placeholder.",
	desk.ReasonButtonParameter:  "A button needs a code, a form or products.",
	desk.ReasonCarousel:         "It is a carousel of cards.",
	desk.ReasonLimitedTimeOffer: "It is an offer with a time limit.",
	desk.ReasonUnknownComponent: "It has a part whose needs are not known.",
}

// bindingWords describe what fills a variable.
var bindingWords = map[desk.Binding]string{
	desk.Free:              "Typed by the sender",
	desk.AgentName:         "The sender's name",
	desk.AgentFirstName:    "The sender's first name",
	desk.AgentLastName:     "The sender's last name",
	desk.CustomerName:      "The contact's name",
	desk.CustomerFirstName: "The contact's first name",
	desk.CustomerLastName:  "The contact's last name",
}

// A shownTemplate is a template as the phone shows it.
type shownTemplate struct {
	File         *shownFile // in the title; nil: none
	Header, Body []shownPiece
	Footer       string
	Buttons      []shownButton
}

// A shownFile is the file in a template's title.
type shownFile struct {
	Href  string // of a picture
	Name  string
	Blank bool // no file is chosen yet
}

// A shownButton is a button with the link or number behind it.
type shownButton struct {
	Text   string
	Target []shownPiece
}

// A shownPiece is a part of a template's text. Values of variables are marked.
type shownPiece struct {
	Runs  []run
	Mark  bool
	Name  string // the variable's name
	Blank bool   // the variable has no value yet
}

// shown returns a template filled with the given values. A variable without a value shows
// its name.
func shown(t *desk.Template, values map[string]string) *shownTemplate {
	fill := func(part desk.Part) (list []shownPiece) {
		for _, p := range t.Pieces(part) {
			if p.Address == "" {
				list = append(list, shownPiece{Runs: runs(p.Text)})
				continue
			}
			text := values[p.Address]
			name, blank := variableName(p.Address), text == ""
			if blank {
				text = name
			}
			list = append(list, shownPiece{Runs: []run{{Text: text}}, Mark: true, Name: name, Blank: blank})
		}
		return list
	}
	s := &shownTemplate{Header: fill(desk.PartHeader), Body: fill(desk.PartBody), Footer: t.Look.Footer}
	if t.TakesFile() {
		s.File = &shownFile{Name: titleWords[t.Needs[0].Kind].name, Blank: true}
	}
	links := map[string]desk.Need{}
	for _, n := range t.Needs {
		links[n.Address] = n
	}
	for _, b := range t.Look.Buttons {
		button := shownButton{Text: b.Text}
		need, filled := links[b.Need]
		switch {
		case filled:
			piece := shownPiece{Runs: []run{{Text: undirected(values[b.Need])}}, Mark: true, Name: "End of the link"}
			if piece.Blank = values[b.Need] == ""; piece.Blank {
				piece.Runs[0].Text = "…"
			}
			button.Target = []shownPiece{{Runs: []run{{Text: undirected(need.Begin())}}}, piece}
		case b.Target != "":
			button.Target = []shownPiece{{Runs: []run{{Text: undirected(b.Target)}}}}
		}
		s.Buttons = append(s.Buttons, button)
	}
	return s
}

// titleWords are the words for the file in a template's title, by its kind.
var titleWords = map[desk.MessageKind]struct{ name, takes, accept string }{
	desk.KindImage:    {"Picture", "A JPEG or PNG, up to 5 MB.", "image/jpeg,image/png"},
	desk.KindVideo:    {"Video", "An MP4 or 3GPP, up to 16 MB.", "video/mp4,video/3gpp"},
	desk.KindDocument: {"Document", "A PDF, up to 100 MB.", "application/pdf"},
}

// variableName returns a variable's name, or its number and part.
func variableName(address string) string {
	key, inTitle := strings.CutPrefix(address, "header.")
	name := capital(strings.ReplaceAll(key, "_", " "))
	if strings.Trim(key, "0123456789") == "" {
		name = "Value " + key
	}
	if inTitle {
		name += " (title)"
	}
	return name
}

// templatePage is the data of one template.
type templatePage struct {
	Back, Path     string
	Name, Language string
	State, Quality pill
	Category       string
	Reasons        []string
	Needs          []string
	Shown          *shownTemplate
	Variables      []variableRow
	Send           string
	Fields         []*field
}

// A variableRow is a variable with the source of its value.
type variableRow struct{ Name, Placeholder, From, Guess string }

// theTemplate finds the template in the path.
func (c *call) theTemplate() (*desk.Channel, *desk.Template, error) {
	v := c.p.Settings.Channel(c.id("channel"))
	if v == nil {
		return nil, nil, desk.NoChannel()
	}
	l, err := c.s.app.Templates(c.r.Context(), c.p, app.TemplateQuery{Channel: &v.ID})
	if err != nil {
		return nil, nil, err
	}
	if t := l.Library.Find(c.r.PathValue("name"), c.r.PathValue("language")); t != nil {
		return v, t, nil
	}
	return nil, nil, desk.NotFoundf("no such template")
}

func (s *Server) templatePage(c *call) error {
	v, t, err := c.theTemplate()
	if err != nil {
		return err
	}
	return c.show("template", c.templateView(v, t))
}

func (c *call) templateView(v *desk.Channel, t *desk.Template) view {
	d := templatePage{
		Back: "/templates?channel=" + v.ID.String(), Path: templatePath(v.ID, t), Name: t.Name, Language: t.Language, State: templateState(t), Quality: templateQuality(t),
		Category: strings.ToLower(t.Category), Shown: shown(t, c.samples(v, t)),
	}
	for _, n := range t.Needs {
		need := "The end of the link of “" + apart(n.Title) + "”"
		if n.IsFile() {
			need = "A file for its title: " + titleWords[n.Kind].takes
		}
		d.Needs = append(d.Needs, need)
	}
	for _, r := range t.Reasons {
		if t.Needs != nil && r != desk.ReasonNotApproved { // a send can supply what is needed
			continue
		}
		d.Reasons = append(d.Reasons, reasonWords[r])
	}
	if t.Rejected != "" {
		d.Reasons = append(d.Reasons, "The review says: "+sentence(strings.ToLower(strings.ReplaceAll(t.Rejected, "_", " "))))
	}
	guesses := desk.GuessBindings(t.Variables)
	for i, variable := range t.Variables {
		address := variable.Address()
		b, bound := v.Bindings[desk.BindingPlace{Template: t.Name, Language: t.Language, Address: address}]
		row := variableRow{Name: variableName(address), Placeholder: "{{" + variable.Key + "}}", From: bindingWords[b], Guess: bindingWords[guesses[i]]}
		if !bound {
			row.From = row.Guess + " (guessed)"
		}
		d.Variables = append(d.Variables, row)
		choices := []choice{{Value: "guess", Label: bindingWords[guesses[i]] + " (guessed)"}}
		for _, known := range desk.Bindings {
			choices = append(choices, choice{Value: string(known), Label: bindingWords[known]})
		}
		current := "guess"
		if bound {
			current = string(b)
		}
		if c.may(desk.Administer) {
			d.Fields = append(d.Fields, c.form.Field("bind."+address, row.Name, row.Placeholder, current).Of(choices))
		}
	}
	if (t.Sendable() || t.Fillable()) && c.may(desk.MessagesSend) {
		d.Send = "/send?channel=" + v.ID.String() + "&template=" + url.QueryEscape(t.Name+"/"+t.Language)
	}
	return view{Title: t.Name, Data: d}
}

// samples returns values for a preview: the provider's examples, and the member's name.
func (c *call) samples(v *desk.Channel, t *desk.Template) map[string]string {
	hints := desk.HintValues(c.p.Member, "", desk.FromContact)
	values := map[string]string{}
	bindings := v.Binds(t)
	for i, variable := range t.Variables {
		address := variable.Address()
		values[address] = t.Look.Samples[address]
		if values[address] == "" {
			values[address] = hints[bindings[i]].Value
		}
	}
	for _, n := range t.Needs {
		values[n.Address] = t.Look.Samples[n.Address]
	}
	return values
}

func (s *Server) bindTemplate(c *call) error {
	v, t, err := c.theTemplate()
	if err != nil {
		return err
	}
	edit := app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{}}
	for _, variable := range t.Variables {
		name := "bind." + variable.Address()
		if !c.form.has(name) {
			continue
		}
		b := desk.Binding("")
		if text := c.form.text(name); text != "guess" {
			if b, err = desk.ParseBinding(text); err != nil {
				return err
			}
		}
		edit.Bindings[desk.BindingPlace{Template: t.Name, Language: t.Language, Address: variable.Address()}] = b
	}
	if _, err := s.app.EditChannel(c.r.Context(), c.p, v.ID, edit); err != nil {
		c.form.refuse(desk.AsError(err))
		return c.again("template", c.templateView(v, t), err)
	}
	return c.see(templatePath(v.ID, t), "saved")
}

// fetchTemplates fetches a channel's templates from the provider.
func (s *Server) fetchTemplates(c *call) error {
	channel := c.id("channel")
	if _, _, err := s.app.SyncChannel(c.r.Context(), c.p, channel); err != nil {
		return err
	}
	return c.see("/templates?channel="+channel.String(), "fetched")
}

func (s *Server) newTemplate(c *call) error {
	v := c.p.Settings.Channel(c.id("channel"))
	if v == nil || v.Kind != desk.SandboxChannel {
		return desk.NoChannel()
	}
	return c.show("template-new", c.newTemplateView(v))
}

// sampleTemplate is the first text in the form of a new template.
const sampleTemplate = `{
  "name": "pickup_ready",
  "language": "en",
  "status": "APPROVED",
  "category": "UTILITY",
  "components": [
    {"type": "BODY", "text": "Hi {{1}}, your order is ready to be picked up.",
     "example": {"body_text": [["Ann"]]}}
  ]
}`

func (c *call) newTemplateView(v *desk.Channel) view {
	return view{Title: "New template", Data: map[string]any{
		"Action": "/templates/" + v.ID.String() + "/new", "Back": "/templates?channel=" + v.ID.String(),
		"Field": c.form.Field("source", "The template, in the provider's form", "JSON, as the provider's own API shows it.", sampleTemplate).Tall(16),
	}}
}

func (s *Server) putTemplate(c *call) error {
	v := c.p.Settings.Channel(c.id("channel"))
	if v == nil {
		return desk.NoChannel()
	}
	t, err := s.app.PutTemplate(c.r.Context(), c.p, v.ID, []byte(c.form.raw("source")))
	if err != nil {
		e := *desk.AsError(err)
		if e.Type == desk.InvalidRequest {
			if at := strings.TrimPrefix(e.At, "/file"); at != "" {
				e.Message = at + ": " + e.Message
			}
			e.At = "/source"
		}
		c.form.refuse(&e)
		return c.again("template-new", c.newTemplateView(v), &e)
	}
	return c.see(templatePath(v.ID, t), "saved")
}
