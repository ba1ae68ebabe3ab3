package desk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

// templateJSON returns an approved template with these components. Members of the object
// changes replace the template's own members; null removes a member.
func templateJSON(t tester, components, changes string) []byte {
	t.Helper()
	members := map[string]json.RawMessage{}
	for _, object := range []string{
		`{"name":"order_update","language":"en_US","status":"APPROVED","category":"UTILITY"}`,
		`{"components":[` + components + `]}`, changes,
	} {
		if object == "" {
			continue
		}
		if err := json.Unmarshal([]byte(object), &members); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
	}
	maps.DeleteFunc(members, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	source, err := json.Marshal(members)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return source
}

// templateOf parses a template that has these components.
func templateOf(t tester, components, changes string) *desk.Template {
	t.Helper()
	tmpl, err := desk.ParseTemplate(templateJSON(t, components, changes))
	if err != nil {
		t.Fatalf("%s %s: %v", components, changes, err)
	}
	return tmpl
}

// textTemplate returns a template with this message. It has this title, unless header is
// "".
func textTemplate(t tester, header, body, changes string) *desk.Template {
	t.Helper()
	var components []string
	if header != "" {
		components = append(components, fmt.Sprintf(`{"type":"HEADER","format":"TEXT","text":%s}`, desk.AppendJSONString(nil, header)))
	}
	components = append(components, fmt.Sprintf(`{"type":"BODY","text":%s}`, desk.AppendJSONString(nil, body)))
	return templateOf(t, strings.Join(components, ","), changes)
}

func addresses(t *desk.Template) (list []string) {
	for _, v := range t.Variables {
		list = append(list, v.Address())
	}
	return list
}

// Each case reads: these components, with these changes to the template, give these
// variables and these reasons.
func TestParseTemplate_components(t *testing.T) {
	t.Parallel()
	const (
		hi      = `{"type":"BODY","text":"Hi"}`
		bodyOf1 = `{"type":"BODY","text":"Hi {{1}}."}`
		authURL = `https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}`
	)
	buttons := func(list string) string { return hi + `,{"type":"BUTTONS","buttons":[` + list + `]}` }
	link := func(url string) string { return buttons(`{"type":"URL","text":"Go","url":"` + url + `"}`) }
	head := func(members string) string { return `{"type":"HEADER",` + members + `},` + hi }
	for _, c := range []struct{ name, components, changes, variables, reasons string }{
		// The template itself.
		{"plain", hi, "", "", ""},
		{"no category", hi, `{"category":null}`, "", ""},
		{"retired category", hi, `{"category":"ACCOUNT_UPDATE"}`, "", ""},
		{"members that nobody knows", hi, `{"id":1e999,"quality_score":{"score":"GREEN"},"Name":7,"COMPONENTS":7}`, "", ""},
		{"pending", hi, `{"status":"PENDING"}`, "", "not_approved"},
		{"rejected", hi, `{"status":"REJECTED"}`, "", "not_approved"},
		{"paused", hi, `{"status":"PAUSED"}`, "", "not_approved"},
		{"flagged", hi, `{"status":"FLAGGED"}`, "", "not_approved"},
		{"approved in lower case", hi, `{"status":"approved"}`, "", ""},
		{"approved with a blank", hi, `{"status":"APPROVED "}`, "", "not_approved"},
		{"authentication", bodyOf1, `{"category":"AUTHENTICATION"}`, "1", "authentication"},
		{"authentication in mixed case", hi, `{"category":"Authentication"}`, "", "authentication"},

		// Titles.
		{"text title", head(`"format":"TEXT","text":"Title"`), "", "", ""},
		{"text title with a variable", head(`"format":"TEXT","text":"Order {{1}}"`), "", "header.1", ""},
		{"text title with two variables", head(`"format":"TEXT","text":"{{2}} of {{1}}"`), "", "header.1 header.2", ""},
		{"text title in lower case", `{"type":"header","format":"text","text":"{{1}}"},` + hi, "", "header.1", ""},
		{"text title without a text", head(`"format":"TEXT"`), "", "", ""},
		{"text title of null", head(`"format":"TEXT","text":null`), "", "", ""},
		{"image", head(`"format":"IMAGE","example":{"header_handle":["https://media.example/1"]}`), "", "", "header_media"},
		{"image with a text", head(`"format":"IMAGE","text":"{{1}} {{"`), "", "", "header_media"},
		{"image in lower case", head(`"format":"image"`), "", "", "header_media"},
		{"video", head(`"format":"VIDEO"`), "", "", "header_media"},
		{"gif", head(`"format":"GIF"`), "", "", "header_media"},
		{"document", head(`"format":"DOCUMENT"`), "", "", "header_media"},
		{"location", head(`"format":"LOCATION"`), "", "", "header_media"},
		{"product", head(`"format":"PRODUCT"`), "", "", "header_media"},
		{"unknown title", head(`"format":"SCENT"`), "", "", "header_media"},
		{"title without a format", head(`"text":"Title"`), "", "", "header_media"},
		{"format is no text", head(`"format":["TEXT"],"text":"Title"`), "", "", "header_media"},

		// Messages.
		{"no components", "", "", "", "body_missing"},
		{"message is missing", `{"type":"FOOTER","text":"Shop"}`, "", "", "body_missing"},
		{"message is empty", `{"type":"BODY","text":""}`, "", "", "body_missing"},
		{"message is blank", `{"type":"BODY","text":" \n\u00a0"}`, "", "", "body_missing"},
		{"message has no text", `{"type":"BODY"}`, "", "", "body_missing"},
		{"message in lower case", `{"type":"body","text":"{{1}}"}`, "", "1", ""},
		{"message is only a variable", `{"type":"BODY","text":"{{1}}"}`, "", "1", ""},

		// Placeholders.
		{"positional in numeric order", `{"type":"BODY","text":"{{10}} {{2}} {{1}} {{3}} {{4}} {{5}} {{6}} {{7}} {{8}} {{9}}"}`, "", "1 2 3 4 5 6 7 8 9 10", ""},
		{"named in order of appearance", `{"type":"BODY","text":"{{b}} {{a}} {{b}} {{c}}"}`, "", "b a c", ""},
		{"repeated", `{"type":"BODY","text":"{{1}} {{2}} {{1}}"}`, "", "1 2", ""},
		{"in both parts", `{"type":"BODY","text":"{{1}} {{2}}"},{"type":"HEADER","format":"TEXT","text":"{{1}}"}`, "", "header.1 1 2", ""},
		{"spelling is kept", `{"type":"BODY","text":"{{Name}} {{name}} {{ name_2 }} {{2nd}} {{\tname\n}}"}`, "", "Name name name_2 2nd", ""},
		{"spaces inside", `{"type":"BODY","text":"{{ 1 }} {{1}}"}`, "", "1", ""},
		{"said to be positional", bodyOf1, `{"parameter_format":"POSITIONAL"}`, "1", ""},
		{"said to be positional in lower case", bodyOf1, `{"parameter_format":"positional"}`, "1", ""},
		{"said to be named", `{"type":"BODY","text":"{{a}}"}`, `{"parameter_format":"NAMED"}`, "a", ""},
		{"said to be named in mixed case", `{"type":"BODY","text":"{{a}}"}`, `{"parameter_format":"Named"}`, "a", ""},
		{"said to be positional, but named", `{"type":"BODY","text":"{{b}} {{a}}"}`, `{"parameter_format":"POSITIONAL"}`, "b a", "placeholders"},
		{"said to be named, but positional", bodyOf1, `{"parameter_format":"NAMED"}`, "1", "placeholders"},
		{"said to be something else", bodyOf1, `{"parameter_format":"TELEPATHIC"}`, "1", "placeholders"},
		{"said to be something else, without variables", hi, `{"parameter_format":"TELEPATHIC"}`, "", ""},
		{"said to be nothing", bodyOf1, `{"parameter_format":""}`, "1", ""},
		{"mixed in a part", `{"type":"BODY","text":"{{b}} {{1}} {{a}}"}`, "", "b 1 a", "placeholders"},
		{"mixed over the parts", `{"type":"HEADER","format":"TEXT","text":"{{1}}"},{"type":"BODY","text":"{{a}}"}`, "", "header.1 a", "placeholders"},
		{"mixed and said to be named", `{"type":"BODY","text":"{{1}} {{a}}"}`, `{"parameter_format":"NAMED"}`, "1 a", "placeholders"},
		{"mixed and said to be positional", `{"type":"BODY","text":"{{1}} {{a}}"}`, `{"parameter_format":"POSITIONAL"}`, "1 a", "placeholders"},
		{"a gap in the message", `{"type":"BODY","text":"{{3}} {{1}}"}`, "", "1 3", "placeholders"},
		{"a gap in the title", `{"type":"HEADER","format":"TEXT","text":"{{2}}"},` + bodyOf1, "", "header.2 1", "placeholders"},
		{"zero", `{"type":"BODY","text":"{{0}} {{1}}"}`, "", "0 1", "placeholders"},
		{"zero before it is named", `{"type":"BODY","text":"{{0}}"}`, "", "0", "placeholders"},
		{"leading zeros", `{"type":"BODY","text":"{{02}} {{01}}"}`, "", "01 02", "placeholders"},
		{"a number and its twin", `{"type":"BODY","text":"{{1}} {{01}}"}`, "", "1 01", "placeholders"},
		{"a number beyond counting", `{"type":"BODY","text":"{{99999999999999999999}} {{1}}"}`, "", "1 99999999999999999999", "placeholders"},
		{"braces without a key", `{"type":"BODY","text":"Hi {{}}"}`, "", "", "placeholders"},
		{"braces that stay open", `{"type":"BODY","text":"{{1}} and {{2"}`, "", "1", "placeholders"},
		{"two words", `{"type":"BODY","text":"{{1}} {{ a b }}"}`, "", "1", "placeholders"},
		{"a key with a hyphen", `{"type":"BODY","text":"{{first-name}}"}`, "", "", "placeholders"},
		{"a key in other letters", `{"type":"BODY","text":"{{müşteri}}"}`, "", "", "placeholders"},
		{"a digit in other letters", `{"type":"BODY","text":"{{١}}"}`, "", "", "placeholders"},
		{"braces in the title", `{"type":"HEADER","format":"TEXT","text":"{{"},` + bodyOf1, "", "1", "placeholders"},
		{"single braces", `{"type":"BODY","text":"{1} } }} {{1}}"}`, "", "1", ""},
		{"three braces", `{"type":"BODY","text":"{{{1}}}"}`, "", "1", ""},
		{"braces around a placeholder", `{"type":"BODY","text":"{{{1}}{"}`, "", "1", ""},
		{"examples give no variables", `{"type":"BODY","text":"Hi","example":{"body_text":[["Ann"]]}}`, "", "", ""},
		{"footer", hi + `,{"type":"FOOTER","text":"Shop }} {1}"}`, "", "", ""},
		{"footer with a placeholder", bodyOf1 + `,{"type":"footer","text":"{{1}}"}`, "", "1", "placeholders"},
		{"footer with braces", hi + `,{"type":"FOOTER","text":"{{"}`, "", "", "placeholders"},

		// Buttons.
		{"buttons that need nothing", buttons(`{"type":"QUICK_REPLY","text":"Yes"},{"type":"PHONE_NUMBER","phone_number":"+902125550101"},{"type":"VOICE_CALL"},{"type":"REQUEST_CONTACT_INFO"},{"type":"CALL_PERMISSION_REQUEST"},{"type":"quick_reply","text":"{{1}}"}`), "", "", ""},
		{"no buttons", buttons(""), "", "", ""},
		{"link", link("https://shop.example/"), "", "", ""},
		{"link without an address", buttons(`{"type":"URL"}`), "", "", ""},
		{"link with a variable", link("https://shop.example/t/{{1}}"), "", "", "button_variable"},
		{"link with a variable in lower case", buttons(`{"type":"url","url":"https://shop.example/{{1}}"}`), "", "", "button_variable"},
		{"second link with a variable", buttons(`{"type":"URL","url":"https://shop.example"},{"type":"URL","url":"https://shop.example/{{1}}"}`), "", "", "button_variable"},
		{"link with braces", link("https://shop.example/{{"), "", "", "button_variable"},
		{"link with a variable in its host", link("https://{{1}}.example/%zz"), "", "", "button_variable"},
		{"code link", link(authURL), "", "", "authentication button_variable"},
		{"code link without www", link("https://whatsapp.com/otp/code/"), "", "", "authentication"},
		{"code link in another case", link("https://WWW.WhatsApp.com:443/otp/"), "", "", "authentication"},
		{"link that is almost a code link", link("https://www.whatsapp.com/otp"), "", "", ""},
		{"link with a code link in it", link("https://shop.example/https://www.whatsapp.com/otp/"), "", "", ""},
		{"link to another host", link("https://whatsapp.com.example/otp/code"), "", "", ""},
		{"OTP", buttons(`{"type":"OTP","otp_type":"ONE_TAP"}`), "", "", "authentication"},
		{"otp in lower case", buttons(`{"type":"otp"}`), "", "", "authentication"},
		{"COPY_CODE", buttons(`{"type":"COPY_CODE","example":["SAVE10"]}`), "", "", "button_parameter"},
		{"FLOW", buttons(`{"type":"FLOW","flow_id":777}`), "", "", "button_parameter"},
		{"CATALOG", buttons(`{"type":"CATALOG"}`), "", "", "button_parameter"},
		{"MPM", buttons(`{"type":"MPM"}`), "", "", "button_parameter"},
		{"SPM", buttons(`{"type":"SPM"}`), "", "", "button_parameter"},
		{"APP", buttons(`{"type":"APP"}`), "", "", "unknown_component"},
		{"unknown button", buttons(`{"type":"QUICK_REPLY"},{"type":"TELEPORT"}`), "", "", "unknown_component"},
		{"button without a type", buttons(`{"text":"Yes"}`), "", "", "unknown_component"},
		{"button of another type of type", buttons(`{"type":{"QUICK_REPLY":true}}`), "", "", "unknown_component"},
		{"button that is no object", buttons(`["QUICK_REPLY"],null,1`), "", "", "unknown_component"},
		{"buttons that are no array", hi + `,{"type":"BUTTONS","buttons":{"type":"QUICK_REPLY"}}`, "", "", "unknown_component"},
		{"buttons that are absent", hi + `,{"type":"BUTTONS"}`, "", "", "unknown_component"},

		// Other components.
		{"call permission", hi + `,{"type":"call_permission_request"}`, "", "", ""},
		{"carousel", hi + `,{"type":"CAROUSEL","cards":[{"components":[{"type":"BODY","text":"{{1}}"}]}]}`, "", "", "carousel"},
		{"carousel in lower case", hi + `,{"type":"carousel","cards":null}`, "", "", "carousel"},
		{"offer", hi + `,{"type":"LIMITED_TIME_OFFER","limited_time_offer":{"has_expiration":true}}`, "", "", "limited_time_offer"},
		{"offer without an end", hi + `,{"type":"limited_time_offer"}`, "", "", "limited_time_offer"},
		{"unknown component", bodyOf1 + `,{"type":"HOLOGRAM","text":"{{2}}"}`, "", "1", "unknown_component"},
		{"component without a type", hi + `,{"text":"?"}`, "", "", "unknown_component"},
		{"component of another type of type", hi + `,{"type":["BODY"]}`, "", "", "unknown_component"},
		{"components that are no objects", `null,"BODY",1,[` + hi + `],` + hi, "", "", "unknown_component"},
		{"two titles", `{"type":"HEADER","format":"TEXT","text":"{{1}}"},{"type":"HEADER","format":"IMAGE"},` + hi, "", "header.1", "unknown_component"},
		{"two messages", bodyOf1 + `,{"type":"body","text":"{{2}} {{a}}"}`, "", "1", "unknown_component"},
		{"two messages, the second no text", bodyOf1 + `,{"type":"BODY","text":7}`, "", "1", "unknown_component"},
		{"two footers", hi + `,{"type":"FOOTER","text":"a"},{"type":"FOOTER","text":"{{"}`, "", "", "unknown_component"},
		{"two sets of buttons", buttons(`{"type":"QUICK_REPLY"}`) + `,{"type":"BUTTONS","buttons":[{"type":"OTP"}]}`, "", "", "unknown_component"},

		// All reasons that apply, each once.
		{"everything", `{"type":"HOLOGRAM"},{"type":"LIMITED_TIME_OFFER"},{"type":"CAROUSEL"},{"type":"FOOTER","text":"{{1}}"},{"type":"HEADER","format":"IMAGE"},` +
			`{"type":"BUTTONS","buttons":[{"type":"SPM"},{"type":"FLOW"},{"type":"URL","url":"{{1}}"},{"type":"OTP"},{"type":"APP"}]},{"type":"X"}`,
			`{"status":"DISABLED","category":"AUTHENTICATION"}`, "", strings.Join(desk.TemplateReasons, " ")},
		{"offer with a picture and a code", `{"type":"HEADER","format":"IMAGE"},{"type":"LIMITED_TIME_OFFER"},` + buttons(`{"type":"COPY_CODE"},{"type":"URL","url":"https://shop.example/{{1}}"}`), "",
			"", "header_media button_variable button_parameter limited_time_offer"},
		{"rejected for its variables", `{"type":"BODY","text":"{{2}} {{"}`, `{"status":"REJECTED"}`, "2", "not_approved placeholders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := templateOf(t, c.components, c.changes)
			if variables := strings.Join(addresses(got), " "); variables != c.variables {
				t.Errorf("variables = %q, want %q", variables, c.variables)
			}
			if reasons := strings.Join(got.Reasons, " "); reasons != c.reasons || got.Sendable() != (c.reasons == "") {
				t.Errorf("reasons = %q, sendable = %v, want %q", reasons, got.Sendable(), c.reasons)
			}
		})
	}
}

