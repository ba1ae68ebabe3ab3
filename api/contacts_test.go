package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/store"
)

// TestContacts compares answers with golden files. Each case has a server of its own, and
// begins with the contacts that its first calls create.
func TestContacts(t *testing.T) {
	const ada = `{"external_id":"crm-1","name":"Ada","email":"Ada@Example.com","phone":"(202) 224-3441","note":"n","identities":[{"kind":"twitter","value":"ada"}],"attributes":{"plan":"pro","score":" 7.50 "}}`
	for _, tc := range []struct {
		name   string
		before []string // calls that must succeed
		call   string
		body   string
		status int
	}{
		{"create", nil, "POST /v1/contacts", ada, 201},
		{"create_again", []string{ada}, "POST /v1/contacts", ada, 200},
		{"create_minimal", nil, "POST /v1/contacts", `{"external_id":"x"}`, 201},
		{"create_owned", nil, "POST /v1/contacts", `{"external_id":"x","owner":"GRACE@example.com"}`, 201},
		{"no_identity", nil, "POST /v1/contacts", `{"name":"Ada"}`, 400},
		{"null_identity", nil, "POST /v1/contacts", `{"email":null,"identities":[]}`, 400},
		{"unknown_member", nil, "POST /v1/contacts", `{"email":"a@b.c","emial":"x"}`, 400},
		{"wrong_case", nil, "POST /v1/contacts", `{"Email":"a@b.c"}`, 400},
		{"wrong_type", nil, "POST /v1/contacts", `{"email":["a@b.c"]}`, 400},
		{"wrong_nested_type", nil, "POST /v1/contacts", `{"identities":[{"kind":"email","value":"a@b.c"},{"kind":"x","value":7}]}`, 400},
		{"duplicate_member", nil, "POST /v1/contacts", `{"email":"a@b.c","e\u006dail":"d@e.f"}`, 400},
		{"trailing_data", nil, "POST /v1/contacts", `{"email":"a@b.c"} {}`, 400},
		{"truncated", nil, "POST /v1/contacts", `{"email":"a@b.c"`, 400},
		{"empty_body", nil, "POST /v1/contacts", ``, 400},
		{"not_an_object", nil, "POST /v1/contacts", `[]`, 400},
		{"empty_email", nil, "POST /v1/contacts", `{"external_id":"x","email":" "}`, 400},
		{"bad_phone", nil, "POST /v1/contacts", `{"phone":"224-3441"}`, 400},
		{"nul", nil, "POST /v1/contacts", `{"email":"a@b.c","name":"a\u0000b"}`, 400},
		{"unknown_owner", nil, "POST /v1/contacts", `{"email":"a@b.c","owner":"nobody@example.com"}`, 400},
		{"bad_attributes", nil, "POST /v1/contacts", `{"email":"a@b.c","attributes":{"score":"x","plan":"gold","nothing":1,"plan2":null,"born":"2026-02-30","old":null}}`, 422},
		{"owner_before_attributes", []string{ada, `{"email":"b@b.c"}`}, "POST /v1/contacts", `{"email":"b@b.c","phone":"+12022243441","owner":"x","attributes":{"score":"x"}}`, 400},
		{"attributes_before_identities", []string{ada, `{"email":"b@b.c"}`}, "POST /v1/contacts", `{"email":"b@b.c","phone":"+12022243441","attributes":{"score":"x"}}`, 422},
		{"conflict", []string{ada, `{"email":"b@b.c"}`}, "POST /v1/contacts", `{"phone":"+1 202 224 3441","identities":[{"kind":"email","value":"B@B.C"},{"kind":"whatsapp","value":"12022243441"}],"external_id":"new"}`, 409},
		{"patch_unknown", nil, "PATCH /v1/contacts/0196f2a0-0000-7000-8000-000000000000", `{"owner":"x","attributes":{"nothing":1}}`, 404},
		{"patch_bad_body_first", nil, "PATCH /v1/contacts/0196f2a0-0000-7000-8000-000000000000", `{"owner":7}`, 400},
		{"patch", []string{ada}, "PATCH /v1/contacts/{id}", `{"name":"","email":null,"attributes":{"score":null,"born":"1815-12-10"}}`, 200},
		{"patch_attributes_null", []string{ada}, "PATCH /v1/contacts/{id}", `{"attributes":null}`, 200},
		{"patch_nothing", []string{ada}, "PATCH /v1/contacts/{id}", `{}`, 200},
		{"patch_conflict", []string{`{"email":"b@b.c"}`, ada}, "PATCH /v1/contacts/{id}", `{"external_id":"crm-1","email":"b@b.c"}`, 409},
		{"get", []string{ada}, "GET /v1/contacts/{id}", ``, 200},
		{"identities", []string{ada}, "GET /v1/contacts/{id}/identities", ``, 200},
		{"set_owner", []string{ada}, "PUT /v1/contacts/{id}/owner", `{"owner":"ada@EXAMPLE.com"}`, 200},
		{"set_owner_null", []string{ada}, "PUT /v1/contacts/{id}/owner", `{"owner":null}`, 400},
		{"set_owner_missing", []string{ada}, "PUT /v1/contacts/{id}/owner", `{}`, 400},
		{"clear_owner", []string{`{"external_id":"x","owner":"ada@example.com"}`}, "DELETE /v1/contacts/{id}/owner", ``, 200},
		{"remove_identity", []string{ada}, "DELETE /v1/contacts/{id}/identities?kind=twitter&value=ada", ``, 200},
		{"remove_primary", []string{ada}, "DELETE /v1/contacts/{id}/identities?kind=email&value=ADA@example.com", ``, 400},
		{"remove_not_held", []string{ada}, "DELETE /v1/contacts/{id}/identities?kind=twitter&value=Ada", ``, 404},
		{"remove_malformed", []string{ada}, "DELETE /v1/contacts/{id}/identities?kind=phone&value=x", ``, 404},
		{"remove_without_value", []string{ada}, "DELETE /v1/contacts/{id}/identities?kind=phone", ``, 400},
		{"delete", []string{ada}, "DELETE /v1/contacts/{id}", ``, 204},
		{"list", []string{ada, `{"email":"b@b.c","owner":"ada@example.com"}`}, "GET /v1/contacts", ``, 200},
		{"list_page", []string{ada, `{"email":"b@b.c"}`}, "GET /v1/contacts?limit=1", ``, 200},
		{"list_empty", nil, "GET /v1/contacts?email=x@y.z", ``, 200},
		{"list_unknown_parameter", nil, "GET /v1/contacts?emial=x@y.z", ``, 400},
		{"list_repeated_parameter", nil, "GET /v1/contacts?email=x@y.z&email=x@y.z", ``, 400},
		{"list_limit", nil, "GET /v1/contacts?limit=201", ``, 400},
		{"list_cursor", nil, "GET /v1/contacts?cursor=abc", ``, 400},
		{"list_owner", nil, "GET /v1/contacts?owner=nobody", ``, 400},
		{"list_since", nil, "GET /v1/contacts?updated_since=2026-01-31", ``, 400},
		{"list_bad_query", nil, "GET /v1/contacts?limit=%zz", ``, 400},
		{"list_phone", []string{ada}, "GET /v1/contacts?phone=202.224.3441", ``, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			for _, a := range []string{
				`{"key":"plan","type":"select","options":["free","pro"]}`, `{"key":"score","type":"number"}`,
				`{"key":"born","type":"date"}`, `{"key":"old","type":"text"}`,
			} {
				s.want(201, "POST /v1/attributes", a)
			}
			s.want(200, "DELETE /v1/attributes/old", "")
			id := ""
			for _, body := range tc.before {
				id = contact(t, s.want(201, "POST /v1/contacts", body)).ID
			}
			r := s.do(strings.Replace(tc.call, "{id}", id, 1), tc.body)
			if r.status != tc.status {
				t.Errorf("status = %d, want %d", r.status, tc.status)
			}
			golden(t, r)
		})
	}
}

