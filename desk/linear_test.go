package desk_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/desk"
)

// nasty has functions that make inputs of n bytes which could make a rule slow.
var nasty = map[string]func(n int) string{
	"letters":             func(n int) string { return strings.Repeat("a", n) },
	"capitals":            func(n int) string { return strings.Repeat("A", n) },
	"words":               func(n int) string { return repeated("ab ", n) },
	"digits":              func(n int) string { return strings.Repeat("1", n) },
	"zeros":               func(n int) string { return strings.Repeat("0", n) },
	"plus and zeros":      func(n int) string { return "+43" + strings.Repeat("0", n-3) },
	"separated digits":    func(n int) string { return repeated("1-", n) },
	"separators":          func(n int) string { return repeated("-.( )/", n) },
	"spaces":              func(n int) string { return strings.Repeat(" ", n) },
	"wide spaces":         func(n int) string { return repeated("\u2003\u00a0", n) },
	"line breaks":         func(n int) string { return repeated("a\n\t", n) },
	"commas":              func(n int) string { return repeated("a,", n) },
	"permissions":         func(n int) string { return repeated("contacts:read,", n) },
	"dots":                func(n int) string { return repeated("a.", n) },
	"only dots":           func(n int) string { return strings.Repeat(".", n) },
	"at signs":            func(n int) string { return strings.Repeat("@", n) },
	"an ASCII e-mail":     func(n int) string { return "a@" + strings.Repeat("b", n-6) + ".com" },
	"a CJK domain":        func(n int) string { return "a@" + ideographs(n-6) + ".com" },
	"CJK labels":          func(n int) string { return "a@" + repeated(ideographs(30)+".", n-5) + "com" },
	"a CJK name":          func(n int) string { return ideographs(n-9) + "@example.c" },
	"CJK":                 ideographs,
	"xn--":                func(n int) string { return "a@" + repeated("xn--fsq.", n-5) + "com" },
	"a long xn--":         func(n int) string { return "é@xn--" + strings.Repeat("a", n-12) + ".com" },
	"full stops of CJK":   func(n int) string { return "é@" + repeated("字。", n-4) },
	"combining marks":     func(n int) string { return "e" + repeated("\u0323\u0301", n-1) },
	"a domain of marks":   func(n int) string { return "a@e" + repeated("\u0323\u0301", n-7) + ".com" },
	"decomposed":          func(n int) string { return repeated("e\u0301", n) },
	"Hangul parts":        func(n int) string { return repeated("\u1100\u1161\u11a8", n) },
	"letters that expand": func(n int) string { return repeated("\ufdfa\U0001d160", n) },
	"a domain that grows": func(n int) string { return "a@" + repeated("\ufdfa", n-6) + ".com" },
	"format characters":   func(n int) string { return repeated("\u200b\u200d\u202e", n) },
	"Turkish letters":     func(n int) string { return repeated("İıIi", n) },
	"sharp s":             func(n int) string { return repeated("ßẞ", n) },
	"Arabic and Latin":    func(n int) string { return repeated("اa", n) },
	"emoji":               func(n int) string { return repeated("👩\u200d👩\u200d👧", n) },
	"broken UTF-8":        func(n int) string { return repeated("\xff\xc3", n) },
	"zero bytes":          func(n int) string { return strings.Repeat("\x00", n) },
	"open braces":         func(n int) string { return strings.Repeat("{", n) },
	"closed braces":       func(n int) string { return strings.Repeat("}", n) },
	"open placeholders":   func(n int) string { return repeated("{{a", n) },
	"placeholders":        func(n int) string { return repeated("{{1}}", n) },
	"different variables": func(n int) string { return counted("{{v%d}}", n) },
	"many numbers":        func(n int) string { return counted("{{%d}}", n) },
	"blanks in braces":    func(n int) string { return "{{" + strings.Repeat(" ", n-2) },
	"a long placeholder":  func(n int) string { return "{{" + strings.Repeat("a", n-4) + "}}" },
	"known placeholders":  func(n int) string { return repeated("{{customer_name}}", n) },
	"nested arrays":       func(n int) string { return strings.Repeat("[", n) },
	"nested objects":      func(n int) string { return repeated(`{"a":`, n) },
	"closed arrays":       func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"members":             func(n int) string { return "{" + counted(`"k%d":1,`, n-8) + `"z":1}` },
	"a list":              func(n int) string { return "[" + counted(`"k%d",`, n-5) + `"z"]` },
	"identities": func(n int) string {
		return "[" + counted(`{"kind":"x","value":"%d"},`, n-28) + `{"kind":"x","value":"z"}]`
	},
	"quotes":               func(n int) string { return strings.Repeat(`"`, n) },
	"backslashes":          func(n int) string { return strings.Repeat(`\`, n) },
	"escapes":              func(n int) string { return `"` + repeated(`\u0041`, n-2) + `"` },
	"slashes":              func(n int) string { return strings.Repeat("/", n) },
	"a URL":                func(n int) string { return "https://a.example/" + repeated("%41/../", n-18) },
	"a URL with a query":   func(n int) string { return "https://a.example/?" + repeated("a=b&", n-19) },
	"a decimal":            func(n int) string { return "0." + strings.Repeat("0", n-3) + "1" },
	"an exponent":          func(n int) string { return "1e" + strings.Repeat("9", n-2) },
	"many zeros, exponent": func(n int) string { return "1" + strings.Repeat("0", n-7) + "e-9999" },
	"a time":               func(n int) string { return "2026-01-01T00:00:00." + strings.Repeat("9", n-21) + "Z" },
	"list ends":            func(n int) string { return repeated("a"+desk.ListEnd, n) },
	"stop words":           func(n int) string { return repeated("s-t-o-p ", n) },
	"base64":               func(n int) string { return "whsec_" + strings.Repeat("A", n-6) },
}

func repeated(s string, n int) string { return strings.Repeat(s, n/len(s)) }

// counted returns a text of at least n bytes: a format, repeated with growing numbers.
func counted(format string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// ideographs returns a text of different Chinese characters, as far as there are enough.
func ideographs(n int) string {
	var b strings.Builder
	for i := 0; b.Len()+3 <= n; i++ {
		b.WriteRune(rune(0x4e00 + i%20_000))
	}
	return b.String()
}

// rules returns the rules that read data from callers.
func rules() map[string]func(s string) {
	settings := desk.NewSettings(desk.Workspace{}, 1, nil, []desk.Member{{ID: desk.ID{1}, Email: "ada@example.com"}}, nil, nil)
	values := map[desk.Binding]desk.HintValue{desk.CustomerName: {Value: "Ada Lovelace"}}
	list := map[string]func(s string){
		"CanonicalEmail":  func(s string) { desk.CanonicalEmail(s) },
		"ParseEmail":      func(s string) { _, _ = desk.ParseEmail(s) },
		"EmailIdentity":   func(s string) { desk.EmailIdentity(s) },
		"CanonicalNumber": func(s string) { desk.CanonicalNumber(s) },
		"DialledNumber":   func(s string) { desk.DialledNumber(s) },
		"ResolveMember":   func(s string) { settings.ResolveMember(desk.ReferTo(s)) },
		"ParsePassword":   func(s string) { _, _ = desk.ParsePassword(s, "ada@example.com") },
		"NormalPassword":  func(s string) { desk.NormalPassword(s) },
		"ParseCountry":    func(s string) { _, _ = desk.ParseCountry(s) },
		"ParseName":       func(s string) { _, _ = desk.ParseName(s) },
		"ParseNote":       func(s string) { _, _ = desk.ParseNote(s) },
		"ParseMessage":    func(s string) { _, _ = desk.ParseMessage(s) },
		"ParseNoteText":   func(s string) { _, _ = desk.ParseNoteText(s) },
		"ParseExternalID": func(s string) { _, _ = desk.ParseExternalID(s) },
		"ParseSearch": func(s string) {
			_, _ = desk.ParseSearch(s)
			_ = (&desk.Contact{Name: s, Email: s, ExternalID: s, Phone: "905321234567"}).SearchTerms()
		},
		"ParseKind":        func(s string) { _ = desk.ParseKind(s) },
		"ParsePermissions": func(s string) { _, _ = desk.ParsePermissions(s) },
		"ParseEventFilter": func(s string) {
			_, _ = desk.ParseEventFilter([]string{s})
			_, _ = desk.ParseEventFilter(strings.Split(s, ","))
		},
		"ParseBinding":            func(s string) { _, _ = desk.ParseBinding(s) },
		"ParseBindingPlace":       func(s string) { _, _, _ = desk.ParseBindingPlace(s) },
		"FirstName":               func(s string) { desk.FirstName(s) },
		"LastName":                func(s string) { desk.LastName(s) },
		"HintValues":              func(s string) { desk.HintValues(&desk.Member{Name: s}, s, desk.FromRequest) },
		"OptWord":                 func(s string) { desk.OptWord(s) },
		"ParseConversationStatus": func(s string) { _, _ = desk.ParseConversationStatus(s) },
		"ParseConflictStatus":     func(s string) { _, _ = desk.ParseConflictStatus(s) },
		"ParseDeliveryStatus":     func(s string) { _, _ = desk.ParseWebhookDeliveryStatus(s) },
		"ParsePhase":              func(s string) { _, _ = desk.ParsePhase(s) },
		"ParseBroadcastState":     func(s string) { _, _ = desk.ParseBroadcastState(s) },
		"ParseChannelName":        func(s string) { _, _ = desk.ParseChannelName(s) },
		"Blank":                   func(s string) { desk.Blank(s) },
		"AttributeInput": func(s string) {
			text := desk.Field[string]{Set: true, Value: s}
			_ = desk.AttributeInput{Key: s}.Check()
			_ = desk.AttributeInput{Key: "k", Label: text}.Check()
			_ = desk.AttributeInput{Key: "k", Description: text}.Check()
			_ = desk.AttributeInput{Key: "k", Options: desk.Field[[]string]{Set: true, Value: []string{s}}}.Check()
			_, _ = desk.AttributeInput{Key: "k", Type: text, Options: desk.Field[[]string]{Set: true, Value: strings.Split(s, ",")}}.Apply(nil, 0, 1)
		},
		"HoursInput": func(s string) {
			utc := "UTC"
			list := strings.Split(s, ",")
			_ = (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &s}}).Check()
			_ = (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &utc, Week: map[string][][]string{s: nil}}}).Check()
			_ = (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &utc, Week: map[string][][]string{"mon": {list, {s, s}}}}}).Check()
			_ = (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &utc, Exceptions: []desk.ExceptionInput{{Date: &s, Open: [][]string{}}}}}).Check()
		},
		"Search": func(s string) {
			(&desk.Library{Templates: []*desk.Template{{Name: "hello", Language: "tr", Status: "APPROVED", Body: "Hello"}}}).Search(s)
		},
		"Preview":             func(s string) { desk.Preview(s) },
		"ParseDecimal":        func(s string) { desk.ParseDecimal(s) },
		"Quote":               func(s string) { _ = desk.Quote(s) },
		"ParseID":             func(s string) { desk.ParseID(s) },
		"ParseTime":           func(s string) { desk.ParseTime(s) },
		"ParseKey":            func(s string) { desk.ParseKey(s) },
		"CheckIdempotencyKey": func(s string) { _ = desk.CheckIdempotencyKey(s) },
		"KindOfMedia":         func(s string) { desk.KindOfMedia(s) },
		"MediaName":           func(s string) { desk.MediaName(s) },
		"AttachmentText":      func(s string) { (&desk.Media{Kind: desk.KindDocument, Name: s}).AttachmentText(s) },
		"Nearest":             func(s string) { desk.Nearest(s, []string{"customer_name", "agent_name"}) },
		"AppendJSONString":    func(s string) { desk.AppendJSONString(nil, s) },
		"OlderRules":          func(s string) { desk.OlderRules(s, s) },
		"ParseWebhookSecret":  func(s string) { _, _ = desk.ParseWebhookSecret(s) },
		"WebhookEdit": func(s string) {
			_ = desk.WebhookEdit{URL: &s}.Check(desk.WebhookRules{PlainHTTP: true})
			_ = desk.WebhookEdit{Types: &[]string{s}}.Check(desk.WebhookRules{})
			_ = desk.WebhookRules{PlainHTTP: true}.CheckBase(s)
		},
		"NewSnippet": func(s string) {
			_, _ = desk.NewSnippet(s, s, 0)
			_, _ = desk.NewSnippet("a", s, 0)
		},
		"Snippet.Fill": func(s string) { (&desk.Snippet{Text: s}).Fill(values) },
		"Sniffer": func(s string) {
			f := desk.NewSniffer(s)
			_, _ = f.Write([]byte(s))
			f.Type()
		},
		"Value": func(s string) {
			var v desk.Value
			_ = v.UnmarshalJSON([]byte(s))
		},
		"StoredFurther": func(s string) { _, _ = desk.StoredFurther(s) },
		"ReplyRequest": func(s string) {
			_ = (&desk.ReplyRequest{Text: s}).Check()
			_ = (&desk.ReplyRequest{Text: "a", Buttons: []desk.Button{{ID: s, Title: s}}}).Check()
			_ = (&desk.ReplyRequest{Attachment: &desk.SentAttachment{Caption: s}}).Check()
		},
		"ParseTemplate": func(s string) { _, _ = desk.ParseTemplate([]byte(s)) },
		"a template's text": func(s string) {
			text := desk.AppendJSONString(nil, s)
			t, err := desk.ParseTemplate(fmt.Appendf(nil, `{"name":"a","language":"tr","status":"APPROVED","components":[
				{"type":"HEADER","format":"TEXT","text":%s},{"type":"BODY","text":%s},{"type":"FOOTER","text":%[1]s},{"type":"BUTTONS","buttons":[{"type":"URL","text":%[1]s,"url":%[1]s}]}]}`, text, text))
			if err != nil {
				return
			}
			desk.GuessBindings(t.Variables)
			given := desk.TemplateValues{List: make([]string, len(t.Variables))}
			_, _ = t.Values(given)
			t.Text(given.List)
			supplied := t.Supplied(given)
			t.Components(given.List, supplied)
			t.Links(supplied)
		},
		"a template's value": func(s string) {
			t, err := desk.ParseTemplate([]byte(`{"name":"a","language":"tr","status":"APPROVED","components":[{"type":"BODY","text":"{{1}}"}]}`))
			if err != nil {
				panic(err)
			}
			_, _ = t.Values(desk.TemplateValues{List: []string{s}})
			_, _ = t.Values(desk.TemplateValues{List: strings.Split(s, ",")})
			_, _ = t.Values(desk.TemplateValues{Object: true, Named: []desk.NamedValue{{Address: s, Value: s}}})
		},
		"the end of a template's link": func(s string) {
			t, err := desk.ParseTemplate([]byte(`{"name":"a","language":"tr","status":"APPROVED","components":[{"type":"BODY","text":"a"},{"type":"BUTTONS","buttons":[{"type":"URL","text":"a","url":"a{{1}}"}]}]}`))
			if err != nil {
				panic(err)
			}
			in := desk.TemplateValues{Object: true, Named: []desk.NamedValue{{Address: s, Value: s}, {Address: "button.0", Value: s}}}
			t.ReasonsAgainst(in)
			_, _ = t.Values(in)
			t.Links(t.Supplied(in))
		},
		"PolicyInput": func(s string) {
			var members []desk.Reference
			for text := range strings.SplitSeq(s, ",") {
				members = append(members, desk.ReferTo(text))
			}
			one := int64(1)
			mode := "round_robin"
			_ = (&desk.PolicyInput{AutoReply: &desk.AutoReplyInput{Away: &s, Queued: &s, EveryHours: &one}}).Check()
			_ = (&desk.PolicyInput{Assign: &desk.AssignInput{Mode: &s, Members: members}}).Check()
			_, _ = (&desk.PolicyInput{Assign: &desk.AssignInput{Mode: &mode, Members: members, MaxOpen: &one}}).Policy(settings, desk.ID{})
		},
	}
	for _, kind := range []string{desk.KindEmail, desk.KindPhone, desk.KindWhatsApp, desk.KindExternalID, "fax"} {
		list["ParseIdentity "+kind] = func(s string) {
			i, err := desk.ParseIdentity(kind, s, "DE")
			if err != nil {
				i = desk.Identity{Kind: kind, Value: s} // as one stored by an older release
			}
			i.Claim()
			_ = i.Refused()
			i.Same(desk.Identity{Kind: kind, Value: "x"})
		}
	}
	for _, country := range []string{"", "US", "DE", "AT", "BR", "IT", "SM", "AR"} {
		list["ParsePhone "+country] = func(s string) { _, _ = desk.ParsePhone(s, country) }
	}
	for _, t := range desk.AttributeTypes {
		options := []string{"a", "b"}
		list["an attribute of type "+string(t)] = func(s string) {
			a := &desk.Attribute{Key: "k", Type: t, Options: options}
			for _, kind := range []desk.ValueKind{desk.StringValue, desk.NumberValue, desk.ListValue} {
				a.Canonical(desk.Value{Kind: kind, Text: s})
			}
		}
	}
	return list
}

// TestLinear: the time of a rule grows at most in proportion to the length of its input.
// Each rule is tried with each nasty input of 1 KB and of 64 KB.
func TestLinear(t *testing.T) {
	t.Parallel()
	const small, times = 1 << 10, 64
	type sample struct{ few, many string }
	samples := map[string]sample{}
	for name, of := range nasty {
		samples[name] = sample{of(small), of(times * small)}
	}
	for name, rule := range rules() {
		rule("") // so that values which are computed once are not measured
		for input, s := range samples {
			if few, many, ok := grows(rule, s.few, s.many, times); !ok {
				t.Errorf("%s of %s: %v for %d bytes, %v for %d", name, input, few, len(s.few), many, len(s.many))
			}
		}
	}
}

// TestLinear_all: each parser of desk is among those that TestLinear tries.
func TestLinear_all(t *testing.T) {
	t.Parallel()
	tried, err := os.ReadFile("linear_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	parsers := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Parse") {
				continue
			}
			if parsers++; !strings.Contains(string(tried), "desk."+f.Name.Name+"(") {
				t.Errorf("%s is not tried", f.Name.Name)
			}
		}
	}
	if parsers < 20 {
		t.Errorf("only %d parsers were found", parsers)
	}
}

// grows measures a rule with a text, and with one that is longer by factor. ok is false if
// the time grows by a multiple of the factor. A slow result is measured again, because it
// may be chance.
func grows(rule func(string), few, many string, factor time.Duration) (least, most time.Duration, ok bool) {
	// regexp takes ten times longer per byte if the text is long.
	const slack, shortest = 20, 4 * time.Microsecond
	least, most = time.Hour, time.Hour
	for range 12 {
		least, most = min(least, took(rule, few)), min(most, took(rule, many))
		if most <= slack*factor*max(least, shortest) {
			return least, most, true
		}
		if most > 10*time.Second { // too slow to be chance
			break
		}
	}
	return least, most, false
}

func took(rule func(string), s string) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	rule(s)
	return threadTime() - before
}
