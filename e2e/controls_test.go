package e2e_test

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// checkControls checks a page at four widths. A toast covers no control. No word of a table or
// a button is broken. The text in a picture is not larger than designed. The navigation and the
// title have the same number. On a phone, the bar marks More if the page is listed under More,
// and the button of a long form stays visible. On a touch screen, each control has 44 pixels.
// It returns how many controls there are, and whether the page says how many people wait.
func (b *tab) checkControls(name string) (n int, counts bool) {
	b.t.Helper()
	for _, width := range []int64{1440, 1024, 768, 390} {
		b.size(width, 844, "light")
		for _, found := range look[[]string](b, toasted) {
			b.t.Errorf("%s at %d: a toast covers %s", name, width, found)
		}
		for _, found := range append(look[[]string](b, brokenWords), look[[]string](b, enlarged)...) {
			b.t.Errorf("%s at %d: %s", name, width, found)
		}
	}
	for _, found := range append(look[[]string](b, unmarked), look[[]string](b, hiddenSave)...) {
		b.t.Errorf("%s at 390: %s", name, found)
	}
	if found := look[string](b, miscounted); found != "" {
		b.t.Errorf("%s: %s", name, found)
	}
	b.touch(true)
	for _, found := range look[[]string](b, small) {
		b.t.Errorf("%s at 390, touched: %s", name, found)
	}
	n = look[int](b, controlsOf+".length")
	b.touch(false)
	return n, look[bool](b, `!!document.querySelector("#waiting b")`)
}

// wantSmallFound checks that the test finds a control that is too small, and a control
// that a toast covers.
func wantSmallFound(b *tab) {
	b.t.Helper()
	b.open("/sign-in")
	b.size(390, 844, "light")
	b.touch(true)
	if !look[bool](b, `matchMedia("(pointer: coarse)").matches`) {
		b.t.Error("no touch is emulated")
	}
	if found := look[[]string](b, small); len(found) != 0 {
		b.t.Errorf("small: %q", found)
	}
	look[bool](b, `Object.assign(document.querySelector("main button").style, { minHeight: "0", height: "30px" }) && true`)
	if found := look[[]string](b, small); len(found) != 1 {
		b.t.Errorf("a button of 30 pixels is not found: %q", found)
	}
	look[bool](b, `{ const form = document.querySelector("main form"); form.method = "post"; form.querySelector("button").classList.add("main");
		form.prepend(Object.assign(document.createElement("p"), { className: "tall" })); document.querySelector(".tall").style.height = "1200px"; true }`)
	if found := look[[]string](b, hiddenSave); len(found) != 1 {
		b.t.Errorf("a button below the window is not found: %q", found)
	}
	look[bool](b, `{ document.querySelector(".tall").remove(); const button = document.querySelector("main button"); button.textContent = "Shortcut"; Object.assign(button.style, { width: "40px", whiteSpace: "normal" }); true }`)
	if found := look[[]string](b, brokenWords); len(found) == 0 {
		b.t.Error("a broken word is not found")
	}
	look[bool](b, `document.querySelector("main button").removeAttribute("style") || true`)
	b.touch(false)
	look[bool](b, `Object.assign(document.querySelector("#toasts").style, { position: "fixed", inset: "0" }) && true`)
	if found := look[[]string](b, toasted); len(found) == 0 {
		b.t.Error("a control under a toast is not found")
	}
}

// touch says whether the screen is a touch screen.
func (b *tab) touch(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: on})
		return err
	}))
}

