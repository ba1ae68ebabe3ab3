package console

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/app"
	"parley/app/search"
	"parley/desk"
)

// A sendPage is the form that sends a template: a page of its own, or a panel in the
// conversation from which it was opened.
type sendPage struct {
	Contact       desk.ID
	Name, Address string
	Back          string
	Close         bool // Back is the conversation
	Find          string
	Found         []foundContact
	Searched      bool
	templateChoice

	Key      string
	Fields   []*valueField
	File     *fileField // for the title; nil: it needs none
	Sender   *field
	OptIn    *field
	Shown    *shownTemplate
	OptedOut moment
	Problem  string // the reason why nothing can be sent
	Doubt    bool   // it is not known whether the message was sent, so the page offers no second send
}

// A templateChoice is the choice of a channel and of one of its templates.
type templateChoice struct {
	To               string // the page that is told the choice
	Channels         []choice
	Channel, Library string
	NoChannel        bool          // there is no channel that is turned on
	Hidden           []hiddenField // for the forms: what the page was opened for
	Words            string        // the search for a template
	Templates        []foundTemplate
	More             bool   // there are more templates
	None             string // the reason why there are no templates

	Template, Title, Other string // the chosen template, its name, and the link to the others
}

// A foundContact is a person in the search result.
type foundContact struct{ Href, Name, Address string }

// A foundTemplate is a template in the search result, with its variables filled.
type foundTemplate struct {
	ID, Href, Name, Language string
	Marketing                bool
	Shown                    *shownTemplate
}

// foundRows is how many templates a search lists.
const foundRows = 20

// A valueField is the field of a variable, with the text around it in the template.
type valueField struct {
	*field
	Before, After string
}

// A fileField is the field of the file in a template's title.
type fileField struct {
	*field
	Accept string
	Kept   *keptFile // nil: none
}

func (s *Server) sendForm(c *call) error {
	d, err := c.sendPage(c.r.URL.Query())
	if err != nil {
		return err
	}
	return c.show("send", d.view())
}

func (d *sendPage) view() view {
	title := "Send a template"
	if d.Name != "" {
		title = "To " + d.Name
	}
	return view{Title: title, Data: d}
}

// sendPage reads the data of the form. q may have a contact, a channel and a template.
func (c *call) sendPage(q url.Values) (*sendPage, error) {
	ctx := c.r.Context()
	d := &sendPage{Back: "/inbox", Find: q.Get("find"), templateChoice: choiceOf("/send", q)}
	id, _ := desk.ParseID(q.Get("contact"))
	if id.IsZero() {
		return d, c.findRecipient(d, q)
	}
	contact, err := c.s.app.Contact(ctx, c.p, id)
	if err != nil {
		return nil, err
	}
	d.Contact, d.Name, d.Address, d.Back = id, nameOf(contact), phone(contact.Address()), "/contacts/"+id.String()
	d.Hidden = []hiddenField{{"contact", id.String()}}
	if conversation, ok := desk.ParseID(q.Get("conversation")); ok {
		list := sameList(q.Get("list"))
		d.Back, d.Close = "/inbox/"+conversation.String()+list, true
		d.Hidden = append(d.Hidden, hiddenField{"conversation", conversation.String()}, hiddenField{"list", list})
	}
	if d.Address == "" {
		d.Problem = "This person has no phone number and no chat account, so nothing can be sent."
		return d, nil
	}
	v := c.chooseChannel(&d.templateChoice, q.Get("channel"))
	if v == nil {
		return d, nil
	}
	if c.form.values != nil && v.ID.String() != q.Get("channel") {
		d.Problem = "The channel of this form was turned off meanwhile. Nothing was sent."
	}
	if blocked := v.Status.BlockedAt(desk.TimeOf(c.now)); blocked != "" {
		d.Problem = "Nothing can be sent on this channel now: " + sentence(blocked)
		if v.Status.Replies {
			d.Problem = "No template can be sent on this channel now: " + sentence(blocked)
		}
	}
	sender := c.p.Actor.ID.String()
	l, err := c.s.app.Templates(ctx, c.p, app.TemplateQuery{Channel: &v.ID, Agent: &sender, Contact: &id})
	if err != nil {
		return nil, err
	}
	name, language, _ := strings.Cut(d.Template, "/")
	t, sent := l.Library.Find(name, language), c.form.values != nil
	sendable := t != nil && (t.Sendable() || t.Fillable())
	if sent && d.Template != "" && !sendable && d.Problem == "" {
		d.Problem = "This template can't be sent on this channel now. Nothing was sent."
	}
	if sendable || sent && t != nil { // what was typed stays
		d.Title, d.Other = t.Name+" · "+languageName(t.Language), d.href("")
		return d, c.fillSend(d, l, t, contact, q)
	}
	d.find(l, func(t *desk.Template) map[string]string {
		values := map[string]string{}
		bindings := l.Channel.Binds(t)
		for i, v := range t.Variables {
			values[v.Address()] = l.Values[bindings[i]].Value
		}
		return values
	})
	return d, nil
}

