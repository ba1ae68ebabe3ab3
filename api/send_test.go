package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
)

// The templates of a desk's channel, in the provider's own form.
var deskTemplates = []string{
	`{"name":"order_update","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"HEADER","format":"TEXT","text":"Order {{1}}"},{"type":"BODY","text":"Hello {{1}},\nyour order {{2}} is on its way."}]}`,
	`{"name":"order_update","language":"tr","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Merhaba {{1}}, {{2}} yolda."}]}`,
	`{"name":"offer","language":"en_US","category":"MARKETING","status":"APPROVED","parameter_format":"NAMED","components":[{"type":"BODY","text":"Dear {{customer_name}}, {{agent_first_name}} has an offer: {{offer}}."}]}`,
	`{"name":"thanks","language":"en_US","category":null,"status":"APPROVED","components":[{"type":"BODY","text":"Thank you!"}]}`,
	`{"name":"picture","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Look, {{1}}"}]}`,
	`{"name":"review","language":"en_US","category":"UTILITY","status":"PENDING","components":[{"type":"BODY","text":"Soon"}]}`,
}

// A deskServer is a server with a sandbox channel that has templates.
type deskServer struct {
	*server
	channel desk.ID
}

func newDesk(t testing.TB, changes ...func(*app.Deps)) *deskServer {
	t.Helper()
	s := newServerWith(t, api.Config{}, changes...)
	return &deskServer{s, s.addChannel("sandbox-1")}
}

// addChannel adds a sandbox channel with the templates.
func (s *server) addChannel(externalID string) desk.ID {
	s.t.Helper()
	c := s.addSandbox(externalID)
	for _, source := range deskTemplates {
		if _, err := s.app.PutTemplate(s.t.Context(), s.operator(s.ws), c, []byte(source)); err != nil {
			s.t.Fatal(err)
		}
	}
	return c
}

func (s *server) enable(channel desk.ID, enabled bool) {
	s.t.Helper()
	if _, err := s.app.EditChannel(s.t.Context(), s.operator(s.ws), channel, app.ChannelEdit{Enabled: &enabled}); err != nil {
		s.t.Fatal(err)
	}
}