// TestBadBodies: whatever is wrong with a text, the answer is 400 and nothing is stored.
func TestBadBodies(t *testing.T) {
	s := newServer(t)
	deep := strings.Repeat("[", 32) + strings.Repeat("]", 32) // inside {"attributes":{"a":…}}: 34
	for name, body := range map[string]string{
		"no_json":        `hello`,
		"number":         `7`,
		"string":         `"x"`,
		"null":           `null`,
		"bom":            "\ufeff" + `{"email":"a@b.c"}`,
		"invalid_utf8":   "{\"email\":\"a@b.c\",\"name\":\"\xff\"}",
		"lone_surrogate": `{"email":"a@b.c","name":"\ud800"}`,
		"low_surrogate":  `{"email":"a@b.c","name":"\udc00\ud800"}`,
		"nul_name":       `{"email":"a@b.c","a\u0000":1}`,
		"nul_attribute":  `{"email":"a@b.c","attributes":{"a\u0000":1}}`,
		"nul_value":      `{"email":"a@b.c","attributes":{"a":["\u0000"]}}`,
		"deep":           `{"email":"a@b.c","attributes":{"a":` + deep + `}}`,
		"dup_deep":       `{"email":"a@b.c","attributes":{"a":{"x":1,"x":2}}}`,
		"comment":        `{"email":"a@b.c"/**/}`,
		"trailing_comma": `{"email":"a@b.c",}`,
		"single_quotes":  `{'email':'a@b.c'}`,
		"bad_number":     `{"email":"a@b.c","attributes":{"a":01}}`,
		"51_identities":  `{"identities":[` + strings.Repeat(`{"kind":"x","value":"y"},`, 50) + `{"kind":"x","value":"y"}]}`,
		"long_name":      `{"email":"a@b.c","name":"` + strings.Repeat("é", 256) + `"}`,
		"long_note":      `{"email":"a@b.c","note":"` + strings.Repeat("x", 10001) + `"}`,
		"bad_kind":       `{"identities":[{"kind":"Twitter","value":"y"}]}`,
		"no_value":       `{"identities":[{"kind":"twitter"}]}`,
		"extra":          `{"identities":[{"kind":"twitter","value":"x","primary":true}]}`,
		"owner_number":   `{"email":"a@b.c","owner":1}`,
		"attributes":     `{"email":"a@b.c","attributes":[]}`,
		"name_bool":      `{"email":"a@b.c","name":false}`,
	} {
		r := s.do("POST /v1/contacts", body)
		if r.status != 400 || errorType(r.body) != "invalid_request" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if list := s.want(200, "GET /v1/contacts", ""); string(list) != `{"data":[]}` {
		t.Errorf("something was stored: %s", list)
	}
	// Bodies at the limits are accepted.
	s.want(201, "POST /v1/contacts", `{"email":"a@b.c","name":"`+strings.Repeat("é", 255)+`","note":"`+strings.Repeat("ü", 10000)+`"}`)
	s.want(201, "POST /v1/contacts", `{"identities":[`+strings.TrimSuffix(strings.Repeat(`{"kind":"x","value":"y"},`, 50), ",")+`]}`)
}

// TestBodyCutShort: if a client closes its side before the body is complete, the answer
// says that the body can't be read. It does not say that the database failed, although the
// request's context has ended.
func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.want(200, "GET /v1/contacts", "") // the key is known from here on
	ctx, gone := context.WithCancel(t.Context())
	gone()
	for range 64 { // a store may or may not notice that the context has ended
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/contacts", io.MultiReader(strings.NewReader(`{"external_id":`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.ContentLength = 100
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != 400 || errorType(w.Body.Bytes()) != "invalid_request" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

func TestBodySizes(t *testing.T) {
	s := newServer(t)
	pad := func(n int) string { return `{"email":"a@b.c"` + strings.Repeat(" ", n-len(`{"email":"a@b.c"}`)) + `}` }
	s.want(201, "POST /v1/contacts", pad(1<<20))
	if r := s.do("POST /v1/contacts", pad(1<<20+1)); r.status != 413 || errorType(r.body) != "payload_too_large" {
		t.Errorf("%d %s", r.status, r.body)
	}
	batch := func(n int) string {
		const b = `{"operations":[{"op":"upsert","data":{"email":"a@b.c"}}]`
		return b + strings.Repeat(" ", n-len(b)-1) + "}"
	}
	s.want(200, "POST /v1/contacts/batch", batch(16<<20))
	if r := s.do("POST /v1/contacts/batch", batch(16<<20+1)); r.status != 413 {
		t.Errorf("%d %s", r.status, r.body)
	}
	// The same without a Content-Length: the server reads no more than the route takes.
	for call, limit := range map[string]int{"/v1/contacts": 1 << 20, "/v1/contacts/batch": 16 << 20} {
		body := &endless{end: 2 * limit}
		r := httptest.NewRequest("POST", call, body)
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.ContentLength = -1
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != 413 || errorType(w.Body.Bytes()) != "payload_too_large" || body.read > limit+1 {
			t.Errorf("%s: %d %s after %d bytes", call, w.Code, w.Body, body.read)
		}
	}
}

// TestUnreadWithoutAKey: the body of a request without a valid key is not read.
func TestUnreadWithoutAKey(t *testing.T) {
	s := newServer(t)
	revoked := s.newKey(s.ws, "all")
	keys := s.operator(s.ws).Settings.Keys()
	if r := s.as(revoked, "GET /v1/contacts", ""); r.status != 200 {
		t.Fatal(r.status)
	}
	if _, err := s.app.RevokeKey(t.Context(), s.operator(s.ws), keys[len(keys)-1].ID); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"none": "", "revoked": "Bearer " + revoked, "malformed": "Bearer x"} {
		for _, length := range []int64{-1, 2 << 20, 16 << 20} {
			body := &endless{end: 1 << 20}
			r := httptest.NewRequest("POST", "/v1/contacts/batch", body)
			r.Header.Set("Authorization", key)
			r.ContentLength = length
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if w.Code != 401 || body.read > 0 {
				t.Errorf("%s, length %d: %d after %d bytes", name, length, w.Code, body.read)
			}
		}
	}
}

// TestPanic: a panic while a request is handled is answered with 500 without details, and
// the next request is answered.
func TestPanic(t *testing.T) {
	broken := new(atomic.Bool)
	s := newServerWith(t, api.Config{}, func(d *app.Deps) { d.Store = panickyStore{d.Store, broken} })
	broken.Store(true)
	r := s.do("GET /v1/contacts", "")
	if r.status != 500 || errorType(r.body) != "internal" || bytes.Contains(r.body, []byte("oh")) || r.header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	if log := s.log.String(); !strings.Contains(log, "panic: oh") || !strings.Contains(log, r.header.Get("X-Request-Id")) {
		t.Errorf("logged:\n%s", log)
	}
	broken.Store(false)
	s.want(200, "GET /v1/contacts", "")
}

// A panickyStore is a store that panics when a key is looked up while it is broken.
type panickyStore struct {
	store.Store
	broken *atomic.Bool
}

func (s panickyStore) Authenticate(ctx context.Context, public string) (*desk.Settings, error) {
	if s.broken.Load() {
		panic("oh")
	}
	return s.Store.Authenticate(ctx, public)
}

// TestRepeatChangesNothing: if a write is repeated, the answer is 200, and updated_at
// stays.
func TestRepeatChangesNothing(t *testing.T) {
	s := newServer(t)
	s.want(201, "POST /v1/attributes", `{"key":"tags","type":"multiselect","options":["a","b"]}`)
	body := `{"external_id":" x ","email":"A@b.c","phone":"202-224-3441","name":" N ","owner":"ada@example.com","identities":[{"kind":"phone","value":"+12022243441"},{"kind":"z","value":"1"}],"attributes":{"tags":["b","a"]}}`
	first := s.want(201, "POST /v1/contacts", body)
	if again := s.want(200, "POST /v1/contacts", body); !bytes.Equal(again, first) {
		t.Errorf("again: %s\nfirst: %s", again, first)
	}
	id := contact(t, first).ID
	if again := s.want(200, "PATCH /v1/contacts/"+strings.ToUpper(id), body); !bytes.Equal(again, first) {
		t.Errorf("patched: %s\nfirst: %s", again, first)
	}
}

func TestListWalksWithCursors(t *testing.T) {
	s := newServer(t)
	for i := range 23 {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"x%d","owner":"ada@example.com"}`, i))
	}
	walk := func(query string, size int) (ids []string) {
		t.Helper()
		next := ""
		for range 30 {
			var page struct {
				Data       []struct{ ID string }
				NextCursor string `json:"next_cursor"`
			}
			body := s.want(200, fmt.Sprintf("GET /v1/contacts?limit=%d%s%s", size, query, next), "")
			if err := json.Unmarshal(body, &page); err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Data {
				ids = append(ids, c.ID)
			}
			if page.NextCursor == "" {
				return ids
			}
			next = "&cursor=" + page.NextCursor
		}
		t.Fatal("the walk does not end")
		return nil
	}
	want := walk("", 200)
	for _, size := range []int{1, 2, 22, 23, 24} {
		for _, query := range []string{"", "&owner=ada@example.com", "&updated_since=2026-01-31T09:30:00Z"} {
			if got := walk(query, size); strings.Join(got, " ") != strings.Join(want, " ") || len(got) != 23 {
				t.Errorf("pages of %d%s: %d contacts", size, query, len(got))
			}
		}
	}
	// A cursor is bound to the workspace, the list and the filters, not to limit.
	var page struct {
		NextCursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal(s.want(200, "GET /v1/contacts?limit=2", ""), &page); err != nil {
		t.Fatal(err)
	}
	_, other := s.workspace("Other", "")
	flipped := []byte(page.NextCursor)
	flipped[3] ^= 1
	for name, r := range map[string]reply{
		"other_workspace": s.as(other, "GET /v1/contacts?cursor="+page.NextCursor, ""),
		"other_filter":    s.do("GET /v1/contacts?owner=ada@example.com&cursor="+page.NextCursor, ""),
		"other_list":      s.do("GET /v1/members?cursor="+page.NextCursor, ""),
		"flipped":         s.do("GET /v1/contacts?cursor="+url.QueryEscape(string(flipped)), ""),
		"cut":             s.do("GET /v1/contacts?cursor="+page.NextCursor[:20], ""),
		"longer":          s.do("GET /v1/contacts?cursor="+page.NextCursor+"AA", ""),
		"empty":           s.do("GET /v1/contacts?cursor=", ""),
	} {
		if r.status != 400 || errorType(r.body) != "invalid_request" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	s.want(200, "GET /v1/contacts?limit=7&cursor="+page.NextCursor, "")
}

// TestIdentitiesAsListed: DELETE removes an identity in the form in which GET lists it,
// even in a country where the digits alone would be read as another number.
func TestIdentitiesAsListed(t *testing.T) {
	s := newServer(t)
	id := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x","identities":[{"kind":"phone","value":"+2022243441"},{"kind":"whatsapp","value":"447700900123"},{"kind":"email","value":"Q@x.Y"},{"kind":"z","value":"a b&c"}]}`)).ID
	var list struct {
		Data []struct{ Kind, Value string }
	}
	if err := json.Unmarshal(s.want(200, "GET /v1/contacts/"+id+"/identities", ""), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 5 {
		t.Fatalf("%d identities", len(list.Data))
	}
	for _, i := range list.Data[1:] {
		s.want(200, "DELETE /v1/contacts/"+id+"/identities?kind="+i.Kind+"&value="+url.QueryEscape(i.Value), "")
	}
	if body := s.want(200, "GET /v1/contacts/"+id+"/identities", ""); string(body) != `{"data":[{"kind":"external_id","value":"x"}]}` {
		t.Errorf("left: %s", body)
	}
}

