package whatsapptest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A message is a posted message of correct form.
type message struct {
	read       string // the message that it marks as read
	to         string
	recipient  string
	kind       string
	text       string // the body or the caption
	buttons    []Button
	media      string // the id of its file
	filename   string
	quoted     string
	template   string
	language   string
	components []component
	callback   string
}

// A component fills a part of a template.
type component struct {
	kind    string // header, body, button, carousel, limited_time_offer
	subType string // of a button
	index   int    // of a button
	params  []Param
}

// An object is a JSON object whose keys are read one by one.
type object struct {
	where string // its name in refusals
	keys  map[string]any
}

// parse reads a message. It refuses keys and types that Meta does not know.
func parse(raw []byte) (*message, *Failure) {
	var keys map[string]any
	if err := numbers(raw, &keys); err != nil || keys == nil {
		return nil, refusal(100, "The body is not a JSON object")
	}
	o := object{"", keys}
	if product, fail := o.text("messaging_product", true); fail != nil {
		return nil, fail
	} else if product != "whatsapp" {
		return nil, refusal(100, "Param messaging_product must be one of {WHATSAPP} - got %q", product)
	}
	if _, ok := keys["status"]; ok {
		return o.markRead()
	}
	return o.message()
}

func (o object) markRead() (*message, *Failure) {
	if fail := o.only("messaging_product", "status", "message_id"); fail != nil {
		return nil, fail
	}
	status, fail := o.text("status", true)
	if fail != nil {
		return nil, fail
	}
	if status != "read" {
		return nil, refusal(100, "Param status must be one of {READ} - got %q", status)
	}
	id, fail := o.text("message_id", true)
	if fail == nil && !strings.HasPrefix(id, "wamid.") {
		fail = refusal(131009, "Param message_id is not valid")
	}
	return &message{read: id}, fail
}

func (o object) message() (*message, *Failure) {
	var m message
	var fail *Failure
	if m.kind, fail = o.text("type", true); fail != nil {
		return nil, fail
	}
	if !slices.Contains(messageTypes, m.kind) {
		return nil, refusal(100, "the simulator takes only %s, not type %q", strings.Join(messageTypes, ", "), m.kind)
	}
	if fail := o.only("messaging_product", "recipient_type", "to", "recipient", "type", m.kind, "biz_opaque_callback_data", "context"); fail != nil {
		return nil, fail
	}
	part, fail := o.object(m.kind, true)
	if fail != nil {
		return nil, fail
	}
	switch m.kind {
	case "text":
		fail = part.textMessage(&m)
	case "template":
		fail = part.templateMessage(&m)
	case "interactive":
		fail = part.interactiveMessage(&m)
	default:
		fail = part.mediaMessage(&m)
	}
	if fail != nil {
		return nil, fail
	}
	return &m, o.envelope(&m)
}

var messageTypes = []string{"template", "text", "interactive", "image", "video", "audio", "document", "sticker"}

// envelope reads the fields that all messages have.
func (o object) envelope(m *message) (fail *Failure) {
	whom, fail := o.text("recipient_type", false)
	if fail != nil {
		return fail
	}
	if !slices.Contains([]string{"", "individual", "group"}, whom) {
		return refusal(100, "Param recipient_type must be one of {INDIVIDUAL, GROUP} - got %q", whom)
	}
	if m.to, fail = o.text("to", false); fail != nil {
		return fail
	}
	if m.recipient, fail = o.text("recipient", false); fail != nil {
		return fail
	}
	if m.to != "" {
		m.recipient = ""
	} else if m.recipient == "" {
		return refusal(100, "The parameter to is required.")
	}
	if m.callback, fail = o.text("biz_opaque_callback_data", false); fail != nil {
		return fail
	}
	if utf8.RuneCountInString(m.callback) > 512 {
		return refusal(100, "Param biz_opaque_callback_data must be at most 512 characters long.")
	}
	if _, ok := o.keys["context"]; !ok {
		return nil
	}
	quoted, fail := o.object("context", true)
	if fail == nil {
		fail = quoted.only("message_id")
	}
	if fail == nil {
		m.quoted, fail = quoted.text("message_id", true)
	}
	return fail
}

