package e2e_test

import (
	"cmp"
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
	searchPeople  = flag.Int("search-people", 3000, "among how many people TestSearchOfMany searches. Long run: -search-people 1000000")
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
	b.press(kb.Enter)
	b.wait(`location.pathname.startsWith("/inbox/") && document.body.innerText.includes("Olivia Whitfield")`)
	palette()
	b.press("olivia whit" + kb.ArrowDown + kb.Enter) // before any hit is shown
	b.wait(`location.pathname.startsWith("/inbox/") && document.body.innerText.includes("Olivia Whitfield")`)
	palette()
	b.press("members")
	b.wait(`document.querySelector("#hit-0")?.textContent.includes("members")`)
	b.press(kb.Enter)
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
					if time.Since(began) > patience {
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
	read.searchLevel(t, patience+time.Duration(*searchBurst)*2*time.Millisecond)
	t.Logf("%d contacts were created in %v; the search was level %v later", *searchBurst, wrote, time.Since(began)-wrote)
	for range 20 {
		if n := rand.IntN(*searchBurst); !found(fmt.Sprintf("burst n%dx", n)) {
			t.Errorf("contact %d of the burst is not found", n)
		}
	}
}

// searchLevel waits until the search knows all changes.
func (c *client) searchLevel(t testing.TB, patience time.Duration) {
	t.Helper()
	for stop := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		r, err := c.expect("GET", "/contacts?q=a&limit=1", "", 200)
		if err == nil && r.header.Get("Search-Behind") == "" {
			return
		}
		if time.Now().After(stop) {
			t.Fatal("the search is not level")
		}
	}
}

// TestSearchOfMany asks for what is hard to find among many people: names that many have, and
// pairs of names that many have, but few together. With so few people, it only proves that
// all are answered.
func TestSearchOfMany(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deployment{newDir(t), database(t)}
			_, key := d.workspace(t)
			s := serve(t, d.dir, "--database", d.database)
			c := s.client(t, key, 8)
			first := []string{"Maria", "José", "Anna", "Łukasz", "Mehmet", "Ayşe", "Olena", "Jean-Luc", "Mary Ann", "Zoë"}
			syllables := []string{"ka", "ro", "mi", "ten", "son", "berg", "ova", "lu", "gar", "cia", "oğlu", "ski"}
			began := time.Now()
			together(4, func(i int) {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for n := i; n*500 < *searchPeople; n += 4 {
					var rows []string
					for j := range min(500, *searchPeople-n*500) {
						id := n*500 + j
						last := syllables[r.IntN(12)] + syllables[r.IntN(12)] + syllables[r.IntN(12)]
						rows = append(rows, fmt.Sprintf(`{"external_id":"crm-%07d","name":"%s %s","email":"%s.%d@mail%d.example","phone":"+9053%08d"}`,
							id, first[r.IntN(1+r.IntN(len(first)))], last, "p", id, id%50, id))
					}
					if _, err := c.expect("POST", "/contacts/batch", upserts(rows), 200); err != nil {
						t.Error(err)
					}
				}
			})
			wrote := time.Since(began)
			c.searchLevel(t, 20*time.Minute)
			t.Logf("%d people were stored in %v; the search was level %v later", *searchPeople, wrote, time.Since(began)-wrote)
			type took struct {
				text string
				in   time.Duration
			}
			var all []took
			r := rand.New(rand.NewPCG(5, 6))
			ask := func(text string) {
				began := time.Now()
				c.must(t, 200, "GET", "/contacts?q="+url.QueryEscape(text), "")
				all = append(all, took{text, time.Since(began)})
			}
			for range 20 {
				id := r.IntN(*searchPeople)
				last := syllables[r.IntN(12)] + syllables[r.IntN(12)] + syllables[r.IntN(12)]
				for _, text := range []string{
					first[r.IntN(len(first))], last, last[:3], first[r.IntN(len(first))] + " " + last, "m a", "maria " + last[:2], "jose zoe", "ann mar", "@mail", "@mail7.example", "p." + fmt.Sprint(id),
					fmt.Sprintf("crm-%07d", id), fmt.Sprintf("053%08d", id)[:6], fmt.Sprintf("%04d", id%10_000), "xyzzy", "a b c d e f g h", "ka ro mi",
				} {
					ask(text)
				}
			}
			slices.SortFunc(all, func(a, b took) int { return cmp.Compare(b.in, a.in) })
			t.Logf("%d searches: p50 %v, p99 %v; the slowest: %v", len(all), all[len(all)/2].in, all[len(all)/100].in, all[:8])
		})
	}
}
