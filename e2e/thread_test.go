package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestWithoutLeaving: a member sends a template and four files, and assigns the
// conversation, all without leaving the thread. The keyboard is used where possible.
func TestWithoutLeaving(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Nora", "admin")
	m.member("Mei", "agent")
	m.member("Tomás", "agent")
	api := m.nodes[0].client(t, m.key, 1)
	made := m.must("sandbox", "inbound", "--channel", m.channel, "--from", "+34612555777", "--name", "Rosa Marín", "--text", "When do you open?")
	talk := made["conversation_id"].(string)
	b := newTab(t, m.nodes[0].url)
	b.size(1440, 900, "light")
	b.open(m.link("Nora"))
	b.follow("main form button")
	here := "/inbox/" + talk
	ready := `document.documentElement.classList.contains("js") && document.querySelector("#f-reply")`
	b.open(here + "?view=open")
	b.wait(ready)
	kinds := func() string {
		t.Helper()
		var list []string
		for _, v := range decode[struct{ Data []struct{ Kind, Text string } }](t, api.must(t, 200, "GET", "/conversations/"+talk+"/messages?limit=50", "")).Data {
			list = append([]string{v.Kind}, list...)
		}
		return strings.Join(list, " ")
	}

	// The panel is used by keyboard: a search, a choice, a refusal, a send. The text that
	// was typed for a reply stays.
	b.fill("#f-reply", "A draft")
	look[bool](b, `document.activeElement.blur() || (window.stays = true)`)
	b.press("t")
	b.wait(`document.activeElement.id === "f-words" && document.querySelector("#panel #templates a")`)
	b.press("nothing like it")
	b.shows("No template has that in its name or its text")
	b.fill("#f-words", "hello")
	b.wait(`document.querySelector("#templates [aria-selected=true]")`)
	b.press(kb.Enter)
	b.wait(`document.querySelector("#panel #send #f-opt_in")`)
	b.click("#panel .btn.main")
	b.wait(`document.activeElement.id === "summary" && document.querySelector("#panel #summary")`)
	if !look[bool](b, `window.stays && document.querySelector("#f-reply").value === "A draft" && location.pathname === "`+here+`"`) {
		t.Errorf("the thread was left\n%s", b.place())
	}
	b.press(kb.Escape)
	b.wait(`document.querySelector("#panel").hidden && document.activeElement.matches("[data-panel]")`)
	b.press("t")
	b.wait(`!document.querySelector("#panel").hidden && document.querySelector("#panel #send")`)
	look[bool](b, `document.querySelector("#f-opt_in").click() || true`)
	look[bool](b, `window.before = true`)
	b.click("#panel .btn.main")
	b.wait(`!window.before && location.pathname === "` + here + `" && location.search.includes("view=open") && document.querySelector("#thread").innerText.includes("Hello!")`)
	b.wait(ready)
	if text := look[string](b, `document.querySelector("#f-reply").value`); text != "A draft" {
		t.Errorf("the draft is %q", text)
	}

	// There are four files: two are dropped, one is pasted, one is chosen. The second one
	// is refused, and the member leaves it out.
	give := func(event, kind string, names ...string) {
		t.Helper()
		look[bool](b, fmt.Sprintf(`{ const data = new DataTransfer();
			for (const name of %q.split(" ")) data.items.add(new File(["%%PDF-1.7 " + name], name, { type: "application/pdf" }));
			const e = %q === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
			document.querySelector(%q).dispatchEvent(e) === false }`, strings.Join(names, " "), event, kind))
	}
	give("drop", "#thread", "one.pdf", "two.xyz")
	give("paste", "#f-reply", "three.pdf")
	look[bool](b, `{ const data = new DataTransfer(); data.items.add(new File(["%PDF-1.7 four"], "four.pdf")); const field = document.querySelector("#f-file"); field.files = data.files; field.dispatchEvent(new Event("change", { bubbles: true })); true }`)
	if list := look[string](b, `[...document.querySelectorAll("#files bdi")].map((el) => el.textContent).join(" ")`); list != "one.pdf two.xyz three.pdf four.pdf" {
		t.Fatalf("the files are %q", list)
	}
	look[bool](b, "window.before = true")
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.click("#reply .btn.main")
	b.wait(`!window.before || document.querySelector("#files .error")`)
	if look[bool](b, `!!document.querySelector("#files .error")`) { // the provider may refuse it
		if left := look[int](b, `document.querySelectorAll("#files li").length`); left != 1 {
			t.Errorf("%d files are left", left)
		}
		look[bool](b, `document.querySelector("#files button").click() || true`)
		b.open(here)
	}
	b.wait(ready)
	waitFor(t, "the files", func() bool { return strings.Count(kinds(), "document") >= 3 })
	if got := kinds(); !strings.HasPrefix(got, "text template document document document") {
		t.Errorf("messages: %s", got)
	}
	names := look[string](b, `[...document.querySelectorAll("#thread .file bdi")].map((el) => el.textContent).join(" ")`)
	if !strings.HasPrefix(names, "one.pdf ") || strings.Index(names, "three.pdf") > strings.Index(names, "four.pdf") {
		t.Errorf("in the thread: %s", names)
	}

	// Enter sends if the member has chosen this. Shift+Enter does not send.
	b.open("/me")
	b.wait(`document.documentElement.classList.contains("js")`)
	look[bool](b, `document.querySelector("#f-enter").click() || true`)
	b.follow("form[action='/me/look'] .btn.main")
	b.open(here)
	b.wait(ready)
	b.fill("#f-reply", "By Enter")
	before := kinds()
	look[bool](b, `{ window.before = true; const press = (more) => document.querySelector("#f-reply").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...more }));
		window.left = [press({ shiftKey: true }), press({ isComposing: true }), press({ keyCode: 229 })].every(Boolean); true }`)
	if !look[bool](b, `window.left && window.before && document.querySelector("#f-reply").value === "By Enter"`) || kinds() != before {
		t.Error("Enter with Shift, or in an input method, sends")
	}
	b.press(kb.Enter)
	b.wait(`!window.before && document.querySelector("#thread")?.innerText.includes("By Enter")`)
	b.wait(ready)

	// The search finds a colleague even if the accent of the name is not typed.
	look[bool](b, `document.activeElement.blur() || true`)
	b.press("a")
	b.wait(`document.activeElement.id === "f-assign" && document.querySelectorAll("#assign-list [role=option]").length > 2`)
	for _, step := range []struct {
		key string
		at  int
	}{{kb.ArrowDown, 1}, {kb.ArrowDown, 2}, {kb.ArrowUp, 1}} {
		b.press(step.key)
		b.wait(fmt.Sprintf(`document.querySelectorAll("#assign-list [role=option]")[%d].id === document.activeElement.getAttribute("aria-activedescendant")`, step.at))
	}
	b.press("tomas")
	b.wait(`document.querySelectorAll("#assign-list [role=option]").length === 1`)
	look[bool](b, "window.before = true")
	b.press(kb.Enter)
	b.wait(`!window.before && document.querySelector("#standing")?.innerText.includes("Tomás")`)

	// A preset ticks the permissions of a key without loading another page.
	b.open("/settings/keys/new")
	b.wait(`document.documentElement.classList.contains("js")`)
	b.fill("#f-name", "CRM")
	b.click("[data-ticks^='contacts:read contacts:write']")
	b.wait(`document.querySelectorAll("[name=permissions]:checked").length === 4 && document.querySelector("#f-name").value === "CRM"`)
}