// TestTemplateReasons: the list has the order in which the API gives the reasons (contract
// §6).
func TestTemplateReasons(t *testing.T) {
	t.Parallel()
	want := "not_approved authentication header_media body_missing placeholders button_variable button_parameter carousel limited_time_offer unknown_component"
	if got := strings.Join(desk.TemplateReasons, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestParseTemplate_named(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, format string
		want         bool
	}{
		{"{{1}}", "", false},
		{"{{a}}", "", true},
		{"Hi", "", false},
		{"{{1}}", `{"parameter_format":"POSITIONAL"}`, false},
		{"{{a}}", `{"parameter_format":"NAMED"}`, true},
		{"Hi", `{"parameter_format":"NAMED"}`, true},
	} {
		if got := textTemplate(t, "", c.body, c.format).Named; got != c.want {
			t.Errorf("%s with %q: named = %v", c.body, c.format, got)
		}
	}
}

func TestParseTemplate_keeps_texts(t *testing.T) {
	t.Parallel()
	got := templateOf(t, `{"type":"BODY","text":"  Hi {{ 1 }}\n\"you\" "},{"type":"HEADER","format":"TEXT","text":" *Ö* "}`,
		`{"name":"0_a","language":"zh-Hant_TW2","category":" Utility","status":"Pending_Deletion"}`)
	if got.Name != "0_a" || got.Language != "zh-Hant_TW2" || got.Category != " Utility" || got.Status != "pending_deletion" ||
		got.Header != " *Ö* " || got.Body != "  Hi {{ 1 }}\n\"you\" " {
		t.Errorf("got %+v", got)
	}
	if want := (desk.Variable{Part: desk.PartBody, Key: "1"}); got.Variables[0] != want {
		t.Errorf("got %+v", got.Variables)
	}
}

func TestParseTemplate_refuses(t *testing.T) {
	t.Parallel()
	const hi = `{"type":"BODY","text":"Hi"}`
	for _, c := range []struct{ name, components, changes, why string }{
		{"name is missing", hi, `{"name":null}`, "/name: "},
		{"name is empty", hi, `{"name":""}`, "/name: "},
		{"name is in upper case", hi, `{"name":"Order"}`, "/name: "},
		{"name ends its line", hi, `{"name":"order\n"}`, "/name: "},
		{"name is too long", hi, `{"name":"` + strings.Repeat("a", 513) + `"}`, "/name: "},
		{"name is a number", hi, `{"name":7}`, "/name: this is a text"},
		{"language is missing", hi, `{"language":null}`, "/language: "},
		{"language is a word", hi, `{"language":"turkish"}`, "/language: "},
		{"language begins in upper case", hi, `{"language":"TR"}`, "/language: "},
		{"language is half", hi, `{"language":"en_"}`, "/language: "},
		{"language has more after it", hi, `{"language":"en_US tr"}`, "/language: "},
		{"language is a list", hi, `{"language":["tr"]}`, "/language: this is a text"},
		{"status is missing", hi, `{"status":null}`, "/status: "},
		{"status is empty", hi, `{"status":""}`, "/status: "},
		{"status is a truth", hi, `{"status":true}`, "/status: this is a text"},
		{"status holds U+0000", hi, `{"status":"A\u0000"}`, "/status: the text holds U+0000"},
		{"category is a number", hi, `{"category":7}`, "/category: "},
		{"category holds U+0000", hi, `{"category":"\u0000"}`, "/category: "},
		{"format is a number", hi, `{"parameter_format":7}`, "/parameter_format: "},
		{"components are missing", "", `{"components":null}`, "/components: "},
		{"components are an object", "", `{"components":` + hi + `}`, "/components: "},
		{"title is a number", hi + `,{"type":"HEADER","format":"TEXT","text":7}`, "", "/components/1/text: "},
		{"title holds U+0000", `{"type":"HEADER","format":"TEXT","text":"\u0000"}`, "", "/components/0/text: "},
		{"message is a list", `{"type":"BODY","text":["Hi"]}`, "", "/components/0/text: "},
		{"message holds U+0000", `{"type":"BODY","text":"a\u0000"}`, "", "/components/0/text: "},
		{"footer is an object", hi + `,{"type":"FOOTER","text":{}}`, "", "/components/1/text: "},
		{"footer holds U+0000", `{"type":"FOOTER","text":"a\u0000"}`, "", "/components/0/text: "},
		{"link is a number", hi + `,{"type":"BUTTONS","buttons":[{"type":"URL"},{"type":"URL","url":1}]}`, "", "/components/1/buttons/1/url: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checkNoTemplate(t, templateJSON(t, c.components, c.changes), c.why)
		})
	}
	for name, c := range map[string]struct{ source, why string }{
		"nothing":        {"", "not JSON"},
		"no JSON":        {`{"name":order}`, "at byte 9"},
		"cut off":        {`{"name":"order"`, "not JSON"},
		"two values":     {`{} {}`, "not JSON"},
		"null":           {`null`, "no JSON object"},
		"an array":       {`[{}]`, "no JSON object"},
		"a huge number":  {`1e999`, "no JSON object"},
		"no UTF-8":       {"{\"name\":\"order\xff\"}", "UTF-8"},
		"no UTF-8 aside": {"{\"x\":\"\xc3\"}", "UTF-8"},
		"too deep":       {strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000), "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkNoTemplate(t, []byte(c.source), c.why)
		})
	}
}