// hours moves the database's counter of hours, as if servers had run for n hours.
func (s *server) hours(n int) {
	s.t.Helper()
	_, hour, err := s.store.Clock(s.t.Context())
	for i := int64(0); err == nil && i < int64(n); i++ {
		err = s.store.RaiseHour(s.t.Context(), hour+i)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// hear simulates a message that a person writes to a channel.
func (s *server) hear(channel desk.ID, from, text string) *desk.Conversation {
	s.t.Helper()
	c, err := s.app.ReceiveSimulated(s.t.Context(), s.operator(s.ws), channel, from, "", text)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

const outbound = "POST /v1/conversations/outbound"

// outbound sends a message with an Idempotency-Key.
func (s *server) outbound(key, body string) reply {
	s.t.Helper()
	return s.send("POST", "/v1/conversations/outbound", http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {key}}, body)
}

// message returns a body that the sandbox accepts. Each change is a "member":value, which
// replaces or adds a member, or a "member" alone, which removes it.
func message(changes ...string) string {
	names := []string{"to", "template", "opt_in_confirmed"}
	values := map[string]string{
		"to":               `{"phone":"+1 202 224 3441"}`,
		"template":         `{"name":"order_update","language":"en_US","variables":["A-77","Ada","A-77"]}`,
		"opt_in_confirmed": `true`,
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, ":")
		name = strings.Trim(name, `"`)
		if _, there := values[name]; !there {
			names = append(names, name)
		}
		values[name] = value
	}
	var members []string
	for _, name := range names {
		if values[name] != "" {
			members = append(members, fmt.Sprintf("%q:%s", name, values[name]))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestSend(t *testing.T) {
	const (
		plain  = `"template":{"name":"thanks","language":"en_US"}`
		nobody = "0196f2a0-0000-7000-8000-000000000000"
	)
	for _, tc := range []struct {
		name   string
		before []string // contacts, of which {id} is the last, or messages sent before
		body   string
		status int
	}{
		{"number", nil, message(), 201},
		{"number_of_contact", []string{`{"phone":"+12022243441","name":"Ada"}`}, message(), 201},
		{"number_as_chat_account", []string{`{"external_id":"x","identities":[{"kind":"whatsapp","value":"12022243441"}]}`}, message(), 201},
		{"local_number", nil, message(`"to":{"phone":"(202) 224-3441"}`), 201},
		{"contact", []string{`{"phone":"+12022243441"}`}, message(`"to":{"contact_id":"{id}"}`), 201},
		{"contact_by_chat_account", []string{`{"external_id":"x","identities":[{"kind":"whatsapp","value":"12022243442"}]}`}, message(`"to":{"contact_id":"{id}"}`), 201},
		{"contact_by_further_phone", []string{`{"external_id":"x","identities":[{"kind":"phone","value":"+12022243442"}]}`}, message(`"to":{"contact_id":"{id}"}`), 201},
		{"nulls", nil, `{"channel_id":null,"contact":null,"assignee":null,"opt_in_confirmed":true,"template":{"variables":null,"language":"en_US","name":"thanks"},"to":{"contact_id":null,"phone":"+12022243441"}}`, 201},
		{"existing_conversation", []string{message()}, message(plain), 201},
		{"owned", []string{`{"phone":"+12022243441","owner":"grace@example.com"}`}, message(), 201},
		{"assigned", []string{`{"phone":"+12022243441","owner":"grace@example.com"}`}, message(`"assignee":"ADA@example.com"`), 201},
		{"reassigned", []string{message(`"assignee":"grace@example.com"`)}, message(`"assignee":"ada@example.com"`), 201},
		{"object", nil, message(`"template":{"name":"order_update","language":"en_US","variables":{"2":"A-77","header.1":"{{1}} *x*","1":"Ada"}}`), 201},
		{"named", nil, message(`"template":{"name":"offer","language":"en_US","variables":{"offer":"\"50 %\"","agent_first_name":"Ada","customer_name":"Grace"}}`), 201},
		{"empty_array", nil, message(`"template":{"name":"thanks","language":"en_US","variables":[]}`), 201},
		{"empty_object", nil, message(`"template":{"name":"thanks","language":"en_US","variables":{}}`), 201},
		{"channel", nil, message(`"channel_id":"{channel}"`), 201},
		{"profile", nil, message(`"contact":{"name":"Ada","email":"Ada@x.y","phone":"202.224.3441","attributes":{"score":1.50},"owner":"grace@example.com"}`), 201},
		{"profile_not_used", []string{`{"phone":"+12022243441","name":"Ada"}`}, message(`"contact":{"name":"Eve"}`), 201},
		{"profile_of_contact", []string{`{"phone":"+12022243441"}`}, message(`"to":{"contact_id":"{id}"}`, `"contact":{"name":"Eve"}`), 201},

		{"empty", nil, ``, 400},
		{"no_object", nil, `[]`, 400},
		{"no_members", nil, `{}`, 400},
		{"unknown_member", nil, message(`"channel":"x"`), 400},
		{"duplicate_member", nil, `{"to":{"phone":"+12022243441"},"to":{"phone":"+12022243441"}}`, 400},
		{"trailing_data", nil, message() + `{}`, 400},
		{"no_to", nil, message(`"to":`), 400},
		{"to_null", nil, message(`"to":null`), 400},
		{"to_text", nil, message(`"to":"+12022243441"`), 400},
		{"to_nobody", nil, message(`"to":{}`), 400},
		{"to_nulls", nil, message(`"to":{"phone":null}`), 400},
		{"to_two", nil, message(`"to":{"phone":"+12022243441","contact_id":"` + nobody + `"}`), 400},
		{"to_unknown_member", nil, message(`"to":{"email":"a@b.c"}`), 400},
		{"to_bad_phone", nil, message(`"to":{"phone":"224-3441"}`), 400},
		{"to_number", nil, message(`"to":{"phone":12022243441}`), 400},
		{"to_contact_number", nil, message(`"to":{"contact_id":7}`), 400},
		{"no_template", nil, message(`"template":`), 400},
		{"template_null", nil, message(`"template":null`), 400},
		{"template_no_name", nil, message(`"template":{"language":"tr"}`), 400},
		{"template_name_null", nil, message(`"template":{"name":null,"language":"tr"}`), 400},
		{"template_no_language", nil, message(`"template":{"name":"thanks"}`), 400},
		{"template_unknown_member", nil, message(`"template":{"name":"thanks","language":"tr","components":[]}`), 400},
		{"variables_text", nil, message(`"template":{"name":"thanks","language":"tr","variables":"x"}`), 400},
		{"variables_of_numbers", nil, message(`"template":{"name":"thanks","language":"tr","variables":["a",7]}`), 400},
		{"variables_of_nulls", nil, message(`"template":{"name":"thanks","language":"tr","variables":{"1":null}}`), 400},
		{"variables_nul", nil, message(`"template":{"name":"thanks","language":"tr","variables":{"1":"\u0000"}}`), 400},
		{"variables_nul_address", nil, message(`"template":{"name":"thanks","language":"tr","variables":{"\u0000":"x"}}`), 400},
		{"variables_twice", nil, message(`"template":{"name":"thanks","language":"tr","variables":{"1":"x","1":"x"}}`), 400},
		{"opt_in_text", nil, message(`"opt_in_confirmed":"true"`), 400},
		{"assignee_number", nil, message(`"assignee":7`), 400},
		{"channel_number", nil, message(`"channel_id":7`), 400},
		{"contact_array", nil, message(`"contact":[]`), 400},
		{"contact_unknown_member", nil, message(`"contact":{"id":"x"}`), 400},
		{"contact_bad_email", nil, message(`"contact":{"email":"x"}`), 400},
		{"contact_other_phone", nil, message(`"contact":{"phone":"+12022243442"}`), 400},
		{"contact_other_account", nil, message(`"contact":{"identities":[{"kind":"whatsapp","value":"12022243441"},{"kind":"whatsapp","value":"12022243442"}]}`), 400},
		{"contact_other_further_phone", nil, message(`"contact":{"phone":"+12022243441","identities":[{"kind":"phone","value":"+12022243442"}]}`), 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDesk(t)
			s.want(201, "POST /v1/attributes", `{"key":"score","type":"number"}`)
			id := ""
			for _, body := range tc.before {
				if strings.HasPrefix(body, `{"to"`) {
					if r := s.outbound("before", body); r.status != 201 {
						t.Fatalf("before: %d %s", r.status, r.body)
					}
				} else {
					id = contact(t, s.want(201, "POST /v1/contacts", body)).ID
				}
			}
			before := s.state()
			r := s.outbound("key", strings.NewReplacer("{id}", id, "{channel}", s.channel.String()).Replace(tc.body))
			if r.status != tc.status {
				t.Errorf("status = %d, want %d", r.status, tc.status)
			}
			if after := s.state(); r.status != 201 && after != before {
				t.Errorf("something was stored: %s\nbefore: %s", after, before)
			}
			golden(t, r)
		})
	}
}

// state is all contacts, conversations and messages.
func (s *server) state() string {
	s.t.Helper()
	conversations := s.want(200, "GET /v1/conversations?limit=200", "")
	text := string(s.want(200, "GET /v1/contacts?limit=200", "")) + "\n" + string(conversations)
	for _, id := range ids(s.t, conversations) {
		text += "\n" + string(s.want(200, "GET /v1/conversations/"+id+"/messages?limit=200", ""))
	}
	return text
}

// ids returns the ids of a list's records.
func ids(t testing.TB, list []byte) (ids []string) {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(list, &page); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	for _, record := range page.Data {
		ids = append(ids, record.ID)
	}
	return ids
}

func TestIdempotencyKey(t *testing.T) {
	s := newDesk(t)
	before := s.state()
	for name, lines := range map[string][]string{
		"absent": nil, "empty": {""}, "twice": {"a", "a"}, "long": {strings.Repeat("k", 201)}, "tab": {"a\tb"}, "not_ascii": {"é"}, "delete": {"a\x7f"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": lines}
			r := s.send("POST", "/v1/conversations/outbound", header, "no json") // the key comes before the body
			if r.status != 400 || errorType(r.body) != "invalid_request" || !bytes.Contains(r.body, []byte("Idempotency-Key")) {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	if after := s.state(); after != before {
		t.Errorf("something was stored: %s", after)
	}
	for _, key := range []string{"k", " ", "~ a,b ~", strings.Repeat("k", 200)} {
		want := map[bool]int{true: 400, false: 201}[key == " "]
		header := http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {key}}
		if key == " " {
			header.Set("Idempotency-Key", "") // as HTTP reads it
		}
		if r := s.send("POST", "/v1/conversations/outbound", header, message()); r.status != want {
			t.Errorf("key %q: %d %s", key, r.status, r.body)
		}
	}
}

// TestSendReplays_in_another_country: after the workspace has another country, a number
// without prefix is another number, or none. The same call still gets its answer, and
// nothing is sent.
func TestSendReplays_in_another_country(t *testing.T) {
	s := newDesk(t)
	moved := func(country string) {
		t.Helper()
		if _, err := s.app.EditWorkspace(t.Context(), s.operator(s.ws), app.WorkspaceEdit{Country: &country}); err != nil {
			t.Fatal(err)
		}
	}
	moved("TR")
	body := message(`"to":{"phone":"0532 111 22 34"}`)
	lost := message(`"to":{"phone":"0532 111 00 03"}`)
	first := s.outbound("moved", body)
	if r := s.outbound("lost", lost); first.status != 201 || errorType(r.body) != "send_outcome_unknown" {
		t.Fatalf("%d %s, %d %s", first.status, first.body, r.status, r.body)
	}
	for _, country := range []string{"US", "DE", ""} {
		moved(country)
		if r := s.outbound("moved", body); r.status != 201 || !bytes.Equal(r.body, first.body) || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("in %q: %d %s", country, r.status, r.body)
		}
		if r := s.outbound("lost", lost); r.status != 503 || errorType(r.body) != "send_outcome_unknown" {
			t.Errorf("in %q: %d %s", country, r.status, r.body)
		}
	}
	if r := s.outbound("new", body); r.status != 400 { // no country to read it in
		t.Errorf("another key: %d %s", r.status, r.body)
	}
	if r := s.outbound("moved", message(`"to":{"phone":"0532 111 22 35"}`)); r.status != 400 {
		t.Errorf("another body: %d %s", r.status, r.body)
	}
}

// TestSendConflict_names_in_the_order_of_the_request.
func TestSendConflict_names_in_the_order_of_the_request(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/contacts", `{"phone":"+12022240101"}`)
	s.want(201, "POST /v1/contacts", `{"email":"held@example.com"}`)
	r := s.outbound("k", message(`"to":{"phone":"+12022240101"}`, `"contact":{"email":"held@example.com"}`))
	want := `"details":[{"kind":"phone","value":"12022240101"},{"kind":"email","value":"held@example.com"}]`
	if r.status != 409 || !bytes.Contains(r.body, []byte(want)) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestSendRefused provokes every refusal. A refusal stores nothing, and its key can be used
// for a corrected call.
func TestSendRefused(t *testing.T) {
	const unknown = "0196f2a0-0000-7000-8000-000000000000"
	template := func(name, language, variables string) string {
		return fmt.Sprintf(`"template":{"name":%q,"language":%q,"variables":%s}`, name, language, variables)
	}
	order := func(variables string) string { return template("order_update", "en_US", variables) }
	offer := template("offer", "en_US", `["Ada","Grace","it"]`)
	for _, tc := range []struct {
		name, body string
		status     int
		kind       desk.ErrorType
		mended     string // a body; "" for message()
	}{
		{"opt_in_absent", message(`"opt_in_confirmed":`), 422, desk.OptInRequired, ""},
		{"opt_in_null", message(`"opt_in_confirmed":null`), 422, desk.OptInRequired, ""},
		{"opt_in_false", message(`"opt_in_confirmed":false`), 422, desk.OptInRequired, ""},
		{"opted_out", message(`"to":{"phone":"+12022243449"}`, offer), 422, desk.RecipientOptedOut, message(`"to":{"phone":"+12022243449"}`)},
		{"opted_out_contact", message(`"to":{"contact_id":"{stopped}"}`, offer), 422, desk.RecipientOptedOut, message(`"to":{"contact_id":"{stopped}"}`)},
		{"ambiguous_channel", message(), 400, desk.AmbiguousChannel, message(`"channel_id":"{channel}"`)},
		{"channel_disabled", message(`"channel_id":"{disabled}"`), 422, desk.ChannelNotUsable, ""},
		{"channel_unknown", message(`"channel_id":"` + unknown + `"`), 404, desk.NotFound, ""},
		{"channel_malformed", message(`"channel_id":"x"`), 404, desk.NotFound, ""},
		{"contact_unreachable", message(`"to":{"contact_id":"{unreachable}"}`), 422, desk.RecipientUnreachable, ""},
		{"contact_unknown", message(`"to":{"contact_id":"` + unknown + `"}`), 404, desk.NotFound, ""},
		{"contact_malformed", message(`"to":{"contact_id":"x"}`), 404, desk.NotFound, ""},
		{"assignee_unknown", message(`"assignee":"nobody@example.com"`), 400, desk.InvalidRequest, ""},
		{"assignee_empty", message(`"assignee":""`), 400, desk.InvalidRequest, ""},
		{"profile_owner", message(`"contact":{"owner":"nobody@example.com"}`), 400, desk.InvalidRequest, ""},
		{"profile_attributes", message(`"contact":{"attributes":{"none":1,"score":"x"}}`), 422, desk.InvalidAttributes, ""},
		{"profile_conflict", message(`"contact":{"email":"taken@x.y"}`), 409, desk.IdentityConflict, ""},
		{"profile_of_contact", message(`"to":{"contact_id":"{reachable}"}`, `"contact":{"attributes":{"none":1}}`), 422, desk.InvalidAttributes, ""},
		{"template_unknown", message(template("order", "en_US", `[]`)), 404, desk.NotFound, ""},
		{"template_language", message(template("order_update", "en", `[]`)), 404, desk.NotFound, ""},
		{"template_picture", message(template("picture", "en_US", `["x"]`)), 422, desk.TemplateNotSendable, ""},
		{"template_pending", message(template("review", "en_US", `[]`)), 422, desk.TemplateNotSendable, ""},
		{"variables_absent", message(`"template":{"name":"order_update","language":"en_US"}`), 422, desk.InvalidVariables, ""},
		{"variables_few", message(order(`["a","b"]`)), 422, desk.InvalidVariables, ""},
		{"variables_many", message(order(`["a","b","c","d"]`)), 422, desk.InvalidVariables, ""},
		{"variables_bad", message(order(`["a\nb","\t"," a     b\tc\r"]`)), 422, desk.InvalidVariables, ""},
		{"variables_empty", message(order(`{"header.1":"","1":" ","2":"x"}`)), 422, desk.InvalidVariables, ""},
		{"variables_unknown", message(order(`{"header.1":"a","1":"b","2":"c","header.2":"d","\"":"e"}`)), 422, desk.InvalidVariables, ""},
		{"variables_long", message(order(`["a","` + strings.Repeat("é", 1000) + `","c"]`)), 422, desk.InvalidVariables, ""},
		{"provider_rejected", message(`"to":{"phone":"+12022240001"}`), 422, desk.ProviderRejected, ""},
		{"provider_unavailable", message(`"to":{"phone":"+12022240002"}`), 502, desk.ProviderUnavailable, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newDesk(t)
			disabled := s.addChannel("sandbox-2")
			s.enable(disabled, tc.kind == desk.AmbiguousChannel)
			s.want(201, "POST /v1/attributes", `{"key":"score","type":"number"}`)
			s.want(201, "POST /v1/contacts", `{"email":"taken@x.y"}`)
			stopped := s.hear(s.channel, "+12022243449", " Stop. ")
			fill := strings.NewReplacer("{channel}", s.channel.String(), "{disabled}", disabled.String(), "{stopped}", stopped.ContactID.String(),
				"{unreachable}", contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x","email":"x@x.y"}`)).ID,
				"{reachable}", contact(t, s.want(201, "POST /v1/contacts", `{"phone":"+12022243448"}`)).ID)
			before := s.state()
			for range 2 { // a refusal is repeated, not replayed
				r := s.outbound("key", fill.Replace(tc.body))
				if r.status != tc.status || errorType(r.body) != string(tc.kind) {
					t.Errorf("%d %s, want %d %s", r.status, r.body, tc.status, tc.kind)
				}
				if after := s.state(); after != before {
					t.Errorf("something was stored: %s\nbefore: %s", after, before)
				}
				golden(t, r)
			}
			if tc.mended == "" {
				tc.mended = message()
			}
			r := s.outbound("key", fill.Replace(tc.mended))
			if r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("the key is not free: %d %v %s", r.status, r.header, r.body)
			}
		})
	}
}

// TestSendChecksInOrder starts from a call in which everything is wrong, and corrects one
// thing after the other.
func TestSendChecksInOrder(t *testing.T) {
	s := newDesk(t)
	s.enable(s.channel, false)
	other := s.addChannel("sandbox-2")
	s.want(201, "POST /v1/contacts", `{"email":"taken@x.y"}`)
	members := []string{
		`"opt_in_confirmed":false`, `"channel_id":"x"`, `"to":{"contact_id":"x"}`, `"contact":{"owner":"x","email":"taken@x.y","attributes":{"none":1}}`,
		`"assignee":"x"`, `"template":{"name":"x","language":"x","variables":["x"]}`, `"more":1`,
	}
	set := func(member string) {
		name, _, _ := strings.Cut(member, ":")
		for i := range members {
			if strings.HasPrefix(members[i], name+":") {
				members[i] = member
			}
		}
	}
	for _, step := range []struct {
		want   string // the error's type, and part of its message
		mended string
	}{
		{"invalid_request /more", `"more":`},
		{"opt_in_required", `"opt_in_confirmed":true`},
		{"not_found channel", `"channel_id":"` + s.channel.String() + `"`},
		{"channel_not_usable", `"channel_id":"` + other.String() + `"`},
		{"not_found contact", `"to":{"phone":"+12022240001"}`},
		{"invalid_request /contact/owner", `"contact":{"owner":"ada@example.com","email":"taken@x.y","attributes":{"none":1}}`},
		{"invalid_attributes", `"contact":{"owner":"ada@example.com","email":"taken@x.y"}`},
		{"identity_conflict", `"contact":{"owner":"ada@example.com"}`},
		{"invalid_request /assignee", `"assignee":"ada@example.com"`},
		{"not_found template", `"template":{"name":"picture","language":"en_US","variables":[]}`},
		{"template_not_sendable", `"template":{"name":"order_update","language":"en_US","variables":[]}`},
		{"invalid_variables", `"template":{"name":"order_update","language":"en_US","variables":["a","b","c"]}`},
		{"provider_rejected", `"to":{"phone":"+12022243441"}`},
		{"", ""},
	} {
		r := s.outbound("key", message(members...))
		kind, part, _ := strings.Cut(step.want, " ")
		if errorType(r.body) != kind || !bytes.Contains(r.body, []byte(part)) {
			t.Fatalf("%s: %d %s, want %s", members, r.status, r.body, step.want)
		}
		set(step.mended)
	}
	// A stored answer is returned before all these checks, but after the check of the body's
	// form.
	r := s.outbound("key", message(`"opt_in_confirmed":false`, `"channel_id":"x"`))
	if r.status != 409 || errorType(r.body) != "idempotency_key_reused" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.outbound("key", `{}`); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestSendReplays(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/attributes", `{"key":"score","type":"number"}`)
	const body = `{"to":{"phone":"+12022243441"},"template":{"name":"thanks","language":"en_US"},"opt_in_confirmed":true,"contact":{"name":"Ada é","attributes":{"score":1.5}}}`
	first := s.outbound("key", body)
	if first.status != 201 || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %v %s", first.status, first.header, first.body)
	}
	state := s.state()
	for name, same := range map[string]string{
		"bytes":   body,
		"order":   `{"contact":{"attributes":{"score":1.5},"name":"Ada é"},"opt_in_confirmed":true,"template":{"language":"en_US","name":"thanks"},"to":{"phone":"+12022243441"}}`,
		"spacing": "\n\t" + strings.ReplaceAll(strings.ReplaceAll(body, ":", " : "), ",", "\r\n, "),
		"escapes": strings.NewReplacer("é", `\u00e9`, `"to"`, `"\u0074o"`).Replace(body),
		"numbers": strings.Replace(body, "1.5", "15.0E-1", 1),
	} {
		r := s.outbound("key", same)
		if r.status != 201 || r.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(r.body, first.body) {
			t.Errorf("%s: %d %v %s", name, r.status, r.header, r.body)
		}
	}
	for name, other := range map[string]string{
		"value":  strings.Replace(body, "Ada", "Eva", 1),
		"null":   strings.Replace(body, `"opt_in`, `"assignee":null,"opt_in`, 1),
		"number": strings.Replace(body, "1.5", "1.50000000000000000001", 1),
		"type":   strings.Replace(body, "1.5", `"1.5"`, 1),
		"phone":  strings.Replace(body, "+1202", "+1 202", 1),
	} {
		if r := s.outbound("key", other); r.status != 409 || errorType(r.body) != "idempotency_key_reused" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if after := s.state(); after != state {
		t.Errorf("a replay stored something: %s\nbefore: %s", after, state)
	}
	if r := s.outbound("other key", body); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" || bytes.Equal(r.body, first.body) {
		t.Errorf("another key: %d %v %s", r.status, r.header, r.body)
	}
	// A key belongs to its workspace, and a replay also needs the permission.
	_, foreign := s.workspace("Other", "US")
	for key, want := range map[string]int{foreign: 404, s.newKey(s.ws, "contacts:read"): 403} {
		header := http.Header{"Authorization": {"Bearer " + key}, "Idempotency-Key": {"key"}}
		if r := s.send("POST", "/v1/conversations/outbound", header, body); r.status != want {
			t.Errorf("%d %s, want %d", r.status, r.body, want)
		}
	}
	// A key is kept for 30 days in which a server runs, and for one hour more because the
	// first hour is not a whole one. The clock does not matter.
	s.clock.Add((365 * 24 * time.Hour).Milliseconds())
	s.hours(30 * 24)
	if r := s.outbound("key", body); r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("within 30 days: %d %v %s", r.status, r.header, r.body)
	}
	s.hours(1)
	if r := s.outbound("key", body); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("after 30 days: %d %v %s", r.status, r.header, r.body)
	}
}

// A gate is a provider that counts messages. It holds each message until the gate opens.
type gate struct {
	*sandbox.Sandbox
	sent   atomic.Int64
	opened chan struct{}
}

func newGatedDesk(t *testing.T, wait time.Duration) (*deskServer, *gate) {
	g := &gate{opened: make(chan struct{})}
	return newDesk(t, func(d *app.Deps) {
		g.Sandbox = d.Providers[desk.SandboxChannel].(*sandbox.Sandbox)
		d.Providers = map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: g}
		d.Bounds.Wait = wait
		d.Bounds.FirstByte = time.Hour // the test's clock does not show how much time has passed
	}), g
}

