package whatsapptest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	_, at := start(t, whatsapptest.Config{})
	const waba, phone, proof = "/v26.0/100200300400500", "/v26.0/200300400500600", "5e99d60d3ce490c0a8ed1012dfc890bd7a28314643d5e367ed47cb3918c39849"
	app := "400500600700800|app-secret-for-tests"
	for _, tc := range []struct {
		name, call, token string
		status, code      int
		part              string
	}{
		{"no token", "GET " + waba, "", 401, 190, "invalid"},
		{"wrong token", "GET " + waba, "x", 401, 190, ""},
		{"app token elsewhere", "GET " + waba, app, 401, 190, ""},
		{"right proof", "GET " + waba + "?appsecret_proof=" + proof, "EAATESTTOKEN", 200, 0, ""},
		{"wrong proof", "GET " + waba + "?appsecret_proof=" + proof[1:], "EAATESTTOKEN", 400, 100, "appsecret_proof"},
		{"empty proof", "GET " + waba + "?appsecret_proof=", "EAATESTTOKEN", 400, 100, "appsecret_proof"},

		{"account", "GET " + waba + "?fields=id,name,timezone_id,account_review_status,message_template_namespace", "EAATESTTOKEN", 200, 0, `"account_review_status":"APPROVED"`},
		{"account, unknown field", "GET " + waba + "?fields=id,verified_name", "EAATESTTOKEN", 400, 100, "nonexisting field (verified_name)"},
		{"number", "GET " + phone + "?fields=id,display_phone_number,verified_name,quality_rating,code_verification_status,name_status,status,platform_type,throughput,account_mode,whatsapp_business_manager_messaging_limit,health_status", "EAATESTTOKEN", 200, 0, `"platform_type":"CLOUD_API"`},
		{"number, unknown field", "GET " + phone + "?fields=id,namespace", "EAATESTTOKEN", 400, 100, "nonexisting field (namespace)"},
		{"numbers", "GET " + waba + "/phone_numbers?fields=id,display_phone_number,verified_name&limit=100", "EAATESTTOKEN", 200, 0, `"id":"200300400500600"`},
		{"templates of a number", "GET " + phone + "/message_templates", "EAATESTTOKEN", 400, 100, "nonexisting field (message_templates)"},
		{"template", "GET /v24.0/900000000000002?fields=name,status,sub_category", "EAATESTTOKEN", 200, 0, `"name":"order_update"`},
		{"nothing", "GET /v26.0/12345", "EAATESTTOKEN", 400, 100, `"error_subcode":33`},
		{"unknown edge", "GET " + waba + "/flows", "EAATESTTOKEN", 400, 2500, ""},
		{"no version", "GET /100200300400500", "EAATESTTOKEN", 400, 2500, ""},
		{"other method", "DELETE " + waba + "/message_templates", "EAATESTTOKEN", 400, 100, "Unsupported delete request"},
		{"get messages", "GET " + phone + "/messages", "EAATESTTOKEN", 400, 100, ""},
		{"post to the account", "POST " + waba + "/messages", "EAATESTTOKEN", 400, 100, `"error_subcode":33`},
		{"templates, unknown field", "GET " + waba + "/message_templates?fields=name,colour", "EAATESTTOKEN", 400, 100, "nonexisting field (colour)"},
		{"templates, unknown filter", "GET " + waba + "/message_templates?status=APPROVED", "EAATESTTOKEN", 400, 100, "status"},
		{"templates, no limit", "GET " + waba + "/message_templates?limit=x", "EAATESTTOKEN", 400, 100, "limit"},
		{"templates, no cursor", "GET " + waba + "/message_templates?after=c1", "EAATESTTOKEN", 400, 100, "cursor"},

		{"apps", "GET " + waba + "/subscribed_apps", "EAATESTTOKEN", 200, 0, `"id":"400500600700800"`},
		{"subscribe", "POST " + waba + "/subscribed_apps", "EAATESTTOKEN", 200, 0, `{"success":true}`},
		{"token", "GET /v26.0/debug_token?input_token=EAATESTTOKEN", app, 200, 0, `"is_valid":true`},
		{"token by itself", "GET /v26.0/debug_token?input_token=EAATESTTOKEN", "EAATESTTOKEN", 200, 0, `"app_id":"400500600700800"`},
		{"another token", "GET /v26.0/debug_token?input_token=x", app, 200, 0, `"is_valid":false`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(tc.call, " ")
			r := call(t, method, at+path, "", "Authorization", "Bearer "+tc.token)
			if r.status != tc.status || r.code(t) != tc.code || !strings.Contains(string(r.body), tc.part) && !strings.Contains(r.header.Get("WWW-Authenticate"), tc.part) {
				t.Errorf("%d %s", r.status, r.body)
			}
			for _, name := range []string{"X-Business-Use-Case-Usage", "X-App-Usage"} {
				if !json.Valid([]byte(r.header.Get(name))) {
					t.Errorf("%s: %q", name, r.header.Get(name))
				}
			}
			version, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			if !strings.HasPrefix(version, "v") {
				version = ""
			}
			if r.header.Get("Content-Type") != "application/json; charset=UTF-8" || r.header.Get("facebook-api-version") != version || r.header.Get("x-fb-request-id") == "" {
				t.Errorf("%v", r.header)
			}
		})
	}
}

