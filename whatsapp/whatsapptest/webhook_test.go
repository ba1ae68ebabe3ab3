package whatsapptest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"text":"Merhaba İbrahim / ok"}`: `{"text":"Merhaba \u0130brahim \/ ok"}`,
		`"👍"`:                             `"\ud83d\udc4d"`,
		`"a\/b\\/\"ş\u015F"`:              `"a\/b\\\/\"\u015f\u015F"`,
		"\"\u2028\xff\"":                  `"\u2028\ufffd"`,
		`{}`:                              `{}`,
	} {
		if got := string(whatsapptest.Escape([]byte(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("Merhaba / 👍 \\/ \"")
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := whatsapptest.Escape(plain)
		if bytes.ContainsFunc(escaped, func(r rune) bool { return r > 126 }) {
			t.Errorf("%s is not ASCII", escaped)
		}
		if again := whatsapptest.Escape(escaped); !bytes.Equal(again, escaped) {
			t.Errorf("%s became %s", escaped, again)
		}
		same(t, escaped, plain)
	})
}

func TestSign(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"object":"whatsapp_business_account","entry":[]}`: "1ca363dab318df784e1963b29dca91e2098e6cf2fbf0d3c14e09580a90684a61",
		`{"text":"Merhaba \u0130brahim \/ ok"}`:             "6a3baa56bcaaa9a17c9d1e45ffb54332c6f6cdf9a00a5b7f3911fadad96aa9f6",
	} {
		if got := whatsapptest.Sign("app-secret-for-tests", []byte(body)); got != "sha256="+want {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// play starts a simulator with an inbox, and posts a message that gets this outcome.
func play(t *testing.T, o whatsapptest.Outcome, set whatsapptest.Settings, body string) ([]post, *whatsapptest.Simulator) {
	t.Helper()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: in.url, Settings: set})
	if o.Kind != "" {
		sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: o})
	}
	call(t, "POST", at+messages, body)
	in.settled(t, sim)
	var posts []post // in the order of their start, because webhooks overtake each other
	for _, d := range sim.Deliveries() {
		posts = append(posts, post{body: d.Body})
	}
	return posts, sim
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	type O = whatsapptest.Outcome
	good := order("Ann", "A-17", "Friday")
	for _, tc := range []struct {
		outcome O
		body    string
		want    string
		code    int
	}{
		{O{}, good, "sent delivered read", 0},
		{O{}, fixture(t, "send_text"), "failed", 131047},
		{O{Kind: whatsapptest.Accept}, fixture(t, "send_text"), "sent delivered read", 0},
		{O{Kind: whatsapptest.AcceptNoStatus}, good, "", 0},
		{O{Kind: whatsapptest.Accept, Statuses: []string{}}, good, "", 0},
		{O{Kind: whatsapptest.AcceptThenFailed}, good, "failed", 131026},
		{O{Kind: whatsapptest.AcceptThenFailed, Code: 131049}, good, "failed", 131049},
		{O{Kind: whatsapptest.RefuseRecipient, Code: 131050}, good, "failed", 131050},
		{O{Kind: whatsapptest.RefuseRecipient, Code: 131050, Sync: true}, good, "", 0},
		{O{Kind: whatsapptest.AcceptHeld}, good, "sent delivered read", 0},
		{O{Kind: whatsapptest.AcceptHeld, Code: 132015}, good, "failed", 132015},
		{O{Kind: whatsapptest.AcceptLoseResponse, Delay: 5 * time.Millisecond}, good, "sent delivered read", 0},
		{O{Kind: whatsapptest.AcceptTruncate}, good, "sent delivered read", 0},
		{O{Kind: whatsapptest.HTTP500HTML, Accepted: true}, good, "sent delivered read", 0},
		{O{Kind: whatsapptest.HTTP500HTML}, good, "", 0},
		{O{Kind: whatsapptest.ResetAfterRead}, good, "", 0},
		{O{Kind: whatsapptest.Redirect307}, good, "sent delivered read", 0},
		{O{Kind: whatsapptest.StatusDuplicate}, good, "sent sent delivered delivered read read", 0},
		{O{Kind: whatsapptest.StatusReorder}, good, "read delivered sent", 0},
		{O{Kind: whatsapptest.StatusReorder, Statuses: []string{"delivered", "failed"}}, good, "delivered failed", 0},
		{O{Kind: whatsapptest.StatusForeign}, good, "sent delivered read delivered delivered", 0},
		{O{Kind: whatsapptest.StatusBatch, N: 2}, good, "sent delivered", 0},
		{O{Kind: whatsapptest.StatusBatch, N: 5}, good, "sent delivered read delivered delivered", 0},
	} {
		t.Run(fmt.Sprintf("%s/%s", tc.outcome.Kind, tc.want), func(t *testing.T) {
			t.Parallel()
			posts, sim := play(t, tc.outcome, whatsapptest.Settings{}, tc.body)
			words, found := statuses(t, posts)
			if got := strings.Join(words, " "); got != tc.want {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			if len(found) == 0 {
				return
			}
			if snd := sim.Sends()[0]; found[0]["id"] != snd.ID || found[0]["biz_opaque_callback_data"] != snd.Callback {
				t.Errorf("%v is not of %+v", found[0], snd)
			}
			if code := errorCode(found[0]); code != tc.code {
				t.Errorf("code %d", code)
			}
		})
	}
}

