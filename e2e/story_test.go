package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A hand is a way in which a person uses a page.
type hand interface {
	follow(selector string)        // clicks a link or button that leads to another page
	push(selector string)          // clicks a link or button that stays on the page
	write(selector, text string)   // types into a field
	choose(selector, value string) // chooses an option of a select
	until(condition string)        // waits until the page shows what others have done
}

// A mouseHand uses the mouse. It uses keys only for writing.
type mouseHand struct{ *tab }

func (h mouseHand) push(selector string)        { h.click(selector) }
func (h mouseHand) write(selector, text string) { h.fill(selector, text) }
func (h mouseHand) until(condition string)      { h.stays(condition) }

func (h mouseHand) choose(selector, value string) {
	h.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	look[bool](h.tab, fmt.Sprintf(`{ const el = document.querySelector(%q); el.value = %q; el.dispatchEvent(new Event("change", { bubbles: true })); el.value === %[2]q }`, selector, value))
}

// A plainHand uses pages without script. It clicks the buttons that the script clicks for
// other users. To see changes, it loads the page again.
type plainHand struct{ mouseHand }

func (h plainHand) until(condition string) {
	h.t.Helper()
	for stop := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		h.do(chromedp.Reload())
		if look[bool](h.tab, "!!("+condition+")") {
			return
		}
		if time.Now().After(stop) {
			h.t.Fatalf("still waiting for: %s\n%s", condition, h.place())
		}
	}
}

// A keyHand uses only keys. If an element has a shortcut, it presses the shortcut.
// Otherwise it presses Tab until the element has a visible focus, and then Enter.
type keyHand struct{ *tab }

// reach moves the focus to an element.
func (h keyHand) reach(selector string) {
	h.t.Helper()
	h.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	key := kb.Tab
	if look[bool](h.tab, fmt.Sprintf("document.querySelector(%q).matches('[data-row]')", selector)) {
		key = "j"
	}
	for range 300 {
		if look[bool](h.tab, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			if seen := look[string](h.tab, `{ const at = document.activeElement, s = getComputedStyle(at), r = at.getBoundingClientRect();
				s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1 ? "has no outline" : r.width && r.bottom > 0 && r.top < innerHeight ? "" : "is out of sight" }`); seen != "" {
				h.t.Errorf("the focused %s %s\n%s", selector, seen, h.place())
			}
			return
		}
		h.press(key)
	}
	h.t.Fatalf("the key never gets to %s\n%s", selector, h.place())
}

// shortcut presses the shortcut of an element, if it has one.
func (h keyHand) shortcut(selector string) bool {
	h.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	keys := look[string](h.tab, fmt.Sprintf("document.querySelector(%q).dataset.shortcut ?? ''", selector))
	if keys == "" {
		return false
	}
	for key := range strings.SplitSeq(keys, " ") {
		h.press(strings.TrimPrefix(key, "Shift+"))
	}
	return true
}

func (h keyHand) follow(selector string) {
	h.t.Helper()
	look[bool](h.tab, "window.before = true")
	h.push(selector)
	h.wait("!window.before && document.readyState === 'complete'")
}

func (h keyHand) push(selector string) {
	h.t.Helper()
	if h.shortcut(selector) {
		return
	}
	h.reach(selector)
	if look[bool](h.tab, "document.activeElement.type === 'checkbox'") {
		h.press(" ")
	} else {
		h.press(kb.Enter)
	}
}

func (h keyHand) write(selector, text string) {
	h.t.Helper()
	if !h.shortcut(selector) {
		h.reach(selector)
	}
	h.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)))
	h.press(text)
}

// choose goes down the list of options with the arrow keys.
func (h keyHand) choose(selector, value string) {
	h.t.Helper()
	h.reach(selector)
	for range 50 {
		if look[string](h.tab, "document.activeElement.value ?? ''") == value {
			return
		}
		h.press(kb.ArrowDown)
	}
	h.t.Fatalf("the arrow keys never get to %s in %s\n%s", value, selector, h.place())
}

func (h keyHand) until(condition string) { h.stays(condition) }

// stays waits until a condition is true. The page must not be left meanwhile.
func (b *tab) stays(condition string) {
	b.t.Helper()
	look[bool](b, "window.stays = true")
	b.wait(condition)
	if !look[bool](b, "!!window.stays") {
		b.t.Errorf("the page was loaded again while it waited for %s", condition)
	}
}

// runNoScripts makes the browser ignore the scripts of pages.
func (b *tab) runNoScripts() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// A runningDemo is a running parley demo.
type runningDemo struct {
	*server
	dir, link string
}