func checkNoTemplate(t *testing.T, source []byte, why string) {
	t.Helper()
	got, err := desk.ParseTemplate(source)
	if got != nil || !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %+v, %v\nwant %q", got, err, why)
	}
}

// TestParseTemplate_large: a template that is larger than any template of a provider can't
// be read.
func TestParseTemplate_large(t *testing.T) {
	t.Parallel()
	source := `{"name":"a","language":"en","status":"APPROVED","components":[{"type":"BODY","text":"Hi"}]}`
	source += strings.Repeat(" ", desk.MaxTemplateBytes-len(source))
	if _, err := desk.ParseTemplate([]byte(source)); err != nil {
		t.Error(err)
	}
	if _, err := desk.ParseTemplate([]byte(source + " ")); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("got %v", err)
	}
}

func TestParseTemplate_takes_names_and_languages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "0", "_", strings.Repeat("a", 512)} {
		if got := templateOf(t, "", `{"name":"`+name+`"}`).Name; got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	for _, language := range []string{"tr", "fil", "pt_BR", "en-us", "zh_Hant_TW", "es_419"} {
		if got := templateOf(t, "", `{"language":"`+language+`"}`).Language; got != language {
			t.Errorf("got %s, want %s", got, language)
		}
	}
}

// pages returns templates in the form in which the provider lists them.
func pages(t testing.TB) (sources []json.RawMessage) {
	t.Helper()
	files, err := filepath.Glob("testdata/templates/templates_page*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("pages: %v, %v", files, err)
	}
	for _, file := range files {
		var page struct{ Data []json.RawMessage }
		readJSON(t, file, &page)
		sources = append(sources, page.Data...)
	}
	return sources
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// mirrored returns the templates of pages, read by ParseTemplate.
func mirrored(t testing.TB) (list []*desk.Template) {
	t.Helper()
	for _, source := range pages(t) {
		tmpl, err := desk.ParseTemplate(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		list = append(list, tmpl)
	}
	return list
}

func TestParseTemplate_pages(t *testing.T) {
	t.Parallel()
	type view struct {
		Name, Language, Category, Status string
		Header                           *string
		Body                             string
		Variables                        []string
		Sendable                         bool
		WhyNot                           string `json:"_why_not"` // the first reason
	}
	var want []view
	readJSON(t, "testdata/templates/templates_expected_view.json", &want)
	templates := mirrored(t)
	if len(templates) != len(want) {
		t.Fatalf("%d templates, want %d", len(templates), len(want))
	}
	for i, got := range templates {
		w := want[i]
		var header, reason string
		if w.Header != nil {
			header = *w.Header
		}
		if len(got.Reasons) > 0 {
			reason = got.Reasons[0]
		}
		if got.Name != w.Name || got.Language != w.Language || got.Category != w.Category || got.Status != w.Status || got.Header != header ||
			got.Body != w.Body || !slices.Equal(addresses(got), w.Variables) || got.Sendable() != w.Sendable || reason != w.WhyNot {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	}
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	given := mirrored(t)
	before := slices.Clone(given)
	l := desk.NewLibrary(7, given)
	if !slices.Equal(given, before) || l.Version != 7 {
		t.Error("the templates that were given changed, or the version did")
	}
	for _, tmpl := range given {
		if l.Find(tmpl.Name, tmpl.Language) != tmpl {
			t.Errorf("%s %s is not found", tmpl.Name, tmpl.Language)
		}
	}
	for _, c := range [][2]string{{"siparis_hazir", "de"}, {"siparis_hazi", "tr"}, {"Siparis_hazir", "tr"}, {"order_update", "en-US"}, {"zzz", "tr"}, {"", ""}} {
		if got := l.Find(c[0], c[1]); got != nil {
			t.Errorf("%s: found %+v", c, got)
		}
	}
	for name, want := range map[string]string{"siparis_hazir": "en tr", "reminder": "en_US tr", "track_link": "en_US", "track": "", "zzz": "", "": ""} {
		if got := l.Languages(name); strings.Join(got, " ") != want || want == "" && got != nil {
			t.Errorf("%q is in %q, want %q", name, got, want)
		}
	}
	if none := desk.NewLibrary(1, nil); none.Find("a", "tr") != nil || none.Languages("a") != nil {
		t.Error("an empty library holds something")
	}
}

// TestLibrary_sorts_by_bytes: the order is by bytes, as both stores sort.
func TestLibrary_sorts_by_bytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringMatching(`[a_0]{1,2} (en|en_US|tr)`), rapid.ID).Draw(t, "keys")
		var templates []*desk.Template
		for _, key := range keys {
			name, language, _ := strings.Cut(key, " ")
			templates = append(templates, &desk.Template{Name: name, Language: language})
		}
		var got []string
		l := desk.NewLibrary(1, templates)
		for _, tmpl := range l.Templates {
			got = append(got, tmpl.Name+" "+tmpl.Language)
			if l.Find(tmpl.Name, tmpl.Language) != tmpl || !slices.Contains(l.Languages(tmpl.Name), tmpl.Language) {
				t.Fatalf("%+v is not found", tmpl)
			}
		}
		if slices.Sort(keys); !slices.Equal(got, keys) {
			t.Fatalf("got %q, want %q", got, keys)
		}
	})
}

// TestParseTemplate_quality: the rating and the reason of a refusal are read in the forms
// that the provider uses. Any other value is read as "", never as an error.
func TestParseTemplate_quality(t *testing.T) {
	t.Parallel()
	for members, want := range map[string][2]string{
		``: {}, `,"quality_score":null,"rejected_reason":null`: {},
		`,"quality_score":{"score":"GREEN","date":1790000000}`:      {"green"},
		`,"quality_score":"YELLOW"`:                                 {"yellow"},
		`,"quality_score":{"score":"UNKNOWN"}`:                      {},
		`,"quality_score":{"score":7},"rejected_reason":["x"]`:      {},
		`,"quality_score":[],"rejected_reason":"NONE"`:              {},
		`,"quality_score":"red","rejected_reason":"INVALID_FORMAT"`: {"red", "INVALID_FORMAT"},
		`,"rejected_reason":"a\u0000b"`:                             {},
	} {
		got, err := desk.ParseTemplate([]byte(`{"name":"hi","language":"en","status":"APPROVED","components":[]` + members + `}`))
		if err != nil || got.Quality != want[0] || got.Rejected != want[1] {
			t.Errorf("%s: %+v, %v; want %q", members, got, err, want)
		}
	}
}
