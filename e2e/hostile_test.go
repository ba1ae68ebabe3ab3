package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// hostile has texts that people and providers may write. If a page does not show such a
// text as text, the page gets elements with the class evil, or a script sets window.evil.
var hostile = []string{
	`<script class=evil>window.evil=1</script>`,
	`</script><script class=evil>window.evil=1</script>`,
	`<img class=evil src=x onerror=window.evil=1>`,
	`"><img class=evil src=x onerror=window.evil=1>`,
	`'><svg class=evil onload=window.evil=1>`,
	`" autofocus onfocus="window.evil=1" class="evil`,
	`' autofocus onfocus='window.evil=1' class='evil`,
	"` onmouseover=`window.evil=1` class=`evil`",
	`</title><h1 class=evil>Title</h1>`,
	`</textarea><h1 class=evil>Area</h1>`,
	`</option></select><b class=evil>Select</b>`,
	`</bdi></a></td></tr></table><b class=evil>Table</b>`,
	`</template><b class=evil>Template</b>`,
	`</dialog><b class=evil>Dialog</b>`,
	`<!-- <b class=evil>`,
	`--><b class=evil>Comment</b>`,
	`<![CDATA[<b class=evil>]]>`,
	`<style class=evil>*{display:none}</style>`,
	`<link class=evil rel=stylesheet href=//evil.example/x.css>`,
	`<base class=evil href=//evil.example/>`,
	`<meta class=evil http-equiv=refresh content="0;url=//evil.example">`,
	`<iframe class=evil srcdoc="<script>parent.evil=1</script>"></iframe>`,
	`<object class=evil data="javascript:window.evil=1"></object>`,
	`<form class=evil action=//evil.example><button>Go</button></form>`,
	`<a class=evil href="javascript:window.evil=1">Click</a>`,
	`javascript:window.evil=1`,
	`https://evil.example/"onmouseover="window.evil=1"class="evil`,
	`https://evil.example/<b class=evil>`,
	`javascript://evil.example/%0Awindow.evil=1`,
	`data:text/html,<script>window.evil=1</script>`,
	`{{.Me}} {{template "form" .}} {{printf "%v" .}}`,
	`${window.evil=1} #{7*7} <%= 7*7 %> {{constructor.constructor('window.evil=1')()}}`,
	`{{{`,
	`&lt;b class=evil&gt; &amp;amp; &#60;b&#62;`,
	`*bold _italic ~struck* ` + "`code`" + ` _~ <b class=evil>*</b>`,
	"\u202Eolleh drawkcab\u202C",
	"\u2066isolate\u2069 \u200Fright\u200E left",
	"\u202E\u202D\u202A\u2067 never ended",
	"مرحبا <b class=evil>سارة</b> !",
	strings.Repeat("W", 250),
	strings.Repeat("long/", 50),
	strings.Repeat("\u0301", 60) + "Z" + strings.Repeat("\u0335", 60) + "algo",
	"🏳️‍🌈👩‍👩‍👧‍👦🇪🇸" + strings.Repeat("😀", 40),
	`null`,
	`undefined`,
	`0`,
	`NaN`,
	`'; DROP TABLE contacts; --`,
	`"quoted" 'single' “curly” \back\slash \u003cb\u003e`,
	`__proto__ constructor [object Object] %00 %3Cb%3E`,
}

// A plainClient is a member's browser that runs no script. It does not follow redirects.
type plainClient struct {
	t      testing.TB
	url    string
	http   *http.Client
	member string
}