func errorCode(status map[string]any) int {
	var s struct{ Errors []struct{ Code int } }
	b, _ := json.Marshal(status)
	if json.Unmarshal(b, &s) != nil || len(s.Errors) == 0 {
		return 0
	}
	return s.Errors[0].Code
}

func TestStatuses_foreign_ones(t *testing.T) {
	t.Parallel()
	posts, sim := play(t, whatsapptest.Outcome{Kind: whatsapptest.StatusForeign}, whatsapptest.Settings{}, order("a", "b", "c"))
	_, found := statuses(t, posts)
	own := sim.Sends()[0].ID
	if found[3]["id"] == own || found[4]["id"] == own || found[3]["biz_opaque_callback_data"] != "other-tool:0" || found[4]["biz_opaque_callback_data"] != nil {
		t.Errorf("%v\n%v", found[3], found[4])
	}
}

func TestStatuses_batch_spans_entries(t *testing.T) {
	t.Parallel()
	posts, _ := play(t, whatsapptest.Outcome{Kind: whatsapptest.StatusBatch, N: 7}, whatsapptest.Settings{}, order("a", "b", "c"))
	var body struct {
		Entry []struct{ Changes []any }
	}
	if err := json.Unmarshal(posts[0].body, &body); err != nil {
		t.Fatal(err)
	}
	if len(posts) != 1 || len(body.Entry) != 2 || len(body.Entry[0].Changes) != 2 || len(body.Entry[1].Changes) != 2 {
		t.Errorf("%d posts: %s", len(posts), posts[0].body)
	}
}

func TestStatuses_before_the_response(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: in.url})
	sim.AddRule(whatsapptest.Rule{Outcome: whatsapptest.Outcome{Kind: whatsapptest.StatusBefore}})
	call(t, "POST", at+messages, order("a", "b", "c"))
	if n := len(in.all()); n != 3 {
		t.Errorf("%d webhooks by then", n)
	}
}

func TestStatuses_by_version_and_user_ids(t *testing.T) {
	t.Parallel()
	for _, version := range []int{23, 24} {
		posts, _ := play(t, whatsapptest.Outcome{}, whatsapptest.Settings{WebhookVersion: version}, order("a", "b", "c"))
		if has := bytes.Contains(posts[0].body, []byte(`"conversation"`)); has != (version == 23) {
			t.Errorf("v%d: %s", version, posts[0].body)
		}
	}
	posts, _ := play(t, whatsapptest.Outcome{}, whatsapptest.Settings{HideUserIDs: true}, order("a", "b", "c"))
	for _, p := range posts {
		if bytes.Contains(p.body, []byte("user_id")) || bytes.Contains(p.body, []byte("contacts")) {
			t.Errorf("%s", p.body)
		}
	}
	posts, _ = play(t, whatsapptest.Outcome{}, whatsapptest.Settings{}, with(order("a", "b", "c"), `"to":"+905321112233"`, `"recipient":"TR.7"`))
	if _, found := statuses(t, posts); found[0]["recipient_id"] != nil || found[0]["recipient_user_id"] != "TR.7" {
		t.Errorf("%v", found[0])
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	const secret, old = "app-secret-for-tests", "old-app-secret-for-tests"
	for kind, right := range map[whatsapptest.Kind]func(post) bool{
		whatsapptest.Accept:       func(p post) bool { return p.signature == whatsapptest.Sign(secret, p.body) },
		whatsapptest.OldSecret:    func(p post) bool { return p.signature == whatsapptest.Sign(old, p.body) },
		whatsapptest.NoSignature:  func(p post) bool { return p.signature == "" },
		whatsapptest.BadSignature: func(p post) bool { return len(p.signature) == 71 && p.signature != whatsapptest.Sign(secret, p.body) },
	} {
		in := newInbox(t)
		sim, at := start(t, whatsapptest.Config{WebhookURL: in.url})
		sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: kind}})
		call(t, "POST", at+messages, order("a", "b", "c"))
		in.settled(t, sim)
		if kind != whatsapptest.Accept {
			sim.Configure(func(s *whatsapptest.Settings) { s.Signing = whatsapptest.Signing(kind) })
		}
		sim.Inbound(whatsapptest.Inbound{Text: "Şimdi"}).Wait()
		posts := in.all()
		if len(posts) != 4 || !right(posts[0]) || !right(posts[3]) {
			t.Errorf("%s: %d posts, %q", kind, len(posts), posts[0].signature)
		}
	}
}

