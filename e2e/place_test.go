package e2e_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"
)

var placeTalks = flag.Int("place-conversations", 110, "how many conversations the list of TestPlaceKept has, at least 110; it opens a tenth as many. Long run: -place-conversations 200")

// TestPlaceKept: there are many conversations (-place-conversations). When a conversation
// is opened and left, the list of the inbox keeps its page, its scroll position and the
// focus. The keys ] and e scroll to the next row. A change elsewhere does not move the
// list.
func TestPlaceKept(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	b := newTab(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	_, key := d.access(t)
	var channels struct{ Data []struct{ ID string } }
	read(t, d.want(t, 200, key, "GET", "/channels", ""), &channels)
	channel := channels.Data[0].ID
	numbers := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := range numbers {
				status, body := d.call(t, key, "POST", "/conversations/outbound", fmt.Sprintf(`{"channel_id":%q,"to":{"phone":"+1202556%04d"},"opt_in_confirmed":true,"template":{"name":"thank_you","language":"en_US"}}`, channel, 1000+n),
					"Idempotency-Key", fmt.Sprint("place ", n))
				if status != 201 {
					t.Errorf("%d %s", status, body)
				}
			}
		})
	}
	for n := range *placeTalks {
		numbers <- n
	}
	close(numbers)
	senders.Wait()

	const rows = `[...document.querySelectorAll("#list [data-row]")]`
	const inSight = `(() => { const r = document.querySelector("#list .here").getBoundingClientRect(), p = document.querySelector(".list-pane").getBoundingClientRect();
		return r.top >= p.top && r.bottom <= Math.min(p.bottom, innerHeight); })()`
	ready := func() {
		t.Helper()
		b.wait(`document.readyState === "complete" && document.documentElement.classList.contains("js") && !document.querySelector("[data-whole]")`)
	}
	at := func(id string) float64 {
		t.Helper()
		return look[float64](b, fmt.Sprintf(`document.getElementById(%q).getBoundingClientRect().top`, id))
	}
	opened := func(id string) {
		t.Helper()
		b.wait(fmt.Sprintf(`location.pathname === "/inbox/" + %q.slice(2)`, id))
		ready()
	}

	b.size(1440, 900, "light")
	b.open("/inbox?view=open")
	b.follow("[data-next]")
	ready()
	cursor := look[string](b, `new URLSearchParams(location.search).get("after")`)
	for i := range min(*placeTalks/10, 24) {
		n := 2*i + 1
		look[bool](b, fmt.Sprintf(`{ %s[%d].scrollIntoView({ block: "center" }); true }`, rows, n))
		id := look[string](b, fmt.Sprintf(`%s[%d].parentElement.id`, rows, n))
		before := at(id)
		look[bool](b, fmt.Sprintf(`{ const row = %s[%d]; row.focus({ preventScroll: true }); row.click(); true }`, rows, n))
		opened(id)
		if after := at(id); after < before-2 || after > before+2 {
			t.Errorf("opening %d: the row was at %.0f, and is at %.0f", n, before, after)
		}
		if now := look[string](b, `new URLSearchParams(location.search).get("after")`); now != cursor {
			t.Fatalf("opening %d: the page is %q, want %q", n, now, cursor)
		}
		if n := look[int](b, rows+`.length`); n != 50 {
			t.Fatalf("the list has %d rows", n)
		}
		if !look[bool](b, `document.activeElement.closest("li")?.matches(".here")`) {
			t.Errorf("opening %d: the focus is on %s", n, look[string](b, `document.activeElement.outerHTML.slice(0, 80)`))
		}
	}

	// The list does not move: neither at a change elsewhere, nor at a change in a row
	// above.
	id := look[string](b, `document.querySelector("#list .here").id`)
	before := at(id)
	above := look[string](b, rows+`[0].parentElement.id`)
	look[bool](b, `document.activeElement.blur() || true`)
	must(t, d.dir, "sandbox", "inbound", "--channel", channel, "--from", "+12025990001", "--text", "From somebody new")
	d.want(t, 200, key, "PUT", "/conversations/"+above[2:]+"/status", `{"status":"closed"}`)
	b.wait(fmt.Sprintf(`!document.getElementById(%q)`, above))
	if after := at(id); after < before-2 || after > before+2 {
		t.Errorf("a change moved the row from %.0f to %.0f", before, after)
	}

	// After each key the next row is visible, wherever it was before.
	for range 8 {
		next := look[string](b, `document.querySelector("#list .here").nextElementSibling.id`)
		b.press("]")
		opened(next)
		if !look[bool](b, inSight) {
			t.Errorf("] hides the open row")
		}
	}
	look[bool](b, `(document.querySelector(".list-pane").scrollTop = 0) || true`)
	for range 3 {
		next := look[string](b, `document.querySelector("#list .here").nextElementSibling.id`)
		b.press("e")
		opened(next)
		if !look[bool](b, inSight) {
			t.Errorf("e hides the open row")
		}
	}

	// On a phone, going back leads to the same scroll position. The row has the focus.
	for _, leave := range []string{`document.querySelector(".back").click()`, `history.back()`} {
		b.size(390, 844, "light")
		b.open("/inbox?view=open&after=" + cursor)
		ready()
		id = look[string](b, rows+`[40].parentElement.id`)
		look[bool](b, "{ "+rows+`[40].scrollIntoView({ block: "center" }); true }`)
		before = at(id)
		look[bool](b, rows+`[40].click() || true`)
		opened(id)
		look[bool](b, leave+" || true")
		b.wait(`location.pathname === "/inbox"`)
		ready()
		b.wait(fmt.Sprintf(`document.activeElement.closest("li")?.id === %q`, id))
		if after := at(id); after < before-2 || after > before+2 {
			t.Errorf("%s: the row was at %.0f, and is at %.0f", leave, before, after)
		}
	}
}
