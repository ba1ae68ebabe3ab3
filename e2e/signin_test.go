package e2e_test

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

var guesses = flag.Int("guesses", 60, "how many passwords TestGuesses tries on each store. Long run: -guesses 1000")

const rightPassword = "correct horse battery"

// out reports whether a page redirects to the sign-in page.
func (v *visitor) out(t testing.TB) bool {
	t.Helper()
	r, err := v.send("/inbox", nil)
	if err != nil || r.status != 200 && r.status != 303 {
		t.Fatalf("%d, %v", r.status, err)
	}
	return strings.HasPrefix(r.header.Get("Location"), "/sign-in")
}

// TestSessionsOfNodes: a session changes at one server. The next request to any server
// sees the change.
func TestSessionsOfNodes(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		t.Parallel()
		m := newTeam(t, dir, flags)
		m.member("Nora", "admin")
		mei := m.member("Mei", "agent")
		last := m.nodes[len(m.nodes)-1].url
		nora := m.visitor("Nora", 0)
		in := func() (here, there *visitor) {
			here = m.visitor("Mei", 0)
			there = here.at(last)
			if here.out(t) || there.out(t) {
				t.Fatal("a session does not hold")
			}
			return here, there
		}
		gone := func(what string, list ...*visitor) {
			t.Helper()
			for i, v := range list {
				if !v.out(t) {
					t.Errorf("%s: session %d still holds", what, i)
				}
			}
		}
		here, there := in()
		form := url.Values{"member": {mei}}
		there.mustPost(t, 303, "/sign-out", form)
		gone("signed out", here, there)

		here, there = in()
		phone := m.visitor("Mei", 1)
		phone.mustPost(t, 303, "/me/sign-out", form)
		gone("signed out everywhere", phone, here, there)

		here, there = in()
		nora.mustPost(t, 303, "/settings/members/"+mei+"/sign-out", mustForm(t, nora.mustGet(t, 200, "/settings/members/"+mei), "/sign-out").values)
		gone("signed out by an admin", here, there)

		here, there = in()
		there.mustGet(t, 403, "/settings/members")
		edit := mustForm(t, nora.mustGet(t, 200, "/settings/members/"+mei), `name="role"`).with("name", "Mei", "email", emailOf("Mei"), "role", "admin")
		nora.mustPost(t, 303, edit.action, edit.values)
		there.mustGet(t, 200, "/settings/members")
		here.mustGet(t, 200, "/settings/members")
		edit.values.Set("role", "agent")
		nora.mustPost(t, 303, edit.action, edit.values)
		there.mustGet(t, 403, "/settings/members")
		here.mustGet(t, 403, "/settings/members")

		m.must("member", "remove", mei)
		gone("removed", here, there)

		// One server makes a link. The link works at another server, but only once.
		link := m.link("Nora")
		spent := make(chan int, 8)
		together(cap(spent), func(i int) {
			v := newVisitor(t, m.nodes[i%len(m.nodes)].url)
			r, err := v.send(link, url.Values{})
			if err != nil {
				t.Error(err)
			}
			spent <- r.status
		})
		close(spent)
		counts := map[int]int{}
		for status := range spent {
			counts[status]++
		}
		if counts[303] != 1 || counts[404] != cap(spent)-1 {
			t.Errorf("a link is spent by %v", counts)
		}
	})
}