func (g *gate) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	g.sent.Add(1)
	select {
	case <-g.opened:
	case <-ctx.Done():
		return provider.Receipt{}, ctx.Err()
	}
	return g.Sandbox.Send(ctx, d)
}

// reached waits until the provider was called.
func (g *gate) reached(t *testing.T) {
	t.Helper()
	waitUntil(t, "the provider to be called", func() bool { return g.sent.Load() > 0 })
}

// TestSendAtOnce: of several calls with one key at the same time, one is sent. All calls
// get its answer, even if that is a refusal.
func TestSendAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		to     string
		status int
	}{"taken": {"+12022243441", 201}, "refused": {"+12022240001", 422}, "for_now": {"+12022240002", 502}, "lost": {"+12022240003", 503}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := newGatedDesk(t, time.Minute)
			body := message(`"to":{"phone":"` + tc.to + `"}`)
			answers := make([]reply, 8)
			var calls sync.WaitGroup
			for i := range answers {
				calls.Go(func() { answers[i] = s.outbound("key", body) })
			}
			g.reached(t)
			if r := s.outbound("key", message(`"assignee":"ada@example.com"`)); r.status != 409 {
				t.Errorf("another body, in flight: %d %s", r.status, r.body)
			}
			close(g.opened)
			calls.Wait()
			firsts := 0
			for _, r := range answers {
				if r.status != tc.status || !bytes.Equal(r.body, answers[0].body) {
					t.Errorf("%d %s\nanother got %d %s", r.status, r.body, answers[0].status, answers[0].body)
				}
				if r.header.Get("Idempotent-Replayed") == "" {
					firsts++
				}
			}
			if tc.status == 201 && firsts != 1 {
				t.Errorf("%d answers are no replay", firsts)
			}
			// Calls that come late may run anew after a refusal.
			if n := g.sent.Load(); n != 1 && tc.status != 422 && tc.status != 502 {
				t.Errorf("the provider was called %d times", n)
			}
		})
	}
}