func TestGraph_is_like_the_fixtures(t *testing.T) {
	t.Parallel()
	_, at := start(t, whatsapptest.Config{})
	for path, name := range map[string]string{
		"/v26.0/200300400500600":                       "phone_number",
		"/v26.0/100200300400500/subscribed_apps":       "subscribed_apps",
		"/v26.0/debug_token?input_token=EAATESTTOKEN":  "debug_token",
		"/v26.0/debug_token/?input_token=EAATESTTOKEN": "debug_token",
	} {
		r := call(t, "GET", at+path, "")
		same(t, r.body, []byte(fixture(t, name)))
	}
}

func TestMessages_guard_the_headers(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for _, headers := range [][]string{{"Idempotency-Key", "x"}, {"X-Idempotency-Key", ""}, {"Content-Type", "application/x-www-form-urlencoded"}} {
		if r := call(t, "POST", at+messages, order("a", "b", "c"), headers...); r.code(t) != 100 || !strings.Contains(details(r.body), headers[0]) {
			t.Errorf("%v: %s", headers, r.body)
		}
	}
	sim.Configure(func(s *whatsapptest.Settings) { s.RequireProof = true })
	if code := call(t, "POST", at+messages, order("a", "b", "c")).code(t); code != 100 || sim.AcceptedTotal() != 0 {
		t.Errorf("without a proof: %d", code)
	}
}

func TestThrottle_tells_in_headers(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	sim.AddRule(whatsapptest.Rule{Outcome: whatsapptest.Outcome{Kind: whatsapptest.Throttle, N: 2}})
	for i, want := range []int{429, 429, 200} {
		r := call(t, "POST", at+messages, order("a", "b", "c"))
		usage := r.header.Get("X-Business-Use-Case-Usage")
		if r.status != want || strings.Contains(usage, `"call_count":100`) != (want == 429) || strings.Contains(usage, `regain_access":5`) != (want == 429) {
			t.Errorf("%d: %d %s", i, r.status, usage)
		}
	}
}

// A page is a page of the list of templates.
type page struct {
	Data   []struct{ ID, Name, Language string }
	Paging struct {
		Cursors        struct{ Before, After string }
		Next, Previous string
	}
}

func get(t *testing.T, url string) (p page, r reply) {
	t.Helper()
	r = call(t, "GET", url, "")
	if r.err == nil && r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, &p); err != nil {
			t.Fatal(err)
		}
	}
	return p, r
}

// walk follows the list to its end, for at most 20 pages, and counts the templates on
// each page.
func walk(t *testing.T, url string) (sizes []int, names []string, last reply) {
	t.Helper()
	for url != "" && len(sizes) < 20 {
		p, r := get(t, url)
		if last = r; r.status != http.StatusOK {
			break
		}
		sizes = append(sizes, len(p.Data))
		for _, d := range p.Data {
			names = append(names, d.Name+"/"+d.Language)
		}
		url = p.Paging.Next
	}
	return sizes, names, last
}

