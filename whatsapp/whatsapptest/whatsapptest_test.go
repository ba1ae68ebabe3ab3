package whatsapptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

const (
	messages = "/v26.0/200300400500600/messages"
	library  = "/v26.0/100200300400500/message_templates"
)

// start starts a simulator on a port. Its statuses come fast.
func start(t *testing.T, c whatsapptest.Config) (*whatsapptest.Simulator, string) {
	t.Helper()
	if c.StatusDelay == 0 {
		c.StatusDelay = time.Millisecond
	}
	if c.RetryDelays == nil {
		c.RetryDelays = []time.Duration{time.Millisecond, time.Millisecond}
	}
	sim := whatsapptest.New(c)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	t.Cleanup(sim.Close)
	return sim, server.URL
}

// A reply is a response as a client sees it.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r reply) code(t *testing.T) int {
	t.Helper()
	var e struct{ Error struct{ Code int } }
	if err := json.Unmarshal(r.body, &e); err != nil {
		t.Fatalf("%d %q: %v", r.status, r.body, err)
	}
	return e.Error.Code
}

// call makes one request. The client does not reuse connections and does not follow
// redirects.
func call(t *testing.T, method, url, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer EAATESTTOKEN")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, b, err}
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}

func same(t *testing.T, got, want []byte) {
	t.Helper()
	if g, w := decoded(t, got), decoded(t, want); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
}

// template returns a message with a template. components may be empty.
func template(name, language, components string) string {
	if components != "" {
		components = `,"components":` + components
	}
	return fmt.Sprintf(`{"messaging_product":"whatsapp","to":"+905321112233","type":"template","biz_opaque_callback_data":"parley:1",`+
		`"template":{"name":%q,"language":{"code":%q}%s}}`, name, language, components)
}

// order returns a message with order_update, these texts in its body, and A-17 in its
// header.
func order(texts ...string) string {
	var params []map[string]string
	for _, text := range texts {
		params = append(params, map[string]string{"type": "text", "text": text})
	}
	b, _ := json.Marshal(params)
	return template("order_update", "en_US", `[{"type":"header","parameters":[{"type":"text","text":"A-17"}]},{"type":"body","parameters":`+string(b)+`}]`)
}

// ready returns a message with siparis_hazir and these parameters in its body.
func ready(params string) string {
	return template("siparis_hazir", "tr",
		`[{"type":"HEADER","parameters":[{"type":"text","parameter_name":"musteri_adi","text":"Ayşe"}]},{"type":"body","parameters":`+params+`}]`)
}

func TestSend_takes_the_fixtures(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for i, name := range []string{"send_positional", "send_named", "send_noparams", "send_text"} {
		r := call(t, "POST", at+messages, fixture(t, name))
		if r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, r.status, r.body)
		}
		var got, want map[string]any
		if err := errors.Join(json.Unmarshal(r.body, &got), json.Unmarshal([]byte(fixture(t, "send_response")), &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got["contacts"], want["contacts"]) {
			t.Errorf("%s: contacts %v", name, got["contacts"])
		}
		if n := sim.Accepted(fmt.Sprintf("parley:01JTESTSEND000%d", i+1)); n != 1 {
			t.Errorf("%s was accepted %d times", name, n)
		}
	}
	sends := sim.Sends()
	if len(sends) != 4 || sim.AcceptedTotal() != 4 || sim.Attempts() != 4 || sim.Duplicates() != nil {
		t.Fatalf("%d sends, %d, %d, %v", len(sends), sim.AcceptedTotal(), sim.Attempts(), sim.Duplicates())
	}
	named := sends[1]
	if named.Template != "siparis_hazir" || named.Language != "tr" || len(named.Parameters) != 3 || named.Parameters[1].Name != "siparis_no" || named.Parameters[1].Text != "A-17" {
		t.Errorf("%+v", named)
	}
	call(t, "POST", at+messages, fixture(t, "send_named"))
	if twice := sim.Duplicates(); len(twice) != 1 || twice[0] != "parley:01JTESTSEND0002" {
		t.Errorf("duplicates: %v", twice)
	}
}

func TestSend_marks_read(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	r := call(t, "POST", at+messages, `{"messaging_product":"whatsapp","status":"read","message_id":"wamid.IN0001"}`)
	if string(r.body) != `{"success":true}` || sim.AcceptedTotal() != 0 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if code := call(t, "POST", at+messages, `{"messaging_product":"whatsapp","status":"read","message_id":"IN0001"}`).code(t); code != 131009 {
		t.Errorf("code %d", code)
	}
}

