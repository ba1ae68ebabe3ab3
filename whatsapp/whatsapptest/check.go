package whatsapptest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// check returns the failure of a message that may not be sent, or nil. The order of its
// checks is part of the package's contract. The caller holds s.mu.
func (s *Simulator) check(m *message) *Failure {
	var template Template
	if i := s.find(m.template, m.language); i >= 0 {
		template = s.templates[i]
	}
	if fail := s.checkRecipient(m, template); fail != nil {
		return fail
	}
	if fail := s.checkLimits(m); fail != nil {
		return fail
	}
	if m.kind != "template" {
		if s.set.Window == WindowSync && !s.open(m) {
			return refusal(131047, "")
		}
		return s.checkMedia(m)
	}
	if fail := checkStatus(m, template); fail != nil {
		return fail
	}
	if fail := checkParams(m, template); fail != nil {
		return fail
	}
	return s.checkHeader(m)
}

func (s *Simulator) checkRecipient(m *message, t Template) *Failure {
	if m.recipient != "" {
		if !userShape.MatchString(m.recipient) {
			return refusal(131009, "Param recipient is not a valid user id")
		}
		if t.text("category") == "AUTHENTICATION" {
			return refusal(131062, "authentication templates need a phone number")
		}
		return nil
	}
	n := len(digits(m.to))
	switch {
	case !phoneShape.MatchString(m.to) || n < 7 || n > 15:
		return refusal(131009, "Param to is not a valid phone number")
	case digits(m.to) == digits(s.c.DisplayNumber):
		return refusal(131021, "")
	}
	listed := func(number string) bool { return digits(number) == digits(m.to) }
	if len(s.set.Recipients) > 0 && !slices.ContainsFunc(s.set.Recipients, listed) {
		return refusal(131030, "")
	}
	return nil
}

// A bucket has a place for each message that may be sent at once. A used place becomes
// free again after some time.
type bucket struct {
	left float64
	at   time.Time
}

// full frees the places whose time has passed, and tells whether the bucket then has a
// place.
func (b *bucket) full(now time.Time, size, perSecond float64) bool {
	if b.at.IsZero() {
		b.left = size
	} else if gone := now.Sub(b.at).Seconds(); gone > 0 {
		b.left = min(size, b.left+gone*perSecond)
	}
	b.at = now
	return b.left >= 1-1e-9 // tolerates rounding errors: six seconds at 1/6 per second are one place
}

func (s *Simulator) checkLimits(m *message) *Failure {
	if n := float64(s.set.PerSecond); n > 0 && !s.throughput.full(s.c.Now(), n, n) {
		return refusal(130429, "")
	}
	if s.set.PairLimit {
		return s.checkPair(m)
	}
	return nil
}

func (s *Simulator) checkPair(m *message) *Failure {
	if !s.pair(m).full(s.c.Now(), float64(s.set.PairBurst), 1.0/6) {
		return refusal(131056, "")
	}
	return nil
}

// pair returns the bucket of a person.
func (s *Simulator) pair(m *message) *bucket {
	if s.pairs[m.person()] == nil {
		s.pairs[m.person()] = &bucket{}
	}
	return s.pairs[m.person()]
}

// person returns the recipient: digits or a user id.
func (m *message) person() string {
	if m.recipient != "" {
		return m.recipient
	}
	return digits(m.to)
}

// open tells whether the customer service window is open: the person has written within
// the last day.
func (s *Simulator) open(m *message) bool {
	last, ok := s.lastInbound[m.person()]
	return ok && s.c.Now().Sub(last) < 24*time.Hour
}