func startDemo(t *testing.T) runningDemo {
	t.Helper()
	dir := newDir(t)
	p := demo(t, dir, "Ctrl-C")
	link := regexp.MustCompile(`http://\S+/sign-in/\S+`).FindString(p.stdout.String())
	return runningDemo{&server{process: p, url: regexp.MustCompile(`http://[^/\s]+`).FindString(link)}, dir, link}
}

// access returns the demo's workspace and key.
func (d runningDemo) access(t *testing.T) (workspace, key string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Key       string
		Workspace string `json:"workspace_id"`
	}
	read(t, string(text), &stored)
	return stored.Workspace, stored.Key
}

// TestStory does the main job of the console. It begins with the link that the demo
// prints, and ends with a conversation that is closed and found again. It is done with
// script and mouse, without script, and with keys only.
func TestStory(t *testing.T) {
	t.Parallel()
	withEachHand(t, story)
}

// withEachHand plays a story three times, each time in a new demo: with script and mouse,
// without script, and with keys only.
func withEachHand(t *testing.T, play func(*testing.T, runningDemo, *tab, hand)) {
	t.Helper()
	for name, of := range map[string]func(*tab) hand{
		"script": func(b *tab) hand { return mouseHand{b} },
		"plain":  func(b *tab) hand { b.runNoScripts(); return plainHand{mouseHand{b}} },
		"keys":   func(b *tab) hand { return keyHand{b} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDemo(t)
			b := newTab(t, d.url)
			b.size(1440, 900, "light")
			play(t, d, b, of(b))
		})
	}
}

func story(t *testing.T, d runningDemo, b *tab, h hand) {
	t.Helper()
	b.open(d.link)
	h.follow("main form button")
	b.wait(`location.pathname === "/inbox"`)

	// A key is made. It is shown once.
	h.follow(`.rail a[href="/settings"]`)
	h.follow(`a[href="/settings/keys"]`)
	h.follow(`a[href="/settings/keys/new"]`)
	h.write("#f-name", "Story")
	for _, permission := range []string{"contacts:write", "contacts:read"} {
		if box := fmt.Sprintf(`[name=permissions][value=%q]`, permission); !look[bool](b, fmt.Sprintf("document.querySelector(%q).checked", box)) {
			h.push(box)
		}
	}
	h.follow("main form .btn.main")
	key := strings.TrimSpace(look[string](b, `document.querySelector("#key").textContent`))
	h.follow(`main a.btn[href="/settings/keys"]`)
	b.shows("Story")
	if text := look[string](b, "document.documentElement.outerHTML"); !strings.HasPrefix(key, "prl_live_") || strings.Contains(text, key) {
		t.Errorf("the key %q is shown again", key)
	}

	// A program writes a contact with the key.
	var made struct{ Data struct{ ID string } }
	read(t, d.want(t, 201, key, "POST", "/contacts", `{"name":"Rosa Marín","phone":"+34 612 555 777"}`), &made)

	// A variable of a template is filled from the contact.
	h.follow(`.rail a[href="/templates"]`)
	h.follow(`[id="t-appointment_reminder-en_US"] a`)
	field := `#main form select[name]`
	h.choose(field, "customer_name")
	name := look[string](b, fmt.Sprintf("document.querySelector(%q).name", field))
	h.follow("main form .btn.main")
	if got := look[string](b, fmt.Sprintf("document.querySelector('[name=%q]').value", name)); got != "customer_name" {
		t.Errorf("the binding of %s is %q", name, got)
	}

	// Find the contact, and send it the template.
	h.follow(`.rail a[href="/contacts"]`)
	h.write("#f-find", "0034 612-555-777")
	h.follow("search form:first-of-type button")
	b.shows("Rosa Marín")
	h.follow(`#p-` + made.Data.ID + ` a`)
	h.follow(`main a[href^="/send"]`)
	chooseTemplate(b, h, "appointment_reminder/en_US")
	channel := look[string](b, `document.querySelector("#send [name=channel]").value`)
	for _, empty := range look[[]string](b, `[...document.querySelectorAll("#send input[required]:not([type=checkbox])")].filter((el) => !el.value).map((el) => el.name)`) {
		h.write(fmt.Sprintf("#send [name=%q]", empty), "Friday")
	}
	if !look[bool](b, `document.querySelector("#send").innerText.length > 0 && [...document.querySelectorAll("#send input")].some((el) => el.value === "Rosa Marín")`) {
		t.Errorf("the bound variable is not filled\n%s", b.place())
	}
	h.push("#send [name=opt_in]")
	h.follow("#send .btn.main")
	b.wait(`location.pathname.startsWith("/inbox/")`)
	b.shows("Friday")

	// The message is read, and the person answers.
	h.until(`document.querySelector("#thread .bubble.ours:last-of-type .track")?.textContent.trim() === "Read"`)
	must(t, d.dir, "sandbox", "inbound", "--channel", channel, "--from", "+34612555777", "--text", "Could it be Monday?")
	h.until(`document.querySelector("#thread").textContent.includes("Could it be Monday?") && document.querySelector("#list .here").textContent.includes("Monday")`)

	// Assign the conversation to a colleague, take it back, and close it.
	assign(b, h, "Mei")
	b.shows("held by Mei Tanaka")
	h.follow(`#head form[action*="/assign"] > .btn.main`)
	b.shows("yours")
	here := look[string](b, "location.pathname")
	h.follow(`#head [name=status][value=closed]`)
	b.shows("Closed.")
	if look[string](b, "location.pathname") == here {
		t.Error("after closing, the same conversation is shown")
	}

	// The closed conversation is found again: in the list of closed conversations, and by
	// the person.
	h.follow(`.rail a[href="/inbox"]`)
	h.push(`#views details > summary`)
	h.follow(`#views a[href*="view=closed"]`)
	h.follow(fmt.Sprintf(`#list a[href^=%q]`, here))
	b.shows("Open again")
	h.follow(`.rail a[href="/contacts"]`)
	h.write("#f-find", "+34612555777")
	h.follow("search form:first-of-type button")
	h.follow(`#p-` + made.Data.ID + ` a`)
	h.follow(fmt.Sprintf(`#talks a[href^=%q]`, here))
	h.follow(`#head [name=status][value=open]`)
	b.shows("Open again.")

	// Revoke the key. It no longer works.
	h.follow(`.rail a[href="/settings"]`)
	h.follow(`a[href="/settings/keys"]`)
	id := look[string](b, `[...document.querySelectorAll("#keys tr")].find((el) => el.textContent.includes("Story")).id`)
	h.follow("#" + id + " a")
	revoke := `main a[href$="/revoke"]`
	if _, plain := h.(plainHand); plain {
		h.follow(revoke)
		h.follow("main form .btn.danger")
	} else {
		h.push(revoke)
		h.follow("dialog[open] form .btn.danger")
	}
	b.shows("Revoked")
	d.want(t, 401, key, "GET", "/contacts", "")
}