// with returns a message in which a part is replaced. It fails if the message does not
// contain the part.
func with(body, old, replacement string) string {
	if !strings.Contains(body, old) {
		panic(body + " has no " + old)
	}
	return strings.Replace(body, old, replacement, 1)
}

func TestSend_refuses(t *testing.T) {
	t.Parallel()
	_, at := start(t, whatsapptest.Config{})
	good := order("Ann", "A-17", "Friday")
	plain := template("welcome_plain", "en_US", "")
	text, ask := fixture(t, "send_text"), fixture(t, "send_buttons")
	button := func(sub, index, param string) string {
		return template("track_link", "en_US", `[{"type":"body","parameters":[{"type":"text","text":"Ann"}]},{"type":"button","sub_type":"`+sub+`","index":`+index+`,"parameters":[`+param+`]}]`)
	}
	header := func(param string) string {
		return template("promo_image", "tr", `[{"type":"body","parameters":[{"type":"text","text":"Ann"}]},{"type":"header","parameters":[`+param+`]}]`)
	}
	const siparis, temsilci = `{"type":"text","parameter_name":"siparis_no","text":"A"}`, `{"type":"text","parameter_name":"temsilci_adi","text":"Ali"}`
	for _, tc := range []struct {
		name, body string
		status     int
		code       int // 0: accepted
		details    string
	}{
		{"no JSON", `{`, 400, 100, "JSON"},
		{"two values", good + good, 400, 100, "JSON"},
		{"no object", `null`, 400, 100, "JSON"},
		{"no product", with(good, `"messaging_product":"whatsapp",`, ""), 400, 100, "messaging_product is required"},
		{"other product", with(good, `"whatsapp"`, `"sms"`), 400, 100, "messaging_product must be"},
		{"no type", with(good, `"type":"template",`, ""), 400, 100, "type is required"},
		{"other type", with(good, `"template","biz`, `"hologram","biz`), 400, 100, "hologram"},
		{"type without its object", with(good, `"type":"template"`, `"type":"text"`), 400, 100, "template"},
		{"unknown key", with(good, `"to"`, `"ttl":1,"to"`), 400, 100, `Unexpected key "ttl"`},
		{"unknown key of template", with(good, `"name"`, `"namespace":"x","name"`), 400, 100, "namespace"},
		{"unknown key of language", with(good, `{"code"`, `{"locale":"tr","code"`), 400, 100, "locale"},
		{"unknown policy", with(good, `{"code"`, `{"policy":"fallback","code"`), 400, 100, "DETERMINISTIC"},
		{"language is text", with(good, `{"code":"en_US"}`, `"en_US"`), 400, 100, "must be a JSON object"},
		{"unknown key of component", with(good, `{"type":"body",`, `{"type":"body","format":"TEXT",`), 400, 100, "format"},
		{"unknown component", with(good, `{"type":"body",`, `{"type":"footer",`), 400, 100, "footer"},
		{"component twice", with(good, `{"type":"body",`, `{"type":"header",`), 400, 100, "another component"},
		{"component without parameters", template("welcome_plain", "en_US", `[{"type":"body","parameters":[]}]`), 400, 100, "empty"},
		{"unknown key of parameter", with(good, `"text":"Ann"`, `"text":"Ann","name":"x"`), 400, 100, `Unexpected key "name"`},
		{"unknown type of parameter", with(good, `"text":"Ann","type":"text"`, `"text":"Ann","type":"emoji"`), 400, 100, "emoji"},
		{"parameter is a number", with(good, `"text":"Ann"`, `"text":7`), 400, 100, "must be a string"},
		{"to is a number", with(good, `"+905321112233"`, `905321112233`), 400, 100, "must be a string"},
		{"other recipient type", with(good, `"to"`, `"recipient_type":"user","to"`), 400, 100, "recipient_type"},
		{"callback too long", with(good, "parley:1", strings.Repeat("x", 513)), 400, 100, "512"},
		{"no recipient", with(good, `"to":"+905321112233",`, ""), 400, 100, "to is required"},
		{"unknown key of context", with(good, `"to"`, `"context":{"id":"wamid.1"},"to"`), 400, 100, "id"},
		{"text too long", with(text, "Merhaba", strings.Repeat("ş", 4096)), 400, 100, "4096"},
		{"text with unknown key", with(text, `"body"`, `"markdown":true,"body"`), 400, 100, "markdown"},

		{"buttons", ask, 200, 0, ""},
		{"list", with(ask, `"button"`, `"list"`), 400, 100, "type button"},
		{"no buttons", with(ask, `"buttons"`, `"buttons":[],"x"`), 400, 100, "x"},
		{"empty list of buttons", `{"messaging_product":"whatsapp","to":"+905321112233","type":"interactive","interactive":{"type":"button","body":{"text":"?"},"action":{"buttons":[]}}}`, 400, 131009, "count"},
		{"four buttons", with(ask, `"buttons": [`, `"buttons":[{"type":"reply","reply":{"id":"1","title":"1"}},{"type":"reply","reply":{"id":"2","title":"2"}},`), 400, 131009, "count"},
		{"two alike", with(ask, `"no"`, `"keep"`), 400, 131009, "Duplicated"},
		{"two titles alike", with(ask, `"Gerek yok"`, `"Ayır"`), 400, 131009, "Duplicated"},
		{"title too long", with(ask, `"Gerek yok"`, `"`+strings.Repeat("ş", 21)+`"`), 400, 131009, "title"},
		{"title of two lines", with(ask, `"Gerek yok"`, `"a\nb"`), 400, 131009, "title"},
		{"no title", with(ask, `"Gerek yok"`, `""`), 400, 100, "title"},
		{"id too long", with(ask, `"no"`, `"`+strings.Repeat("x", 257)+`"`), 400, 131009, "id length"},
		{"id with a space", with(ask, `"no"`, `"no "`), 400, 131009, "id length"},
		{"question too long", with(ask, "İki", strings.Repeat("ş", 1024)), 400, 131009, "1024"},
		{"unknown key of a button", with(ask, `"id": "no"`, `"payload":"x","id":"no"`), 400, 100, "payload"},
		{"question to a user id", with(ask, `"to": "+905321112233"`, `"recipient":"TR.9000000000000001"`), 200, 0, ""},

		{"nonsense", with(good, "+905321112233", "Ayşe"), 400, 131009, "phone"},
		{"user id in to", with(good, "+905321112233", "TR.9000000000000001"), 400, 131009, "phone"},
		{"nonsense as user id", with(good, `"to":"+905321112233"`, `"recipient":"905321112233"`), 400, 131009, "user id"},
		{"own number", with(good, "+905321112233", "+90 (212) 555-01-01"), 400, 131021, ""},
		{"code to a user id", with(template("login_code", "en_US", ""), `"to":"+905321112233"`, `"recipient":"TR.9000000000000001"`), 400, 131062, ""},

		{"no such template", template("nothing", "en_US", ""), 404, 132001, "template name (nothing) does not exist in en_US"},
		{"no such language", with(good, `"en_US"`, `"tr"`), 404, 132001, "template name (order_update) does not exist in tr"},
		{"pending", template("siparis_hazir", "en", ""), 404, 132001, ""},
		{"rejected", template("old_promo", "tr", ""), 404, 132001, ""},
		{"paused", template("reminder", "tr", ""), 400, 132015, ""},
		{"disabled", template("reminder", "en_US", ""), 400, 132016, ""},

		{"no name", ready(`[{"type":"text","text":"A"},` + temsilci + `]`), 400, 100, "Parameter name is missing or empty"},
		{"empty name", ready(`[{"type":"text","parameter_name":"","text":"A"},` + temsilci + `]`), 400, 100, "Parameter name is missing or empty"},
		{"wrong name", ready(`[{"type":"text","parameter_name":"x","text":"A"},` + temsilci + `]`), 400, 100, "does not exist"},
		{"name twice", ready(`[` + siparis + `,` + siparis + `]`), 400, 100, "twice"},
		{"name on a positional one", with(good, `{"text":"Ann"`, `{"parameter_name":"1","text":"Ann"`), 400, 100, "positional"},
		{"too few", order("Ann", "A-17"), 400, 132000, "body: number of localizable_params (2) does not match the expected number of params (3)"},
		{"too many", order("a", "b", "c", "d"), 400, 132000, "(4)"},
		{"too few named", ready(`[` + siparis + `]`), 400, 132000, "(1)"},
		{"header forgotten", template("order_update", "en_US", `[{"type":"body","parameters":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]}]`), 400, 132000, "header: "},
		{"header that is not there", template("track_link", "en_US", `[{"type":"body","parameters":[{"type":"text","text":"a"}]},{"type":"header","parameters":[{"type":"text","text":"a"}]}]`), 400, 132000, "header: "},
		{"no button there", button("url", `"1"`, `{"type":"text","text":"A1"}`), 400, 132018, "index 1"},
		{"line break", order("Ann\nB", "A-17", "Friday"), 400, 132018, "new-line"},
		{"tab", order("Ann", "A\t17", "Friday"), 400, 132018, "new-line"},
		{"line separator", order("Ann", "A\u202817", "Friday"), 400, 132018, "new-line"},
		{"five spaces", order("Ann", "A     17", "Friday"), 400, 132018, "spaces"},
		{"static button filled", template("welcome_plain", "en_US", `[{"type":"button","sub_type":"url","index":"0","parameters":[{"type":"text","text":"x"}]}]`), 400, 132018, "does not require"},
		{"empty text", order("Ann", "", "Friday"), 400, 131008, "missing text value"},
		{"blank text", order("Ann", " ", "Friday"), 400, 131008, "missing text value"},
		{"absent text", with(good, `"text":"Ann",`, ""), 400, 131008, "missing text value"},
		{"no button", template("track_link", "en_US", `[{"type":"body","parameters":[{"type":"text","text":"Ann"}]}]`), 400, 131008, "buttons: Button at index 0 of type Url requires a parameter"},
		{"no code", template("coupon_code", "en_US", ""), 400, 131008, "requires a parameter"},
		{"no flow", template("survey_flow", "en_US", ""), 400, 131008, "requires a parameter"},
		{"no cards", template("cards", "en_US", ""), 400, 131008, "carousel"},
		{"no image", template("promo_image", "tr", `[{"type":"body","parameters":[{"type":"text","text":"Ann"}]}]`), 400, 132012, "header: Format mismatch, expected IMAGE, received UNKNOWN"},
		{"text for an image", header(`{"type":"text","text":"x"}`), 400, 132012, "received TEXT"},
		{"no location", template("store_place", "en_US", ""), 400, 132012, "LOCATION"},
		{"image in the body", with(good, `{"text":"Ann","type":"text"}`, `{"type":"image","image":{"id":"1"}}`), 400, 132012, "received IMAGE"},
		{"button of another type", button("quick_reply", `0`, `{"type":"payload","payload":"x"}`), 400, 132012, "Url"},
		{"header too long", with(good, `"text":"A-17"}]},{"type":"body"`, `"text":"`+strings.Repeat("ş", 50)+`"}]},{"type":"body"`), 400, 132005, "header"},
		{"body too long", order(strings.Repeat("ş", 500), "A-17", "Friday"), 400, 132005, "body"}, // the template has {{1}} twice

		{"as it should be", good, 200, 0, ""},
		{"with policy and context", with(with(good, `{"code"`, `{"policy":"deterministic","code"`), `"to"`, `"context":{"message_id":"wamid.1"},"recipient_type":"individual","to"`), 200, 0, ""},
		{"both addresses", with(good, `"to"`, `"recipient":"TR.1","to"`), 200, 0, ""},
		{"to a user id", with(good, `"to":"+905321112233"`, `"recipient":"TR.9000000000000001"`), 200, 0, ""},
		{"four spaces", order("Ann    B", "A-17", "{{1}}"), 200, 0, ""},
		{"named, in any order", ready(`[` + temsilci + `,` + siparis + `]`), 200, 0, ""},
		{"URL suffix", button("url", `"0"`, `{"type":"text","text":"A1"}`), 200, 0, ""},
		{"URL suffix, index a number", button("URL", `0`, `{"type":"text","text":"A1"}`), 200, 0, ""},
		{"image", header(`{"type":"image","image":{"link":"https://media.example.test/x"}}`), 200, 0, ""},
		{"no variables", plain, 200, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := call(t, "POST", at+messages, tc.body)
			if r.err != nil || r.status != tc.status || r.code(t) != tc.code || !strings.Contains(details(r.body), tc.details) {
				t.Errorf("%v %d %s", r.err, r.status, r.body)
			}
		})
	}
}