// sameList keeps only the parameters of an inbox list from a query.
func sameList(query string) string {
	given, _ := url.ParseQuery(strings.TrimPrefix(query, "?"))
	kept := url.Values{}
	for _, name := range []string{"view", "channel", "order", "unread"} {
		if v := given.Get(name); v != "" && len(v) < 64 {
			kept.Set(name, v)
		}
	}
	query, after := "", given.Get("after")
	if len(kept) > 0 {
		query = "?" + kept.Encode()
	}
	if after != "" && len(after) <= maxAfter {
		query = with(query, "after", after)
	}
	return query
}

// choiceOf reads the choice of a template from a form or a URL.
func choiceOf(page string, q url.Values) templateChoice {
	return templateChoice{To: page, Channel: q.Get("channel"), Template: q.Get("template"), Words: q.Get("words")}
}

// href returns the path of the page with another template. For "", it is the path of the
// page with the list of templates.
func (d *templateChoice) href(template string) string {
	q := url.Values{"channel": {d.Channel}}
	for _, f := range d.Hidden {
		q.Set(f.Name, f.Value)
	}
	if template != "" {
		q.Set("template", template)
	}
	return d.To + "?" + q.Encode()
}

// find lists the templates that a search finds, each with its variables filled.
func (d *templateChoice) find(l app.TemplateList, values func(*desk.Template) map[string]string) {
	d.Template = ""
	found := l.Library.Search(d.Words)
	d.More = len(found) > foundRows
	for i, t := range found[:min(len(found), foundRows)] {
		d.Templates = append(d.Templates, foundTemplate{
			ID: "found-" + strconv.Itoa(i), Href: d.href(t.Name + "/" + t.Language), Name: t.Name, Language: languageName(t.Language), Marketing: t.Marketing(), Shown: shown(t, values(t)),
		})
	}
	if len(found) == 0 {
		d.None = "No template has that in its name or its text."
		if strings.TrimSpace(d.Words) == "" {
			d.None = "This channel has no template that can be sent."
		}
	}
}

// recipients is how many people are listed to whom a template may be sent.
const recipients = 20

// prefilled tells whether a parameter fills a part of the template: a value, or the file of the title.
func prefilled(name string) bool { return name == "media" || strings.HasPrefix(name, "value.") }

// findRecipient lists the people that a search finds.
func (c *call) findRecipient(d *sendPage, q url.Values) error {
	for name := range q {
		if prefilled(name) {
			d.Hidden = append(d.Hidden, hiddenField{name, q.Get(name)})
		}
	}
	slices.SortFunc(d.Hidden, func(a, b hiddenField) int { return cmp.Compare(a.Name, b.Name) })
	if d.Find == "" {
		return nil
	}
	d.Searched = true
	text, err := desk.ParseSearch(d.Find)
	if err != nil { // it is too long
		return nil
	}
	to := search.Query{Sought: d.Find, Limit: recipients}
	to.Text = text
	page, err := c.found(to)
	if err != nil {
		return err
	}
	d.More = page.Next != ""
	for _, contact := range page.Contacts {
		to := url.Values{"contact": {contact.ID.String()}}
		for name, values := range q {
			if name == "channel" || name == "template" || prefilled(name) {
				to[name] = values
			}
		}
		d.Found = append(d.Found, foundContact{"/send?" + to.Encode(), nameOf(contact), phone(contact.Address())})
	}
	return nil
}

