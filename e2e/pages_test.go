package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A fakeConsole serves one page with the script of the console. The test sets the parts
// of the page and its stream.
type fakeConsole struct {
	*httptest.Server
	mu      sync.Mutex
	parts   map[string]string // by region
	asked   map[string]int    // how often each part was fetched
	fetches int
	streams map[chan string]bool
	opened  int  // the number of streams that were opened
	out     bool // the member is signed out
	down    bool // the server breaks connections
	ended   chan struct{}
	keys    []string
}

const fakePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; require-trusted-types-for 'script'; trusted-types parley"

func newFakeConsole(t *testing.T) *fakeConsole {
	t.Helper()
	var script []byte
	files, _ := filepath.Glob("../console/assets/script/*.js")
	for _, file := range files {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script = append(script, part...)
	}
	f := &fakeConsole{parts: map[string]string{}, asked: map[string]int{}, streams: map[chan string]bool{}, ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(script)
	})
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		_, _ = w.Write([]byte(".scroll { height: 100px; overflow: auto } .hidden { position: absolute; left: -9999px }"))
	})
	mux.HandleFunc("GET /live", f.stream)
	mux.HandleFunc("GET /page", f.page)
	mux.HandleFunc("GET /remove", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<div id="main"><h1>Remove it?</h1><form method="post" action="/page"><button>Remove</button> <a href="/page" data-cancel>Keep it</a></form></div>`))
	})
	mux.HandleFunc("POST /page", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.keys = append(f.keys, r.FormValue("key")+" "+r.FormValue("text"))
		f.mu.Unlock()
		if r.FormValue("preview") != "" {
			_, _ = w.Write([]byte(`<div id="preview">Dear ` + r.FormValue("text") + "</div>"))
			return
		}
		http.Redirect(w, r, "/page?done=sent", http.StatusSeeOther)
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		down := f.down
		f.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(f.ended) // a browser may open a stream at any time
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fakeConsole) set(region, html string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts[region] = html
}

func (f *fakeConsole) goes(down, out bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.out = down, out
}

func (f *fakeConsole) count(region string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[region]
}

func (f *fakeConsole) page(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Security-Policy", fakePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if parts := strings.Fields(r.Header.Get("Parley-Part")); len(parts) > 0 {
		if f.out {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		f.fetches++
		text := ""
		for _, part := range parts {
			f.asked[part]++
			text += `<div id="` + part + `">` + f.parts[part] + "</div>"
		}
		tag := fmt.Sprintf(`"%x"`, text)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		_, _ = w.Write([]byte(text))
		return
	}
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><head><title>Fake</title><link rel="stylesheet" href="/style.css"><script src="/app.js" defer></script></head>
<body data-member="m1" data-cursor="evt_0"><main id="main" tabindex="-1"><h1>Fake</h1>
<div id="list" data-live="conversation contact" data-order="list">%s</div>
<div class="scroll" id="scroll" data-thread><div id="thread" data-live="conversation:1">%s</div></div>
<div id="other" data-live="contact:7">%s</div>
<a href="/remove" data-dialog id="remove">Remove</a> <input id="find" data-shortcut="/"> <a id="here" href="#here" data-shortcut="g c">Here</a>
<form method="post" action="/page" data-send data-preview="preview" id="send"><input type="hidden" name="key" value="k1"><textarea name="text" id="text"></textarea><button id="button">Send</button></form>
<div id="preview"></div>
</main><div id="toasts" role="status"></div><template id="shortcuts"><h2>Keys</h2></template></body></html>`, f.parts["list"], f.parts["thread"], f.parts["other"])
}

func (f *fakeConsole) stream(w http.ResponseWriter, r *http.Request) {
	said := make(chan string, 1000)
	f.mu.Lock()
	if f.out {
		f.mu.Unlock()
		if r.Header.Get("Parley-Part") == "" {
			http.Redirect(w, r, "/remove", http.StatusSeeOther) // like the redirect to the sign-in page
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f.streams[said] = true
	f.opened++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, said)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	text := "retry: 200\n\nevent: at\nid: evt_1\ndata: .\n\n"
	for {
		_, _ = w.Write([]byte(text))
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-f.ended:
			return
		case text = <-said:
			if text == "" {
				return
			}
		}
	}
}