func details(body []byte) string {
	var e struct {
		Error struct {
			Data struct{ Details string } `json:"error_data"`
		}
	}
	_ = json.Unmarshal(body, &e)
	return e.Error.Data.Details
}

// TestSend_checks_in_order begins with a message in which everything is wrong, and
// repairs one fault after the other. The codes must come in the order that the package
// documents.
func TestSend_checks_in_order(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	sim, at := start(t, whatsapptest.Config{Now: func() time.Time { return now }, Settings: whatsapptest.Settings{
		PerSecond: 1, PairLimit: true, PairBurst: 1, Recipients: []string{"+905321112233", "905320000001"},
	}})
	call(t, "POST", at+messages, with(template("welcome_plain", "en_US", ""), "+905321112233", "+905320000001"))
	body := with(order("a\nb", "", strings.Repeat("x", 1100), "d"), `"whatsapp"`, `"sms"`)
	body = with(with(body, `"type":"template"`, `"type":"image"`), "+905321112233", "x")
	body = with(with(body, "order_update", "reminder"), "en_US", "en")
	body = with(body, `{"text":"`, `{"parameter_name":"p","text":"`)
	phone, token := "1", "wrong"
	path := func() string { return at + "/v26.0/" + phone + "/messages" }
	for _, step := range []struct {
		code   int
		repair func()
	}{
		{190, func() { token = "EAATESTTOKEN" }},
		{100, func() { phone = "200300400500600" }},
		{100, func() { body = "{" + body }}, // the product is repaired next, so the JSON is broken first
		{100, func() { body = body[1:] }},
		{100, func() { body = with(body, `"sms"`, `"whatsapp"`) }},
		{100, func() { body = with(body, `"type":"image"`, `"type":"template"`) }},
		{131009, func() { body = with(body, `"x"`, `"+902125550101"`) }},
		{131021, func() { body = with(body, "+902125550101", "+905329999999") }},
		{131030, func() { body = with(body, "+905329999999", "+905320000001") }},
		{130429, func() { now = now.Add(time.Second) }},
		{131056, func() { body = with(body, "+905320000001", "+905321112233") }},
		{132001, func() { body = with(body, `"code":"en"`, `"code":"tr"`) }},
		{132015, func() { body = with(body, `"code":"tr"`, `"code":"en_US"`) }},
		{132016, func() { body = with(body, "reminder", "order_update") }},
		{100, func() { body = with(body, `"parameter_name":"p",`, "") }},
		{132000, func() { body = with(body, `,{"text":"d","type":"text"}`, "") }},
		{132018, func() { body = with(body, `a\nb`, "a") }},
		{131008, func() { body = with(body, `{"text":"","type":"text"}`, `{"type":"image","image":{"id":"1"}}`) }},
		{132012, func() { body = with(body, `{"type":"image","image":{"id":"1"}}`, `{"type":"text","text":"b"}`) }},
		{132005, func() { body = with(body, strings.Repeat("x", 1100), "c") }},
		{0, func() {}},
	} {
		r := call(t, "POST", path(), body, "Authorization", "Bearer "+token)
		if got := r.code(t); got != step.code {
			t.Fatalf("want %d, got %s for %s", step.code, r.body, body)
		}
		step.repair()
	}
	if sim.AcceptedTotal() != 2 {
		t.Errorf("%d accepted", sim.AcceptedTotal())
	}
}

