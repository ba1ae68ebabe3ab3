package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	searchChanges = flag.Int("search-changes", 1000, "how many changes TestSearchFollows makes, at 500 a second. Long run: -search-changes 10000")
	searchBurst   = flag.Int("search-burst", 2000, "how many contacts TestSearchFollows then creates as fast as it can. Long run: -search-burst 100000")
)

// TestSearchPalette: Ctrl+K finds a person and their conversation by the keyboard alone.
func TestSearchPalette(t *testing.T) {
	t.Parallel()
	p := demo(t, newDir(t), "Ctrl-C")
	link := regexp.MustCompile(`http://\S+/sign-in/\S+`).FindString(p.stdout.String())
	b := newTab(t, regexp.MustCompile(`http://[^/\s]+`).FindString(link))
	b.open(link)
	b.follow("main form button")
	palette := func() {
		b.open("/overview")
		b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(kb.ModifierCtrl)))
		b.wait(`document.activeElement.id === "f-search" && document.querySelector("dialog[open]")`)
	}
	palette()
	b.press("olivia whit")
	b.wait(`document.querySelector("#hit-0")?.textContent.includes("Olivia Whitfield")`)
	b.press(kb.ArrowDown)
	b.wait(`document.querySelector("#hit-1")?.ariaSelected === "true"`)
	b.enter()
	b.wait(`location.pathname.startsWith("/inbox/") && document.body.innerText.includes("Olivia Whitfield")`)
	palette()
	b.press("members")
	b.wait(`document.querySelector("#hit-0")?.textContent.includes("members")`)
	b.enter()
	b.wait(`location.pathname === "/settings/members"`)
	palette()
	b.press(kb.Escape)
	b.wait(`!document.querySelector("dialog")`)
}

// TestSearchFollows: at 500 changes a second, each change is found within a second. After
// faster writes, all is found, too. Both stores, and on PostgreSQL the searches ask another
// server than the one that writes.
func TestSearchFollows(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			searchFollows(t, deployment{newDir(t), database(t)})
		})
	}
}

func searchFollows(t *testing.T, d deployment) {
	t.Helper()
	_, key := d.workspace(t)
	write := serve(t, d.dir, "--database", d.database).client(t, key, 16)
	read := write
	if d.database != "" {
		read = serve(t, d.dir, "--database", d.database).client(t, key, 4)
	}
	found := func(text string) bool {
		var page struct{ Data []struct{ Name string } }
		if err := json.Unmarshal(read.must(t, 200, "GET", "/contacts?q="+url.QueryEscape(text), ""), &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Data) == 1
	}
	var late []time.Duration
	var mu sync.Mutex
	var watching sync.WaitGroup
	var failed atomic.Bool
	tick := time.NewTicker(20 * time.Millisecond) // ten changes
	defer tick.Stop()
	for n := 0; n < *searchChanges && !failed.Load(); n += 10 {
		<-tick.C
		var rows []string
		for i := range 10 {
			id := rand.IntN(500)
			if i == 9 {
				id = 1000 + n // nobody changes this one again
			}
			rows = append(rows, fmt.Sprintf(`{"external_id":"own-%d","name":"Version%dx of person"}`, id, n+i))
		}
		if got := summaryOf(t, write.must(t, 200, "POST", "/contacts/batch", upserts(rows))); got.Errors > 0 {
			t.Fatalf("%+v", got)
		}
		if n%100 == 0 {
			watching.Go(func() {
				began := time.Now()
				for !found(fmt.Sprintf("version%dx", n+9)) {
					if time.Since(began) > 10*time.Second {
						failed.Store(true)
						t.Errorf("change %d is not found", n+9)
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				late = append(late, time.Since(began))
			})
		}
	}
	watching.Wait()
	slices.Sort(late)
	if len(late) == 0 {
		t.Fatal("nothing was found")
	}
	t.Logf("at 500 changes a second, a change is found after %v (p50), %v (most)", late[len(late)/2], late[len(late)-1])
	began := time.Now()
	together(8, func(i int) {
		for n := i; n*100 < *searchBurst; n += 8 {
			var rows []string
			for j := range 100 {
				rows = append(rows, fmt.Sprintf(`{"external_id":"burst-%d","name":"Burst n%dx"}`, n*100+j, n*100+j))
			}
			if _, err := write.expect("POST", "/contacts/batch", upserts(rows), 200); err != nil {
				t.Error(err)
			}
		}
	})
	wrote := time.Since(began)
	waitFor(t, "the search to be level", func() bool {
		r, err := read.expect("GET", "/contacts?q=burst&limit=1", "", 200)
		return err == nil && r.header.Get("Search-Behind") == ""
	})
	t.Logf("%d contacts were created in %v; the search was level %v later", *searchBurst, wrote, time.Since(began)-wrote)
	for range 20 {
		if n := rand.IntN(*searchBurst); !found(fmt.Sprintf("burst n%dx", n)) {
			t.Errorf("contact %d of the burst is not found", n)
		}
	}
}