func TestTemplates_pages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		query  string
		paging whatsapptest.Paging
		sizes  []int
		status int
	}{
		{"one page", "", whatsapptest.Paging{}, []int{18}, 200},
		{"three pages", "?limit=7", whatsapptest.Paging{}, []int{7, 7, 4}, 200},
		{"even pages", "?limit=9", whatsapptest.Paging{}, []int{9, 9}, 200},
		{"the server's size", "?limit=100&fields=name,language", whatsapptest.Paging{Size: 5}, []int{5, 5, 5, 3}, 200},
		{"empty page", "?limit=9", whatsapptest.Paging{EmptyPage: 2}, []int{9, 0, 9}, 200},
		{"empty first page", "?limit=9", whatsapptest.Paging{EmptyPage: 1}, []int{0, 9, 9}, 200},
		{"failing page", "?limit=7", whatsapptest.Paging{FailOnPage: 2}, []int{7}, 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, at := start(t, whatsapptest.Config{Settings: whatsapptest.Settings{Paging: tc.paging}})
			sizes, names, last := walk(t, at+library+tc.query)
			if !reflect.DeepEqual(sizes, tc.sizes) || last.status != tc.status {
				t.Errorf("%v, then %d", sizes, last.status)
			}
			slices.Sort(names)
			if all := slices.Compact(slices.Clone(names)); len(all) != len(names) || tc.status == 200 && len(names) != 18 {
				t.Errorf("%d templates: %v", len(names), names)
			}
		})
	}
	sim, at := start(t, whatsapptest.Config{Settings: whatsapptest.Settings{Paging: whatsapptest.Paging{Loop: true}}})
	if sizes, _, _ := walk(t, at+library+"?limit=7"); len(sizes) != 20 {
		t.Errorf("the loop ended: %v", sizes)
	}
	second, _ := get(t, at+library+"?limit=7")
	third, _ := get(t, second.Paging.Next)
	if third.Paging.Next != second.Paging.Next {
		t.Errorf("%s, then %s", second.Paging.Next, third.Paging.Next)
	}
	u, err := url.Parse(second.Paging.Next)
	if err != nil || "http://"+u.Host != at || u.Query().Get("limit") != "7" || u.Query().Get("after") != second.Paging.Cursors.After {
		t.Errorf("%s", second.Paging.Next)
	}

	sim.Configure(func(s *whatsapptest.Settings) { s.Paging = whatsapptest.Paging{} })
	var many []whatsapptest.Template
	for i := range 500 {
		many = append(many, whatsapptest.Template{"name": fmt.Sprint("t", i), "language": "en", "category": "UTILITY", "components": []map[string]any{{"type": "BODY", "text": "Hi"}}})
	}
	sim.SetTemplates(many)
	if sizes, names, _ := walk(t, at+library+"?limit=100"); len(sizes) != 5 || len(names) != 500 {
		t.Errorf("%v", sizes)
	}
	if r := call(t, "POST", at+messages, template("t499", "en", "")); r.status != 200 {
		t.Errorf("%s", r.body)
	}
}

// TestTemplates_are_the_fixtures: every template of the library equals its fixture.
func TestTemplates_are_the_fixtures(t *testing.T) {
	t.Parallel()
	_, at := start(t, whatsapptest.Config{})
	var want []any
	for i := range 3 {
		var p struct{ Data []any }
		if err := json.Unmarshal([]byte(fixture(t, fmt.Sprintf("templates_page%d", i+1))), &p); err != nil {
			t.Fatal(err)
		}
		want = append(want, p.Data...)
	}
	var got struct{ Data []any }
	if err := json.Unmarshal(call(t, "GET", at+library+"?limit=100", "").body, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Data, want) {
		t.Errorf("%v", got.Data)
	}
}

