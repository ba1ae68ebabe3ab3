package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/app"
	"parley/desk"
)

// TestTemplates compares answers with golden files. {ada} is a contact with a name and a
// phone, {nameless} one without a name.
func TestTemplates(t *testing.T) {
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	for _, tc := range []struct {
		name, query string
		status      int
	}{
		{"sendable", "", 200},
		{"all", "?status=all", 200},
		{"channel", "?channel_id={channel}", 200},
		{"channel_in_capitals", "?channel_id={CHANNEL}", 200},
		{"channel_empty", "?channel_id={empty}", 200},
		{"agent", "?agent=GRACE@example.com", 200},
		{"agent_id", "?agent={member}", 200},
		{"agent_unknown", "?agent=nobody@example.com&contact_id={ada}", 200},
		{"agent_empty", "?agent=", 200},
		{"contact", "?contact_id={ada}", 200},
		{"contact_nameless", "?contact_id={nameless}", 200},
		{"contact_and_agent", "?contact_id={ada}&agent=ada@example.com", 200},
		{"contact_and_name", "?contact_id={ada}&contact_name=+Countess%0ALovelace+", 200},
		{"phone", "?phone=202.224.3441", 200},
		{"phone_unknown", "?phone=%2B12022243449", 200},
		{"phone_unknown_and_name", "?phone=%2B12022243449&contact_name=Charles+%22B%22+Babbage", 200},
		{"name_alone", "?contact_name=Ada+Lovelace", 200},
		{"name_and_agent", "?contact_name=Ada&agent=nobody@example.com", 200},
		{"name_empty", "?contact_name=+&agent=ada@example.com", 200},

		{"bad_status", "?status=approved", 400},
		{"bad_status_empty", "?status=", 400},
		{"bad_channel", "?channel_id=x", 400},
		{"bad_channel_unknown", "?channel_id=" + unknown, 404},
		{"bad_contact", "?contact_id=x", 400},
		{"bad_contact_unknown", "?contact_id=" + unknown, 404},
		{"bad_contact_zero", "?contact_id=00000000-0000-0000-0000-000000000000", 404},
		{"bad_contact_and_phone", "?contact_id={ada}&phone=%2B12022243441", 400},
		{"bad_phone", "?phone=x", 400},
		{"bad_phone_empty", "?phone=", 400},
		{"bad_name_long", "?contact_name=" + strings.Repeat("x", 256), 400},
		{"bad_name_nul", "?contact_name=a%00", 400},
		{"bad_agent_nul", "?agent=a%00", 400},
		{"bad_unknown_parameter", "?contact=x", 400},
		{"bad_repeated_parameter", "?agent=a&agent=b", 400},
		{"bad_query_before_channel", "?channel_id=" + unknown + "&status=x", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDesk(t)
			empty := s.addSandbox("empty")
			s.enable(empty, false)
			fill := strings.NewReplacer("{channel}", s.channel.String(), "{CHANNEL}", strings.ToUpper(s.channel.String()), "{empty}", empty.String(), "{member}", s.members[0].ID.String(),
				"{ada}", contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441","name":"Augusta Ada  Lovelace"}`)).ID,
				"{nameless}", contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243442"}`)).ID)
			for range 2 { // first made, then from memory
				r := s.do("GET /v1/templates"+fill.Replace(tc.query), "")
				if r.status != tc.status {
					t.Errorf("status = %d, want %d", r.status, tc.status)
				}
				golden(t, r)
			}
		})
	}
}