// TestSendLost: if the outcome is unknown, the key stays in use until a person, or the
// provider, reports the outcome. Until then, the same call never sends again.
func TestSendLost(t *testing.T) {
	for name, sent := range map[string]bool{"sent": true, "not_sent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := newGatedDesk(t, time.Minute)
			close(g.opened)
			before := s.state()
			body := message(`"to":{"phone":"+12022240003"}`)
			var lost struct {
				Error struct {
					Details struct {
						AttemptID string `json:"attempt_id"`
					}
				}
			}
			for range 3 {
				r := s.outbound("key", body)
				if r.status != 503 || errorType(r.body) != "send_outcome_unknown" || r.header.Get("Retry-After") != "30" {
					t.Fatalf("%d %v %s", r.status, r.header, r.body)
				}
				decodeJSON(t, r.body, &lost)
				golden(t, r)
			}
			if r := s.outbound("key", message()); r.status != 409 {
				t.Errorf("another body: %d %s", r.status, r.body)
			}
			if after := s.state(); after != before || g.sent.Load() != 1 {
				t.Errorf("sent %d times; %s\nbefore: %s", g.sent.Load(), after, before)
			}
			id, ok := desk.ParseID(lost.Error.Details.AttemptID)
			if !ok {
				t.Fatalf("no attempt: %+v", lost)
			}
			if _, err := s.app.Release(t.Context(), s.operator(s.ws), id, sent); err != nil {
				t.Fatal(err)
			}
			if !sent { // the key is free again
				if r := s.outbound("key", message()); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
					t.Errorf("%d %v %s", r.status, r.header, r.body)
				}
				return
			}
			if r := s.outbound("key", body); r.status != 201 || r.header.Get("Idempotent-Replayed") != "true" || !bytes.Contains(r.body, []byte(`"external_id":null`)) {
				t.Errorf("%d %v %s", r.status, r.header, r.body)
			}
			if after := s.state(); !strings.Contains(after, "+12022240003") || g.sent.Load() != 1 {
				t.Errorf("sent %d times; %s", g.sent.Load(), after)
			}
		})
	}
}