func TestTemplates_change(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: in.url})
	change := func(p whatsapptest.TemplatePatch) {
		t.Helper()
		if err := sim.TemplateSet("welcome_plain", "en_US", p); err != nil {
			t.Fatal(err)
		}
	}
	hello := template("welcome_plain", "en_US", "")
	change(whatsapptest.TemplatePatch{Status: "PAUSED", WebhookFirst: true})
	if n := len(in.all()); n != 1 {
		t.Errorf("%d webhooks before the list shows it", n)
	}
	if code := call(t, "POST", at+messages, hello).code(t); code != 132015 {
		t.Errorf("paused: %d", code)
	}
	change(whatsapptest.TemplatePatch{Status: "REINSTATED"})
	change(whatsapptest.TemplatePatch{Status: "FLAGGED", Quiet: true})
	if r := call(t, "POST", at+messages, hello); r.status != 200 {
		t.Errorf("reinstated: %s", r.body)
	}
	change(whatsapptest.TemplatePatch{Components: []map[string]any{{"type": "body", "text": "Hi {{1}}"}}})
	if code := call(t, "POST", at+messages, hello).code(t); code != 132000 {
		t.Errorf("with a variable: %d", code)
	}
	id, err := sim.TemplateRecreate("welcome_plain", "en_US")
	if err != nil || id == "900000000000003" {
		t.Errorf("%s %v", id, err)
	}
	if r := call(t, "GET", at+"/v26.0/"+id, ""); r.status != 200 {
		t.Errorf("%s", r.body)
	}
	if r := call(t, "GET", at+"/v26.0/900000000000003", ""); r.status != 400 {
		t.Errorf("%s", r.body)
	}
	if err := sim.TemplateDelete("welcome_plain", "en_US"); err != nil {
		t.Error(err)
	}
	if code := call(t, "POST", at+messages, hello).code(t); code != 132001 {
		t.Errorf("deleted: %d", code)
	}
	for _, err := range []error{sim.TemplateDelete("x", "tr"), sim.TemplateSet("x", "tr", whatsapptest.TemplatePatch{})} {
		if err == nil {
			t.Error("there is none")
		}
	}
	if len(whatsapptest.Library()) != 18 || whatsapptest.Library()[2]["status"] != "APPROVED" {
		t.Error("the library itself changed")
	}
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{Settings: whatsapptest.Settings{Unsubscribed: true}})
	apps := at + "/v26.0/100200300400500/subscribed_apps"
	if r := call(t, "GET", apps, ""); string(r.body) != `{"data":[]}` {
		t.Errorf("%s", r.body)
	}
	sim.SetWebhook(in.url, "")
	if d := sim.Inbound(whatsapptest.Inbound{}); d.Wait() != 0 {
		t.Error("a webhook came all the same")
	}
	for body, want := range map[string]int{
		`{"override_callback_uri":"` + in.url + `","verify_token":"wrong"}`: 2200,
		`{"override_callback_uri":"` + in.url + `"}`:                        100,
		`{"callback":"x"}`: 100,
		`{"override_callback_uri":"` + in.url + `","verify_token":"verify-me"}`: 0,
	} {
		if code := call(t, "POST", apps, body).code(t); code != want {
			t.Errorf("%s: %d", body, code)
		}
	}
	if d := sim.Inbound(whatsapptest.Inbound{}); d.Wait() != 200 {
		t.Errorf("%v", d.Answers())
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	_, at := start(t, whatsapptest.Config{RetryDelays: []time.Duration{}})
	for _, step := range []struct {
		call, body string
		status     int
		part       string
	}{
		{"GET /_sim/", "", 200, "accept_lose_response"},
		{"POST /_sim/webhook", `{"url":"` + in.url + `","verify_token":"verify-me","verify":true}`, 200, "true"},
		{"POST /_sim/webhook", `{"uri":"x"}`, 400, "uri"},
		{"POST /_sim/inbound", `{"from":"905321112233","name":"Ayşe","text":"Merhaba"}`, 200, `"webhook_status": 200`},
		{"POST /_sim/inbound", `{"from":905321112233}`, 400, "error"},
		{"POST /_sim/inbound", `{"type":"image","file":"iVBORw==","mime":"image/png","fault":"fail:1"}`, 200, `"media_id"`},
		{"POST /_sim/inbound", `{"type":"image","fault":"boom"}`, 400, "truncate:N"},
		{"POST /_sim/echo", `{"from":"905321112233","text":"Hi"}`, 200, `"webhook_status": 200`},
		{"POST /_sim/echo", `{"fault":"boom"}`, 400, "truncate:N"},
		{"GET /_sim/media", "", 200, `"image/png"`},
		{"POST /_sim/media/1", `{"fault":"gone"}`, 400, "no file"},
		{"GET /_sim/reads", "", 200, `"reads": []`},
		{"POST /_sim/rules", `{"match":{"to":"+905321112233","next":1},"outcome":"accept_lose_response"}`, 200, "accept_lose_response"},
		{"POST /_sim/rules", `{"outcome":{"kind":"accept_slow","delay":"2s"}}`, 200, `"delay": "2s"`},
		{"POST /_sim/rules", `{"outcome":"explode"}`, 400, "there are [accept "},
		{"POST /_sim/rules", `{"match":{}}`, 400, "no outcome"},
		{"POST /_sim/rules", `{"outcome":{"kind":"accept","colour":1}}`, 400, "colour"},
		{"POST /_sim/rules", `{"outcome":{"kind":"accept","delay":"soon"}}`, 400, "duration"},
		{"GET /_sim/rules", "", 200, "accept_slow"},
		{"DELETE /_sim/rules", "", 200, "true"},
		{"GET /_sim/rules", "", 200, "[]"},
		{"POST /_sim/settings", `{"pair_limit":true,"paging":{"size":5}}`, 200, `"size": 5`},
		{"POST /_sim/settings", `{"usage":81,"phone":{"quality_rating":"RED"}}`, 200, `"pair_limit": true`},
		{"POST /_sim/settings", `{"speed":1}`, 400, "speed"},
		{"GET /_sim/settings", "", 200, `"usage": 81`},
		{"GET /v26.0/200300400500600", "", 200, "RED"},
		{"GET /_sim/templates", "", 200, "siparis_hazir"},
		{"PUT /_sim/templates", `{"data":[{"name":"hello","language":"en","components":[{"type":"BODY","text":"Hi"}]}]}`, 200, "1"},
		{"PUT /_sim/templates", `[{"name":"hello"}]`, 400, "no language"},
		{"PUT /_sim/templates", `{}`, 400, "neither"},
		{"POST /v26.0/200300400500600/messages", template("hello", "en", ""), 200, "wamid"},
		{"POST /_sim/templates/hello/en", `{"status":"PAUSED"}`, 200, "true"},
		{"POST /_sim/templates/hello/tr", `{"status":"PAUSED"}`, 400, "no template"},
		{"POST /_sim/templates/hello/en/recreate", "", 200, "id"},
		{"DELETE /_sim/templates/hello/en", "", 200, "true"},
		{"GET /_sim/sends", "", 200, `"total": 1`},
		{"GET /_sim/sends?callback=parley:1", "", 200, `"accepted": 1`},
		{"POST /_sim/deliver", `these bytes`, 200, `"webhook_status": 200`},
		{"POST /_sim/change", `{"field":"account_alerts","value":{"a":1}}`, 200, "200"},
		{"POST /_sim/change", `{"field":"account_alerts"}`, 400, "value"},
		{"POST /_sim/preferences", `{"from":"905321112233","value":"stop"}`, 200, "200"},
		{"POST /_sim/preferences", `{"from":"905321112233"}`, 400, "missing"},
		{"POST /_sim/user-id", `{"from":"905321112233","user_id":"TR.2"}`, 200, "200"},
		{"POST /_sim/number", `{"from":"905321112233","to":"905324445566"}`, 200, "200"},
		{"POST /_sim/restriction", `{}`, 200, "200"},
		{"POST /_sim/quality", `{}`, 200, "200"},
		{"GET /_sim/deliveries", "", 200, "these bytes"},
		{"GET /_sim/nothing", "", 404, ""},
	} {
		method, path, _ := strings.Cut(step.call, " ")
		if r := call(t, method, at+path, step.body); r.status != step.status || !strings.Contains(string(r.body), step.part) {
			t.Errorf("%s %s: %d %s", step.call, step.body, r.status, r.body)
		}
	}
}