func TestDeliver_retries_the_same_bytes(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	in.answer = func(n int) int { return map[int]int{1: 500, 2: 302, 3: 200}[n] }
	sim, _ := start(t, whatsapptest.Config{WebhookURL: in.url})
	d := sim.Inbound(whatsapptest.Inbound{Text: "Şimdi / 👍", Name: "Ayşe"})
	if status := d.Wait(); status != http.StatusOK || !reflect.DeepEqual(d.Answers(), []int{500, 302, 200}) {
		t.Errorf("%d %v", status, d.Answers())
	}
	posts := in.all()
	for _, p := range posts {
		if !bytes.Equal(p.body, d.Body) || p.signature != posts[0].signature {
			t.Errorf("%s", p.body)
		}
	}
	if !bytes.Contains(d.Body, []byte(`\u015eimdi \/ \ud83d\udc4d`)) {
		t.Errorf("%s", d.Body)
	}
}

func TestDeliver_gives_up(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	in.answer = func(int) int { return 401 }
	sim, _ := start(t, whatsapptest.Config{WebhookURL: in.url})
	if d := sim.Deliver([]byte(`not JSON`)); d.Wait() != 401 || len(d.Answers()) != 3 || string(in.all()[2].body) != "not JSON" {
		t.Errorf("%v", d.Answers())
	}
	sim.SetWebhook("http://127.0.0.1:1/", "")
	if d := sim.Deliver(nil); d.Wait() != 0 || len(d.Answers()) != 3 {
		t.Errorf("%v", d.Answers())
	}
	sim.SetWebhook("", "")
	if d := sim.Deliver(nil); d.Wait() != 0 || d.Answers() != nil {
		t.Errorf("%v", d.Answers())
	}
}

func TestClose_delivers_what_is_due_and_drops_what_is_not(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: in.url, StatusDelay: 5 * time.Millisecond})
	sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Accept, Delay: time.Hour}})
	call(t, "POST", at+messages, order("a", "b", "c"))
	call(t, "POST", at+messages, order("a", "b", "c"))
	sim.Close()
	if n := len(in.all()); n != 3 {
		t.Errorf("%d webhooks", n)
	}
}

// TestInbound_is_like_the_fixtures: webhooks have exactly the keys of the fixtures.
func TestInbound_is_like_the_fixtures(t *testing.T) {
	t.Parallel()
	type In = whatsapptest.Inbound
	const quoted = "wamid.SIM0000000000000000000000001"
	ayse := func(in In) In { in.From, in.Name = "905321112233", "Ayşe Yılmaz"; return in }
	for name, in := range map[string]In{
		"text":        ayse(In{ID: "wamid.IN0001", Text: "Merhaba, siparişim nerede?"}),
		"button":      ayse(In{ID: "wamid.IN0003", Type: "button", ReplyTo: quoted}),
		"interactive": ayse(In{ID: "wamid.IN0004", Type: "list_reply", ReplyTo: quoted}),
		"image":       ayse(In{ID: "wamid.IN0005", Type: "image", Text: "Fotoğraf", Content: map[string]any{"id": "3000000001", "sha256": "c2FtcGxl"}}),
		"reaction":    ayse(In{ID: "wamid.IN0006", Type: "reaction", Text: "👍", ReplyTo: quoted}),
		"unsupported": ayse(In{ID: "wamid.IN0007", Type: "unsupported"}),
		"username_only": {
			ID: "wamid.IN0002", Name: "Ayşe", Username: "ayse.y", Text: "Hi, no number here",
		},
	} {
		sim := whatsapptest.New(whatsapptest.Config{Now: func() time.Time { return time.Unix(1790000100, 0) }})
		d := sim.Inbound(in)
		if d.ID != in.ID {
			t.Errorf("%s: %s", name, d.ID)
		}
		t.Run(name, func(t *testing.T) { same(t, d.Body, []byte(fixture(t, "webhook_inbound_"+name))) })
	}
}

