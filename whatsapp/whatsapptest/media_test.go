package whatsapptest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"parley/whatsapp/whatsapptest"
)

const uploads = "/v26.0/200300400500600/media"

// upload posts a form with these fields and a file of this type.
func upload(t *testing.T, at, kind, content string, fields ...string) reply {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a.bin"`}, "Content-Type": {kind}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = part.Write([]byte(content))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return call(t, "POST", at+uploads, body.String(), "Content-Type", w.FormDataContentType())
}

// uploaded uploads a file and returns its id.
func uploaded(t *testing.T, at, kind, content string) string {
	t.Helper()
	r := upload(t, at, kind, content, "messaging_product", "whatsapp", "type", kind)
	var taken struct{ ID string }
	if err := json.Unmarshal(r.body, &taken); err != nil || r.status != 200 || taken.ID == "" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return taken.ID
}

// about is the simulator's description of a file.
type about struct {
	URL      string
	MIME     string `json:"mime_type"`
	SHA256   string
	FileSize int64 `json:"file_size"`
	ID       string
}

func ask(t *testing.T, at, id string) (a about, r reply) {
	t.Helper()
	r = call(t, "GET", at+"/v26.0/"+id, "")
	if err := json.Unmarshal(r.body, &a); err != nil {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return a, r
}

func TestUploads(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	sim, at := start(t, whatsapptest.Config{Now: func() time.Time { return now }, Settings: whatsapptest.Settings{Window: whatsapptest.WindowOff}})
	image := uploaded(t, at, "image/png", "png")
	other := uploaded(t, at, "application/pdf", "pdf")
	if image == other {
		t.Error("two files have one id")
	}
	if all := sim.Media(); len(all) != 2 || string(all[0].Content) != "png" || all[0].Name != "a.bin" || !all[0].Uploaded || all[1].MIME != "application/pdf" {
		t.Errorf("%+v", all)
	}
	message := func(kind, id string) string {
		return fmt.Sprintf(`{"messaging_product":"whatsapp","to":"+905321112233","type":%q,%q:{"id":%q}}`, kind, kind, id)
	}
	for _, c := range []struct {
		body string
		code int
	}{
		{message("image", image), 0}, {message("document", image), 0}, {message("document", other), 0}, {message("video", image), 131053}, {message("sticker", other), 131053},
		{message("image", "1"), 100}, {message("image", ""), 100}, {with(message("image", image), `"id"`, `"caption":"`+strings.Repeat("ş", 1024)+`","id"`), 0},
		{with(message("image", image), `"id"`, `"caption":"`+strings.Repeat("ş", 1025)+`","id"`), 100}, {with(message("image", image), `"id"`, `"filename":"a.png","id"`), 100},
		{with(message("sticker", image), `"id"`, `"caption":"x","id"`), 100}, {with(message("image", image), `"id"`, `"link":"https://media.example.test/x","id"`), 100},
		{with(message("image", image), `"id":"`+image+`"`, `"link":"https://media.example.test/x"`), 0},
	} {
		if got := call(t, "POST", at+messages, c.body).code(t); got != c.code {
			t.Errorf("%s: %d, want %d", c.body, got, c.code)
		}
	}
	if sends := sim.Sends(); len(sends) != 5 || sends[0].Media != image || sends[0].Type != "image" || len([]rune(sends[3].Text)) != 1024 {
		t.Errorf("%+v", sends)
	}
	now = now.AddDate(0, 0, 31)
	if code := call(t, "POST", at+messages, message("image", image)).code(t); code != 100 {
		t.Errorf("after a month: %d", code)
	}
}

// TestHeaders: the file in a template's header exists and has the header's kind, a filled
// link has at most 2,000 characters.
func TestHeaders(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	header := func(format string) map[string]any {
		return map[string]any{"name": strings.ToLower(format), "language": "en", "components": []any{
			map[string]any{"type": "HEADER", "format": format}, map[string]any{"type": "BODY", "text": "Hi"},
			map[string]any{"type": "BUTTONS", "buttons": []any{map[string]any{"type": "QUICK_REPLY", "text": "Yes"}, map[string]any{"type": "URL", "text": "Go", "url": "https://a.example/{{1}}"}}},
		}}
	}
	sim.SetTemplates([]whatsapptest.Template{header("IMAGE"), header("VIDEO"), header("DOCUMENT")})
	image, video, document, text := uploaded(t, at, "image/png", "x"), uploaded(t, at, "video/mp4", "x"), uploaded(t, at, "application/pdf", "x"), uploaded(t, at, "text/plain", "x")
	to := func(name, param, link string) string {
		return template(name, "en", `[{"type":"header","parameters":[`+param+`]},{"type":"button","sub_type":"url","index":"1","parameters":[{"type":"text","text":"`+link+`"}]}]`)
	}
	file := func(kind, id string) string { return fmt.Sprintf(`{"type":%q,%q:{"id":%q}}`, kind, kind, id) }
	for _, c := range []struct {
		body string
		code int
	}{
		{to("image", file("image", image), "A-17"), 0}, {to("video", file("video", video), "A-17"), 0}, {to("document", file("document", document), "A-17"), 0},
		{to("document", with(file("document", document), `"id"`, `"filename":"a.pdf","id"`), "A-17"), 0},
		{to("image", file("image", "1"), "A-17"), 100}, {to("image", file("image", ""), "A-17"), 100}, {to("image", `{"type":"image"}`, "A-17"), 100},
		{to("image", file("image", video), "A-17"), 131053}, {to("image", file("video", video), "A-17"), 132012}, {to("document", file("document", text), "A-17"), 131053},
		{to("image", with(file("image", image), `"id"`, `"caption":"a","id"`), "A-17"), 100}, {to("image", with(file("image", image), `"id"`, `"filename":"a","id"`), "A-17"), 100},
		{to("image", with(file("image", image), `"type"`, `"parameter_name":"a","type"`), "A-17"), 100}, {to("image", with(file("image", image), `"id"`, `"link":"https://a.example","id"`), "A-17"), 100},
		{to("image", file("image", image), strings.Repeat("ş", 1982)), 0}, {to("image", file("image", image), strings.Repeat("ş", 1983)), 132005},
		{template("image", "en", `[{"type":"header","parameters":[`+file("image", image)+`]}]`), 131008},
		{template("image", "en", `[{"type":"button","sub_type":"url","index":"1","parameters":[{"type":"text","text":"x"}]}]`), 132012},
		{template("image", "en", `[{"type":"header","parameters":[`+file("image", image)+`]},{"type":"button","sub_type":"url","index":"0","parameters":[{"type":"text","text":"x"}]}]`), 131008},
	} {
		if got := call(t, "POST", at+messages, c.body).code(t); got != c.code {
			t.Errorf("%.300s: %d, want %d", c.body, got, c.code)
		}
	}
	if sends := sim.Sends(); len(sends) != 5 || sends[3].Parameters[0].Media != document || sends[3].Parameters[0].Filename != "a.pdf" || sends[3].Parameters[1].Button != 1 || sends[3].Parameters[1].Text != "A-17" {
		t.Errorf("%+v", sends)
	}
}

func TestUploads_refused(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for name, r := range map[string]reply{
		"no product":     upload(t, at, "image/png", "x", "type", "image/png"),
		"no type":        upload(t, at, "image/png", "x", "messaging_product", "whatsapp"),
		"another type":   upload(t, at, "image/png", "x", "messaging_product", "whatsapp", "type", "image/jpeg"),
		"an odd type":    upload(t, at, "text/html", "x", "messaging_product", "whatsapp", "type", "text/html"),
		"an unknown key": upload(t, at, "image/png", "x", "messaging_product", "whatsapp", "type", "image/png", "colour", "red"),
		"empty":          upload(t, at, "image/png", "", "messaging_product", "whatsapp", "type", "image/png"),
		"too large":      upload(t, at, "image/png", strings.Repeat("x", 5<<20+1), "messaging_product", "whatsapp", "type", "image/png"),
		"no form":        call(t, "POST", at+uploads, `{}`),
		"another number": call(t, "POST", at+"/v26.0/1/media", `{}`),
		"no token":       call(t, "POST", at+uploads, `{}`, "Authorization", "Bearer x"),
	} {
		if r.status < 400 || r.code(t) == 0 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	sim.Configure(func(s *whatsapptest.Settings) { s.UploadFault = &whatsapptest.Failure{Code: 131053} })
	if r := upload(t, at, "image/png", "x", "messaging_product", "whatsapp", "type", "image/png"); r.code(t) != 131053 || len(sim.Media()) != 0 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestMedia_of_people: a person's file is fetched by its id, for five minutes, with the
// token.
func TestMedia_of_people(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	sim, at := start(t, whatsapptest.Config{Now: func() time.Time { return now }})
	d := sim.Inbound(whatsapptest.Inbound{Type: "document", File: []byte("pdf"), MIME: "application/pdf", Filename: "b.pdf", Text: "Bill"})
	m, _ := messageOf(t, d.Body)["document"].(map[string]any)
	sum := sha256.Sum256([]byte("pdf"))
	if m["id"] != d.Media || m["mime_type"] != "application/pdf" || m["filename"] != "b.pdf" || m["caption"] != "Bill" || m["sha256"] != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("%v", m)
	}
	a, _ := ask(t, at, d.Media)
	if a.MIME != "application/pdf" || a.FileSize != 3 || a.SHA256 != hex.EncodeToString(sum[:]) || a.ID != d.Media || !strings.HasPrefix(a.URL, at+"/_media/") {
		t.Errorf("%+v", a)
	}
	if r := call(t, "GET", a.URL, ""); r.status != 200 || string(r.body) != "pdf" || r.header.Get("Content-Type") != "application/pdf" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := call(t, "GET", a.URL, "", "Authorization", ""); r.status != 401 {
		t.Errorf("without the token: %d", r.status)
	}
	if r := call(t, "GET", with(a.URL, "hash=", "hash=0"), ""); r.status != 404 {
		t.Errorf("another hash: %d", r.status)
	}
	if r := call(t, "GET", with(a.URL, "ext=1", "ext=2"), ""); r.status != 404 {
		t.Errorf("another time: %d", r.status)
	}
	now = now.Add(5*time.Minute + time.Second)
	if r := call(t, "GET", a.URL, ""); r.status != 404 {
		t.Errorf("after five minutes: %d", r.status)
	}
	if again, _ := ask(t, at, d.Media); call(t, "GET", again.URL, "").status != 200 {
		t.Error("a new address does not work")
	}
	now = now.AddDate(0, 0, 31)
	if _, r := ask(t, at, d.Media); r.code(t) != 100 {
		t.Errorf("after a month: %s", r.body)
	}
}

func TestMedia_on_another_host(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{MediaURL: "https://lookaside.fbsbx.com"})
	if a, _ := ask(t, at, sim.Inbound(whatsapptest.Inbound{Type: "image"}).Media); !strings.HasPrefix(a.URL, "https://lookaside.fbsbx.com/_media/") {
		t.Errorf("%+v", a)
	}
}

func TestMedia_faults(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	const file = "0123456789"
	for _, c := range []struct {
		fault string
		want  []string // the result of each try
	}{
		{"", []string{file}},
		{"fail:2", []string{"500", "500", file}},
		{"truncate:1", []string{"cut", file}},
		{"corrupt:1", []string{"1032547698", file}},
		{"gone", []string{"gone"}},
		{"size:12", []string{file + "\x00\x00"}},
		{"slow:1ms", []string{file}},
		{"redirect:http://127.0.0.1:1/x", []string{"302"}},
	} {
		d := sim.Inbound(whatsapptest.Inbound{Type: "image", File: []byte(file), Fault: c.fault})
		for i, want := range c.want {
			if got := fetched(t, at, d.Media); got != want {
				t.Errorf("%s: try %d: %q, want %q", c.fault, i+1, got, want)
			}
		}
		if all := sim.Media(); c.fault != "gone" && all[len(all)-1].Tries != len(c.want) {
			t.Errorf("%s: %d tries", c.fault, all[len(all)-1].Tries)
		}
	}
	d := sim.Inbound(whatsapptest.Inbound{Type: "image", Fault: "size:2000000000"})
	if a, _ := ask(t, at, d.Media); a.FileSize != 2_000_000_000 || a.SHA256 != "" {
		t.Errorf("%+v", a)
	}
	if image, _ := messageOf(t, d.Body)["image"].(map[string]any); image["sha256"] != nil {
		t.Errorf("%v", image)
	}
	if err := sim.SetFault(d.Media, "url:https://evil.example/x"); err != nil {
		t.Error(err)
	}
	if a, _ := ask(t, at, d.Media); a.URL != "https://evil.example/x" {
		t.Errorf("%+v", a)
	}
	if sim.SetFault("1", "gone") == nil || sim.SetFault(d.Media, "boom") == nil || sim.SetFault(d.Media, "fail:x") == nil {
		t.Error("odd faults are taken")
	}
}

// fetched returns the result of a try to fetch a file.
func fetched(t *testing.T, at, id string) string {
	t.Helper()
	a, r := ask(t, at, id)
	if r.status != 200 {
		return "gone"
	}
	switch r = call(t, "GET", a.URL, ""); {
	case r.err != nil:
		return "cut"
	case r.status != 200:
		return fmt.Sprint(r.status)
	}
	return string(r.body)
}

// TestEcho: the webhook has exactly the keys of the fixture.
func TestEcho(t *testing.T) {
	t.Parallel()
	in := newInbox(t)
	sim, at := start(t, whatsapptest.Config{
		WebhookURL: in.url, Now: func() time.Time { return time.Unix(1790000100, 0) }, Settings: whatsapptest.Settings{Window: whatsapptest.WindowSync},
	})
	d := sim.Echo(whatsapptest.Inbound{ID: "wamid.ECHO0001", From: "905321112233", Text: "Hemen bakıyorum."})
	same(t, d.Body, []byte(fixture(t, "webhook_echo_text")))
	d = sim.Echo(whatsapptest.Inbound{Type: "image", Text: "Bugün", ReplyTo: "wamid.IN0001"})
	if a, _ := ask(t, at, d.Media); a.MIME != "image/jpeg" {
		t.Errorf("%+v", a)
	}
	if code := call(t, "POST", at+messages, fixture(t, "send_text")).code(t); code != 131047 {
		t.Errorf("it opened the window: %d", code)
	}
	sim.Inbound(whatsapptest.Inbound{From: "905321112233", At: time.Unix(1790000100-86_400, 0)})
	if code := call(t, "POST", at+messages, fixture(t, "send_text")).code(t); code != 131047 {
		t.Errorf("a message of yesterday opened it: %d", code)
	}
	if n := len(in.settled(t, sim)); n != 3 {
		t.Errorf("%d webhooks", n)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for _, id := range []string{"wamid.IN0001", "wamid.IN0002"} {
		if r := call(t, "POST", at+messages, `{"messaging_product":"whatsapp","status":"read","message_id":"`+id+`"}`); r.status != http.StatusOK {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if reads := sim.Reads(); len(reads) != 2 || reads[1].ID != "wamid.IN0002" {
		t.Errorf("%+v", reads)
	}
}

// TestSends_of_words: an accepted message has the content that was sent.
func TestSends_of_words(t *testing.T) {
	t.Parallel()
	sim, at := start(t, whatsapptest.Config{})
	for _, name := range []string{"send_quote", "send_recipient", "send_buttons"} {
		if r := call(t, "POST", at+messages, fixture(t, name)); r.status != http.StatusOK {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	sends := sim.Sends()
	if len(sends) != 3 || sends[0].Quoted != "wamid.IN0001" || sends[1].Recipient != "TR.9000000000000001" || len(sends[2].Buttons) != 2 || sends[2].Buttons[0].ID != "keep" || sends[2].Text == "" {
		t.Errorf("%+v", sends)
	}
	if failed := sends[0]; failed.Outcome != whatsapptest.AcceptThenFailed {
		t.Errorf("outside the window: %+v", failed)
	}
}
