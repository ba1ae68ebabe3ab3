package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var axeFull = flag.Bool("axe-full", false, "let TestAccess check every page and state further in every way (two sizes, light and dark, large text, forced colours), not a third of them in some ways")

// TestAccess opens every page in its states. All of them are checked at four widths: see
// checkControls. Without -axe-full, only a third of them is checked further: the independent tool
// axe finds nothing serious; at 320 pixels, and with text of double size, no page scrolls
// sideways; with forced colours, every control is visible.
func TestAccess(t *testing.T) {
	t.Parallel()
	axe := loadAxe(t)
	st := newStage(t)
	wantFaultsFound(st.tabs[signedOut], axe)
	wantSmallFound(st.tabs[signedOut])
	opened, further, seen, counted := 0, 0, 0, 0
	st.walk(t, func(b *tab, s shot) {
		b.touch(false)
		b.size(1440, 900, "light")
		s.open(b)
		b.wait(`document.readyState === "complete"`)
		controls, counts := b.checkControls(s.name)
		seen += controls
		if counts {
			counted++
		}
		if opened++; *axeFull || opened%3 == 0 {
			further++
			b.checkFurther(axe, s.name, *axeFull || further%2 == 1, *axeFull || further%2 == 0)
		}
	})
	if seen < 1000 {
		t.Errorf("%d controls were seen", seen)
	}
	if counted < 50 {
		t.Errorf("%d pages say how many wait", counted)
	}
}

// checkFurther checks the page as TestAccess says. Some ways of it are for odd pages, others for
// even ones.
func (b *tab) checkFurther(axe, name string, odd, even bool) {
	b.t.Helper()
	look[bool](b, `{ for (const el of document.querySelectorAll(".toast")) el.remove(); true }`)
	look[bool](b, axe+"; true")
	for _, v := range []struct {
		width, height int64
		scheme        string
		now           bool
	}{{1440, 900, "light", odd}, {1440, 900, "dark", *axeFull}, {390, 844, "light", *axeFull}, {390, 844, "dark", even}} {
		if !v.now {
			continue
		}
		b.size(v.width, v.height, v.scheme)
		for _, found := range look[[]string](b, axeRun) {
			b.t.Errorf("%s at %d, %s: %s", name, v.width, v.scheme, found)
		}
	}
	b.size(320, 700, "light")
	for _, found := range look[[]string](b, sideways) {
		b.t.Errorf("%s at 320: %s", name, found)
	}
	for width, now := range map[int64]bool{1440: odd, 390: even} {
		if !now {
			continue
		}
		b.size(width, 900, "light")
		look[bool](b, larger)
		for _, found := range look[[]string](b, sideways) {
			b.t.Errorf("%s at %d with large text: %s", name, width, found)
		}
		look[bool](b, "{ for (const el of document.querySelectorAll('[style]')) el.removeAttribute('style'); true }")
	}
	if odd {
		for _, found := range b.unseen() {
			b.t.Errorf("%s in forced colours: %s is not seen", name, found)
		}
	}
}

// wantFaultsFound checks that the test would find faults in a page.
func wantFaultsFound(b *tab, axe string) {
	b.t.Helper()
	b.open("/sign-in")
	look[bool](b, axe+`; document.querySelector("label").remove(); const hidden = document.querySelector("main button"); hidden.textContent = "";
		Object.assign(hidden.style, { forcedColorAdjust: "none", background: "black", border: "0", outline: "0" });
		const wide = document.createElement("p"); wide.style.width = "2000px"; wide.textContent = "wide"; document.querySelector("main").append(wide); document.body.style.background = "black"; true`)
	if found := look[[]string](b, axeRun); len(found) == 0 {
		b.t.Error("axe does not find a field without a label")
	}
	if found := look[[]string](b, sideways); len(found) == 0 {
		b.t.Error("a page that is too wide is not found")
	}
	if found := b.unseen(); len(found) != 1 {
		b.t.Errorf("a control that is not seen is not found: %q", found)
	}
}

// loadAxe fetches axe from npm.
func loadAxe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(nodeProgram(t, "testdata/clients/axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

const (
	// axeRun lists the serious faults.
	axeRun = `axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
		.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " " + n.any.concat(n.all, n.none).map((c) => c.message).join("; "))))`

	// sideways lists the elements that scroll sideways: the page, or a part of it.
	sideways = `[document.scrollingElement, ...document.querySelectorAll("body *")].filter((el) => el.scrollWidth > el.clientWidth + 1 && el.checkVisibility() &&
		(el === document.scrollingElement || /auto|scroll/.test(getComputedStyle(el).overflowX)) && !el.matches("input, textarea, select, .tabs, .sideways"))
		.map((el) => (el.id || el.className || el.nodeName) + ": " + el.scrollWidth + " in " + el.clientWidth + ", by " +
			[...el.querySelectorAll("*")].map((n) => [n.getBoundingClientRect().right, n]).sort((a, b) => b[0] - a[0] || (a[1].contains(b[1]) ? 1 : -1)).slice(0, 2).map(([, n]) => n.outerHTML.slice(0, 160)).join(" and "))`

	// larger doubles the size of all text.
	larger = `{ const all = [...document.querySelectorAll("body, body *")], sizes = all.map((el) => parseFloat(getComputedStyle(el).fontSize));
		all.forEach((el, i) => el.style.fontSize = 2 * sizes[i] + "px"); true }`

	// controls lists the controls with their positions on the screen. Controls that are
	// covered or cut off are left out.
	controls = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].map((el) => ({ el, r: el.getBoundingClientRect() }))
		.filter(({ el, r }) => el.checkVisibility() && r.width > 4 && r.height > 4 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth)
		.filter(({ el, r }) => { const top = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2); return top && (el.contains(top) || top.contains(el) && getComputedStyle(el).display === "inline"); })
		.map(({ el, r }) => ({ Name: el.outerHTML.slice(0, 160), X: r.left, Y: r.top, Width: r.width, Height: r.height }))`
)

// A control is a control with its position on the screen.
type control struct {
	Name                string
	X, Y, Width, Height float64
}

// unseen lists the controls that look like their surroundings when colours are forced.
func (b *tab) unseen() (list []string) {
	b.t.Helper()
	b.size(1440, 1000, "light")
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: "dark"}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
	all := look[[]control](b, controls)
	if len(all) == 0 && look[bool](b, "!!document.querySelector('a[href], button')") {
		b.t.Errorf("no control was found\n%s", b.place())
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range all {
		if contrast(picture, image.Rect(int(c.X)-2, int(c.Y)-2, int(c.X+c.Width)+2, int(c.Y+c.Height)+2)) < 3 {
			list = append(list, strings.TrimSpace(c.Name))
		}
	}
	return list
}

// contrast returns the contrast between the lightest and the darkest point in a part of
// a picture, by WCAG.
func contrast(picture image.Image, part image.Rectangle) float64 {
	least, most := 1.0, 0.0
	part = part.Intersect(picture.Bounds())
	known := map[color.Color]bool{}
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			point := picture.At(x, y)
			if known[point] {
				continue
			}
			known[point] = true
			r, g, b, _ := point.RGBA()
			light := 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
			least, most = min(least, light), max(most, light)
		}
	}
	return (most + 0.05) / (least + 0.05)
}

func linear(v uint32) float64 {
	c := float64(v) / 0xffff
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}
