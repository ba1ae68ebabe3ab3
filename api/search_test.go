package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// indexed lets the search read what has changed.
func (s *server) indexed() {
	s.t.Helper()
	for {
		wait, err := s.app.Search.Step(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if wait < 0 {
			return
		}
	}
}

// seek returns the names that a search finds, page by page.
func (s *server) seek(query string) (names []string) {
	s.t.Helper()
	for path := "/v1/contacts?" + query; path != ""; {
		var page struct {
			Data []struct{ Name string }
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(s.want(200, "GET "+path, ""), &page); err != nil {
			s.t.Fatal(err)
		}
		for _, c := range page.Data {
			names = append(names, c.Name)
		}
		if path = ""; page.Next != "" {
			path = "/v1/contacts?" + query + "&cursor=" + url.QueryEscape(page.Next)
		}
	}
	return names
}

// TestSearch: GET /contacts with q and attribute (contract-data §5).
func TestSearch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.indexed()
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"select","options":["free","pro"]}`)
	s.want(201, "POST /v1/attributes", `{"key":"tags","type":"multiselect","options":["a","b"]}`)
	s.want(201, "POST /v1/attributes", `{"key":"vip","type":"boolean"}`)
	s.want(201, "POST /v1/attributes", `{"key":"city","type":"text"}`)
	s.want(201, "POST /v1/attributes", `{"key":"old","type":"boolean"}`)
	s.want(200, "DELETE /v1/attributes/old", "")
	for _, body := range []string{
		`{"name":"Ada Lovelace","external_id":"crm-1","phone":"+90 532 123 45 67","attributes":{"plan":"pro","tags":["a","b"],"vip":true}}`,
		`{"name":"Łukasz Ada","email":"L.Nowak@Example.com","attributes":{"plan":"free","tags":["b"]}}`,
		`{"name":"山田太郎","email":"taro@example.org","attributes":{"vip":false}}`,
	} {
		s.want(201, "POST /v1/contacts", body)
	}
	if r := s.do("GET /v1/contacts?q=ada", ""); r.header.Get("Search-Behind") != "3" {
		t.Errorf("Search-Behind: %q", r.header.Get("Search-Behind"))
	}
	s.indexed()
	if r := s.do("GET /v1/contacts?q=ada", ""); r.header.Get("Search-Behind") != "" {
		t.Errorf("Search-Behind: %q", r.header.Get("Search-Behind"))
	}
	for query, want := range map[string]string{
		"q=ada":                    "Łukasz Ada, Ada Lovelace",
		"q=ada&limit=1":            "Łukasz Ada, Ada Lovelace",
		"q=LUKASZ+ad":              "Łukasz Ada",
		"q=%E5%A4%AA":              "山田太郎",
		"q=@example":               "Łukasz Ada, 山田太郎",
		"q=0532%20123":             "Ada Lovelace",
		"q=4567":                   "Ada Lovelace",
		"q=crm-":                   "Ada Lovelace",
		"q=nobody":                 "",
		"q=ada&attribute=plan:pro": "Ada Lovelace",
		"attribute=plan:pro":       "Ada Lovelace",
		"attribute=tags:b":         "Łukasz Ada, Ada Lovelace",
		"attribute=tags:b&limit=1": "Łukasz Ada, Ada Lovelace",
		"attribute=vip:false":      "山田太郎",
		"attribute=plan:gone":      "",
	} {
		if got := strings.Join(s.seek(query), ", "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{
		"q=", "q=%20", "q=" + strings.Repeat("a", 201), "q=a+b+c+d+e+f+g+h+i", "q=ada&email=a@b.example", "q=ada&updated_since=2026-01-01T00:00:00Z", "attribute=vip:true&external_id=1", "q=a&phone=%2B905321234567",
		"attribute=", "attribute=plan", "attribute=nothing:x", "attribute=city:x", "attribute=old:true", "attribute=vip:yes", "q=ada&owner=nobody@example.com", "q=ada&cursor=x", "q=ada&q=b", "q=ada&limit=0",
	} {
		if body := s.want(400, "GET /v1/contacts?"+query, ""); errorType(body) != "invalid_request" {
			t.Errorf("%s: %s", query, body)
		}
	}
	if r := s.as(s.newKey(s.ws, "contacts:write"), "GET /v1/contacts?q=ada", ""); r.status != 403 {
		t.Errorf("without contacts:read: %d", r.status)
	}
	_, key := s.workspace("Other", "TR")
	if r := s.as(key, "GET /v1/contacts?q=ada", ""); r.status != 200 || strings.Contains(string(r.body), "Ada") {
		t.Errorf("another workspace: %d %s", r.status, r.body)
	}
}