func checkStatus(m *message, t Template) *Failure {
	switch t.text("status") {
	case "APPROVED":
		return nil
	case "PAUSED":
		return refusal(132015, "template (%s) is paused", m.template)
	case "DISABLED":
		return refusal(132016, "template (%s) is disabled", m.template)
	}
	return refusal(132001, "template name (%s) does not exist in %s", m.template, m.language)
}

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]+)\s*\}\}`)

// A slot is a part of a template that may have variables.
type slot struct {
	kind    string // header, body, button
	index   int    // of a button
	format  string // of a header: TEXT, IMAGE, …; of a button: its type
	text    string
	names   []string // the placeholders, in the order of positional parameters
	longest int      // the greatest number of characters after filling
	required,
	given bool
	params  []Param
	subType string
}

// A filling is a template's slots with the parameters of a message.
type filling struct {
	named bool
	slots []slot
	stray []component // components for parts that the template lacks
}

func fill(m *message, t Template) filling {
	f := filling{slots: slots(t)}
	f.named = f.isNamed(t.text("parameter_format"))
	for i := range f.slots {
		if !f.named {
			slices.SortFunc(f.slots[i].names, byNumber)
		}
	}
	for _, c := range m.components {
		i := slices.IndexFunc(f.slots, func(s slot) bool { return s.kind == c.kind && s.index == c.index })
		if i < 0 {
			f.stray = append(f.stray, c)
			continue
		}
		f.slots[i].given, f.slots[i].params, f.slots[i].subType = true, c.params, c.subType
	}
	return f
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}

func (f filling) isNamed(format string) bool {
	if format != "" {
		return strings.EqualFold(format, "NAMED")
	}
	for _, s := range f.slots {
		for _, name := range s.names {
			if s.kind != "button" && digits(name) != name {
				return true
			}
		}
	}
	return false
}

// slots returns the parts of a template.
func slots(t Template) (list []slot) {
	for _, c := range t.components() {
		s := slot{kind: strings.ToLower(c.text("type")), text: c.text("text"), longest: 1024}
		switch s.kind {
		case "header":
			s.format, s.longest = strings.ToUpper(c.text("format")), 60
			s.required = s.format != "TEXT"
		case "body":
		case "carousel":
			s.required = true
		case "limited_time_offer":
			offer, _ := c["limited_time_offer"].(map[string]any)
			s.required, _ = offer["has_expiration"].(bool)
		case "buttons":
			list = append(list, buttons(c)...)
			continue
		default:
			continue
		}
		s.names = placeholders(s.text)
		list = append(list, s)
	}
	return list
}

func buttons(c Template) (list []slot) {
	for i, b := range c.objects("buttons") {
		s := slot{kind: "button", index: i, format: b.text("type"), text: b.text("url"), longest: 2000}
		s.names = placeholders(s.text)
		switch s.format {
		case "URL":
			s.required = len(s.names) > 0
		case "OTP", "COPY_CODE", "FLOW", "CATALOG", "MPM", "SPM":
			s.required = true
		}
		list = append(list, s)
	}
	return list
}

// placeholders returns the placeholders of a text, without repetitions.
func placeholders(text string) (names []string) {
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// checkParams compares the parameters with the template.
func checkParams(m *message, t Template) *Failure {
	f := fill(m, t)
	for _, check := range []func() *Failure{f.checkNames, f.checkCount, f.checkText, f.checkMissing, f.checkFormat, f.checkLength} {
		if fail := check(); fail != nil {
			return fail
		}
	}
	return nil
}

// checkNames requires a name for each parameter of a NAMED template. Parameters of other
// templates must not have names.
func (f filling) checkNames() *Failure {
	for _, s := range f.slots {
		if s.kind == "button" || s.kind == "header" && s.format != "TEXT" {
			continue
		}
		seen := map[string]bool{}
		for _, p := range s.params {
			switch {
			case !f.named && p.named:
				return refusal(100, "%s: Parameter name %q on a positional template", s.kind, p.Name)
			case !f.named:
			case p.Name == "":
				return refusal(100, "Parameter name is missing or empty")
			case !slices.Contains(s.names, p.Name):
				return refusal(100, "%s: Parameter name %q does not exist in the template", s.kind, p.Name)
			case seen[p.Name]:
				return refusal(100, "%s: Parameter name %q is there twice", s.kind, p.Name)
			}
			seen[p.Name] = true
		}
	}
	return nil
}

// checkCount requires as many parameters as there are placeholders.
func (f filling) checkCount() *Failure {
	const mismatch = "%s: number of localizable_params (%d) does not match the expected number of params (%d)"
	for _, s := range f.slots {
		counted := s.kind == "body" || s.kind == "header" && s.format == "TEXT"
		if counted && len(s.params) != len(s.names) {
			return refusal(132000, mismatch, s.kind, len(s.params), len(s.names))
		}
	}
	if len(f.stray) == 0 {
		return nil
	}
	c := f.stray[0]
	if c.kind == "button" {
		return refusal(132018, "buttons: the template has no button at index %d", c.index)
	}
	return refusal(132000, mismatch, c.kind, len(c.params), 0)
}

// checkText refuses text that can't be part of a line.
func (f filling) checkText() *Failure {
	for _, s := range f.slots {
		for _, p := range s.params {
			if strings.ContainsAny(p.Text, "\n\r\t\u0085\u2028\u2029") || strings.Contains(p.Text, "     ") {
				return refusal(132018, "Param text cannot have new-line/tab characters or more than 4 consecutive spaces")
			}
		}
		if s.kind == "button" && s.given && !s.required && s.format != "QUICK_REPLY" {
			return refusal(132018, "buttons: Button at index %d of type %s does not require parameters", s.index, title(s.format))
		}
	}
	return nil
}

// checkMissing refuses empty text and missing parameters.
func (f filling) checkMissing() *Failure {
	for _, s := range f.slots {
		for _, p := range s.params {
			if slices.Contains([]string{"text", "payload", "coupon_code"}, p.Type) && strings.TrimFunc(p.Text, unicode.IsSpace) == "" {
				return refusal(131008, "%s: missing %s value", s.kind, p.Type)
			}
		}
		if !s.required || s.given || s.kind == "header" {
			continue
		}
		if s.kind == "button" {
			return refusal(131008, "buttons: Button at index %d of type %s requires a parameter", s.index, title(s.format))
		}
		return refusal(131008, "%s: the component requires parameters", s.kind)
	}
	return nil
}

// subTypes are the types of buttons with variables, and the types of their parameters.
var subTypes = map[string][2]string{
	"URL": {"url", "text"}, "OTP": {"url", "text"}, "QUICK_REPLY": {"quick_reply", "payload"}, "COPY_CODE": {"copy_code", "coupon_code"},
	"FLOW": {"flow", "action"}, "CATALOG": {"catalog", "action"}, "MPM": {"mpm", "action"}, "SPM": {"spm", "action"},
}

// checkFormat requires the template's type for each parameter.
func (f filling) checkFormat() *Failure {
	for _, s := range f.slots {
		want, where := []string{"text", "currency", "date_time"}, s.kind
		switch {
		case s.kind == "header" && s.format == "TEXT":
			want = []string{"text"}
		case s.kind == "header" && s.format == "GIF":
			want = []string{"video", "gif"}
		case s.kind == "header":
			want = []string{strings.ToLower(s.format)}
		case s.kind == "button" && s.given:
			where = "buttons"
			if s.subType != subTypes[s.format][0] || len(s.params) != 1 {
				return refusal(132012, "buttons: Button at index %d is of type %s and takes one parameter", s.index, title(s.format))
			}
			want = []string{subTypes[s.format][1]}
		case s.kind == "limited_time_offer":
			want = []string{"limited_time_offer"}
		}
		if s.kind == "header" && s.required && len(s.params) != 1 {
			return refusal(132012, "header: Format mismatch, expected %s, received UNKNOWN", s.format)
		}
		for _, p := range s.params {
			if !slices.Contains(want, p.Type) {
				return refusal(132012, "%s: Format mismatch, expected %s, received %s", where, strings.ToUpper(want[0]), strings.ToUpper(p.Type))
			}
		}
	}
	return nil
}

// checkLength checks the length of the filled text, and of filled links.
func (f filling) checkLength() *Failure {
	for _, s := range f.slots {
		switch {
		case s.kind == "body", s.kind == "header" && s.format == "TEXT", s.kind == "button" && s.format == "URL":
		default:
			continue
		}
		values := map[string]string{}
		for i, p := range s.params {
			name := p.Name
			if !f.named || s.kind == "button" {
				name = s.names[i]
			}
			values[name] = p.Text
		}
		if n := utf8.RuneCountInString(filled(s.text, values)); n > s.longest {
			return refusal(132005, "%s: the text has %d characters, at most %d", s.kind, n, s.longest)
		}
	}
	return nil
}

// filled returns a text in which the values replace the placeholders. Placeholders inside
// the values are not replaced.
func filled(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return values[placeholder.FindStringSubmatch(found)[1]]
	})
}

// title returns a button's type as Meta's details write it: Url, Copy_code.
func title(format string) string {
	if format == "" {
		return ""
	}
	return format[:1] + strings.ToLower(format[1:])
}

// waID returns the digits that WhatsApp uses for a number. The caller holds s.mu.
func (s *Simulator) waID(to string) string {
	d := digits(to)
	if !s.set.CountryRewrites {
		return d
	}
	switch {
	case len(d) == 13 && strings.HasPrefix(d, "55") && d[4] == '9':
		return d[:4] + d[5:]
	case len(d) == 12 && strings.HasPrefix(d, "52"):
		return "521" + d[2:]
	}
	return d
}

// countries gives the country in user ids, by calling code.
var countries = map[string]string{
	"1": "US", "7": "RU", "33": "FR", "34": "ES", "39": "IT", "44": "GB", "49": "DE", "52": "MX", "54": "AR", "55": "BR", "90": "TR", "91": "IN",
}

// userID returns the business's user id of a person. The caller holds s.mu.
func (s *Simulator) userID(waID string) string {
	if id := s.userIDs[waID]; id != "" || waID == "" {
		return id
	}
	if waID == "905321112233" {
		return "TR.9000000000000001"
	}
	country := "ZZ"
	for code, letters := range countries {
		if strings.HasPrefix(waID, code) {
			country = letters
		}
	}
	id := uint64(math.MaxUint32)
	for _, c := range waID { // an FNV hash: always the same number
		id = (id ^ uint64(c)) * 1099511628211
	}
	return country + "." + strconv.FormatUint(id, 10)
}