// controlsOf lists the controls of a page. A control with a label has the size of the
// label.
const controlsOf = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter((el) =>
	el.checkVisibility({ visibilityProperty: true }) && !el.matches(".skip, .hidden, .hidden *, :disabled, [inert]") && el.getBoundingClientRect().width > 1)`

// small lists the controls that are smaller than 44 pixels. A link within a text may be
// as high as its line.
var small = fmt.Sprintf(`%s.filter((el) => !(el.matches("a, .quoting") && getComputedStyle(el).display.startsWith("inline") && [...el.parentElement.childNodes].some((n) => n.nodeType === 3 && n.data.trim())))
	.flatMap((el) => {
		const all = [el, ...el.labels ?? []].map((n) => n.getBoundingClientRect());
		const width = Math.max(...all.map((r) => r.right)) - Math.min(...all.map((r) => r.left)), height = Math.max(...all.map((r) => r.bottom)) - Math.min(...all.map((r) => r.top));
		return width < 43.5 || height < 43.5 ? [Math.round(width) + " by " + Math.round(height) + ": " + el.outerHTML.slice(0, 160)] : [];
	})`, controlsOf)

// toasted lists the controls that would be covered by a toast.
var toasted = fmt.Sprintf(`{ if (!document.querySelector(".toast")) document.documentElement.classList.contains("js") ? toast("Something was done, and this says so.") : 0;
	const over = [...document.querySelectorAll("#toasts")].map((el) => el.getBoundingClientRect());
	%s.filter((el) => !el.closest("#toasts") && !el.closest("dialog")).filter((el) => { const r = el.getBoundingClientRect(), pane = el.closest(".scroll, .list-pane, .person-pane")?.getBoundingClientRect();
		const top = Math.max(r.top, pane?.top ?? r.top), bottom = Math.min(r.bottom, pane?.bottom ?? r.bottom); // the visible part of it
		return top < bottom - 1 && over.some((t) => r.left < t.right - 1 && t.left < r.right - 1 && top < t.bottom - 1 && t.top < bottom - 1); }).map((el) => el.outerHTML.slice(0, 160)) }`, controlsOf)

const (
	// brokenWords lists the words of tables and controls that continue on the next line.
	// Words of more than twelve letters, such as ids, may do this, and words within more
	// than forty characters without a space, such as a long e-mail.
	brokenWords = `[...document.querySelectorAll("main :is(td, th, .pill, .btn, .tabs a, dt, legend), .rail a")].filter((el) => el.checkVisibility()).flatMap((el) => {
		const found = [], texts = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
		for (let n; (n = texts.nextNode()); ) for (const word of n.data.matchAll(/[\p{Script=Latin}\p{Script=Cyrillic}\p{N}_]+/gu)) {
			const together = n.data.slice(0, word.index).match(/\S*$/)[0] + n.data.slice(word.index).match(/^\S*/)[0];
			if (word[0].length > 12 || together.length > 40 || n.parentElement.closest(".hidden")) continue;
			const range = new Range();
			range.setStart(n, word.index);
			range.setEnd(n, word.index + word[0].length);
			const rows = [...range.getClientRects()];
			if (rows.some((r) => r.top > rows[0].bottom - 4)) found.push("the word " + word[0] + " is broken in " + el.outerHTML.slice(0, 160));
		}
		return found;
	})`

	// enlarged lists the pictures whose text is larger than designed, or much smaller.
	enlarged = `[...document.querySelectorAll(".chart > svg")].map((el) => [el, el.getScreenCTM().a]).filter(([, n]) => n > 1.02 || n < 0.75)
		.map(([el, n]) => "a picture is " + n.toFixed(2) + " times its size: " + el.ariaLabel)`

	// unmarked reports whether the bar of a phone does not mark the section of the page.
	unmarked = `{ const more = document.querySelector(".rail summary"), section = document.body.dataset.section;
		!more || more.matches(".here") === ["templates", "broadcasts", "sends", "overview", "settings", "me"].includes(section) && (!more.matches(".here") || getComputedStyle(more).backgroundColor !== getComputedStyle(document.querySelector(".rail nav > a:not([aria-current])")).backgroundColor) ? [] : ["the bar does not mark the page"] }`

	// hiddenSave lists forms whose button is not visible, although the form begins in
	// view, is longer than the window and does not end in its upper half.
	hiddenSave = `[...document.querySelectorAll("main form")].filter((el) => { const r = el.getBoundingClientRect(), button = el.querySelector(".btn.main:not(.no-js)")?.getBoundingClientRect();
		return el.method === "post" && r.height > innerHeight && r.top < innerHeight / 2 && r.bottom > innerHeight / 2 && button && (button.bottom > innerHeight || button.top < 0); }).map((el) => "the button is out of sight of " + el.outerHTML.slice(0, 160))`

	// miscounted describes the difference between the numbers in the title and in the
	// navigation, if there is one.
	miscounted = `{ const rail = document.querySelector("#waiting b")?.textContent ?? "", title = document.title.match(/^\((\d+\+?)\) /)?.[1] ?? "";
		!document.querySelector(".rail") || rail === title ? "" : "the rail counts " + (rail || "none") + ", the title is " + document.title }`
)
