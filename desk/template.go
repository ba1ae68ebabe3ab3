package desk

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons why a template can't be sent (contract §6). If the provider requires a
// parameter that is not a variable of the title or the message, the template counts as one
// with a variable that is not plain text.
const (
	ReasonNotApproved      = "not_approved"
	ReasonAuthentication   = "authentication"   // a one-time code, which a button must repeat
	ReasonHeaderMedia      = "header_media"     // the title is a picture, a place or of an unknown kind
	ReasonBodyMissing      = "body_missing"     // the template has no message
	ReasonPlaceholders     = "placeholders"     // placeholders can't be filled: misnumbered, misspelt or out of place
	ReasonButtonVariable   = "button_variable"  // a button's link has a placeholder
	ReasonButtonParameter  = "button_parameter" // a button needs a code, a form or products
	ReasonCarousel         = "carousel"
	ReasonLimitedTimeOffer = "limited_time_offer"
	ReasonUnknownComponent = "unknown_component" // a component whose requirements are unknown
)

// TemplateReasons lists all reasons, in the order in which they are given.
var TemplateReasons = []string{
	ReasonNotApproved, ReasonAuthentication, ReasonHeaderMedia, ReasonBodyMissing, ReasonPlaceholders,
	ReasonButtonVariable, ReasonButtonParameter, ReasonCarousel, ReasonLimitedTimeOffer, ReasonUnknownComponent,
}

// A Template is a message that the provider has reviewed, as stored in the channel's
// library (spec, Template). Once built it is shared and never changed.
type Template struct {
	Name, Language, Category string // in the provider's spelling; Category is "" if missing

	Status    string     // of the review, in lower case
	Header    string     // the title with its placeholders; "" if it is missing or not a text
	Body      string     // the message with its placeholders
	Variables []Variable // the variables of the title, then the variables of the message; in each part, a variable counts once
	Named     bool       // parameters are sent by name, not by position
	Reasons   []string   // why it can't be sent: a part of TemplateReasons, in that order; empty: it can be sent
	Needs     []Need     // what a send supplies besides the values of Variables; nil: nothing that it could supply would help
	Look      Look

	Quality  string // the provider's rating by people's reactions: green, yellow or red; "": none
	Rejected string // the provider's word for why the review refused the template; "": none
}

// Sendable tells whether the template is approved and all its variables are plain text
// (spec, Template).
func (t *Template) Sendable() bool { return len(t.Reasons) == 0 }

// Marketing tells whether a person can opt out of the template.
func (t *Template) Marketing() bool { return strings.EqualFold(t.Category, MarketingCategory) }

var (
	templateName     = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)
	templateLanguage = regexp.MustCompile(`^[a-z]{2,3}([_-][A-Z0-9a-z]+)*$`)
)

// The limits of a library of templates. WhatsApp's own limit is some thousand templates.
const (
	MaxTemplates     = 10_000
	MaxLibraryBytes  = 32 << 20  // of the provider's JSON
	MaxTemplateBytes = 256 << 10 // of the JSON of one template
)

// LibraryTooLarge is the error of a library of more than MaxTemplates or MaxLibraryBytes.
func LibraryTooLarge() *Error {
	return Invalidf("the account has too many templates: a channel has at most %d templates, with %d MiB of JSON; delete those that nobody needs", MaxTemplates, MaxLibraryBytes>>20)
}