// say sends the names of changed records on all streams. With "", it ends the streams.
func (f *fakeConsole) say(names string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := ""
	if names != "" {
		text = "id: evt_2\ndata: " + names + "\n\n"
	}
	for said := range f.streams {
		said <- text
	}
}

func (f *fakeConsole) waitStream(t *testing.T) {
	t.Helper()
	waitFor(t, "a stream", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.streams) > 0
	})
}

// rowsOf returns a list like that of the inbox.
func rowsOf(version int, names ...string) string {
	var b strings.Builder
	b.WriteString("<ol>")
	for _, name := range names {
		fmt.Fprintf(&b, `<li id="c-%s"><a href="#%s" data-row>%s <span>version %d</span></a></li>`, name, name, name, version)
	}
	return b.String() + "</ol>"
}

const rowsShown = `[...document.querySelectorAll("#list li")].map((n) => n.id.slice(2)).join(" ")`

// TestPageRenews: a change renews the regions that show it, and no other region.
func TestPageRenews(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("list", rowsOf(1, "a", "b"))
	b := newTab(t, f.URL)
	b.open("/page")
	f.waitStream(t)
	f.set("list", rowsOf(2, "c", "a", "b"))
	f.say("message:9 conversation:9 contact:9")
	b.shows("c version 2")
	if got := look[string](b, rowsShown); got != "c a b" {
		t.Errorf("rows %s", got)
	}
	if f.count("thread") != 0 || f.count("other") != 0 {
		t.Errorf("regions that do not show it were fetched")
	}
	f.set("thread", "<p id=m-1>Hello</p>")
	f.mu.Lock()
	before := f.fetches
	f.mu.Unlock()
	f.say("conversation:1 contact:7")
	b.shows("Hello")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked["other"] != 1 || f.fetches != before+1 {
		t.Errorf("three regions took %d fetches", f.fetches-before)
	}
}

// TestPageMorphs: while a person types, the page is renewed 100 times. The typed text,
// the selection, the scroll position and the focus stay.
func TestPageMorphs(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	region := func(version int) string {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, `<p id="p-%d" class="v%d">Paragraph %d <b>%d</b></p>`, (i*7+version)%30, version, (i*7+version)%30, version)
			if i == 15 {
				fmt.Fprintf(&b, `<form id="reply" class="v%d"><label for="draft">Draft %d</label><input id="draft" value="%d"></form>`, version, version, version)
			}
		}
		return `<p id="chosen">These words are selected</p>` + b.String()
	}
	f.set("thread", region(0))
	b := newTab(t, f.URL)
	b.open("/page")
	f.waitStream(t)
	look[bool](b, `{ const s = getSelection(), r = document.createRange(); r.selectNodeContents(document.getElementById("chosen")); s.removeAllRanges(); s.addRange(r); true }`)
	look[bool](b, `{ document.getElementById("draft").focus({ preventScroll: true }); document.getElementById("draft").select(); document.getElementById("scroll").scrollTop = 150; true }`)
	b.press("x") // replaces the selected text
	look[bool](b, `{ const r = document.createRange(); window.chosen = r; r.selectNodeContents(document.getElementById("chosen")); document.getElementById("scroll").scrollTop = 150; true }`)
	typed := "x"
	for i := 1; i <= 100; i++ {
		f.set("thread", region(i))
		// The page is renewed as after a change, but without the pause of a second.
		look[bool](b, fmt.Sprintf(`fetch(location.pathname, { headers: { "Parley-Part": "thread" } }).then(read).then((fresh) => { show(document.getElementById("thread"), find("#thread", fresh)); return document.querySelector("#p-3 b").textContent === "%d" })`, i))
		letter := string(rune('a' + i%26))
		b.press(letter)
		typed += letter
	}
	state := look[struct {
		Typed, Focus, Version string
		Scroll                float64
		Same                  bool
	}](b, `({ Typed: document.getElementById("draft").value, Focus: document.activeElement.id, Version: document.querySelector("#p-3 b").textContent,
		Scroll: document.getElementById("scroll").scrollTop, Same: document.activeElement.isConnected && chosen.toString() === "These words are selected" })`)
	if state.Typed != typed || state.Focus != "draft" || state.Version != "100" || !state.Same {
		t.Errorf("%+v, typed %s", state, typed)
	}
	if got := look[string](b, `[...document.querySelectorAll("#thread p")].slice(1).map((n) => n.id).join(" ")`); got != look[string](b, `Array.from({length: 30}, (_, i) => "p-" + (i * 7 + 100) % 30).join(" ")`) {
		t.Errorf("the order after all is %s", got)
	}
}