// signInPlainly signs a member in by a link.
func signInPlainly(t testing.TB, base, link string) *plainClient {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &plainClient{t: t, url: base, http: &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if a := c.post(link); a.status != http.StatusSeeOther {
		t.Fatalf("%s: %d", link, a.status)
	}
	c.member = regexp.MustCompile(`data-member="([^"]+)"`).FindStringSubmatch(c.get("/me").body)[1]
	return c
}

type plainAnswer struct {
	status         int
	location, body string
}

func (c *plainClient) get(path string) plainAnswer {
	c.t.Helper()
	return c.do(http.MethodGet, path, nil, nil)
}

// post sends a form. Its fields are pairs of name and value.
func (c *plainClient) post(path string, pairs ...string) plainAnswer {
	c.t.Helper()
	return c.do(http.MethodPost, path, http.Header{"Sec-Fetch-Site": {"same-origin"}}, pairs)
}

func (c *plainClient) do(method, path string, header http.Header, pairs []string) plainAnswer {
	c.t.Helper()
	form := url.Values{"member": {c.member}}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return plainAnswer{answer.StatusCode, answer.Header.Get("Location"), string(body)}
}

// isText finds the faults of a page that should show hostile texts: a text that is not
// shown as it was written, and an element of a text that has become a part of the page.
const isText = `((texts) => {
	const plain = (text) => text.replace(/\s+/g, " ").trim(), wrong = [];
	const all = plain([document.title, document.body.textContent, ...[...document.querySelectorAll("input, textarea")].map((el) => el.value)].join(" "));
	for (const text of texts) if (!all.includes(plain(text))) wrong.push("not shown: " + text);
	for (const el of document.querySelectorAll("*")) {
		const bad = el.matches(".evil, iframe, object, embed, base, style, [style], [srcdoc]") || [...el.attributes].some((a) => a.name.startsWith("on"))
			|| ["href", "src", "action", "formaction"].some((name) => el.hasAttribute(name) && !el.matches("#person a[href^='tel:+'], #person a[href^='mailto:']") && !/^https?:$/.test(new URL(el.getAttribute(name), location).protocol))
			|| el.matches("script, img, link, form") && new URL(el.src || el.getAttribute("href") || el.getAttribute("action"), location).origin !== location.origin;
		if (bad) wrong.push("became a part of the page: " + el.outerHTML.slice(0, 200));
	}
	if (window.evil) wrong.push("a script ran");
	return wrong.concat(window.violations ?? []);
})`

// wantText checks that the page shows the texts as they were written.
func (b *tab) wantText(texts ...string) {
	b.t.Helper()
	list, err := json.Marshal(append([]string{}, texts...))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, wrong := range look[[]string](b, isText+"("+string(list)+")") {
		b.t.Errorf("%s: %s", look[string](b, "location.href"), wrong)
	}
}

// TestHostileTexts: whatever people write, pages show it as text.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir, delivers...)
	w, key := newWorkspace(t, dir)
	must(t, dir, "member", "add", "--workspace", w, "--name", "Ada", "--email", "ada@acme.example", "--role", "admin")
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", w)["channel_id"].(string)
	link := func() string {
		u, err := url.Parse(must(t, dir, "login-link", "--workspace", w, "--member", "ada@acme.example")["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	}
	c := signInPlainly(t, s.url, link())
	b := newTab(t, s.url)
	b.watch()
	b.open(link())
	b.follow("main form button")

	// done checks the status of an action's response.
	done := func(a plainAnswer, status int, what string) {
		t.Helper()
		if a.status != status {
			t.Fatalf("%s: %d: %s", what, a.status, a.body[max(0, strings.Index(a.body, "<main")):])
		}
	}
	s.want(t, 201, key, "POST", "/attributes", `{"key":"remark","label":"Remark","type":"text"}`)
	done(c.post("/settings/attributes/new-attribute", "label", hostile[2], "type", "select", "options", strings.Join(hostile[:8], "\n"), "description", hostile[3], "key", "evil"), 303, "an attribute")
	contacts := make([]string, len(hostile))
	for i, text := range hostile {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		phone := fmt.Sprintf("+120255501%02d", i)
		body := fmt.Sprintf(`{"name":%s,"note":%[1]s,"phone":%q,"attributes":{"remark":%[1]s}}`, quoted, phone)
		var made struct{ Data struct{ ID string } }
		read(t, s.want(t, 201, key, "POST", "/contacts", body), &made)
		contacts[i] = made.Data.ID
		done(c.post("/settings/members/new", "name", text, "email", fmt.Sprintf("m%d@acme.example", i), "role", "agent"), 303, "a member")
		done(c.post("/settings/keys/new", "name", text, "permissions", "contacts:read", "expires", ""), 200, "a key")
	}
	const inOne = 5
	for i := 0; i < len(hostile); i += inOne {
		var parts []any
		for j, text := range hostile[i : i+inOne] {
			parts = append(parts, map[string]any{"type": []string{"BODY", "FOOTER", "HEADER", "BUTTONS", "BUTTONS"}[j], "format": "TEXT", "text": text, "buttons": []any{map[string]string{"type": "QUICK_REPLY", "text": text}}})
		}
		template, err := json.Marshal(map[string]any{"name": fmt.Sprintf("t%d", i), "language": "en", "status": "APPROVED", "category": "UTILITY", "components": parts})
		if err != nil {
			t.Fatal(err)
		}
		done(c.post("/templates/"+channel+"/new", "source", string(template)), 303, "a template")
	}

	// Saved replies with hostile texts, and a policy whose members and texts are hostile.
	for i, text := range hostile {
		done(c.post("/settings/snippets/new", "shortcut", fmt.Sprintf("s%d", i), "text", strings.ReplaceAll(text, "{", "(")), 303, "a saved reply")
	}
	policy := c.get("/settings/policy").body
	seen := func(part string) string {
		return regexp.MustCompile(`value="` + part + `"><input type="hidden" name="seen" value="([^"]*)"`).FindStringSubmatch(policy)[1]
	}
	done(c.post("/settings/policy", "part", "replies", "seen", seen("replies"), "away", hostile[2], "queued", hostile[3]+hostile[5], "every_hours", "12"), 303, "texts")
	done(c.post("/settings/policy", "part", "hours", "seen", seen("hours"), "open", "hours", "time_zone", hostile[3]), 422, "a time zone")

	// Messages arrive while their page is open. The page does not show the marks for bold
	// and the like.
	marks := regexp.MustCompile("[*_~`]\\w").MatchString
	writes := func(i int) {
		done(c.post("/settings/channels/"+channel+"/customer", "from", "+12025550199", "name", hostile[2], "text", hostile[i]), 303, "a message")
	}
	writes(0)
	b.open("/inbox?view=unassigned")
	b.open(look[string](b, "document.querySelector('[data-row]').href"))
	for half := range 2 { // half of them at a time, because a page shows no more
		texts := hostile[half*len(hostile)/2:][:len(hostile)/2]
		for i := range texts {
			writes(half*len(hostile)/2 + i)
		}
		done(c.post("/settings/channels/"+channel+"/customer", "from", "+12025550199", "name", "", "text", fmt.Sprint("That was half ", half)), 303, "a message")
		b.stays(fmt.Sprintf("[...document.querySelectorAll('#thread .bubble.theirs .text')].at(-1)?.textContent === 'That was half %d'", half))
		b.wantText(slices.DeleteFunc(slices.Clone(texts), marks)...)
	}
	if n := look[int](b, `[...document.querySelectorAll("#thread .text *")].filter((el) => !el.matches("strong, em, s, code, a[href][rel='noopener noreferrer nofollow'], a[href] > bdi")).length`); n != 0 {
		t.Errorf("%d elements in messages", n)
	}
	b.do(chromedp.Reload())
	b.wantText(slices.DeleteFunc(slices.Clone(hostile[len(hostile)/2:]), marks)...)

	// Notes and files are from members with hostile names.
	thread := look[string](b, "location.pathname")
	for i := 0; i < len(hostile); i += inOne {
		var names []string
		for j, text := range hostile[i : i+inOne] {
			done(c.post(thread+"/notes", "note", text), 303, "a note")
			var file struct{ Data struct{ ID, Name string } }
			status, answer := s.call(t, key, "POST", "/media?name="+url.QueryEscape(text), "a file", "Content-Type", "text/plain")
			if status != 201 {
				t.Fatalf("a file: %d: %s", status, answer)
			}
			read(t, answer, &file)
			names = append(names, file.Data.Name)
			status, answer = s.call(t, key, "POST", "/conversations/"+strings.TrimPrefix(thread, "/inbox/")+"/messages", fmt.Sprintf(`{"attachment":{"media_id":%q},"member":"m%d@acme.example"}`, file.Data.ID, i+j), "Idempotency-Key", fmt.Sprint("file-", i+j))
			if status != 201 {
				t.Fatalf("a reply: %d: %s", status, answer)
			}
		}
		notes := slices.DeleteFunc(slices.Clone(hostile[i:i+inOne]), marks)
		b.open(thread)
		b.wantText(slices.Concat(names, hostile[i:i+inOne], notes)...)
		b.open(thread + "/notes")
		b.wantText(notes...)
		b.open(look[string](b, "document.querySelector('.jotted a').href"))
		b.wantText()
	}

	// Lists.
	for path, texts := range map[string][]string{
		"/inbox?view=unassigned": hostile[2:3], "/contacts": hostile, "/settings/members": hostile, "/settings/keys": hostile[:49], "/settings/attributes": hostile[2:3],
		"/settings/attributes/evil": append(hostile[2:4:4], hostile[:8]...), "/settings/attributes/evil/archive": hostile[2:3], "/settings/events": nil, "/settings/events?types=settings": nil, "/templates": nil, "/overview": nil,
		"/contacts/new": hostile[2:3], "/settings/policy": append(hostile[2:4:4], hostile...), "/settings/snippets/s2/edit": hostile[2:3], "/settings/snippets/s5/edit": hostile[5:6], "/settings/snippets/s9/delete": hostile[9:10], "/me/news": nil,
		"/settings/snippets": hostile[:10],
	} {
		b.open(path)
		b.wantText(texts...)
	}
	b.open("/settings/keys")
	b.open(look[string](b, "document.querySelector('[data-next]').href")) // the workspace had a key before
	b.wantText(hostile[49:]...)

	// Each text gets a page: a contact with this name, in a workspace with this name.
	elements := 0
	for i, text := range hostile {
		done(c.post("/settings", "name", text, "country", "US", "external_ids", "replace"), 303, "a workspace")
		b.open("/contacts/" + contacts[i])
		b.wantText(text)
		if got := look[string](b, "document.title"); !strings.HasSuffix(got, " · parley") {
			t.Errorf("title %q", got)
		}
		if n := look[int](b, "document.querySelectorAll('*').length"); elements == 0 {
			elements = n
		} else if n != elements {
			t.Errorf("the page of %q has %d elements, others %d", text, n, elements)
		}
		if n := look[int](b, "document.documentElement.scrollWidth - innerWidth"); n > 0 {
			t.Errorf("the page of %q is %d too wide", text, n)
		}
	}
	for i := 0; i < len(hostile); i += inOne {
		b.open(fmt.Sprintf("/templates/%s/t%d/en", channel, i))
		b.wantText(hostile[i : i+inOne]...)
	}
	for _, path := range []string{"/settings", "/me", "/contacts/" + contacts[2] + "/delete", "/send?contact=" + contacts[2]} {
		b.open(path)
		b.wantText(hostile[len(hostile)-1])
	}

	// The response of a webhook's receiver.
	var answer atomic.Value
	answer.Store("")
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusInternalServerError) // a response is only stored if the delivery failed
		_, _ = io.WriteString(w, answer.Load().(string))
	}))
	defer receiver.Close()
	b.open("/settings/webhooks/" + s.webhook(t, key, receiver.URL+"/'onclick='window.evil=1'class='evil"))
	for i := 0; i < len(hostile); i += inOne {
		answer.Store(strings.Join(hostile[i:i+inOne], "\n"))
		b.follow("form[action$=ping] button")
		b.wantText(hostile[i : i+inOne]...)
	}
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"last"}`)
	b.open(look[string](b, "location.pathname.replace('/ping', '')"))
	waitFor(t, "an attempt", func() bool {
		b.do(chromedp.Reload())
		return look[bool](b, "!!document.querySelector('tbody [data-row]') && Number(document.querySelector('tbody .num').textContent) > 0")
	})
	b.open(look[string](b, "document.querySelector('tbody [data-row]').href"))
	b.wantText(hostile[len(hostile)-inOne:]...)

	// The preview of a template shows the text that a member types.
	done(c.post("/templates/"+channel+"/new", "source", `{"name":"hello","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"BODY","text":"Hello {{1}}, how are you?"}]}`), 303, "a template")
	b.open("/send?contact=" + contacts[2] + "&channel=" + channel + "&template=hello/en")
	for _, text := range []string{hostile[2], hostile[0], hostile[24], hostile[5]} {
		b.fill("[name='value.1']", text)
		b.wait(fmt.Sprintf("document.querySelector('#preview mark').textContent === %q", text))
		b.wantText(text)
	}

	// The parameters of the URL.
	for _, path := range []string{"/contacts?q=", "/contacts?attribute=", "/search?q=", "/send?find=", "/inbox?view=", "/inbox?channel=", "/inbox?after=", "/contacts?owner=", "/settings/events?types=", "/sends?after=", "/me?done=", "/templates?channel=", "/overview?days=", "/", "/sign-in/", "/inbox/"} {
		b.open(path + strings.ReplaceAll(url.QueryEscape(hostile[25]+hostile[2]+hostile[5]), "+", "%20"))
		b.wantText()
	}
}

