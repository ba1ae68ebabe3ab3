package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// richTemplates are templates that need more than the values of their variables, and some
// which only look as if more would help.
var richTemplates = []string{
	`{"name":"clip","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"HEADER","format":"VIDEO"},{"type":"BODY","text":"Watch, {{1}}"}]}`,
	`{"name":"invoice","language":"en_US","category":"UTILITY","status":"APPROVED","parameter_format":"NAMED","components":[
		{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY","text":"Thanks"},{"type":"URL","text":"Pay","url":"https://pay.example/?i={{1}}"},{"type":"URL","text":"Shop","url":"https://shop.example"},{"type":"URL","text":"Track","url":"https://shop.example/o/{{1}}"}]},
		{"type":"BODY","text":"Your invoice, {{name}}"},{"type":"HEADER","format":"DOCUMENT"}]}`,
	`{"name":"link_inside","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Hi"},{"type":"BUTTONS","buttons":[{"type":"URL","text":"Go","url":"https://shop.example/{{1}}/x"}]}]}`,
	`{"name":"place","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"HEADER","format":"LOCATION"},{"type":"BODY","text":"Here"}]}`,
	`{"name":"sale","language":"en_US","category":"MARKETING","status":"PENDING","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Soon"}]}`,
	`{"name":"spring","language":"en_US","category":"MARKETING","status":"APPROVED","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Spring!"}]}`,
}