// ParseTemplate reads a template in the provider's own JSON form:
//
//	{"name", "language", "status", "category", "parameter_format": "POSITIONAL" or "NAMED",
//	 "components": [{"type": "HEADER", "format": "TEXT", "text"}, {"type": "BODY", "text"},
//	                {"type": "FOOTER", "text"}, {"type": "BUTTONS", "buttons": [{"type", "url"}]}]}
//
// Category and format may be missing or null. Letter case of types and formats doesn't
// matter. Other members are ignored, so that the provider can add members. An unknown
// component makes the template not sendable, since a send may require data for it. If a
// component type occurs twice, the first counts, and the second makes the template not
// sendable.
//
// It returns InvalidRequest, with a JSON pointer where possible, for a source without this
// form: it has more than MaxTemplateBytes, or is not a JSON object in UTF-8; its name,
// language or status is missing or malformed; its components are not an array; or a text is
// not a string, or contains U+0000.
func ParseTemplate(source []byte) (*Template, error) {
	if len(source) > MaxTemplateBytes {
		return nil, Invalidf("a template has at most %d KiB of JSON", MaxTemplateBytes>>10)
	}
	top, err := parseObject(source)
	if err != nil {
		return nil, err
	}
	t, format := &Template{}, ""
	for _, m := range []struct {
		name string
		into *string
	}{{"name", &t.Name}, {"language", &t.Language}, {"status", &t.Status}, {"category", &t.Category}, {"parameter_format", &format}} {
		if *m.into, err = textMember(top, "", m.name); err != nil {
			return nil, err
		}
	}
	components, isArray := top["components"].([]any)
	switch {
	case !templateName.MatchString(t.Name):
		return nil, InvalidAt("/name", "a template's name is 1 to 512 lower-case letters, digits or _")
	case !templateLanguage.MatchString(t.Language):
		return nil, InvalidAt("/language", "a template's language is a code such as tr or en_US")
	case t.Status == "":
		return nil, InvalidAt("/status", "a template has a review status, such as APPROVED")
	case !isArray:
		return nil, InvalidAt("/components", "a template's components are an array")
	}
	t.Status = strings.ToLower(t.Status)
	t.Quality, t.Rejected = qualityOf(top["quality_score"]), rejectedFor(top)

	found := map[string]bool{}
	if err := t.readComponents(components, found); err != nil {
		return nil, err
	}
	if !t.readVariables(strings.ToUpper(format)) {
		found[ReasonPlaceholders] = true
	}
	if t.Status != approved {
		found[ReasonNotApproved] = true
	}
	if strings.EqualFold(t.Category, "AUTHENTICATION") {
		found[ReasonAuthentication] = true
	}
	if strings.TrimSpace(t.Body) == "" {
		found[ReasonBodyMissing] = true
	}
	t.Reasons = slices.DeleteFunc(slices.Clone(TemplateReasons), func(reason string) bool { return !found[reason] })
	t.readNeeds(components)
	t.readLook(components)
	return t, nil
}

// approved is the status of a template that the provider has approved, in lower case.
const approved = "approved"

// qualityOf reads a quality score: an object with the score, or the score. It returns "" for
// any other value, since nothing depends on the score.
func qualityOf(v any) string {
	if object, isObject := v.(map[string]any); isObject {
		v = object["score"]
	}
	word, _ := v.(string)
	switch word = strings.ToLower(word); word {
	case "green", "yellow", "red":
		return word
	}
	return ""
}

// rejectedFor reads the reason of a refused review; the provider says NONE if there is none.
func rejectedFor(top map[string]any) string {
	word, _ := top["rejected_reason"].(string)
	if strings.EqualFold(word, "NONE") || checkStorable(word) != nil {
		return ""
	}
	return word
}

func parseObject(source []byte) (map[string]any, error) {
	if !utf8.Valid(source) {
		return nil, Invalidf("the template is not valid UTF-8")
	}
	var top any
	var syntax *json.SyntaxError
	// The only other error is a number too great for a float. The numbers are not read.
	if err := json.Unmarshal(source, &top); errors.As(err, &syntax) {
		return nil, Invalidf("the template is not JSON: %v, at byte %d", syntax, syntax.Offset)
	}
	object, isObject := top.(map[string]any)
	if !isObject {
		return nil, Invalidf("the template is no JSON object")
	}
	return object, nil
}

// textMember reads a text member of the object at pointer; "" if it is absent or null.
func textMember(object map[string]any, pointer, name string) (string, error) {
	text, isText := object[name].(string)
	if !isText && object[name] != nil {
		return "", InvalidAt(pointer+"/"+name, "this is a text in every template, and something else here")
	}
	if err := checkStorable(text); err != nil {
		return "", InvalidAt(pointer+"/"+name, "%v", err)
	}
	return text, nil
}

// typeMember reads a type or format of the provider in upper case; "" if it is not a text.
func typeMember(object map[string]any, name string) string {
	word, _ := object[name].(string)
	return strings.ToUpper(word)
}