func TestInbound_of_every_type(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, _ := start(t, whatsapptest.Config{WebhookURL: in.url})
	for _, kind := range []string{
		"text", "image", "video", "audio", "document", "sticker", "location", "contacts", "button", "button_reply", "list_reply", "nfm_reply",
		"call_permission_reply", "reaction", "order", "unsupported", "request_welcome", "hologram",
	} {
		d := sim.Inbound(whatsapptest.Inbound{Type: kind, Twice: kind == "text"})
		var body struct {
			Entry []struct {
				Changes []struct {
					Value struct{ Messages []map[string]any }
				}
			}
		}
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Fatal(err)
		}
		m := body.Entry[0].Changes[0].Value.Messages[0]
		key := fmt.Sprint(m["type"])
		if strings.HasSuffix(kind, "_reply") != (key == "interactive") || m[key] == nil && kind != "request_welcome" && kind != "hologram" {
			t.Errorf("%s: %v", kind, m)
		}
	}
	if n := len(in.settled(t, sim)); n != 19 {
		t.Errorf("%d webhooks", n)
	}
}

// TestAccount_is_like_the_fixtures: changes by people and by Meta.
func TestAccount_is_like_the_fixtures(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000100, 0)
	in := newInbox(t)
	sim, _ := start(t, whatsapptest.Config{WebhookURL: in.url, Now: func() time.Time { return now }})
	sim.Inbound(whatsapptest.Inbound{From: "905321112233", Name: "Ayşe Yılmaz"}).Wait()
	at := func(seconds int64) { now = time.Unix(seconds, 0) }
	template := func(p whatsapptest.TemplatePatch) *whatsapptest.Delivery {
		if err := sim.TemplateSet("order_update", "en_US", p); err != nil {
			t.Fatal(err)
		}
		list := sim.Deliveries()
		d := list[len(list)-1]
		d.Wait()
		return d
	}
	for _, tc := range []struct {
		name string
		at   int64
		do   func() *whatsapptest.Delivery
	}{
		{"user_preferences", 1790000400, func() *whatsapptest.Delivery { return sim.Preferences("905321112233", "stop") }},
		{"phone_quality", 1790000600, func() *whatsapptest.Delivery { return sim.QualityUpdate("THROUGHPUT_UPGRADE", "TIER_UNLIMITED") }},
		{"account_restriction", 1790000700, func() *whatsapptest.Delivery {
			return sim.AccountRestriction("RESTRICTED_BIZ_INITIATED_MESSAGING")
		}},
		{"user_id_update", 1790000500, func() *whatsapptest.Delivery { return sim.UserIDUpdate("905321112233", "TR.9000000000000002") }},
		{"system_number_change", 1790000200, func() *whatsapptest.Delivery { return sim.NumberChange("905321112233", "905324445566") }},
		{"template_quality", 1790000300, func() *whatsapptest.Delivery {
			template(whatsapptest.TemplatePatch{Quality: "GREEN", Quiet: true})
			return template(whatsapptest.TemplatePatch{Quality: "YELLOW"})
		}},
		{"template_status", 1790000300, func() *whatsapptest.Delivery { return template(whatsapptest.TemplatePatch{Status: "APPROVED"}) }},
		{"template_rejected", 1790000300, func() *whatsapptest.Delivery {
			return template(whatsapptest.TemplatePatch{Status: "REJECTED", Reason: "INVALID_FORMAT"})
		}},
		{"template_category", 1790000300, func() *whatsapptest.Delivery { return template(whatsapptest.TemplatePatch{Category: "MARKETING"}) }},
		{"template_components", 1790000300, func() *whatsapptest.Delivery {
			return template(whatsapptest.TemplatePatch{Components: []map[string]any{
				{"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"}, {"type": "BODY", "text": "Hi {{1}}, order {{2}} ships on {{3}}."}, {"type": "FOOTER", "text": "Example Shop"},
			}})
		}},
	} {
		at(tc.at)
		d := tc.do()
		want := fixture(t, "webhook_"+tc.name)
		// Texts in words, and times from now on, may differ.
		got := strings.NewReplacer(
			"User id has been updated.", `User id for Ay\u015fe Y\u0131lmaz has been updated.`,
			fmt.Sprint(now.AddDate(0, 0, 7).Unix()), "1790600000",
			`User Ay\u015fe Y\u0131lmaz changed`, `User Ay\u015fe changed`,
		).Replace(string(d.Body))
		if tc.name == "system_number_change" {
			var from, to = messageOf(t, d.Body), messageOf(t, []byte(want))
			from["id"] = to["id"]
			system, _ := from["system"].(map[string]any)
			system["user_id"] = "TR.9000000000000002"
			system["body"] = "User Ayşe changed from 905321112233 to 905324445566"
			if !reflect.DeepEqual(from, to) {
				t.Errorf("%s: %v\n%v", tc.name, from, to)
			}
			continue
		}
		t.Run(tc.name, func(t *testing.T) { same(t, []byte(got), []byte(want)) })
	}
}

