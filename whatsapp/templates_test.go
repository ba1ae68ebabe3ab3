package whatsapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/desk"
)

// TestTemplates reads the documented pages. The link to the next page names another
// server.
func TestTemplates(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"": "templates_page1", "c1": "templates_page2", "c2": "templates_page3"}
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/v26.0/"+waba+"/message_templates" || q.Get("limit") != "100" || !strings.HasPrefix(q.Get("fields"), "id,name,language,status,") || q.Get("appsecret_proof") != proof {
			t.Errorf("%s", r.URL)
		}
		w.Write(fixture(t, pages[q.Get("after")]))
	})
	got, err := newProvider().Templates(t.Context(), access(base))
	if err != nil || len(got) != 18 {
		t.Fatalf("%d, %v", len(got), err)
	}
	n := 0
	for _, page := range []string{"templates_page1", "templates_page2", "templates_page3"} {
		var p struct{ Data []json.RawMessage }
		if err := json.Unmarshal(fixture(t, page), &p); err != nil {
			t.Fatal(err)
		}
		for _, raw := range p.Data {
			var head struct{ Name, Language string }
			if err := json.Unmarshal(raw, &head); err != nil {
				t.Fatal(err)
			}
			if want := (desk.TemplateSource{Name: head.Name, Language: head.Language, Source: string(raw)}); got[n] != want {
				t.Errorf("%d: %+v", n, got[n])
			}
			if _, err := desk.ParseTemplate([]byte(got[n].Source)); err != nil {
				t.Errorf("%s: %v", head.Name, err)
			}
			n++
		}
	}
}