func (o object) mediaMessage(m *message) (fail *Failure) {
	known := map[string][]string{"image": {"caption"}, "video": {"caption"}, "document": {"caption", "filename"}}[m.kind]
	if fail = o.only(append(known, "id", "link")...); fail != nil {
		return fail
	}
	link, fail := o.text("link", false)
	if fail != nil {
		return fail
	}
	if m.media, fail = o.text("id", false); fail != nil {
		return fail
	}
	if (m.media == "") == (link == "") {
		return refusal(100, "Param %s must have either 'id' or 'link'", o.where)
	}
	if m.filename, fail = o.text("filename", false); fail != nil {
		return fail
	}
	if m.text, fail = o.text("caption", false); fail != nil {
		return fail
	}
	if utf8.RuneCountInString(m.text) > 1024 {
		return refusal(100, "Param %s['caption'] must be at most 1024 characters long.", o.where)
	}
	return nil
}

// interactiveMessage reads a question with reply buttons.
func (o object) interactiveMessage(m *message) (fail *Failure) {
	if fail = o.only("type", "header", "body", "footer", "action"); fail != nil {
		return fail
	}
	kind, fail := o.text("type", true)
	if fail != nil {
		return fail
	}
	if kind != "button" {
		return refusal(100, "the simulator takes only interactive messages of type button, not %q", kind)
	}
	body, fail := o.object("body", true)
	if fail == nil {
		fail = body.only("text")
	}
	if fail != nil {
		return fail
	}
	if m.text, fail = body.text("text", true); fail != nil {
		return fail
	}
	if utf8.RuneCountInString(m.text) > 1024 {
		return refusal(131009, "Body text length invalid. Min length: 1, Max length: 1024")
	}
	action, fail := o.object("action", true)
	if fail == nil {
		fail = action.only("buttons")
	}
	if fail != nil {
		return fail
	}
	list, fail := action.list("buttons")
	if fail != nil {
		return fail
	}
	if n := len(list); n < 1 || n > 3 {
		return refusal(131009, "Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3")
	}
	for _, item := range list {
		b, fail := item.button()
		if fail != nil {
			return fail
		}
		if slices.ContainsFunc(m.buttons, func(c Button) bool { return c.ID == b.ID || c.Title == b.Title }) {
			return refusal(131009, "Duplicated button id or title is not allowed")
		}
		m.buttons = append(m.buttons, b)
	}
	return nil
}

func (o object) button() (b Button, fail *Failure) {
	if fail = o.only("type", "reply"); fail != nil {
		return b, fail
	}
	kind, fail := o.text("type", true)
	if fail == nil && kind != "reply" {
		fail = refusal(100, "%s: type must be one of {REPLY} - got %q", o.where, kind)
	}
	if fail != nil {
		return b, fail
	}
	reply, fail := o.object("reply", true)
	if fail == nil {
		fail = reply.only("id", "title")
	}
	if fail != nil {
		return b, fail
	}
	if b.ID, fail = reply.text("id", true); fail != nil {
		return b, fail
	}
	if b.Title, fail = reply.text("title", true); fail != nil {
		return b, fail
	}
	if utf8.RuneCountInString(b.ID) > 256 || b.ID != strings.TrimSpace(b.ID) {
		return b, refusal(131009, "Button id length invalid. Min length: 1, Max length: 256, no spaces around it")
	}
	if utf8.RuneCountInString(b.Title) > 20 || strings.ContainsAny(b.Title, "\n\r") {
		return b, refusal(131009, "Button title length invalid. Min length: 1, Max length: 20, on one line")
	}
	return b, nil
}

