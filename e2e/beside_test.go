package e2e_test

import "testing"

// TestBeside: the person is shown beside the thread in windows of 768 and 1024 pixels and
// on a phone. A member changes a field of the person without leaving the thread.
func TestBeside(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	b := newTab(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	for i, width := range []int64{768, 1024, 390} {
		b.size(width, 844, "light")
		through("/inbox?view=open", "[data-row]")(b)
		b.wait(`document.documentElement.classList.contains("js")`)
		look[bool](b, `window.stayed = true`)
		if look[bool](b, `document.querySelector("#person").checkVisibility()`) {
			t.Errorf("%d: the person is there unasked", width)
		}
		b.click(".person-open")
		b.wait(`document.querySelector("#person").checkVisibility() && document.activeElement.matches("[data-beside]")`)
		if seen := look[bool](b, `document.querySelector("#foot").checkVisibility()`); seen != (width >= 768) {
			t.Errorf("%d: the thread is beside it: %t", width, seen)
		}
		b.click("#edit-name")
		b.wait(`document.activeElement.id === "f-name"`)
		name := []string{"Rosa One", "Rosa Two", "Rosa Three"}[i]
		b.fill("#f-name", name)
		b.click("#person-edit .main")
		b.wait(`!document.querySelector("#person-edit") && document.querySelector("#person h2").innerText === "` + name + `"`)
		b.shows("Saved.")
		b.wait(`document.activeElement.matches(".edit")`)
		b.click(".person-shut")
		b.wait(`!document.querySelector("#person").checkVisibility() && document.activeElement.matches(".person-open")`)
		if !look[bool](b, `window.stayed`) {
			t.Errorf("%d: the page was left", width)
		}
	}
}