// TestFailures_are_worded: failures are like the fixtures, except for the trace.
func TestFailures_are_worded(t *testing.T) {
	t.Parallel()
	var want map[string]struct {
		HTTP  int            `json:"_http_status"`
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal([]byte(fixture(t, "graph_errors")), &want); err != nil {
		t.Fatal(err)
	}
	good, one := order("Ann", "A-17", "Friday"), `[{"type":"body","parameters":[{"type":"text","text":"Ann"}]}]`
	refuse := func(code int) whatsapptest.Outcome {
		return whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: code}
	}
	for name, tc := range map[string]struct {
		body    string
		outcome whatsapptest.Outcome
	}{
		"param_count":           {order("Ann", "A-17"), refuse(1)},
		"template_missing":      {with(good, `"en_US"`, `"tr"`), refuse(1)},
		"header_format":         {template("promo_image", "tr", one), refuse(1)},
		"param_text":            {order("Ann\n", "A-17", "Friday"), refuse(1)},
		"param_name_missing":    {ready(`[{"type":"text","text":"A"}]`), refuse(1)},
		"url_button_param":      {template("track_link", "en_US", one), refuse(1)},
		"token_expired":         {good, whatsapptest.Outcome{Kind: whatsapptest.AuthError}},
		"permission":            {good, whatsapptest.Outcome{Kind: whatsapptest.AuthError, Code: 200}},
		"throughput":            {good, whatsapptest.Outcome{Kind: whatsapptest.Throttle, N: 1}},
		"pair_rate":             {good, refuse(131056)},
		"recipient_not_allowed": {good, refuse(131030)},
		"transient":             {good, whatsapptest.Outcome{Kind: whatsapptest.HTTP503JSON}},
		"generic_500":           {good, refuse(131000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, at := start(t, whatsapptest.Config{})
			sim.AddRule(whatsapptest.Rule{Outcome: tc.outcome})
			r := call(t, "POST", at+messages, tc.body)
			var got struct{ Error map[string]any }
			if err := json.Unmarshal(r.body, &got); err != nil {
				t.Fatal(err)
			}
			if got.Error["fbtrace_id"] != r.header.Get("x-fb-trace-id") {
				t.Errorf("trace %v, header %q", got.Error["fbtrace_id"], r.header.Get("x-fb-trace-id"))
			}
			if !strings.Contains(r.header.Get("WWW-Authenticate"), "OAuth") {
				t.Errorf("WWW-Authenticate: %q", r.header.Get("WWW-Authenticate"))
			}
			got.Error["fbtrace_id"] = want[name].Error["fbtrace_id"]
			if r.status != want[name].HTTP || !reflect.DeepEqual(got.Error, want[name].Error) {
				t.Errorf("%d %v\nwant %d %v", r.status, got.Error, want[name].HTTP, want[name].Error)
			}
		})
	}
	_, at := start(t, whatsapptest.Config{PhoneNumberID: "7"})
	var got struct{ Error map[string]any }
	if err := json.Unmarshal(call(t, "POST", at+messages, good).body, &got); err != nil {
		t.Fatal(err)
	}
	got.Error["fbtrace_id"] = "AsimTrace100"
	if !reflect.DeepEqual(got.Error, want["object_missing"].Error) {
		t.Errorf("%v", got.Error)
	}
}