// watch makes each page record the violations of its Content-Security-Policy.
func (b *tab) watch() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `addEventListener("securitypolicyviolation", (e) => (window.violations ??= []).push(e.violatedDirective + " " + e.blockedURI + " " + e.sample))`,
		})
		return err
	}))
}

// nexts returns addresses on other sites, and addresses that are not pages.
func nexts(host string) []string {
	return []string{
		"//evil.example", "///evil.example", "////evil.example/inbox", `/\evil.example`, `\\evil.example`, `/\/evil.example`, "https://evil.example", "https:evil.example",
		"http:///evil.example", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "/\t/evil.example", "/\n/evil.example", "\t//evil.example", " //evil.example",
		"/%09/evil.example", "/%2f/evil.example", "/%2fevil.example", "/%5cevil.example", "/inbox/../../evil.example", "/..//evil.example", "/./evil.example", "/inbox%2f..%2f..%2fevil",
		"@evil.example", ".evil.example", "evil.example", "//" + host + "@evil.example/inbox", "http://" + host + ".evil.example/inbox", "/sign-out", "/live", "/v1/contacts", "/docs", "/static/x", "/inbox\x00",
		"//evil.example/inbox", "?next=//evil.example", "#//evil.example", "/inbox\r\nLocation: //evil.example", "/me/password", "\u2028//evil.example", "／/evil.example", "/／evil.example",
	}
}

