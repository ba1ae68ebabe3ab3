package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestControls looks at every page and state. A toast covers no control, whatever the width
// of the window; and on a screen that is touched, each control has 44 pixels.
func TestControls(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	wantSmallFound(st.tabs[signedOut])
	seen := 0
	st.walk(t, func(b *tab, s shot) {
		b.touch(false)
		b.size(1440, 900, "light")
		s.open(b)
		b.wait(`document.readyState === "complete"`)
		for _, width := range []int64{1440, 1024, 768, 390} {
			b.size(width, 844, "light")
			for _, found := range look[[]string](b, toasted) {
				t.Errorf("%s at %d: a toast covers %s", s.name, width, found)
			}
		}
		b.touch(true)
		for _, found := range look[[]string](b, small) {
			t.Errorf("%s at 390, touched: %s", s.name, found)
		}
		seen += look[int](b, controlsOf+".length")
		b.touch(false)
	})
	if seen < 1000 {
		t.Errorf("%d controls were seen", seen)
	}
}

// wantSmallFound checks that a small control, and one under a toast, would be found.
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
	b.touch(false)
	look[bool](b, `Object.assign(document.querySelector("#toasts").style, { position: "fixed", inset: "0" }) && true`)
	if found := look[[]string](b, toasted); len(found) == 0 {
		b.t.Error("a control under a toast is not found")
	}
}

// touch says whether the screen is touched.
func (b *tab) touch(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: on})
		return err
	}))
}

// controlsOf are what can be used of a page. What a label belongs to is as large as the
// label, too.
const controlsOf = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter((el) =>
	el.checkVisibility({ visibilityProperty: true }) && !el.matches(".skip, .hidden, .hidden *, :disabled, [inert]") && el.getBoundingClientRect().width > 1)`

// small lists the controls that are under 44 pixels. A link in the middle of a text is as
// high as its line.
var small = fmt.Sprintf(`%s.filter((el) => !(el.matches("a, .quoting") && getComputedStyle(el).display.startsWith("inline") && [...el.parentElement.childNodes].some((n) => n.nodeType === 3 && n.data.trim())))
	.flatMap((el) => {
		const all = [el, ...el.labels ?? []].map((n) => n.getBoundingClientRect());
		const width = Math.max(...all.map((r) => r.right)) - Math.min(...all.map((r) => r.left)), height = Math.max(...all.map((r) => r.bottom)) - Math.min(...all.map((r) => r.top));
		return width < 43.5 || height < 43.5 ? [Math.round(width) + " by " + Math.round(height) + ": " + el.outerHTML.slice(0, 160)] : [];
	})`, controlsOf)

// toasted lists the controls that a toast would cover.
var toasted = fmt.Sprintf(`{ if (!document.querySelector(".toast")) document.documentElement.classList.contains("js") ? toast("Something was done, and this says so.") : 0;
	const over = [...document.querySelectorAll("#toasts")].map((el) => el.getBoundingClientRect());
	%s.filter((el) => !el.closest("#toasts") && !el.closest("dialog")).filter((el) => { const r = el.getBoundingClientRect(), pane = el.closest(".scroll, .list-pane, .person-pane")?.getBoundingClientRect();
		const top = Math.max(r.top, pane?.top ?? r.top), bottom = Math.min(r.bottom, pane?.bottom ?? r.bottom); // of what is not scrolled out of its part
		return top < bottom - 1 && over.some((t) => r.left < t.right - 1 && t.left < r.right - 1 && top < t.bottom - 1 && t.top < bottom - 1); }).map((el) => el.outerHTML.slice(0, 160)) }`, controlsOf)