// TestOutcomes checks every outcome with a plain client.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	type O = whatsapptest.Outcome
	isReset := func(r reply) bool { return errors.Is(r.err, syscall.ECONNRESET) }
	says := func(status int, part string) func(reply) bool {
		return func(r reply) bool {
			return r.err == nil && r.status == status && strings.Contains(string(r.body), part)
		}
	}
	for _, tc := range []struct {
		outcome  O
		ok       func(reply) bool
		accepted int
	}{
		{O{Kind: whatsapptest.Accept}, says(200, `"message_status":"accepted"`), 1},
		{O{Kind: whatsapptest.AcceptNoStatus}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.AcceptThenFailed}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.AcceptHeld}, says(200, "held_for_quality_assessment"), 1},
		{O{Kind: whatsapptest.Refuse, Code: 131016}, says(500, "131016"), 0},
		{O{Kind: whatsapptest.Refuse, Code: 132007, HTTP: 418, Details: "bad şign", Subcode: 9}, says(418, `bad \u015fign`), 0},
		{O{Kind: whatsapptest.Refuse, Code: 987654}, says(400, "987654"), 0},
		{O{Kind: whatsapptest.RefuseRecipient}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.RefuseRecipient, Sync: true}, says(400, "131026"), 0},
		{O{Kind: whatsapptest.RefuseRecipient, Code: 131050}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.RefuseRecipient, Code: 130497}, says(403, "130497"), 0},
		{O{Kind: whatsapptest.Throttle, N: 1}, says(429, "130429"), 0},
		{O{Kind: whatsapptest.PairThrottle}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.AuthError}, says(401, "463"), 0},
		{O{Kind: whatsapptest.AuthError, Code: 131031}, says(403, "131031"), 0},
		{O{Kind: whatsapptest.AcceptLoseResponse}, func(r reply) bool { return errors.Is(r.err, io.EOF) }, 1},
		{O{Kind: whatsapptest.AcceptTruncate}, func(r reply) bool {
			return r.status == 200 && errors.Is(r.err, io.ErrUnexpectedEOF) && len(r.body) == 40
		}, 1},
		{O{Kind: whatsapptest.AcceptSlow, Delay: time.Millisecond}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.ResetBeforeRead}, isReset, 0},
		{O{Kind: whatsapptest.ResetAfterRead}, isReset, 0},
		{O{Kind: whatsapptest.HTTP500HTML}, says(500, "<html>"), 0},
		{O{Kind: whatsapptest.HTTP500HTML, Accepted: true}, says(500, "<html>"), 1},
		{O{Kind: whatsapptest.HTTP502Empty}, func(r reply) bool { return r.status == 502 && len(r.body) == 0 }, 0},
		{O{Kind: whatsapptest.HTTP502Empty, Accepted: true}, says(502, ""), 1},
		{O{Kind: whatsapptest.HTTP503JSON}, says(503, `"code":2`), 0},
		{O{Kind: whatsapptest.HTTP503JSON, Code: 131000, Accepted: true}, says(503, `"code":131000`), 1},
		{O{Kind: whatsapptest.HTTP200Garbage}, func(r reply) bool { return r.status == 200 && !json.Valid(r.body) }, 0},
		{O{Kind: whatsapptest.HTTP200Garbage, Accepted: true}, says(200, ""), 1},
		{O{Kind: whatsapptest.HTTP200NoID}, says(200, `"messages":[]`), 0},
		{O{Kind: whatsapptest.HTTP200NoID, Accepted: true}, says(200, `"messages":[]`), 1},
		{O{Kind: whatsapptest.Redirect307}, func(r reply) bool { return r.status == 307 && strings.HasPrefix(r.header.Get("Location"), "/v25.0/") }, 1},
		{O{Kind: whatsapptest.StatusBefore}, says(200, "wamid."), 1},
		{O{Kind: whatsapptest.StatusBatch, N: 9}, says(200, "wamid."), 1},
	} {
		t.Run(fmt.Sprintf("%s/%d/accepted=%d", tc.outcome.Kind, tc.outcome.Code, tc.accepted), func(t *testing.T) {
			t.Parallel()
			sim, at := start(t, whatsapptest.Config{})
			sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: tc.outcome})
			if r := call(t, "POST", at+messages, order("Ann", "A-17", "Friday")); !tc.ok(r) {
				t.Errorf("%v %d %v %s", r.err, r.status, r.header, r.body)
			}
			if n := sim.Accepted("parley:1"); n != tc.accepted {
				t.Errorf("accepted %d times", n)
			}
			sim.ClearRules()
			if r := call(t, "POST", at+messages, order("Ann", "A-17", "Friday")); r.status != 200 {
				t.Errorf("the next one: %d %s", r.status, r.body)
			}
		})
	}
}