func newRichDesk(t *testing.T, changes ...func(*app.Deps)) *deskServer {
	t.Helper()
	s := newDesk(t, changes...)
	for _, source := range richTemplates {
		if _, err := s.app.PutTemplate(t.Context(), s.operator(s.ws), s.channel, []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestTemplateNeeds compares lists with golden files. Without needs=true, they are as they
// always were.
func TestTemplateNeeds(t *testing.T) {
	for _, tc := range []struct {
		name, query string
		status      int
	}{
		{"without", "", 200}, {"without_all", "?status=all", 200}, {"false", "?needs=false", 200},
		{"needs", "?needs=true", 200}, {"needs_all", "?needs=true&status=all&agent=GRACE@example.com", 200},
		{"bad_needs", "?needs=yes", 400}, {"bad_needs_empty", "?needs=", 400}, {"bad_needs_twice", "?needs=true&needs=true", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newRichDesk(t)
			for range 2 { // first made, then from memory
				r := s.do("GET /v1/templates"+tc.query, "")
				if r.status != tc.status {
					t.Errorf("status = %d, want %d", r.status, tc.status)
				}
				golden(t, r)
			}
		})
	}
}

// Files of the types that a title takes, and of others.
const (
	jpegFile = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	webpFile = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
	pdfFile  = "%PDF-1.4\n%%EOF\n"
	mp4File  = "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"
)

// TestSendNeeds: for each template, what is supplied decides the answer. Refusals leave all
// as it was, and the key free. After each success, the message has the file and the links.
func TestSendNeeds(t *testing.T) {
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	for _, tc := range []struct {
		name, template, variables string
		status                    int
		kind                      desk.ErrorType
	}{
		{"picture", "picture", `{"1":"Ada","header.media":"{jpeg}"}`, 201, ""},
		{"picture_in_capitals", "picture", `{"1":"Ada","header.media":"{JPEG}"}`, 201, ""},
		{"video", "clip", `{"header.media":"{mp4}","1":"Ada"}`, 201, ""},
		{"document_and_links", "invoice", `{"button.3":"A-17","name":"Ada","header.media":"{pdf}","button.1":"17&x={{1}}"}`, 201, ""},
		{"own_file", "picture", `{"1":"Ada","header.media":"{own}"}`, 201, ""},

		{"array", "picture", `["Ada"]`, 422, desk.TemplateNotSendable},
		{"array_of_all", "invoice", `["Ada","{pdf}","A-17","17"]`, 422, desk.TemplateNotSendable},
		{"nothing", "invoice", `null`, 422, desk.TemplateNotSendable},
		{"without_file", "picture", `{"1":"Ada"}`, 422, desk.TemplateNotSendable},
		{"without_links", "invoice", `{"name":"Ada","header.media":"{pdf}"}`, 422, desk.TemplateNotSendable},
		{"without_file_but_links", "invoice", `{"name":"Ada","button.1":"a","button.3":"b"}`, 422, desk.TemplateNotSendable},
		{"not_approved", "sale", `{"header.media":"{jpeg}"}`, 422, desk.TemplateNotSendable},
		{"place", "place", `{"header.media":"{jpeg}"}`, 422, desk.TemplateNotSendable},
		{"link_inside", "link_inside", `{"button.0":"a"}`, 422, desk.TemplateNotSendable},

		{"one_link", "invoice", `{"name":"Ada","header.media":"{pdf}","button.3":"a"}`, 422, desk.InvalidVariables},
		{"another_button", "invoice", `{"name":"Ada","header.media":"{pdf}","button.0":"a"}`, 422, desk.InvalidVariables},
		{"all_wrong", "invoice", `{"x":"y","header.media":"","button.1":"a b","button.3":"` + strings.Repeat("a", 1979) + `"}`, 422, desk.InvalidVariables},
		{"unneeded_file", "thanks", `{"header.media":"{jpeg}"}`, 422, desk.InvalidVariables},

		{"file_malformed", "picture", `{"1":"Ada","header.media":"x"}`, 404, desk.NotFound},
		{"file_unknown", "picture", `{"1":"Ada","header.media":"` + unknown + `"}`, 404, desk.NotFound},
		{"file_of_another_workspace", "picture", `{"1":"Ada","header.media":"{foreign}"}`, 404, desk.NotFound},
		{"file_of_another_person", "picture", `{"1":"Ada","header.media":"{theirs}"}`, 404, desk.NotFound},
		{"file_after_variables", "picture", `{"1":"","header.media":"x"}`, 422, desk.InvalidVariables},
		{"file_deleted", "picture", `{"1":"Ada","header.media":"{deleted}"}`, 409, desk.MediaUnavailable},
		{"file_pending", "picture", `{"1":"Ada","header.media":"{pending}"}`, 409, desk.MediaUnavailable},
		{"file_of_another_kind", "picture", `{"1":"Ada","header.media":"{mp4}"}`, 422, desk.MediaNotSendable},
		{"sticker", "picture", `{"1":"Ada","header.media":"{webp}"}`, 422, desk.MediaNotSendable},
		{"picture_as_video", "clip", `{"1":"Ada","header.media":"{jpeg}"}`, 422, desk.MediaNotSendable},
		{"text_as_document", "invoice", `{"name":"Ada","header.media":"{text}","button.1":"a","button.3":"b"}`, 422, desk.MediaNotSendable},
		{"too_large", "picture", `{"1":"Ada","header.media":"{large}"}`, 422, desk.MediaNotSendable},
		{"opted_out_before_the_variables", "spring", `{"header.media":""}`, 422, desk.RecipientOptedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newRichDesk(t)
			elsewhere, _ := s.workspace("Other", "US")
			person := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441"}`)).ID
			if tc.kind == desk.RecipientOptedOut {
				s.hear(s.channel, "+12022243441", "STOP")
			}
			file := func(ws desk.ID, content, claimed string, edit func(*desk.Media)) string {
				m, err := s.app.Media.Upload(t.Context(), s.operator(ws), desk.FileHead{Name: "Offer 17", Type: claimed}, strings.NewReader(content))
				if err != nil {
					t.Fatal(err)
				}
				if edit != nil {
					edit(m)
					s.inTx(func(tx store.Tx) error { return tx.PutMedia(m) })
				}
				return m.ID.String()
			}
			upload := func(content string) string { return file(s.ws, content, "", nil) }
			of := func(contact string) func(*desk.Media) {
				return func(m *desk.Media) { m.ContactID, _ = desk.ParseID(contact) }
			}
			jpeg := upload(jpegFile)
			fill := strings.NewReplacer("{jpeg}", jpeg, "{JPEG}", strings.ToUpper(jpeg), "{webp}", upload(webpFile), "{pdf}", upload(pdfFile), "{mp4}", upload(mp4File),
				"{text}", file(s.ws, "plain words", "text/plain", nil), "{foreign}", file(elsewhere, jpegFile, "", nil),
				"{own}", file(s.ws, jpegFile, "", of(person)), "{theirs}", file(s.ws, jpegFile, "", of(unknown)),
				"{deleted}", file(s.ws, jpegFile, "", func(m *desk.Media) { m.Status, m.MIME, m.Size, m.SHA256 = desk.MediaDeleted, "", 0, nil }),
				"{pending}", file(s.ws, jpegFile, "", func(m *desk.Media) {
					m.Status, m.MIME, m.Size, m.SHA256 = desk.MediaPending, "", 0, nil
					of(person)(m)
				}),
				"{large}", file(s.ws, jpegFile, "", func(m *desk.Media) { m.Size = 5e6 + 1 }))
			body := message(fmt.Sprintf(`"template":{"name":%q,"language":"en_US","variables":%s}`, tc.template, fill.Replace(tc.variables)))
			before := s.state()
			for try := range 2 {
				r := s.outbound("key", body)
				if r.status != tc.status || errorType(r.body) != string(tc.kind) {
					t.Fatalf("%d %s, want %d %s", r.status, r.body, tc.status, tc.kind)
				}
				if try == 0 {
					golden(t, r)
				}
				if tc.status != 201 && s.state() != before {
					t.Errorf("something was stored: %s", s.state())
				}
			}
			if tc.status == 201 {
				t.Run("messages", func(t *testing.T) {
					list := ids(t, s.want(200, "GET /v1/conversations", ""))
					r := s.do("GET /v1/conversations/"+list[0]+"/messages", "")
					golden(t, r)
				})
			} else if r := s.outbound("key", message()); r.status != 201 {
				t.Errorf("the key is not free: %d %s", r.status, r.body)
			}
		})
	}
}

// A recorder is the sandbox, with a list of what it was sent.
type recorder struct {
	provider.Provider
	provider.Talker
	mu      sync.Mutex
	sent    []provider.Dispatch
	uploads int
}

func (r *recorder) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, d)
	return r.Provider.Send(ctx, d)
}