func mustForm(t testing.TB, page string, words ...string) filled {
	t.Helper()
	f, err := formOf([]byte(page), words...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGuesses: the number of guessed passwords is limited for an e-mail and for an
// address, over all servers together. Meanwhile links and open sessions work.
func TestGuesses(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		t.Parallel()
		const clients = 8
		m := newTeam(t, dir, flags)
		nora, mei := m.member("Nora", "admin"), m.member("Mei", "agent")
		for name, id := range map[string]string{"Nora": nora, "Mei": mei} {
			m.visitor(name, 0).mustPost(t, 303, "/me/password", url.Values{"member": {id}, "password": {rightPassword}})
		}
		open := m.visitor("Nora", 0)
		begun := time.Now()
		// guess tries passwords for e-mails from addresses. It returns the number of
		// responses with each status.
		guess := func(n int, email, from func(i int) string) map[int]int {
			var mu sync.Mutex
			counts := map[int]int{}
			visitors := map[string]*visitor{}
			together(clients, func(c int) {
				for i := c; i < n; i += clients {
					mu.Lock()
					v := visitors[from(i)]
					if v == nil {
						v = newVisitor(t, "")
						v.http.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from(i))}}).DialContext
						visitors[from(i)] = v
					}
					mu.Unlock()
					r, err := v.at(m.nodes[i%len(m.nodes)].url).send("/sign-in", url.Values{"email": {email(i)}, "password": {fmt.Sprintf("a wrong guess %d", i)}})
					if err != nil {
						t.Error(err)
						return
					}
					if r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") == "" {
						t.Error("no Retry-After")
					}
					mu.Lock()
					counts[r.status]++
					mu.Unlock()
				}
			})
			return counts
		}
		judge := func(what string, counts map[int]int, n, burst int, every time.Duration) {
			t.Helper()
			most := burst + int(time.Since(begun)/every) + 1
			t.Logf("%s: %v in %v", what, counts, time.Since(begun).Round(time.Millisecond))
			if tried := counts[422] + counts[503]; tried > most || tried+counts[429] != n {
				t.Errorf("%s: %v, at most %d may be tried", what, counts, most)
			}
		}
		one := func(text string) func(int) string { return func(int) string { return text } }
		judge("for one e-mail", guess(*guesses, one(emailOf("Mei")), func(i int) string { return fmt.Sprintf("127.0.%d.%d", 1+i%50, 1+i%7) }), *guesses, 5, 30*time.Second)
		v := newVisitor(t, m.nodes[0].url)
		v.mustPost(t, 429, "/sign-in", url.Values{"email": {emailOf("Mei")}, "password": {rightPassword}})
		begun = time.Now()
		judge("from one address", guess(*guesses, func(i int) string { return fmt.Sprintf("m%d@harbour.example", i) }, one("127.0.0.9")), *guesses, 20, 5*time.Second)

		if link := m.visitor("Mei", 1); link.out(t) || open.out(t) {
			t.Error("a link, or an open session, does not work meanwhile")
		}
		// From another address, another member's password still works.
		v = newVisitor(t, m.nodes[len(m.nodes)-1].url)
		if to := v.mustPost(t, 303, "/sign-in", url.Values{"email": {emailOf("Nora")}, "password": {rightPassword}}); to != "/inbox" || v.out(t) {
			t.Errorf("another member is sent to %s", to)
		}
	})
}

// TestTrustedProxy: a trusted proxy stands in front of the server. Wrong passwords from
// one address do not block passwords from another address. A caller that does not use the
// proxy can't choose its address.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		t.Parallel()
		m := newTeam(t, dir, flags, "--trusted-proxy", "127.0.0.1/32")
		mei := m.member("Mei", "agent")
		m.visitor("Mei", 0).mustPost(t, 303, "/me/password", url.Values{"member": {mei}, "password": {rightPassword}})
		from := func(local string) *visitor {
			v := newVisitor(t, m.nodes[0].url)
			v.http.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}).DialContext
			return v
		}
		try := func(v *visitor, email, password, forwarded string) int {
			t.Helper()
			r, err := v.send("/sign-in", url.Values{"email": {email}, "password": {password}}, "X-Forwarded-For", forwarded)
			if err != nil {
				t.Fatal(err)
			}
			return r.status
		}
		// guesses makes the attempts of one caller, who writes another address into the
		// header each time.
		guesses := func(v *visitor, n int, forwarded string) (refused int) {
			for i := range n {
				if try(v, fmt.Sprintf("m%d@harbour.example", i), "a wrong guess of mine", fmt.Sprintf("192.0.2.%d%s", i, forwarded)) == 429 {
					refused++
				}
			}
			return refused
		}
		proxy, stranger := from("127.0.0.1"), from("127.0.0.7")
		if n := guesses(proxy, 40, ", 198.51.100.1"); n == 0 {
			t.Error("guesses from one address are not limited")
		}
		if status := try(proxy, emailOf("Mei"), rightPassword, "198.51.100.2"); status != 303 {
			t.Errorf("somebody else behind the proxy is answered %d", status)
		}
		if n := guesses(stranger, 40, ""); n == 0 {
			t.Error("who is no trusted proxy chooses the address")
		}
	})
}