// readComponents reads the title and the message, and adds to found the reasons for
// which the components can't be sent.
func (t *Template) readComponents(components []any, found map[string]bool) (err error) {
	seen := map[string]bool{}
	for i, v := range components {
		c, _ := v.(map[string]any) // if v is not an object, the type is ""
		kind, pointer := typeMember(c, "type"), fmt.Sprintf("/components/%d", i)
		if seen[kind] {
			found[ReasonUnknownComponent] = true
			continue
		}
		seen[kind] = true
		switch kind {
		case "HEADER":
			if typeMember(c, "format") == "TEXT" {
				t.Header, err = textMember(c, pointer, "text")
			} else {
				found[ReasonHeaderMedia] = true
			}
		case "BODY":
			t.Body, err = textMember(c, pointer, "text")
		case "FOOTER":
			var footer string
			if footer, err = textMember(c, pointer, "text"); strings.Contains(footer, "{{") {
				found[ReasonPlaceholders] = true
			}
		case "BUTTONS":
			err = readButtons(c, pointer, found)
		case "CAROUSEL":
			found[ReasonCarousel] = true
		case "LIMITED_TIME_OFFER":
			found[ReasonLimitedTimeOffer] = true
		case "CALL_PERMISSION_REQUEST": // needs nothing
		default:
			found[ReasonUnknownComponent] = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readButtons(component map[string]any, pointer string, found map[string]bool) error {
	buttons, isArray := component["buttons"].([]any)
	if !isArray {
		found[ReasonUnknownComponent] = true
	}
	for i, v := range buttons {
		b, _ := v.(map[string]any)
		switch typeMember(b, "type") {
		case "QUICK_REPLY", "PHONE_NUMBER", "VOICE_CALL", "REQUEST_CONTACT_INFO", "CALL_PERMISSION_REQUEST": // need nothing
		case "URL":
			link, err := textMember(b, fmt.Sprintf("%s/buttons/%d", pointer, i), "url")
			if err != nil {
				return err
			}
			if isCodeLink(link) {
				found[ReasonAuthentication] = true
			}
			if strings.Contains(link, "{{") {
				found[ReasonButtonVariable] = true
			}
		case "OTP":
			found[ReasonAuthentication] = true
		case "COPY_CODE", "FLOW", "CATALOG", "MPM", "SPM":
			found[ReasonButtonParameter] = true
		default:
			found[ReasonUnknownComponent] = true
		}
	}
	return nil
}

// isCodeLink tells whether a button's link contains a one-time code. The provider
// returns most OTP buttons in this form.
func isCodeLink(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return (host == "whatsapp.com" || host == "www.whatsapp.com") && strings.HasPrefix(u.Path, "/otp/")
}

// placeholder also matches forms that the provider accepts only in older templates.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]+)\s*\}\}`)

// placeholderKey is the text between the braces.
func placeholderKey(match string) string { return strings.Trim(match, "{} \t\n\f\r") }

// readVariables finds the variables of both parts and whether they are sent by name,
// and tells whether they can be filled. format is the provider's parameter_format in
// upper case; without it, the placeholders decide.
func (t *Template) readVariables(format string) bool {
	header, headerOK := variablesOf(PartHeader, t.Header)
	body, bodyOK := variablesOf(PartBody, t.Body)
	t.Variables = slices.Concat(header, body)
	numbered := slices.ContainsFunc(t.Variables, Variable.isNumber)
	named := slices.ContainsFunc(t.Variables, func(v Variable) bool { return !v.isNumber() })
	if !named { // the provider fills the placeholder n with the n-th parameter, wherever the placeholder is
		slices.SortStableFunc(header, compareNumbers)
		slices.SortStableFunc(body, compareNumbers)
		t.Variables = slices.Concat(header, body)
	}

	fits := headerOK && bodyOK
	switch format {
	case "":
		t.Named = named
		fits = fits && (!named || !numbered)
	case "NAMED":
		t.Named = true
		fits = fits && !numbered
	case "POSITIONAL":
		fits = fits && !named
	default:
		fits = fits && len(t.Variables) == 0
	}
	return fits && (named || isSequence(header) && isSequence(body))
}

// variablesOf lists the variables of a text in order of first appearance. ok is false
// if other double braces remain.
func variablesOf(part Part, text string) (list []Variable, ok bool) {
	seen := map[string]bool{}
	for _, match := range placeholder.FindAllString(text, -1) {
		key := placeholderKey(match)
		if !seen[key] {
			list = append(list, Variable{part, key})
		}
		seen[key] = true
	}
	// The space keeps the braces on both sides of a placeholder apart.
	return list, !strings.Contains(placeholder.ReplaceAllLiteralString(text, " "), "{{")
}

// isSequence tells whether the variables are 1, 2, 3 and so on, without a gap.
func isSequence(list []Variable) bool {
	for i, v := range list {
		if v.Key != strconv.Itoa(i+1) {
			return false
		}
	}
	return true
}

// compareNumbers orders numbers of any length.
func compareNumbers(a, b Variable) int {
	x, y := strings.TrimLeft(a.Key, "0"), strings.TrimLeft(b.Key, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
}

// MaxLink is the greatest number of characters in a filled link of a button.
const MaxLink = 2000

// MediaAddress is the address of the file in a template's title.
const MediaAddress = "header.media"

// linkPrefix begins the address of a button's link. The button's place follows it.
const linkPrefix = "button."

// A Need is what a send supplies for a template besides the values of its variables: the
// file in the title, or the end of a button's link (contract-broadcast §1).
type Need struct {
	Address string
	Kind    MessageKind // of the file; "" for a link
	Title   string      // of the link: the button's text
	URL     string      // of the link, with its placeholder; "" for a file
	Button  int         // of the link: the button's place among all buttons, from 0
}

// IsFile tells whether the need is a file. Otherwise it is a link.
func (n Need) IsFile() bool { return n.Kind != "" }

// Begin is the link without its placeholder.
func (n Need) Begin() string { return n.URL[:strings.LastIndex(n.URL, "{{")] }

// headerTypes has the types of files that a template's title can have, by its kind.
var headerTypes = map[MessageKind][]string{KindImage: {typeJPEG, typePNG}, KindVideo: {typeMP4, type3GPP}, KindDocument: {typePDF}}

// readNeeds finds the needs of a template: the file first, then the links by button. Needs
// stays nil if the template has a reason against which no value helps.
func (t *Template) readNeeds(components []any) {
	for _, reason := range t.Reasons {
		if !slices.Contains([]string{ReasonNotApproved, ReasonHeaderMedia, ReasonButtonVariable}, reason) {
			return
		}
	}
	var files, links []Need
	for _, v := range components {
		c, _ := v.(map[string]any)
		switch typeMember(c, "type") {
		case "HEADER":
			kind := MessageKind(strings.ToLower(typeMember(c, "format")))
			switch {
			case headerTypes[kind] != nil:
				files = append(files, Need{Address: MediaAddress, Kind: kind})
			case kind != KindText:
				return
			}
		case "BUTTONS":
			buttons, _ := c["buttons"].([]any)
			for i, v := range buttons {
				b, _ := v.(map[string]any)
				if link, _ := b["url"].(string); typeMember(b, "type") != "URL" || !strings.Contains(link, "{{") {
					continue
				}
				need := linkNeed(i, b)
				if need == nil {
					return
				}
				links = append(links, *need)
			}
		}
	}
	t.Needs = []Need{} // it is not nil, even if nothing is needed
	t.Needs = append(append(t.Needs, files...), links...)
}

// linkNeed returns the need of the button at a place, or nil if the button has no link with
// one placeholder, at its end.
func linkNeed(place int, button map[string]any) *Need {
	link, _ := button["url"].(string)
	at := placeholder.FindStringIndex(link)
	if typeMember(button, "type") != "URL" || at == nil || at[1] != len(link) || strings.Count(link, "{{") != 1 {
		return nil
	}
	title, _ := button["text"].(string)
	return &Need{Address: linkPrefix + strconv.Itoa(place), Title: storable(title), URL: link, Button: place}
}

// check returns the reason why a value can't be used for the need; "" if it can. Whether a
// file has the id is another question.
func (n Need) check(value string, given bool) string {
	switch {
	case n.IsFile() && Blank(value):
		return fmt.Sprintf("the file is missing: send the media_id of the %s that the title shows", n.Kind)
	case n.IsFile():
		return ""
	case !given:
		return "the value is missing: send what replaces the placeholder in the button's link"
	case Blank(value):
		return "the value is empty: send what replaces the placeholder in the button's link"
	case !utf8.ValidString(value):
		return checkStorable(value).Error()
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "a link has no white space and no control characters: take them out, or encode them"
	}
	if over := utf8.RuneCountInString(n.Begin()) + utf8.RuneCountInString(value) - MaxLink; over > 0 {
		return fmt.Sprintf("the filled link has %d characters more than the %d that it may have: shorten this value", over, MaxLink)
	}
	return ""
}

// A Library is one version of a channel's templates. It is shared between readers
// and never changed.
type Library struct {
	Version   int64
	Templates []*Template // by name, then language, by bytes; each pair once
}

// NewLibrary returns a library of templates. They may be in any order; the list does
// not change.
func NewLibrary(version int64, templates []*Template) *Library {
	return &Library{version, slices.SortedStableFunc(slices.Values(templates), compareTemplates)}
}

func compareTemplates(a, b *Template) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Language, b.Language))
}

// Find returns the template with exactly this name and language, or nil.
func (l *Library) Find(name, language string) *Template {
	if i, found := l.search(name, language); found {
		return l.Templates[i]
	}
	return nil
}

// Languages lists the languages of the templates with this name, by bytes.
func (l *Library) Languages(name string) (languages []string) {
	for i, _ := l.search(name, ""); i < len(l.Templates) && l.Templates[i].Name == name; i++ {
		languages = append(languages, l.Templates[i].Language)
	}
	return languages
}

func (l *Library) search(name, language string) (int, bool) {
	return slices.BinarySearchFunc(l.Templates, &Template{Name: name, Language: language}, compareTemplates)
}

// MarketingCategory is the category of templates from which a person can opt out.
const MarketingCategory = "MARKETING"

// A Look has the parts that a template shows besides its title and message, and samples for
// its variables and links. Only the provider's reviewers and the console need it, not a
// send.
type Look struct {
	Footer  string
	Buttons []LookButton
	Samples map[string]string // by address; not every variable or link has one
}

// A LookButton is a button as people see it.
type LookButton struct {
	Text   string
	Target string // the link that it opens, perhaps with a placeholder, or the number that it calls; "": neither
	Need   string // the address of what fills the link's placeholder; "": it has none
}

// readLook reads the look from the components, and skips what it does not understand.
func (t *Template) readLook(components []any) {
	t.Look.Samples = map[string]string{}
	for _, v := range components {
		c, _ := v.(map[string]any)
		text, _ := c["text"].(string)
		example, _ := c["example"].(map[string]any)
		switch typeMember(c, "type") {
		case "HEADER":
			titles, _ := example["header_text"].([]any)
			t.readSamples(PartHeader, titles, example["header_text_named_params"])
		case "BODY":
			rows, _ := example["body_text"].([]any)
			if len(rows) > 0 {
				if first, nested := rows[0].([]any); nested {
					rows = first
				}
			}
			t.readSamples(PartBody, rows, example["body_text_named_params"])
		case "FOOTER":
			if t.Look.Footer == "" {
				t.Look.Footer = storable(text)
			}
		case "BUTTONS":
			buttons, _ := c["buttons"].([]any)
			for i, v := range buttons {
				b, _ := v.(map[string]any)
				t.readButton(i, b)
			}
		}
	}
}

// readButton reads the look of the button at a place.
func (t *Template) readButton(place int, b map[string]any) {
	label, _ := b["text"].(string)
	if storable(label) == "" {
		return
	}
	button := LookButton{Text: label}
	target, _ := b["url"].(string)
	if typeMember(b, "type") == "PHONE_NUMBER" {
		target, _ = b["phone_number"].(string)
	}
	button.Target = storable(target)
	if need := linkNeed(place, b); t.Needs != nil && need != nil {
		button.Need = need.Address
		if samples, _ := b["example"].([]any); len(samples) > 0 {
			sample, _ := samples[0].(string) // the whole link, or only its end
			if sample = strings.TrimPrefix(sample, need.Begin()); need.check(sample, true) == "" {
				t.Look.Samples[need.Address] = sample
			}
		}
	}
	t.Look.Buttons = append(t.Look.Buttons, button)
}

// readSamples reads the samples of a part. values has the samples of the variables 1, 2, 3
// and so on; named has those of variables with names.
func (t *Template) readSamples(part Part, values []any, named any) {
	samples := map[string]string{}
	params, _ := named.([]any)
	for _, v := range params {
		p, _ := v.(map[string]any)
		name, _ := p["param_name"].(string)
		samples[name], _ = p["example"].(string)
	}
	n := 0
	for _, v := range t.Variables {
		if v.Part != part {
			continue
		}
		sample := samples[v.Key]
		if sample == "" && n < len(values) {
			sample, _ = values[n].(string)
		}
		if n++; storable(sample) != "" {
			t.Look.Samples[v.Address()] = sample
		}
	}
}

// storable returns the text if it can be stored, otherwise "".
func storable(text string) string {
	if checkStorable(text) != nil {
		return ""
	}
	return text
}

// A Part is a part of a template that a send fills.
type Part string

// The parts that hold variables, the title and the message, and a button with a link.
const (
	PartHeader Part = "header"
	PartBody   Part = "body"
	PartButton Part = "button"
)

// A Variable is a placeholder in a template that each send fills. If it occurs twice in a
// part, it is one variable. The same key in the title and in the message stands for two
// variables.
type Variable struct {
	Part Part
	Key  string // in the template's spelling, without the braces
}

// Address is the name by which callers fill the variable (spec, Variable addresses).
func (v Variable) Address() string {
	if v.Part == PartHeader {
		return "header." + v.Key
	}
	return v.Key
}

func (v Variable) isNumber() bool { return strings.Trim(v.Key, "0123456789") == "" }