// TestOtherSites: another site can neither do anything in the name of a member nor embed
// the pages. A sign-in does not lead to another site.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := serve(t, dir)
	w, _ := newWorkspace(t, dir)
	must(t, dir, "member", "add", "--workspace", w, "--name", "Ada", "--email", "ada@acme.example", "--role", "admin")
	link := func() string {
		u, err := url.Parse(must(t, dir, "login-link", "--workspace", w, "--member", "ada@acme.example")["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return u.Path
	}
	c := signInPlainly(t, s.url, link())
	host := strings.TrimPrefix(s.url, "http://")
	_, port, _ := strings.Cut(host, ":")
	same := func(what string) {
		t.Helper()
		if me := c.get("/me"); me.status != 200 || !strings.Contains(me.body, `value="Ada"`) {
			t.Fatalf("%s: the member has changed, or is signed out: %d", what, me.status)
		}
	}

	// Requests with the headers that browsers send for other sites.
	var headers []http.Header
	for _, site := range []string{"cross-site", "same-site", "Cross-Site", "cross-origin", "x"} {
		headers = append(headers, http.Header{"Sec-Fetch-Site": {site}}, http.Header{"Sec-Fetch-Site": {site}, "Origin": {"http://" + host}})
	}
	for _, origin := range []string{
		"https://evil.example", "null", "http://" + host + ".evil.example", "http://" + host + "@evil.example", "http://evil.example/" + host, "http://127.0.0.1", "http://127.0.0.1:1",
		"http://localhost:" + port, "http://[::1]:" + port, "http://0.0.0.0:" + port, "http://127.1:" + port, "http://2130706433:" + port, "file://", "chrome-extension://abcdef", "http://" + host + "0", host, "//evil.example", "https://evil.example, http://" + host,
	} {
		headers = append(headers, http.Header{"Origin": {origin}})
	}
	for _, header := range headers {
		if a := c.do("POST", "/me", header.Clone(), []string{"name", "Eve"}); a.status != http.StatusForbidden {
			t.Errorf("%v: status %d", header, a.status)
		}
	}
	same("headers")
	text, err := os.ReadFile("../console/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	actions := regexp.MustCompile(`\{"POST (/[^"]*)"`).FindAllStringSubmatch(string(text), -1)
	for _, action := range actions {
		path := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.TrimSuffix(action[1], "{$}"), "01980000-0000-7000-8000-000000000000")
		for _, header := range headers[:4] {
			if a := c.do("POST", path, header.Clone(), nil); a.status != http.StatusForbidden {
				t.Errorf("POST %s with %v: status %d", path, header, a.status)
			}
		}
	}
	same("actions")

	// The pages of other sites. One of the sites has the same host, so the browser sends
	// the cookie with requests of its pages.
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/strict" {
			w.Header().Set("Referrer-Policy", "no-referrer")
		}
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Evil</title><form method="post" action="%s/me" id="form"><input name="member" value="%s"><input name="name" value="Eve"></form>`, s.url, c.member)
	}))
	defer evil.Close()
	b := newTab(t, s.url)
	b.open(link())
	b.follow("main form button")
	_, evilPort, _ := strings.Cut(strings.TrimPrefix(evil.URL, "http://"), ":")
	for _, site := range []string{"http://127.0.0.1:" + evilPort, "http://localhost:" + evilPort, "http://127.0.0.1:" + evilPort + "/strict"} {
		for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data"} {
			b.open(site)
			look[bool](b, fmt.Sprintf(`{ document.title = ""; form.enctype = %q; form.submit(); true }`, kind))
			b.wait(`location.port === "` + port + `" && document.readyState === "complete"`)
			if at := look[string](b, "document.title + location.pathname"); !strings.HasPrefix(at, "Not allowed") && !strings.HasSuffix(at, "/sign-in") {
				t.Errorf("a form of %s in %s leads to %s", site, kind, at)
			}
		}
		b.open(site)
		look[bool](b, fmt.Sprintf(`(async () => {
			const to = %q, body = new URLSearchParams(new FormData(form)), all = { method: "POST", body, mode: "no-cors", credentials: "include" };
			for (const path of ["/me", "/me/sign-out", "/sign-out"]) await fetch(to + path, all).catch(() => {});
			navigator.sendBeacon(to + "/me", body);
			let read = false;
			try { await (await fetch(to + "/me", { credentials: "include" })).text(); read = true; } catch {}
			if (read) throw new Error("it reads the page");
			return true; })()`, s.url))
		same(site)
	}
	b.open("/me")
	if got := look[string](b, "document.querySelector('#f-name').value"); got != "Ada" {
		t.Errorf("she is called %q now", got)
	}
	b.forget()
	for _, path := range []string{"/inbox", "/sign-in", "/me", "/nowhere"} {
		b.open(evil.URL)
		look[bool](b, fmt.Sprintf(`new Promise((done) => { const frame = document.createElement("iframe"); frame.src = %q; frame.onload = () => done(true); document.body.append(frame); })`, s.url+path))
		waitFor(t, "the frame of "+path+" to be refused", func() bool {
			return slices.ContainsFunc(b.forget(), func(r string) bool { return strings.Contains(r, "frame-ancestors") })
		})
	}

	// The address to which a sign-in leads.
	list := nexts(host)
	for _, next := range list {
		if a := c.get("/sign-in?next=" + url.QueryEscape(next)); a.status != 303 || a.location != "/inbox" {
			t.Errorf("next %q leads to %q", next, a.location)
		}
	}
	const password = "a few words will do"
	if a := c.post("/me/password", "password", password); a.status != 303 {
		t.Fatalf("a password: %d", a.status)
	}
	out := &plainClient{t: t, url: s.url, http: &http.Client{CheckRedirect: c.http.CheckRedirect}}
	for _, next := range append(list[:3:3], "/contacts?q=x") {
		form := out.get("/sign-in?next=" + url.QueryEscape(next)).body
		a := out.post("/sign-in", "email", "ada@acme.example", "password", password, "next", next)
		if good := strings.HasPrefix(next, "/contacts"); a.status != 303 || good != (a.location == next) || !good && a.location != "/inbox" || good != strings.Contains(form, `name="next"`) {
			t.Errorf("next %q leads to %q (%d)", next, a.location, a.status)
		}
	}
	t.Logf("%d posts of other sites, %d actions, %d places", len(headers), len(actions), len(list))
}

// forget returns the reports of the tab, and clears them.
func (b *tab) forget() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.reports
	b.reports = nil
	return list
}