// assign assigns the open conversation to a member. It can also give it back to the pool.
func assign(b *tab, h hand, to string) {
	b.t.Helper()
	b.wait(`document.querySelector("#f-holder")`)
	value := look[string](b, fmt.Sprintf(`[...document.querySelector("#f-holder").options].find((o) => o.text.includes(%q)).value`, to))
	h.push("#assign > summary")
	b.wait(`document.querySelector("#assign").open`)
	switch h := h.(type) {
	case plainHand:
		h.choose("#f-holder", value)
		h.follow("#assign .btn:not(summary)")
	case mouseHand:
		h.follow(fmt.Sprintf("[id='pick-%s']", value))
	case keyHand:
		b.wait(`document.activeElement.id === "f-assign"`)
		h.press(to)
		b.wait(fmt.Sprintf(`document.activeElement.getAttribute("aria-activedescendant") === "pick-%s"`, value))
		look[bool](b, "window.before = true")
		b.press(kb.Enter)
		b.wait("!window.before && document.readyState === 'complete'")
	}
}

// chooseTemplate chooses a template and waits until the page shows it.
func chooseTemplate(b *tab, h hand, template string) {
	b.t.Helper()
	name, language, _ := strings.Cut(template, "/")
	link := fmt.Sprintf(`#templates a[href*="template=%s%%2F%s"]`, name, language)
	if k, ok := h.(keyHand); ok {
		k.write("#f-words", name)
		b.wait(fmt.Sprintf(`document.querySelector(%q) && document.querySelectorAll("#templates a").length < 4`, link))
		for range 3 {
			if look[bool](b, fmt.Sprintf(`document.querySelector(%q).ariaSelected === "true"`, link)) {
				break
			}
			k.press(kb.ArrowDown)
		}
		look[bool](b, "window.before = true")
		b.press(kb.Enter)
		b.wait("!window.before && document.readyState === 'complete'")
	} else {
		h.follow(link)
	}
	b.wait("document.querySelector('#send')")
}