// TestRevokedBetween: the last request of a key may have shown that it is valid. The next
// request, of any kind, still checks the key again.
func TestRevokedBetween(t *testing.T) {
	s := newServer(t)
	id := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)).ID
	calls := map[string]string{
		"GET /v1/contacts/" + id: "", "PATCH /v1/contacts/" + id: `{"name":"B"}`, "POST /v1/contacts": `{"external_id":"y"}`,
		"POST /v1/contacts/batch": `{"operations":[{"op":"nonsense"}]}`, "GET /v1/members": "", "POST /v1/attributes": `{"key":"a","type":"text"}`,
		"GET /v1/contacts/0196f2a0-0000-7000-8000-000000000000": "",
	}
	for call, body := range calls {
		key := s.newKey(s.ws, "all")
		keys := s.operator(s.ws).Settings.Keys()
		last := keys[len(keys)-1].ID
		if r := s.as(key, "GET /v1/contacts/"+id, ""); r.status != 200 {
			t.Fatal(r.status)
		}
		if _, err := s.app.RevokeKey(t.Context(), s.operator(s.ws), last); err != nil {
			t.Fatal(err)
		}
		if r := s.as(key, call, body); r.status != 401 {
			t.Errorf("%s after the revocation: %d %s", call, r.status, r.body)
		}
	}
	if n := bytes.Count(s.want(200, "GET /v1/contacts", ""), []byte(`"external_id"`)); n != 1 {
		t.Errorf("%d contacts: a revoked key wrote", n)
	}
}

