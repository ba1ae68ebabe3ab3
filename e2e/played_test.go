package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestPlayed checks faults that were found in half an hour of using the console in a
// browser.
func TestPlayed(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Mei", "agent")
	writes := func(phone, name, text string) string {
		return m.must("sandbox", "inbound", "--channel", m.channel, "--from", phone, "--name", name, "--text", text)["conversation_id"].(string)
	}
	rosa := writes("+34612555781", "Rosa Marín", "Is the kettle in stock?")
	writes("+34612555782", "ליאור כהן", "שלום, מתי אתם פתוחים?")
	b := newTab(t, m.nodes[0].url)
	b.size(390, 844, "dark")
	b.open(m.link("Mei"))
	b.follow("main form button")

	// On a phone, the reply form leaves room for the thread, and grows with the text.
	b.open("/inbox/" + rosa)
	b.wait(`document.documentElement.matches(".js")`)
	height := `document.querySelector(".composer").offsetHeight`
	if got := look[int](b, height); got > 200 {
		t.Errorf("with nothing typed, the composer has %d px of 844", got)
	}
	b.fill("#f-reply", "It is.")
	b.wait(`document.querySelector("[name=close]").checkVisibility()`)
	b.fill("#f-reply", "")
	b.wait(`!document.querySelector("[name=close]").checkVisibility()`)
	if got := look[int](b, `{ document.querySelector("#reply-more").open = true; `+height+` }`); got > 420 {
		t.Errorf("with the fields of buttons and file, the composer has %d px of 844", got)
	}

	// With less room, as above a phone's keyboard, the end of the thread stays visible.
	for range 6 {
		writes("+34612555781", "", "Hello?\nIs anybody there?\nI am at the door.")
	}
	b.open("/inbox/" + rosa)
	end := `(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 2)(document.querySelector("[data-thread]"))`
	b.wait(end)
	// Also if a scroll event of the time before comes in between.
	look[bool](b, `{ const el = document.querySelector("[data-thread]"); el.style.maxHeight = "90px"; el.dispatchEvent(new Event("scroll")); true }`)
	b.wait(`document.querySelector("[data-thread]").clientHeight === 90 && ` + end)
	look[bool](b, `{ document.querySelector("[data-thread]").style.maxHeight = ""; true }`)
	b.wait(end)
	b.size(390, 470, "dark")
	b.wait(`innerHeight === 470 && ` + end)

	// Names and texts in all scripts begin on the same side of the list.
	b.open("/inbox?view=open")
	if got := look[[]string](b, `[...new Set([...document.querySelectorAll(".row :is(.who, .what)")].map((el) => getComputedStyle(el).textAlign))]`); len(got) != 1 || got[0] != "left" {
		t.Errorf("rows are aligned %q", got)
	}

	// The bar at the bottom does not cover an element with the focus.
	b.open("/me")
	look[bool](b, `{ scrollTo(0, 0); true }`)
	if look[bool](b, `[...document.querySelectorAll("main :is(button, select, input:not([type=hidden]))")].some((el) => {
		el.focus();
		return el.getBoundingClientRect().bottom > document.querySelector(".rail").getBoundingClientRect().top;
	})`) {
		t.Error("the bar at the bottom covers what has the focus")
	}

	// A page that loses its server shows a message, which can be read.
	look[bool](b, `{ const el = document.createElement("p"); el.className = "toast"; el.id = "offline"; el.textContent = "Reconnecting."; document.querySelector("#toasts").prepend(el); true }`)
	if got := look[string](b, `getComputedStyle(document.querySelector("#offline")).backgroundColor`); got == "rgba(0, 0, 0, 0)" {
		t.Error("what says that the server is gone has no ground of its own")
	}

	// On a conversation's page, a slash leads to the search for saved replies, even when
	// the focus is outside the reply's field. On other pages it leads to the search for
	// contacts. Text that is typed after the slash does not act as shortcuts: e would
	// close a conversation.
	b.size(1440, 900, "light")
	b.open("/inbox/" + rosa)
	b.wait(`document.documentElement.matches(".js")`)
	b.press("/delivery")
	b.wait(`document.activeElement.id === "f-snippets" && document.activeElement.value.endsWith("delivery")`)
	b.open("/inbox")
	b.wait(`document.documentElement.matches(".js")`)
	b.press("/")
	b.wait(`location.pathname === "/contacts" && document.activeElement.id === "f-find"`)
	b.press("+34612555781" + kb.Enter)
	b.shows("Rosa Marín")
}