// chooseChannel lists the enabled channels. It returns the chosen channel or, if none is
// chosen, the first.
func (c *call) chooseChannel(d *templateChoice, chosen string) (v *desk.Channel) {
	for _, other := range c.p.Settings.Channels() {
		if !other.Enabled {
			continue
		}
		here := other.ID.String() == chosen
		if v == nil || here {
			v = other
		}
		d.Channels = append(d.Channels, choice{Value: other.ID.String(), Label: channelName(c.p.Settings, other, true), Selected: here})
	}
	if d.NoChannel = v == nil; v != nil {
		d.Channel = v.ID.String()
		d.Library = "/templates?channel=" + d.Channel
	}
	return v
}

// fillSend adds the fields of a template with their hints. Values in q come first.
func (c *call) fillSend(d *sendPage, l app.TemplateList, t *desk.Template, contact *desk.Contact, q url.Values) error {
	values := map[string]string{}
	bindings := l.Channel.Binds(t)
	for i, v := range t.Variables {
		hint := l.Values[bindings[i]]
		words := ""
		if hint.Value != "" {
			words = map[desk.HintSource]string{desk.FromContact: "From the contact.", desk.FromMember: "From you."}[hint.Source]
		} else if sample := t.Look.Samples[v.Address()]; sample != "" {
			words = "For example: " + sample
		}
		f := c.variableField(t, v, words, cmp.Or(q.Get("value."+v.Address()), hint.Value))
		values[v.Address()] = f.Value
		d.Fields = append(d.Fields, f)
	}
	for _, n := range t.Needs {
		if n.IsFile() {
			continue
		}
		words := ""
		if sample := t.Look.Samples[n.Address]; sample != "" {
			words = "For example: " + sample
		}
		f := c.linkField(n, words, q.Get("value."+n.Address))
		values[n.Address] = f.Value
		d.Fields = append(d.Fields, f)
	}
	d.Shown = shown(t, values)
	if d.Shown.File != nil {
		if err := c.titleFile(d.Shown, &d.File, t.Needs[0].Kind, q.Get("media")); err != nil {
			return err
		}
	}
	d.OptIn = c.form.Box("opt_in", d.Name+" agreed to get messages like this from us", "WhatsApp requires it. parley keeps who said so, and when.", false)
	if t.Marketing() {
		since, err := c.s.app.OptedOut(c.r.Context(), c.p, contact)
		if err != nil {
			return err
		}
		d.OptedOut = c.when(since)
	}
	holders := []choice{{Label: "Whoever holds it now, or the contact's owner"}}
	for _, m := range c.p.Settings.Members() {
		holders = append(holders, choice{Value: m.ID.String(), Label: m.Name})
	}
	d.Sender = c.form.Field("assignee", "Who gets the answer", "", "").Of(holders)
	if d.Key = c.form.text("key"); desk.CheckIdempotencyKey(d.Key) != nil {
		d.Key = c.ownKeys() + c.s.app.NewID().String()
	}
	return nil
}

// variableField is the field of a variable, with the words around it.
func (c *call) variableField(t *desk.Template, v desk.Variable, hint, value string) *valueField {
	f := &valueField{field: c.form.Field("value."+v.Address(), variableName(v.Address()), hint, value).Need()}
	f.Before, f.After = t.Around(v)
	c.form.call(f.Name, strings.TrimSpace(f.Before+"["+f.Label+"]"+f.After))
	return f
}

// linkField is the field of the end of a button's link.
func (c *call) linkField(n desk.Need, hint, value string) *valueField {
	f := &valueField{field: c.form.Field("value."+n.Address, "end of the link", hint, value).Need(), Before: apart(n.Title) + ": " + undirected(beginOf(n))}
	c.form.call(f.Name, f.Before+"["+f.Label+"]")
	return f
}

// mostBegin is how many characters of a link's begin a label shows.
const mostBegin = 60

// beginOf returns the end of a link's begin, which is short enough for a label.
func beginOf(n desk.Need) string {
	begin := []rune(n.Begin())
	if len(begin) > mostBegin {
		return "…" + string(begin[len(begin)-mostBegin:])
	}
	return string(begin)
}

// titleFile adds the field of the title's file. The file that came with the form before, or
// that is stored already, is kept: media is its id.
func (c *call) titleFile(shown *shownTemplate, into **fileField, kind desk.MessageKind, media string) error {
	words := titleWords[kind]
	f := &fileField{field: c.form.Field("title", words.name+" in the title", words.takes, ""), Accept: words.accept}
	*into = f
	kept, file, err := c.storedFile(media)
	if err != nil {
		return err
	}
	if kept != nil {
		f.Kept, shown.File = kept, file
	} else if name := c.form.text("named"); name != "" { // the script previews a file before it is sent
		shown.File = &shownFile{Name: desk.MediaName(name)}
	}
	f.Required = f.Kept == nil
	return nil
}