// TestPageOrderWaits: a list in use shows new content in its rows at once. It shows the
// new order of the rows later.
func TestPageOrderWaits(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("list", rowsOf(1, "a", "b", "c"))
	b := newTab(t, f.URL)
	b.open("/page")
	f.waitStream(t)
	look[bool](b, `{ document.querySelector("#c-b a").focus(); true }`)
	f.set("list", rowsOf(2, "x", "b", "y", "a"))
	f.say("conversation:5")
	b.shows("b version 2")
	if got := look[string](b, rowsShown); got != "a b c" {
		t.Errorf("rows in use: %s", got)
	}
	b.wait(`document.activeElement.closest("li")?.id === "c-b"`)
	if got := look[string](b, `document.querySelector("#list button").textContent`); got != "2 new" {
		t.Errorf("the button says %s", got)
	}
	b.click("#list button")
	b.wait(rowsShown + ` === "x b y a"`)
	b.wait(`document.activeElement.closest("li")?.id === "c-x" && !document.querySelector("#list button")`)

	// Once the list is no longer in use, the new order is shown.
	f.set("list", rowsOf(3, "z", "x"))
	f.say("conversation:5")
	b.shows("x version 3")
	look[bool](b, `{ document.getElementById("find").focus(); true }`)
	b.do(mouseAt(1, 1))
	b.wait(rowsShown + ` === "z x"`)
}

// TestPageFocus: if the row with the focus is removed, the next row gets the focus.
func TestPageFocus(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("thread", rowsOf(1, "a", "b", "c"))
	b := newTab(t, f.URL)
	b.open("/page")
	f.waitStream(t)
	for _, step := range []struct{ left, focus string }{{"a c", "c-c"}, {"a", "c-a"}, {"", "main"}} {
		if step.focus == "c-c" {
			look[bool](b, `{ document.querySelector("#c-b a").focus(); true }`)
		}
		f.set("thread", rowsOf(1, strings.Fields(step.left)...))
		f.say("conversation:1")
		b.wait(fmt.Sprintf(`(document.activeElement.closest("li")?.id || document.activeElement.id) === %q`, step.focus))
	}
}

// TestPageTabs: twelve tabs of a browser share the stream of one tab. If this tab is
// closed, another tab opens a new stream.
func TestPageTabs(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("list", rowsOf(1, "a"))
	first := newWindow(t, f.URL)
	first.open("/page")
	f.waitStream(t)
	var tabs []*tab
	for range 11 {
		b := first.another()
		b.open("/page")
		tabs = append(tabs, b)
	}
	f.set("list", rowsOf(2, "a"))
	f.say("conversation:1")
	for _, b := range append(tabs, first) {
		b.shows("a version 2")
	}
	f.mu.Lock()
	if len(f.streams) != 1 || f.opened != 1 {
		t.Errorf("%d streams, of %d", len(f.streams), f.opened)
	}
	f.mu.Unlock()
	first.open("about:blank")
	waitFor(t, "the next stream", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.opened == 2 && len(f.streams) == 1
	})
	f.set("list", rowsOf(3, "a"))
	f.say("conversation:1")
	for _, b := range tabs {
		b.shows("a version 3")
	}
}

// TestPageOffline: a page says when it is offline, and renews everything when it is
// online again. If the member is signed out, the page says so.
func TestPageOffline(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("list", rowsOf(1, "a"))
	b := newTab(t, f.URL)
	b.open("/page")
	f.waitStream(t)
	f.goes(true, false)
	f.say("")
	b.shows("Reconnecting.")
	f.set("list", rowsOf(2, "a"))
	f.goes(false, false)
	b.shows("a version 2")
	b.wait(`!document.getElementById("offline")`)
	f.goes(false, true)
	f.say("")
	b.shows("Signed out.")
}