// TestWithoutLeaving_rows: the composer has one row of buttons, on a phone two. This is
// also true after typing. On a phone, the composer offers the photos of the phone.
func TestWithoutLeaving_rows(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	b := newTab(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	b.size(1440, 900, "light")
	until("/inbox?view=open", "#reply-do .main")(b)
	b.wait(`document.documentElement.classList.contains("js")`)
	const rows = `[...document.querySelectorAll(".composer .btn")].filter((el) => el.checkVisibility() && !el.closest("#foot-top, .customer, .sent-files, .menu > div"))
		.map((el) => { const r = el.getBoundingClientRect(); return (r.top + r.bottom) / 2; }).sort((a, b) => a - b).filter((y, i, all) => !i || y > all[i - 1] + 12).length`
	for _, width := range []int64{1440, 1024, 768, 430, 390} {
		b.touch(width < 600)
		b.size(width, 844, "light")
		for _, text := range []string{"", "Some words"} {
			b.fill("#f-reply", text)
			n, most := look[int](b, rows), 1
			if width < 600 {
				most = 2
			}
			if n < 1 || n > most {
				t.Errorf("at %d with %q, the buttons are in %d rows", width, text, n)
			}
		}
		if photos := look[bool](b, `document.querySelector("[for=f-photo]").checkVisibility()`); photos != (width < 600) {
			t.Errorf("at %d, photos are offered: %t", width, photos)
		}
	}
	if got := look[string](b, `document.querySelector("#f-photo").accept + " " + document.querySelector("#f-photo").multiple`); got != "image/*,video/* true" {
		t.Errorf("the field of photos takes %s", got)
	}
	b.touch(false)
}

// TestWithoutLeaving_plain tests the same pages without script.
func TestWithoutLeaving_plain(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Nora", "admin")
	mei := m.member("Mei", "agent")
	talk := m.must("sandbox", "inbound", "--channel", m.channel, "--from", "+34612555777", "--name", "Rosa Marín", "--text", "Hello", "--at", time.Now().UTC().Format(time.RFC3339Nano))["conversation_id"].(string)
	b := newTab(t, m.nodes[0].url)
	b.runNoScripts()
	b.open(m.link("Nora"))
	b.follow("main form button")
	h := plainHand{mouseHand{b}}
	b.open("/inbox/" + talk)
	h.follow("[data-panel]")
	h.write("#f-words", "hello")
	h.follow("[role=search] .btn")
	h.follow("#templates a")
	h.push("#f-opt_in")
	h.follow("#send .btn.main")
	b.wait(`location.pathname === "/inbox/` + talk + `" && document.querySelector("#thread").innerText.includes("Hello!")`)
	assign(b, h, "Mei")
	b.shows("held by Mei")
	if v := string(m.nodes[0].client(t, m.key, 1).must(t, http.StatusOK, "GET", "/conversations/"+talk, "")); !strings.Contains(v, mei) {
		t.Errorf("the conversation: %s", v)
	}
	if !look[bool](b, `[...document.querySelectorAll("#f-file, #reply .btn.main")].every((el) => el.checkVisibility())`) {
		t.Error("no file can be sent")
	}
}