// TestRedirect_doubles: a client that follows the redirect sends twice.
func TestRedirect_doubles(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Redirect307}})
	req, err := http.NewRequestWithContext(t.Context(), "POST", at+messages, strings.NewReader(order("a", "b", "c")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer EAATESTTOKEN")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := sim.Accepted("parley:1"); n != 2 || len(sim.Duplicates()) != 1 {
		t.Errorf("accepted %d times", n)
	}
}

func TestReset_leaves_a_long_body_unread(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	sim.AddRule(whatsapptest.Rule{Outcome: whatsapptest.Outcome{Kind: whatsapptest.ResetBeforeRead}})
	if r := call(t, "POST", at+messages, strings.Repeat(" ", 16<<20)); r.err == nil {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestSlow_ends_with_the_simulator(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	sim.AddRule(whatsapptest.Rule{Outcome: whatsapptest.Outcome{Kind: whatsapptest.AcceptSlow, Delay: time.Hour}})
	answered := make(chan reply, 1)
	go func() { answered <- call(t, "POST", at+messages, order("a", "b", "c")) }()
	waitFor(t, "the message to be accepted", func() bool { return sim.AcceptedTotal() == 1 })
	sim.Close()
	if r := <-answered; r.status != 200 {
		t.Errorf("%v %d", r.err, r.status)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func TestRules_first_match_wins(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{Seed: 1})
	refuse := func(m whatsapptest.Match, code int) {
		sim.AddRule(whatsapptest.Rule{Match: m, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Refuse, Code: code}})
	}
	refuse(whatsapptest.Match{Callback: "other"}, 1)
	refuse(whatsapptest.Match{Template: "welcome_plain"}, 3)
	refuse(whatsapptest.Match{To: "90 532 111 22 33", Next: 2}, 4)
	for i, want := range []int{4, 4, 0, 0} {
		if got := call(t, "POST", at+messages, order("a", "b", "c")).code(t); got != want {
			t.Errorf("message %d: %d", i, got)
		}
	}
	if got := call(t, "POST", at+messages, template("welcome_plain", "en_US", "")).code(t); got != 3 {
		t.Errorf("by template: %d", got)
	}
	if n := len(sim.Rules()); n != 2 {
		t.Errorf("%d rules left", n)
	}
	sim.ClearRules()
	refuse(whatsapptest.Match{Share: 0.5}, 2)
	refused := 0
	for range 100 {
		if call(t, "POST", at+messages, order("a", "b", "c")).code(t) == 2 {
			refused++
		}
	}
	if refused < 30 || refused > 70 {
		t.Errorf("half of them are %d", refused)
	}
}

func TestAuthError_stays_till_cleared(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.AuthError}})
	call(t, "POST", at+messages, order("a", "b", "c"))
	if code := call(t, "GET", at+library, "").code(t); code != 190 {
		t.Errorf("code %d", code)
	}
	info := call(t, "GET", at+"/v26.0/debug_token?input_token=EAATESTTOKEN", "")
	if !strings.Contains(string(info.body), `"is_valid":false`) {
		t.Errorf("%s", info.body)
	}
	sim.ClearRules()
	if r := call(t, "GET", at+library, ""); r.status != 200 {
		t.Errorf("%d", r.status)
	}
}