func (o object) textMessage(m *message) (fail *Failure) {
	if fail = o.only("body", "preview_url"); fail != nil {
		return fail
	}
	if preview, ok := o.keys["preview_url"]; ok {
		if _, isBool := preview.(bool); !isBool {
			return o.wrong("preview_url", "a boolean", preview)
		}
	}
	if m.text, fail = o.text("body", true); fail != nil {
		return fail
	}
	if n := utf8.RuneCountInString(m.text); n < 1 || n > 4096 {
		return refusal(100, "Param text['body'] must be 1 to 4096 characters long.")
	}
	return nil
}

func (o object) templateMessage(m *message) (fail *Failure) {
	if fail = o.only("name", "language", "components"); fail != nil {
		return fail
	}
	if m.template, fail = o.text("name", true); fail != nil {
		return fail
	}
	language, fail := o.object("language", true)
	if fail != nil {
		return fail
	}
	if fail = language.only("code", "policy"); fail != nil {
		return fail
	}
	if m.language, fail = language.text("code", true); fail != nil {
		return fail
	}
	if policy, fail := language.text("policy", false); fail != nil {
		return fail
	} else if policy != "" && policy != "deterministic" {
		return refusal(100, "Param template['language']['policy'] must be one of {DETERMINISTIC} - got %q", policy)
	}
	list, fail := o.list("components")
	if fail != nil {
		return fail
	}
	for _, item := range list {
		c, fail := item.component()
		if fail != nil {
			return fail
		}
		same := func(d component) bool { return d.kind == c.kind && d.index == c.index }
		if slices.ContainsFunc(m.components, same) {
			return refusal(100, "%s: there is another component for the same part", item.where)
		}
		m.components = append(m.components, c)
	}
	return nil
}

func (o object) component() (c component, fail *Failure) {
	kind, fail := o.text("type", true)
	if fail != nil {
		return c, fail
	}
	c.kind = strings.ToLower(kind)
	switch c.kind {
	case "header", "body":
		fail = o.only("type", "parameters")
	case "button":
		if fail = o.only("type", "sub_type", "index", "parameters"); fail != nil {
			return c, fail
		}
		if c.subType, fail = o.text("sub_type", true); fail != nil {
			return c, fail
		}
		c.subType = strings.ToLower(c.subType)
		c.index, fail = o.index()
	case "limited_time_offer":
		fail = o.only("type", "parameters")
	case "carousel": // the cards are not checked
		return c, o.only("type", "cards")
	default:
		fail = refusal(100, "%s: type must be one of {HEADER, BODY, BUTTON, CAROUSEL, LIMITED_TIME_OFFER} - got %q", o.where, kind)
	}
	if fail != nil {
		return c, fail
	}
	params, fail := o.list("parameters")
	if fail != nil {
		return c, fail
	}
	if len(params) == 0 {
		return c, refusal(100, "%s: parameters is missing or empty; leave the component out", o.where)
	}
	for _, item := range params {
		p, fail := item.param(c.kind)
		if fail != nil {
			return c, fail
		}
		p.Button = c.index
		c.params = append(c.params, p)
	}
	return c, nil
}

// index returns the index of a button, which is a number or a string with a number.
func (o object) index() (int, *Failure) {
	text := fmt.Sprint(o.keys["index"])
	n, err := strconv.Atoi(text)
	switch o.keys["index"].(type) {
	case string, json.Number:
		if err == nil && n >= 0 && n <= 9 {
			return n, nil
		}
	}
	return 0, refusal(100, "%s: index must be \"0\" to \"9\"", o.where)
}

// paramTypes are the types of parameters. A parameter's value is under the key of its
// type.
var paramTypes = []string{
	"text", "currency", "date_time", "image", "video", "gif", "document", "location", "product", "payload", "coupon_code",
	"action", "limited_time_offer",
}