// TestScannedLink: a browser that runs scripts opens a link, follows the links on the
// page, and requests the page again. After this, the link can still be used.
func TestScannedLink(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Mei", "agent")
	link := m.link("Mei")
	scanner := newTab(t, m.nodes[0].url)
	for range 2 {
		scanner.open(link)
		scanner.shows("Sign in to")
		scanner.wait(`document.documentElement.classList.contains("js")`)
		look[bool](scanner, `Promise.all([...document.querySelectorAll("[href], [src]")].map((el) => fetch(el.href || el.src))).then(() => true)`)
	}
	b := newTab(t, m.nodes[0].url)
	b.open(link)
	b.click(`form[action^="/sign-in/"] button`)
	b.shows("Nothing is yours")
	scanner.open(link)
	scanner.shows("This link no longer works")
}

// TestBehindProxy: a TLS proxy stands in front of the server, and the server has a public
// URL. Cookies are secure and forms are accepted, also in a browser, however the proxy
// treats the Host header.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	for name, keepsHost := range map[string]bool{"keeps the host": true, "changes the host": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inner *url.URL
			proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(inner)
				if keepsHost {
					r.Out.Host = r.In.Host
				}
				r.SetXForwarded()
			}})
			t.Cleanup(proxy.Close)
			t.Cleanup(proxy.CloseClientConnections)
			m := newTeam(t, newDir(t), nil, "--public-url", proxy.URL)
			m.member("Mei", "agent")
			inner, _ = url.Parse(m.nodes[0].url)

			v := newVisitor(t, proxy.URL)
			v.http.Transport = proxy.Client().Transport
			r, err := v.send(m.link("Mei"), url.Values{})
			if c := r.header.Get("Set-Cookie"); err != nil || r.status != 303 || !strings.HasPrefix(c, "__Host-parley_") || !strings.Contains(c, "; Secure") || !strings.Contains(c, "; HttpOnly") {
				t.Fatalf("%d %q %v %s", r.status, c, err, r.body)
			}
			v.old = true // this browser sends only Origin
			rename := mustForm(t, v.mustGet(t, 200, "/me"), `name="name"`).with("name", "Mei Tanaka")
			v.mustPost(t, 303, rename.action, rename.values)
			for _, origin := range []string{"https://evil.example", m.nodes[0].url, "null"} {
				if !keepsHost && origin == m.nodes[0].url {
					continue // the host in the request is the server's own
				}
				if r, err := v.send(rename.action, rename.values, "Origin", origin); err != nil || r.status != http.StatusForbidden {
					t.Errorf("a form from %s is answered %d, %v", origin, r.status, err)
				}
			}

			b := newTab(t, proxy.URL)
			signInAndRename(t, b, m.link("Mei"))
		})
	}
}

// TestPlainHost: the server has plain HTTP and a name other than localhost, as in an
// office. Cookies work and forms are accepted, also in a browser. Headers of a proxy do
// not change this.
func TestPlainHost(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Mei", "agent")
	host := strings.Replace(strings.TrimPrefix(m.nodes[0].url, "http://"), "127.0.0.1", "parley.test", 1)

	v := newVisitor(t, m.nodes[0].url)
	v.host, v.old = host, true
	r, err := v.send(m.link("Mei"), url.Values{}, "X-Forwarded-Proto", "https", "Forwarded", "proto=https", "X-Forwarded-Host", "parley.example.com")
	if c := r.header.Get("Set-Cookie"); err != nil || r.status != 303 || !strings.HasPrefix(c, "parley_") || strings.Contains(c, "Secure") {
		t.Fatalf("%d %q %v %s", r.status, c, err, r.body)
	}
	rename := mustForm(t, v.mustGet(t, 200, "/me"), `name="name"`).with("name", "Mei Tanaka")
	v.mustPost(t, 303, rename.action, rename.values)
	for _, origin := range []string{"http://evil.example", "null", "https://" + strings.Split(host, ":")[0]} {
		if r, err := v.send(rename.action, rename.values, "Origin", origin); err != nil || r.status != http.StatusForbidden {
			t.Errorf("a form from %s is answered %d, %v", origin, r.status, err)
		}
	}

	b := newTab(t, "http://"+host)
	signInAndRename(t, b, m.link("Mei"))
	if look[bool](b, "isSecureContext") {
		t.Error("the browser takes this for a secure host")
	}
}

// signInAndRename uses a link and a form in a browser.
func signInAndRename(t *testing.T, b *tab, link string) {
	t.Helper()
	b.open(link)
	b.click(`form[action^="/sign-in/"] button`)
	b.shows("Nothing is yours")
	b.open("/me")
	b.fill("#f-name", "Mei T.")
	b.click(`form[action="/me"] button`)
	b.shows("Saved.")
}