func TestPairThrottle_by_bucket(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Unix(1790000000, 0)
	sim, at := start(t, whatsapptest.Config{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }, Settings: whatsapptest.Settings{PairBurst: 2}})
	sim.AddRule(whatsapptest.Rule{Outcome: whatsapptest.Outcome{Kind: whatsapptest.PairThrottle}})
	for i, step := range []struct {
		wait time.Duration
		code int
	}{{0, 0}, {0, 0}, {0, 131056}, {5 * time.Second, 131056}, {time.Second, 0}, {0, 131056}, {time.Hour, 0}, {0, 0}, {0, 131056}} {
		mu.Lock()
		now = now.Add(step.wait)
		mu.Unlock()
		if got := call(t, "POST", at+messages, order("a", "b", "c")).code(t); got != step.code {
			t.Errorf("step %d: %d", i, got)
		}
	}
}

func TestCountryRewrites(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for _, on := range []bool{false, true} {
		sim.Configure(func(s *whatsapptest.Settings) { s.CountryRewrites = on })
		for to, waID := range map[string]string{"+55 11 91234-5678": "551112345678", "+5551 3344 5566": "555133445566", "+525512345678": "5215512345678", "+905321112233": "905321112233"} {
			if !on {
				waID = strings.NewReplacer("+", "", " ", "", "-", "").Replace(to)
			}
			r := call(t, "POST", at+messages, with(order("a", "b", "c"), "+905321112233", to))
			if !strings.Contains(string(r.body), `"input":"`+to+`","wa_id":"`+waID+`"`) {
				t.Errorf("%s: %s", to, r.body)
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	inbox := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: inbox.url})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			call(t, "POST", at+messages, with(order("a", "b", "c"), "parley:1", fmt.Sprint("parley:", i%20)))
		})
	}
	all.Wait()
	if err := sim.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(sim.Duplicates()) != 20 || sim.AcceptedTotal() != 40 || len(inbox.all()) != 120 {
		t.Errorf("%d duplicates, %d accepted, %d webhooks", len(sim.Duplicates()), sim.AcceptedTotal(), len(inbox.all()))
	}
	ids := map[string]bool{}
	for _, snd := range sim.Sends() {
		ids[snd.ID] = true
	}
	if len(ids) != 40 {
		t.Errorf("%d wamids", len(ids))
	}
}