// page returns a page of a list. next is the cursor of the following page.
func page(next string, names ...string) string {
	var b bytes.Buffer
	b.WriteString(`{"data":[`)
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"99000000000000000000001","name":%q,"language":"tr"}`, name)
	}
	b.WriteString(`],"paging":{"cursors":{"after":"not the end"}`)
	if next != "" {
		fmt.Fprintf(&b, `,"next":"https://graph.facebook.com/v26.0/1/message_templates?after=%s&limit=1"`, next)
	}
	b.WriteString("}}")
	return b.String()
}

func TestTemplates_pages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		pages map[string]string // by cursor
		want  string            // the names, or the error
		fails desk.ErrorType
	}{
		{"none", map[string]string{"": `{"data":[]}`}, "", ""},
		{"an empty one between", map[string]string{"": page("1", "a"), "1": page("2"), "2": page("", "b", "c")}, "a b c", ""},
		{"a cursor with signs", map[string]string{"": page("Q%3D%3D", "a"), "Q==": page("", "b")}, "a b", ""},
		{"round in a circle", map[string]string{"": page("1", "a"), "1": page("2", "b"), "2": page("1", "c")}, "", desk.Unavailable},
		{"the same again", map[string]string{"": page("1"), "1": page("1")}, "", desk.Unavailable},
		{"next without a cursor", map[string]string{"": `{"data":[],"paging":{"next":"https://graph.facebook.com/"}}`}, "", desk.Unavailable},
		{"no list", map[string]string{"": `{"paging":{}}`}, "", desk.Unavailable},
		{"null for a list", map[string]string{"": `{"data":null}`}, "", desk.Unavailable},
		{"an odd template", map[string]string{"": page("1", "a"), "1": `{"data":[7]}`}, "", desk.Unavailable},
		{"garbage later", map[string]string{"": page("1", "a"), "1": `<html>`}, "", desk.Unavailable},
		{"cut short later", map[string]string{"": page("1", "a"), "1": page("", "b")[:20]}, "", desk.Unavailable},
		{"refused later", map[string]string{"": page("1", "a"), "1": `{"error":{"code":200}}`}, "", desk.InvalidRequest},
		{"throttled later", map[string]string{"": page("1", "a"), "1": `{"error":{"code":80007}}`}, "", desk.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list, err := newProvider().Templates(t.Context(), access(serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, ok := c.pages[r.URL.Query().Get("after")]
				if !ok {
					t.Errorf("%s", r.URL)
				}
				w.Write([]byte(body))
			})))
			var names []string
			for _, s := range list {
				names = append(names, s.Name)
			}
			var e *desk.Error
			switch got := strings.Join(names, " "); {
			case c.fails == "" && (err != nil || got != c.want || list == nil):
				t.Errorf("%q, %v", got, err)
			case c.fails != "" && (list != nil || !errors.As(err, &e) || e.Type != c.fails || strings.Contains(err.Error(), proof)):
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestTemplates_tooManyPages(t *testing.T) {
	t.Parallel()
	calls := 0
	_, err := newProvider().Templates(t.Context(), access(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Write([]byte(page(strconv.Itoa(calls))))
	})))
	if !desk.IsType(err, desk.Unavailable) || calls != 500 {
		t.Errorf("%v after %d pages", err, calls)
	}
}

// TestTemplates_tooMany: ten thousand templates are read, and one more is refused. After
// that, the server is asked for no further page. Of a page with very many small
// templates, only a few are read.
func TestTemplates_tooMany(t *testing.T) {
	t.Parallel()
	serving := func(page func(n int) string) (calls int, list []desk.TemplateSource, objects uint64, err error) {
		base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.Write([]byte(page(calls)))
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		list, err = newProvider().Templates(t.Context(), access(base))
		runtime.ReadMemStats(&after)
		return calls, list, after.Mallocs - before.Mallocs, err
	}
	hundred := func(n, pages int) string {
		next, names := strconv.Itoa(n), make([]string, 100)
		if n == pages {
			next = ""
		}
		for i := range names {
			names[i] = fmt.Sprintf("t%d_%d", n, i)
		}
		return page(next, names...)
	}
	_, list, _, err := serving(func(n int) string { return hundred(n, 100) })
	if err != nil || len(list) != desk.MaxTemplates {
		t.Errorf("%d templates, %v", len(list), err)
	}
	long := strings.Repeat("x", 1<<20)
	small := strings.Repeat("{},", 5_000_000) + "{}"
	for _, c := range []struct {
		name  string
		page  func(n int) string
		pages int
	}{
		{"one more", func(n int) string { return hundred(n, 500) }, 101},
		{"long", func(n int) string { return page(strconv.Itoa(n), long, long, long, long) }, 8},
		{"small", func(int) string { return `{"data":[` + small + `]}` }, 1},
	} {
		calls, list, objects, err := serving(c.page)
		if list != nil || !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "at most 10000 templates") || calls != c.pages {
			t.Errorf("%s: %d templates of %d pages, %v", c.name, len(list), calls, err)
		}
		if objects > 2_000_000 { // this count also includes objects of tests that run at the same time
			t.Errorf("%s: %d objects were made", c.name, objects)
		}
	}
}

// TestTemplates_allowance: when little of the hourly call limit is left, the provider
// waits between two pages. If the caller leaves meanwhile, the wait ends.
func TestTemplates_allowance(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		w.Header().Set("X-App-Usage", `{"call_count":79,"total_time":"x"}`)
		if after != "" {
			w.Header().Set("X-Business-Use-Case-Usage", `{"1":[{"total_cputime":80.5}]}`)
		}
		w.Write([]byte(page(map[string]string{"": "1", "1": "2"}[after])))
	})
	var waits []time.Duration
	p := newProvider()
	p.Pause(func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil })
	if _, err := p.Templates(t.Context(), access(base)); err != nil || len(waits) != 1 {
		t.Errorf("%v, %v", waits, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = newProvider()
	p.Pause(func(context.Context, time.Duration) error { cancel(); return ctx.Err() })
	if list, err := p.Templates(ctx, access(base)); list != nil || !desk.IsType(err, desk.Unavailable) {
		t.Errorf("%v, %v", list, err)
	}
}

// TestTemplates_words: errors for an operator say what to do, and contain no secrets.
func TestTemplates_words(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for base, want := range map[string]string{
		serve(t, answers(401, `{"error":{"code":190,"message":"Session has expired."}}`)): "code 190, Access token expired or invalid): Make a new access token",
		serve(t, answers(500, `<html>`)): "HTTP 500 without an explanation: try again later",
		gone.URL:                         "could not be reached to read the templates",
	} {
		_, err := newProvider().Templates(t.Context(), access(base))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), proof) {
			t.Errorf("%v", err)
		}
	}
	busy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Business-Use-Case-Usage", `{"1":[{"call_count":100,"estimated_time_to_regain_access":7}]}`)
		fails(400, 80007)(w, r)
	})
	_, err := newProvider().Templates(t.Context(), access(busy))
	var e *desk.Error
	if !errors.As(err, &e) || e.Type != desk.Unavailable || e.RetryAfter != 420 {
		t.Errorf("%v", err)
	}

	_, err = newProvider().Templates(t.Context(), access(serve(t, answers(401, `{"error":{"code":190,"fbtrace_id":"AbC"}}`))))
	var refused *desk.AccountRefusal
	if !errors.As(err, &refused) || *refused != (desk.AccountRefusal{Code: 190, Title: "Access token expired or invalid", Trace: "AbC", Token: true}) {
		t.Errorf("of the account: %+v, %v", refused, err)
	}
	if _, err := newProvider().Templates(t.Context(), access(busy)); errors.As(err, &refused) {
		t.Errorf("an account that is busy: %+v", refused)
	}
}