func (r *recorder) Upload(ctx context.Context, at provider.Access, mime, name string, size int64, content io.Reader) (string, error) {
	r.mu.Lock()
	r.uploads++
	r.mu.Unlock()
	return r.Talker.Upload(ctx, at, mime, name, size, content)
}

// TestSendNeeds_once: a dry run gives no file to the provider. Calls at once with one key
// send one message, and a later one has another file or another link: it is refused.
func TestSendNeeds_once(t *testing.T) {
	t.Parallel()
	to := &recorder{}
	s := newRichDesk(t, func(d *app.Deps) {
		to.Provider = d.Providers[desk.SandboxChannel]
		to.Talker = to.Provider.(provider.Talker)
		d.Providers[desk.SandboxChannel] = struct {
			*recorder
			provider.Simulator
		}{to, to.Provider.(provider.Simulator)}
	})
	first, second := s.uploads(s.ws, pdfFile).ID.String(), s.uploads(s.ws, pdfFile+"2").ID.String()
	body := func(file, link, more string) string {
		return message(`"template":{"name":"invoice","language":"en_US","variables":{"name":"Ada","header.media":"`+file+`","button.1":"a","button.3":"`+link+`"}}`, more)
	}
	if r := s.outbound("k", body(first, "A-17", `"dry_run":true`)); r.status != 200 || to.uploads != 0 {
		t.Fatalf("a dry run: %d %s, %d uploads", r.status, r.body, to.uploads)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r := s.outbound("k", body(first, "A-17", `"opt_in_confirmed":true`)); r.status != 201 {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	all.Wait()
	if len(to.sent) != 1 || to.uploads != 1 {
		t.Fatalf("%d sends, %d uploads", len(to.sent), to.uploads)
	}
	reordered := strings.Replace(body(first, "A-17", `"opt_in_confirmed":true`), `"button.1":"a","button.3":"A-17"`, `"button.3":"A-17", "button.1":"a"`, 1)
	if r := s.outbound("k", reordered); r.status != 201 || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same value in another order: %d %s", r.status, r.body)
	}
	for _, other := range []string{body(second, "A-17", `"opt_in_confirmed":true`), body(first, "A-18", `"opt_in_confirmed":true`)} {
		if r := s.outbound("k", other); r.status != 409 || errorType(r.body) != string(desk.IdempotencyKeyReused) {
			t.Errorf("another body: %d %s", r.status, r.body)
		}
	}
	d := to.sent[0]
	if d.File == nil || d.File.Kind != desk.KindDocument || d.File.Name != "a" || !strings.HasPrefix(d.File.Ref, "sandbox.") || d.File.Caption != "" {
		t.Errorf("the file: %+v", d.File)
	}
	if got := fmt.Sprintf("%+v", d.Components); got != "[{Part:body Button:0 Parameters:[{Name:name Text:Ada}]} {Part:button Button:1 Parameters:[{Name: Text:a}]} {Part:button Button:3 Parameters:[{Name: Text:A-17}]}]" {
		t.Errorf("the components: %s", got)
	}
	if r := s.outbound("k2", body(first, "A-18", `"opt_in_confirmed":true`)); r.status != 201 || to.uploads != 1 {
		t.Errorf("again: %d %s, %d uploads", r.status, r.body, to.uploads)
	}
	if r := s.do("DELETE /v1/media/"+first, ""); r.status != 409 || errorType(r.body) != string(desk.MediaInUse) {
		t.Errorf("deleting it: %d %s", r.status, r.body)
	}
	var page struct {
		Data []struct {
			Kind        string
			Attachments []struct {
				MediaID string `json:"media_id"`
			}
			Content struct{ Links []desk.Link }
		}
	}
	conversation := ids(t, s.want(200, "GET /v1/conversations", ""))[0]
	if err := json.Unmarshal(s.want(200, "GET /v1/conversations/"+conversation+"/messages", ""), &page); err != nil {
		t.Fatal(err)
	}
	links := []desk.Link{{Title: "Pay", URL: "https://pay.example/?i=a"}, {Title: "Track", URL: "https://shop.example/o/A-18"}}
	if m := page.Data; len(m) != 2 || m[0].Kind != "template" || m[0].Attachments[0].MediaID != first || !slices.Equal(m[0].Content.Links, links) {
		t.Errorf("%+v", m)
	}
	s.want(204, "DELETE /v1/media/"+second, "")
}