// TestTemplatesLookUpNobody: a key that may not read contacts learns nothing of them, not
// even whether a query is well-formed.
func TestTemplatesLookUpNobody(t *testing.T) {
	s := newDesk(t)
	ada := contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441","name":"Ada"}`)).ID
	key := s.newKey(s.ws, "templates:read")
	for _, query := range []string{
		"?phone=%2B12022243441", "?phone=%2B12022243449", "?phone=", "?phone", "?contact_id=" + ada, "?contact_id=x", "?%63ontact_id=x",
		"?contact_id=" + ada + "&phone=x", "?nonsense=1&phone=x", "?%zz&phone=x", "?phone=x&phone=y", "?status=x&contact_id=",
	} {
		r := s.as(key, "GET /v1/templates"+query, "")
		if r.status != 403 || !bytes.Contains(r.body, []byte("contacts:read")) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	for _, query := range []string{"", "?contact_name=Ada&agent=ada@example.com", "?status=all"} {
		if r := s.as(key, "GET /v1/templates"+query, ""); r.status != 200 {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	both := s.newKey(s.ws, "templates:read,contacts:read")
	if r := s.as(both, "GET /v1/templates?phone=%2B12022243441", ""); r.status != 200 || !bytes.Contains(r.body, []byte(ada)) {
		t.Errorf("with both permissions: %d %s", r.status, r.body)
	}
}

func TestTemplatesChannel(t *testing.T) {
	s := newServer(t)
	if r := s.do("GET /v1/templates", ""); r.status != 404 || errorType(r.body) != "not_found" {
		t.Errorf("no channel: %d %s", r.status, r.body)
	}
	first := s.addChannel("sandbox-1")
	s.enable(first, false)
	s.want(200, "GET /v1/templates", "")
	second := s.addChannel("sandbox-2")
	if body := s.want(200, "GET /v1/templates", ""); !bytes.Contains(body, []byte(second.String())) {
		t.Errorf("of one channel that is enabled: %.100s", body)
	}
	s.enable(first, true)
	if r := s.do("GET /v1/templates", ""); r.status != 400 || errorType(r.body) != "invalid_request" {
		t.Errorf("two channels: %d %s", r.status, r.body)
	}
	s.want(200, "GET /v1/templates?channel_id="+first.String(), "")
}

// TestTemplatesChange: an answer that is made from remembered parts is never out of date.
func TestTemplatesChange(t *testing.T) {
	s := newDesk(t)
	count := func(text, query string) int {
		return bytes.Count(s.want(200, "GET /v1/templates"+query, ""), []byte(text))
	}
	if n := count(`"name":"order_update"`, ""); n != 2 {
		t.Fatalf("%d templates", n)
	}
	for i, status := range []string{"REJECTED", "APPROVED", "PAUSED"} {
		source := strings.Replace(deskTemplates[0], "APPROVED", status, 1)
		if _, err := s.app.PutTemplate(t.Context(), s.operator(s.ws), s.channel, []byte(source)); err != nil {
			t.Fatal(err)
		}
		if n := count(`"name":"order_update"`, ""); n != 1+i%2 {
			t.Errorf("%s: %d templates", status, n)
		}
		if n := count(`"status":"`+strings.ToLower(status)+`"`, "?status=all"); n == 0 {
			t.Errorf("%s: not among all", status)
		}
	}
	place := desk.BindingPlace{Template: "offer", Language: "en_US", Address: "offer"}
	for _, binding := range []desk.Binding{desk.AgentLastName, desk.CustomerLastName, ""} {
		_, err := s.app.EditChannel(t.Context(), s.operator(s.ws), s.channel, app.ChannelEdit{Bindings: map[desk.BindingPlace]desk.Binding{place: binding}})
		if err != nil {
			t.Fatal(err)
		}
		value := map[desk.Binding]string{desk.AgentLastName: `"Hopper","source":"member"`, desk.CustomerLastName: `"L","source":"request"`, "": `null,"source":null`}[binding]
		want := `"address":"offer","key":"offer","part":"body","binding":"` + map[bool]string{true: "free", false: string(binding)}[binding == ""] + `","value":` + value + "}"
		if count(want, "?agent=grace@example.com&contact_name=Ada+L") != 1 {
			t.Errorf("bound to %q: no %s", binding, want)
		}
	}
}

// TestTemplatesAtOnce: requests at the same time share the remembered parts of answers,
// small and large. They share neither values nor buffers.
func TestTemplatesAtOnce(t *testing.T) {
	s := newDesk(t)
	for _, more := range []int{0, 100} {
		s.manyTemplates(more)
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				name := fmt.Sprintf("Name%d%s", i, strings.Repeat("x", 10*i))
				for range 5 {
					body := s.want(200, "GET /v1/templates?status=all&phone=%2B12022243441&contact_name="+name, "")
					if n := bytes.Count(body, []byte("Name")); n != bytes.Count(body, []byte(`"`+name+`"`)) || n < 2+2*more {
						t.Errorf("%s is there %d times: %.3000s", name, n, body)
					}
				}
			})
		}
		calls.Wait()
	}
}

// manyTemplates puts templates into the channel's library, at once.
func (s *deskServer) manyTemplates(n int) {
	s.t.Helper()
	for i := range n {
		source := fmt.Sprintf(`{"name":"template_%03d","language":"en_US","category":"UTILITY","status":"APPROVED","parameter_format":"NAMED","components":[`+
			`{"type":"HEADER","format":"TEXT","text":"News for {{customer_name}}"},`+
			`{"type":"BODY","text":"Hello {{customer_first_name}}, this is {{agent_name}}. Your order {{order_number}} has left our house today and will be with you soon; %s"}]}`,
			i, strings.Repeat("write to us when anything is missing. ", 3))
		t, err := desk.ParseTemplate([]byte(source))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.store.PutSandboxTemplate(s.t.Context(), s.ws, s.channel, desk.TemplateSource{Name: t.Name, Language: t.Language, Source: source}); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, _, err := s.app.SyncChannel(s.t.Context(), s.operator(s.ws), s.channel); err != nil {
		s.t.Fatal(err)
	}
}

// BenchmarkTemplates measures an answer of 500 templates over a connection, beside a
// bare server that has the same bytes at hand.
func BenchmarkTemplates(b *testing.B) {
	s := newDesk(b)
	s.manyTemplates(500)
	contact(b, s.want(201, "POST /v1/contacts", `{"phone":"+12022243441","name":"Augusta Ada Lovelace"}`))
	for _, bc := range []struct{ name, query string }{
		{"empty", ""}, {"filled", "?agent=grace@example.com&phone=%2B12022243441"},
	} {
		want := s.want(200, "GET /v1/templates"+bc.query, "")
		bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			_, _ = w.Write(want)
		})
		for _, side := range []struct {
			name    string
			handler http.Handler
		}{{"parley", s.handler}, {"bare", bare}} {
			b.Run(bc.name+"/"+side.name, func(b *testing.B) {
				server := httptest.NewServer(side.handler)
				defer server.Close()
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/v1/templates"+bc.query, http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+s.key)
				client := server.Client()
				b.SetBytes(int64(len(want)))
				b.ReportAllocs()
				for b.Loop() {
					answer, err := client.Do(r)
					if err != nil {
						b.Fatal(err)
					}
					n, err := io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					if err != nil || n != int64(len(want)) || answer.StatusCode != 200 {
						b.Fatal(n, err, answer.Status)
					}
				}
			})
		}
	}
}