func (o object) param(component string) (p Param, fail *Failure) {
	p.Component = component
	if p.Type, fail = o.text("type", true); fail != nil {
		return p, fail
	}
	if p.Type = strings.ToLower(p.Type); !slices.Contains(paramTypes, p.Type) {
		return p, refusal(100, "%s: type must be one of {%s} - got %q", o.where, strings.ToUpper(strings.Join(paramTypes, ", ")), p.Type)
	}
	known := []string{"type", p.Type}
	if p.Type == "text" && (component == "header" || component == "body") {
		known = append(known, "parameter_name")
	}
	if fail = o.only(known...); fail != nil {
		return p, fail
	}
	if _, p.named = o.keys["parameter_name"]; p.named {
		if p.Name, fail = o.text("parameter_name", false); fail != nil {
			return p, fail
		}
	}
	switch p.Type {
	case "text", "payload", "coupon_code":
		p.Text, fail = o.text(p.Type, false)
	case "image", "video", "document":
		fail = o.fileParam(&p)
	default:
		_, fail = o.object(p.Type, true)
	}
	return p, fail
}

// fileParam reads a parameter with a file, which has an id or a link. It has no caption.
func (o object) fileParam(p *Param) *Failure {
	file, fail := o.object(p.Type, true)
	if fail != nil {
		return fail
	}
	known := []string{"id", "link"}
	if p.Type == "document" {
		known = append(known, "filename")
	}
	if fail = file.only(known...); fail != nil {
		return fail
	}
	link, fail := file.text("link", false)
	if fail != nil {
		return fail
	}
	if p.Media, fail = file.text("id", false); fail != nil {
		return fail
	}
	if (p.Media == "") == (link == "") {
		return refusal(100, "Param %s must have either 'id' or 'link'", file.where)
	}
	p.Filename, fail = file.text("filename", false)
	return fail
}

// only returns a refusal if the object has any key except these.
func (o object) only(known ...string) *Failure {
	var unknown []string
	for key := range o.keys {
		if !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return refusal(100, "Unexpected key %q on param %s", unknown[0], jsonText(o.where))
}

// text returns the value of a key, which must be a string.
func (o object) text(key string, required bool) (string, *Failure) {
	value, ok := o.keys[key]
	if !ok && !required {
		return "", nil
	}
	text, isText := value.(string)
	switch {
	case !ok || isText && required && text == "":
		return "", refusal(100, "The parameter %s is required.", o.path(key))
	case !isText:
		return "", o.wrong(key, "a string", value)
	}
	return text, nil
}

// object returns the value of a key, which must be a JSON object.
func (o object) object(key string, required bool) (object, *Failure) {
	value, ok := o.keys[key]
	if !ok && required {
		return object{}, refusal(100, "The parameter %s is required.", o.path(key))
	}
	keys, isObject := value.(map[string]any)
	if !isObject {
		return object{}, o.wrong(key, "a JSON object", value)
	}
	return object{o.path(key), keys}, nil
}

// list returns the value of a key, which must be an array of objects. If the key is
// missing, the list is empty.
func (o object) list(key string) ([]object, *Failure) {
	value, ok := o.keys[key]
	if !ok {
		return nil, nil
	}
	items, isList := value.([]any)
	if !isList {
		return nil, o.wrong(key, "an array", value)
	}
	list := make([]object, len(items))
	for i, item := range items {
		keys, isObject := item.(map[string]any)
		if !isObject {
			return nil, o.wrong(key, "an array of JSON objects", item)
		}
		list[i] = object{fmt.Sprintf("%s[%d]", o.path(key), i), keys}
	}
	return list, nil
}

func (o object) wrong(key, want string, got any) *Failure {
	return refusal(100, "Param %s must be %s, is %s", o.path(key), want, jsonText(got))
}

func (o object) path(key string) string {
	if o.where == "" {
		return key
	}
	return o.where + "['" + key + "']"
}

var (
	notDigit   = regexp.MustCompile(`\D`)
	phoneShape = regexp.MustCompile(`^\+?[0-9 ()-]+$`)
	userShape  = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)
)

func digits(number string) string { return notDigit.ReplaceAllString(number, "") }