func messageOf(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var b struct {
		Entry []struct {
			Changes []struct {
				Value struct{ Messages []map[string]any }
			}
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	return b.Entry[0].Changes[0].Value.Messages[0]
}

// TestStatuses_are_like_the_fixtures: they are equal except for ids, times and the
// address.
func TestStatuses_are_like_the_fixtures(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{WebhookURL: in.url, Now: func() time.Time { return now }, StatusDelay: time.Millisecond})
	sim.Inbound(whatsapptest.Inbound{From: "905321112233", Name: "Ayşe Yılmaz"}).Wait()
	sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Callback: "failing"}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.AcceptThenFailed}})
	// Only one of the statuses sent and delivered has pricing, so the test sends one
	// message for each of them.
	for _, words := range [][]string{{"sent"}, {"delivered", "read"}} {
		sim.AddRule(whatsapptest.Rule{Match: whatsapptest.Match{Next: 1}, Outcome: whatsapptest.Outcome{Kind: whatsapptest.Accept, Statuses: words}})
		call(t, "POST", at+messages, fixture(t, "send_positional"))
	}
	call(t, "POST", at+messages, with(fixture(t, "send_positional"), "parley:01JTESTSEND0001", "failing"))
	in.settled(t, sim)
	seen := map[string]bool{}
	for _, d := range sim.Deliveries()[1:] {
		words, found := statuses(t, []post{{body: d.Body}})
		got := strings.NewReplacer(jsonOf(found[0]["id"]), `"wamid.SIM0000000000000000000000001"`, `"failing"`, `"parley:01JTESTSEND0001"`).Replace(string(d.Body))
		want := fixture(t, "webhook_status_"+words[0])
		_, wanted := statuses(t, []post{{body: []byte(want)}})
		got = strings.ReplaceAll(got, fmt.Sprintf(`"timestamp":"%s"`, found[0]["timestamp"]), fmt.Sprintf(`"timestamp":"%s"`, wanted[0]["timestamp"]))
		seen[words[0]] = true
		t.Run(words[0], func(t *testing.T) { same(t, []byte(got), []byte(want)) })
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(whatsapptest.Escape(b))
}

func TestWindow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	sim, at := start(t, whatsapptest.Config{Now: func() time.Time { return now }, Settings: whatsapptest.Settings{Window: whatsapptest.WindowSync}})
	text := fixture(t, "send_text")
	if code := call(t, "POST", at+messages, text).code(t); code != 131047 {
		t.Errorf("closed: %d", code)
	}
	sim.NumberChange("905321112233", "905321112233")
	if code := call(t, "POST", at+messages, text).code(t); code != 131047 {
		t.Errorf("a system message opened it: %d", code)
	}
	sim.Inbound(whatsapptest.Inbound{From: "905321112233"})
	now = now.Add(24*time.Hour - time.Second)
	if r := call(t, "POST", at+messages, text); r.status != 200 {
		t.Errorf("open: %s", r.body)
	}
	now = now.Add(time.Second)
	if code := call(t, "POST", at+messages, text).code(t); code != 131047 {
		t.Errorf("closed again: %d", code)
	}
	sim.Configure(func(s *whatsapptest.Settings) { s.Window = whatsapptest.WindowOff })
	if r := call(t, "POST", at+messages, text); r.status != 200 {
		t.Errorf("off: %s", r.body)
	}
}

func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, _ := start(t, whatsapptest.Config{WebhookURL: in.url + "?a=b"})
	if err := sim.VerifyWebhook(t.Context()); err != nil {
		t.Error(err)
	}
	sim.SetWebhook(in.url, "wrong")
	if err := sim.VerifyWebhook(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Error(err)
	}
	sim.SetWebhook("", "")
	if err := sim.VerifyWebhook(t.Context()); err == nil {
		t.Error("there is nothing to verify")
	}
}