// TestPageActs tests dialogs, keys, previews, and a second try of a send.
func TestPageActs(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	f.set("list", rowsOf(1, "a", "b"))
	b := newWindow(t, f.URL)
	b.open("/page")
	b.click("#remove")
	b.wait(`document.querySelector("dialog[open] h1")?.textContent === "Remove it?"`)
	b.click("dialog [data-cancel]")
	b.wait(`!document.querySelector("dialog") && document.activeElement.id === "remove"`)

	b.press("j")
	b.wait(`document.activeElement.closest("li")?.id === "c-a"`)
	b.press("j")
	b.wait(`document.activeElement.closest("li")?.id === "c-b"`)
	b.press("k")
	b.wait(`document.activeElement.closest("li")?.id === "c-a"`)
	b.press("?")
	b.wait(`document.querySelector("dialog[open] h2")?.textContent === "Keys"`)
	b.press("\x1b")
	b.wait(`!document.querySelector("dialog")`)
	b.press("gc")
	b.wait(`location.hash === "#here"`)
	b.press("/")
	b.wait(`document.activeElement.id === "find"`)
	b.press("j/")
	b.wait(`document.getElementById("find").value.endsWith("j/")`)

	b.fill("#text", "Ada")
	b.wait(`document.getElementById("preview").textContent === "Dear Ada"`)
	f.goes(true, false)
	b.click("#button")
	b.wait(`document.getElementById("button").textContent === "Try again"`)
	f.goes(false, false)
	b.click("#button")
	b.wait(`!location.search && document.readyState === "complete" && document.getElementById("button").textContent === "Send"`)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.keys); f.keys[n-1] != "k1 Ada" {
		t.Errorf("posts: %q", f.keys)
	}
}

// TestPagesLive tests pages of the demo while a customer writes.
func TestPagesLive(t *testing.T) {
	t.Parallel()
	p := demo(t, newDir(t), "Ctrl-C")
	link := regexp.MustCompile(`http://\S+/sign-in/\S+`).FindString(p.stdout.String())
	b := newTab(t, regexp.MustCompile(`http://[^/\s]+`).FindString(link))
	b.open(link)
	b.follow("main form button")
	b.size(1440, 900, "light")
	other := b.another()
	other.size(1440, 900, "light")
	writes := func(text string) {
		other.wait(`document.documentElement.classList.contains("js")`)
		look[bool](other, `document.querySelector("details.customer").open = true`)
		other.fill("#f-text", text)
		other.follow("details.customer button")
	}
	const rows = `[...document.querySelectorAll("#list [data-row]")]`

	// A row without the focus shows its new content at once. It moves to its new position
	// later.
	b.open("/inbox?view=open")
	b.wait(`document.documentElement.classList.contains("js")`)
	fifth := look[string](b, rows+"[4].href")
	b.wait(rows + `[2].focus() || document.activeElement === ` + rows + `[2]`)
	other.open(fifth)
	writes("Words in place")
	b.wait(rows + `[4].innerText.includes("Words in place") && document.querySelector("#list-fresh")`)
	b.click("#list-fresh")
	b.wait(rows + `[0].innerText.includes("Words in place") && document.activeElement === ` + rows + `[0]`)

	// A thread that is scrolled to its end scrolls on to new messages. Any other thread
	// keeps its position. The page is not reloaded.
	b.open(fifth)
	b.wait(`document.documentElement.classList.contains("js")`)
	look[bool](b, `window.same = true`)
	writes("Words at the end")
	b.wait(`document.querySelector("#thread").innerText.includes("Words at the end")`)
	b.wait(`(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight < 2)(document.querySelector("[data-thread]"))`)
	if !look[bool](b, `window.same`) {
		t.Error("the page was loaded again")
	}

	// A menu is opened and closed with keys, and the focus is not lost. After a
	// conversation is closed, the page shows the next one.
	b.press("a")
	b.wait(`document.activeElement.matches("details[open] #f-assign[role=combobox]")`)
	b.press("\x1b")
	b.wait(`!document.querySelector("details[data-menu][open]") && document.activeElement.matches("summary")`)
	next := look[string](b, rows+`.find((row) => row.pathname !== location.pathname).pathname`)
	b.press("e")
	b.shows("Closed.")
	b.wait(fmt.Sprintf(`location.pathname === %q`, next))

	// All sessions of a member are ended, and the page tells the member so.
	other.open("/me")
	other.follow(`form[action="/me/sign-out"] button`)
	b.shows("Signed out.")
}