// storedFile returns a file by its id, as a form keeps it and as a preview shows it; nil if it does
// not exist.
func (c *call) storedFile(media string) (*keptFile, *shownFile, error) {
	id, ok := desk.ParseID(media)
	if !ok {
		return nil, nil, nil
	}
	m, err := c.s.app.Media.Record(c.r.Context(), c.p, id)
	if desk.IsType(err, desk.NotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	kept := &keptFile{ID: id, Name: cmp.Or(m.Name, "A file without a name"), Size: bytesOf(m.Size)}
	file := &shownFile{Name: kept.Name}
	if m.Kind == desk.KindImage {
		file.Href = "/media/" + id.String()
	}
	return kept, file, nil
}

// send sends the form. If it is refused and the page does not keep its file, the file is
// deleted.
func (s *Server) send(c *call) error {
	file, err := c.sentFileOf()
	media, there := desk.ParseID(c.form.text("media"))
	switch {
	case desk.IsType(err, desk.InvalidRequest):
		c.fileRefused(desk.AsError(err))
		err = c.notSent(desk.Invalidf("nothing was sent: the file is not right"))
	case err != nil:
		err = c.notSent(err)
	default:
		err = s.sendForms(c, file)
	}
	if there && (err != nil || c.form.text("media") == "") {
		_ = s.app.Media.Delete(context.WithoutCancel(c.r.Context()), c.p, media) // it fails if a message uses the file by now
	}
	return err
}

// sendForms sends the form, with its file or nil.
func (s *Server) sendForms(c *call, file *desk.Media) error {
	d, err := c.sendPage(c.form.values)
	if err != nil {
		return err
	}
	preview := c.form.has("preview") || c.query("preview") != "" // the button comes after the file, so its name is not read
	if preview {
		return c.show("send", d.view())
	}
	hash := s.app.BodyHash([]byte(c.sendBody(file)))
	switch {
	case d.NoChannel:
		d.Problem = "All channels were turned off meanwhile. Nothing was sent."
	case d.Problem == "" && d.Template == "":
		d.Problem = "Choose a template."
	}
	if why := d.Problem; why != "" {
		if sent, err := c.sentBefore(d, hash); sent {
			return err
		}
		if d.File == nil {
			c.form.values.Del("media") // the page does not keep it
		}
		d.Problem = "" // it stands above the form
		return c.again("send", d.view(), desk.Invalidf("%s", why))
	}
	if !strings.HasPrefix(d.Key, c.ownKeys()) {
		return desk.Errorf(desk.IdempotencyKeyReused, "this form can't be sent: open it again")
	}
	if c.incomplete(d) {
		return c.notSent(desk.Invalidf("nothing was sent yet: something is missing"))
	}
	name, language, _ := strings.Cut(d.Template, "/")
	channel, _ := desk.ParseID(d.Channel)
	request := &desk.SendRequest{
		Key: d.Key, Hash: hash, Contact: &d.Contact, Channel: &channel, Template: name, Language: language,
		Variables: desk.TemplateValues{Object: true}, OptInConfirmed: c.form.has("opt_in"),
	}
	for _, f := range d.Fields {
		request.Variables.Named = append(request.Variables.Named, desk.NamedValue{Address: strings.TrimPrefix(f.Name, "value."), Value: f.Value})
	}
	if d.File != nil {
		request.Variables.Named = append(request.Variables.Named, desk.NamedValue{Address: desk.MediaAddress, Value: file.ID.String()})
	}
	if to := c.form.text("assignee"); to != "" {
		request.Assignee = desk.Field[desk.Reference]{Set: true, Value: desk.ReferTo(to)}
	}
	id, _ := desk.ParseID(c.w.RequestID())
	if _, err := s.app.Send(c.r.Context(), c.p, request, id); err != nil {
		return c.notSent(err)
	}
	return c.afterSend(d, channel)
}

// sentBefore shows what became of the form if it was sent before, and returns whether it was. Then it
// does not matter that it can't be sent any more.
func (c *call) sentBefore(d *sendPage, hash [32]byte) (bool, error) {
	key := c.form.text("key")
	if !c.ownKey(key) {
		return false, nil
	}
	_, sent, err := c.s.app.Repeat(c.r.Context(), c.p, key, hash)
	switch {
	case err != nil:
		return true, c.notSent(err)
	case !sent:
		return false, nil
	}
	channel, _ := desk.ParseID(c.form.text("channel"))
	return true, c.afterSend(d, channel)
}

// incomplete notes all missing values at once, so that the member need not find them one
// by one.
func (c *call) incomplete(d *sendPage) bool {
	for _, f := range d.Fields {
		if strings.TrimSpace(f.Value) == "" {
			c.form.wrong(f.Name, "Fill this in.")
		}
	}
	if d.File != nil && d.File.Kept == nil {
		c.form.wrong(d.File.Name, "Choose a file.")
	}
	if !c.form.has("opt_in") {
		c.form.wrong("opt_in", "Tick this if it is so. Without it nothing may be sent.")
	}
	return c.form.Refused()
}

// sendBody returns a text of the form's values. With it, a second send with the same key
// and other values can be refused.
func (c *call) sendBody(file *desk.Media) string {
	body := url.Values{}
	for name, values := range c.form.values {
		if !slices.Contains([]string{"member", "key", "list", "media", "title"}, name) {
			body[name] = values
		}
	}
	if file != nil { // each time the form is sent, its file gets another id
		body["title"] = []string{hex.EncodeToString(file.SHA256), file.Name}
	}
	return body.Encode()
}

// notSent shows the form with the reason.
func (c *call) notSent(err error) error {
	e := *desk.AsError(err)
	if e.Type == desk.Unauthorized {
		return err
	}
	if problems, ok := e.Details.([]desk.VariableProblem); ok {
		for _, p := range problems {
			c.form.wrong(fieldAt(p.Address), sentence(p.Message))
		}
		e.Message, e.Advice = "Nothing was sent: some values are not right", desk.Advice{}
	}
	if f, ok := e.Details.(desk.Failure); ok {
		e.Message = "Nothing was sent. " + sentence(f.Title) + " " + sentence(f.Fix)
	}
	switch e.Type {
	case desk.SendOutcomeUnknown:
		e.Message = answerLost
	case desk.PayloadTooLarge, desk.MediaQuota:
		c.fileRefused(&e)
		e.Message = "Nothing was sent: the file could not be stored"
	case desk.MediaNotSendable, desk.MediaUnavailable:
		c.form.values.Del("media")
		text := e.Message
		if why, ok := e.Details.(desk.UnsendableMedia); ok && why.Reason == "size" {
			text = unsendable(why)
		}
		c.form.wrong("title", sentence(text))
		e.Message = "Nothing was sent: the file is not right"
	}
	c.form.Message = sentence(e.Message)
	d, readErr := c.sendPage(c.form.values)
	if readErr != nil {
		return err
	}
	if d.Doubt = doubtOf(&e) != nil; d.Doubt {
		d.Problem = ""
	}
	e.At = ""
	return c.again("send", d.view(), &e)
}

// fileRefused notes why the file of the title was not stored. It returns false for an error that
// is not about the file.
func (c *call) fileRefused(e *desk.Error) bool {
	switch e.Type {
	case desk.InvalidRequest:
		c.form.wrong("title", sentence(e.Message))
	case desk.PayloadTooLarge:
		c.form.wrong("title", "The file is larger than "+bytesOf(c.s.app.Media.MaxSize)+", the most that this server takes.")
	case desk.MediaQuota:
		c.form.wrong("title", "This workspace has no room for more files.")
	default:
		return false
	}
	return true
}

// fieldAt returns the name of the field for what has an address in a template.
func fieldAt(address string) string {
	if address == desk.MediaAddress {
		return "title"
	}
	return "value." + address
}

// afterSend shows the conversation of the sent message.
func (c *call) afterSend(d *sendPage, channel desk.ID) error {
	list, _, err := c.s.app.ContactConversations(c.r.Context(), c.p, d.Contact, desk.StatusOpen, "", pageRows)
	if err != nil {
		return err
	}
	query := "?view=open"
	if d.Close {
		query = sameList(c.form.text("list"))
	}
	for _, v := range list {
		if v.ChannelID == channel {
			return c.see("/inbox/"+v.ID.String()+query, "sent")
		}
	}
	if d.Close { // the conversation was closed
		return c.see(d.Back, "sent")
	}
	return c.see("/contacts/"+d.Contact.String(), "sent")
}