// TestSendInProgress: a call that has waited long enough gets the answer to try again
// later.
func TestSendInProgress(t *testing.T) {
	s, g := newGatedDesk(t, 20*time.Millisecond)
	var first reply
	var calls sync.WaitGroup
	calls.Go(func() { first = s.outbound("key", message()) })
	g.reached(t)
	r := s.outbound("key", message())
	if r.status != 503 || errorType(r.body) != "send_in_progress" {
		t.Errorf("%d %s", r.status, r.body)
	}
	golden(t, r)
	close(g.opened)
	calls.Wait()
	if r := s.outbound("key", message()); first.status != 201 || r.status != 201 || !bytes.Equal(r.body, first.body) {
		t.Errorf("first: %d %s\nlater: %d %s", first.status, first.body, r.status, r.body)
	}
}

// TestSendStores checks what a send stores: the profile, only for a new contact, and the
// opt-in on the message.
func TestSendStores(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/attributes", `{"key":"score","type":"number"}`)
	r := s.outbound("1", message(`"contact":{"name":"Ada","email":"Ada@x.y","attributes":{"score":"1.50"},"owner":"ada@example.com","identities":[{"kind":"whatsapp","value":"12022243441"},{"kind":"crm","value":"7"}]}`))
	var sent struct {
		Data struct {
			Conversation struct {
				ID        string `json:"id"`
				ContactID string `json:"contact_id"`
			}
		}
	}
	decodeJSON(t, r.body, &sent)
	golden(t, s.do("GET /v1/contacts/"+sent.Data.Conversation.ContactID, ""))
	conversation, _ := desk.ParseID(sent.Data.Conversation.ID)
	messages, _, err := s.store.Messages(t.Context(), s.ws, conversation, nil, 10)
	if err != nil || len(messages) != 1 || messages[0].OptIn == nil || messages[0].OptIn.Request.String() != r.header.Get("X-Request-Id") {
		t.Errorf("%v %+v, request %s", err, messages, r.header.Get("X-Request-Id"))
	}
	before := s.want(200, "GET /v1/contacts", "")
	for i, body := range []string{
		message(`"contact":{"name":"Eve","note":"x","attributes":{"score":2},"owner":null}`),
		message(`"to":{"contact_id":"`+sent.Data.Conversation.ContactID+`"}`, `"contact":{"name":"Eve","external_id":"x"}`),
	} {
		if r := s.outbound(fmt.Sprint("again ", i), body); r.status != 201 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if after := s.want(200, "GET /v1/contacts", ""); !bytes.Equal(after, before) {
		t.Errorf("the profile was used for a known contact: %s\nbefore: %s", after, before)
	}
}

// TestSendRevoked: a replay also needs a valid key.
func TestSendRevoked(t *testing.T) {
	s := newDesk(t)
	key := s.newKey(s.ws, "all")
	keys := s.operator(s.ws).Settings.Keys()
	header := http.Header{"Authorization": {"Bearer " + key}, "Idempotency-Key": {"key"}}
	if r := s.send("POST", "/v1/conversations/outbound", header, message()); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if _, err := s.app.RevokeKey(t.Context(), s.operator(s.ws), keys[len(keys)-1].ID); err != nil {
		t.Fatal(err)
	}
	if r := s.send("POST", "/v1/conversations/outbound", header, message()); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.outbound("key", message()); r.header.Get("Idempotent-Replayed") != "true" { // the key is the workspace's
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
}