// TestSettingsBetween: a request uses the settings after every edit that was answered
// before the request.
func TestSettingsBetween(t *testing.T) {
	s := newServer(t)
	for _, country := range []string{"US", "TR", "US", ""} {
		if _, err := s.app.EditWorkspace(t.Context(), s.operator(s.ws), app.WorkspaceEdit{Country: &country}); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"US": "+12022243441", "TR": "+902022243441", "": "+2022243441"}[country]
		if got := contact(t, s.do("POST /v1/contacts", `{"external_id":"x","phone":"2022243441"}`).body); *got.Phone != want {
			t.Errorf("in %q the number is read as %s, want %s", country, *got.Phone, want)
		}
	}
}

// TestReadOptOut reads rows of opt-outs as strictly as contacts.
func TestReadOptOut(t *testing.T) {
	t.Parallel()
	s := &desk.Settings{Workspace: desk.Workspace{Country: "ES"}}
	since, _ := desk.ParseTime("2026-01-31T00:00:00Z")
	for body, want := range map[string]desk.OptOutRow{
		`{"phone":"612 34 56 78"}`:                             {Number: "34612345678", OptedOut: true},
		`{"phone":"612345678","since":null,"opted_out":null}`:  {Number: "34612345678", OptedOut: true},
		`{"phone":"612345678","since":"","opted_out":""}`:      {Number: "34612345678", OptedOut: true},
		`{"phone":"612345678","since":"2026-01-31"}`:           {Number: "34612345678", Since: since, OptedOut: true},
		`{"since":"2026-01-31T00:00:00Z","phone":"612345678"}`: {Number: "34612345678", Since: since, OptedOut: true},
		`{"phone":"612345678","since":"1969-12-31"}`:           {Number: "34612345678", Since: 1, OptedOut: true},
		`{"phone":"612345678","since":"1970-01-01T00:00:00Z"}`: {Number: "34612345678", Since: 1, OptedOut: true},
		`{"phone":"612345678","since":"0001-01-01"}`:           {Number: "34612345678", Since: 1, OptedOut: true},
		`{"phone":"612345678","opted_out":false}`:              {Number: "34612345678"},
		`{"phone":"612345678","opted_out":" No "}`:             {Number: "34612345678"},
		` {"phone":"612345678","opted_out":"1"} `:              {Number: "34612345678", OptedOut: true},
		`{"\u0070hone":"+905321234567","opted_out":true}`:      {Number: "905321234567", OptedOut: true},
	} {
		if row, err := api.ReadOptOut([]byte(body), s); err != nil || *row != want {
			t.Errorf("%s: %+v, %v", body, row, err)
		}
	}
	for body, want := range map[string]string{
		`{"PHONE":"+34612345678"}`:                        "/PHONE unknown field: did you mean phone?",
		`{"phone":"+34612345678","phone":"+34612345679"}`: "/phone this member is there twice",
		`{"phone":"+34612345678","x":1}`:                  "/x unknown field: those known are phone, since, opted_out",
		`{"phone":34612345678}`:                           "/phone expected a string, got a number",
		`{"phone":"+34612345678","since":7}`:              "/since expected a string, got a number",
		`{"phone":"+34612345678","since":"tomorrow"}`:     "/since send a time such as 2026-01-31T09:30:00Z, or a date",
		`{"phone":"+34612345678","opted_out":"perhaps"}`:  "/opted_out write true or false",
		`{"phone":"+34612345678","opted_out":[]}`:         "/opted_out write true or false",
		`{"phone":"+34612345678\u0000"}`:                  "/phone U+0000 can't be stored",
		`{"phone":"1"}`:                                   "/phone a phone number has 7 to 15 digits, this one has 1",
		`{"phone":null}`:                                  "/phone expected a string, got null",
		`{}`:                                              "/phone missing; send the person's number",
		`[]`:                                              " the body: expected an object, got an array",
		`null`:                                            " the body: expected an object, got null",
		`{"phone":"+34612345678"} {}`:                     " the body holds more than one JSON value",
		`{"phone":"+34612345678"`:                         " the body ends in the middle of a JSON value",
		`none`:                                            " the body: this is not valid JSON, at byte 1 of the body",
	} {
		_, err := api.ReadOptOut([]byte(body), s)
		if e := desk.AsError(err); err == nil || e.Type != desk.InvalidRequest || e.At+" "+e.Message != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