// An inbox receives webhooks.
type inbox struct {
	url string

	mu     sync.Mutex
	posts  []post
	answer func(n int) int // the status for the n-th webhook; nil: 200
}

type post struct {
	signature string
	body      []byte
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{}
	server := httptest.NewServer(in)
	t.Cleanup(server.Close)
	in.url = server.URL + "/hooks/whatsapp/1"
	return in
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if r.URL.Query().Get("hub.mode") != "subscribe" || r.URL.Query().Get("hub.verify_token") != "verify-me" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, r.URL.Query().Get("hub.challenge"))
		return
	}
	b, _ := io.ReadAll(r.Body)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.posts = append(in.posts, post{r.Header.Get("X-Hub-Signature-256"), b})
	if in.answer != nil {
		w.WriteHeader(in.answer(len(in.posts)))
	}
}

func (in *inbox) all() []post {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]post(nil), in.posts...)
}

// settled returns all webhooks once none is being posted any more.
func (in *inbox) settled(t *testing.T, sim *whatsapptest.Simulator) []post {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := sim.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	return in.all()
}

// statuses returns the words of the statuses in webhooks, in order.
func statuses(t *testing.T, posts []post) (words []string, found []map[string]any) {
	t.Helper()
	for _, p := range posts {
		var body struct {
			Entry []struct {
				Changes []struct {
					Value struct{ Statuses []map[string]any }
				}
			}
		}
		if err := json.NewDecoder(bytes.NewReader(p.body)).Decode(&body); err != nil {
			t.Fatal(err)
		}
		for _, e := range body.Entry {
			for _, c := range e.Changes {
				for _, s := range c.Value.Statuses {
					words, found = append(words, fmt.Sprint(s["status"])), append(found, s)
				}
			}
		}
	}
	return words, found
}
