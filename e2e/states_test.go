package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A stage has all data for the pages: a demo with some additions, a workspace without
// data, and a server without workspaces. It has a tab for each person who is signed in.
type stage struct {
	d         runningDemo
	key       string            // the API key of the demo
	workspace string            // the demo's workspace
	people    map[string]string // the ids of the added contacts, by name
	undone    string            // the page of a merge that was undone
	conflict  string            // the page of an open conflict
	again     string            // a conversation of a person who has an earlier conversation
	tabs      map[string]*tab
	found     map[string]string // the pages at which until stopped
}

const (
	admin     = "admin"
	agent     = "agent"
	nothing   = "nothing"    // the admin of a workspace without data
	signedOut = "signed out" // signed out
	first     = "first"      // at a server without workspaces
)

func newStage(t *testing.T) *stage {
	t.Helper()
	st := &stage{d: startDemo(t), people: map[string]string{}, tabs: map[string]*tab{}, found: map[string]string{}}
	st.workspace, st.key = st.d.access(t)
	for name, fields := range map[string]string{
		"doubt":    `"name":"Ines Doubt","phone":"+12025550003"`, // this send stays in doubt
		"off":      `"name":"Omar Off","phone":"+12025550188"`,
		"long":     `"name":"` + strings.Repeat("Wolfeschlegelsteinhausenberger", 5) + `","phone":"+12025550189","email":"` + strings.Repeat("a", 60) + `@` + strings.Repeat("long.", 30) + `example","external_id":"` + strings.Repeat("0", 120) + `","note":"` + strings.Repeat("word ", 200) + `"`,
		"nameless": `"external_id":"crm-1"`,
	} {
		var made struct{ Data struct{ ID string } }
		read(t, st.d.want(t, 201, st.key, "POST", "/contacts", "{"+fields+"}"), &made)
		st.people[name] = made.Data.ID
	}
	st.d.want(t, 201, st.key, "PUT", "/segments/lapsed", `{"name":"Lapsed","filter":{"all":[{"field":"wrote_at","is":"older","days":90}]}}`)
	var channels struct{ Data []struct{ ID string } }
	read(t, st.d.want(t, 200, st.key, "GET", "/channels", ""), &channels)
	channel := channels.Data[0].ID
	st.d.call(t, st.key, "POST", "/conversations/outbound",
		`{"channel_id":"`+channel+`","to":{"contact_id":"`+st.people["doubt"]+`"},"opt_in_confirmed":true,"template":{"name":"thank_you","language":"en_US"}}`, "Idempotency-Key", "doubt")
	writes := func(text string) string {
		t.Helper()
		return must(t, st.d.dir, "sandbox", "inbound", "--channel", channel, "--from", "+12025550187", "--name", "Ada Again", "--text", text)["conversation_id"].(string)
	}
	before := writes("Thanks, that is all.")
	for _, status := range []string{"closed", "archived"} {
		st.d.want(t, 200, st.key, "PUT", "/conversations/"+before+"/status", `{"status":"`+status+`"}`)
	}
	st.again = writes("One more thing: when do you open on Saturday?")
	must(t, st.d.dir, "sandbox", "inbound", "--channel", channel, "--from", "+12025550188", "--text", "stop")
	must(t, st.d.dir, "sandbox", "inbound", "--channel", channel, "--from", "+12025550189", "--text", strings.Repeat("https://parley.example/a-very-long-path/", 9))
	file := filepath.Join(t.TempDir(), strings.Repeat("a-very-long-name-", 12)+".txt")
	if err := os.WriteFile(file, []byte("Terms"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"", "gone", "fail:9"} { // one file is ready, one has failed, one is pending
		args := []string{"sandbox", "inbound", "--channel", channel, "--from", "+12025550189", "--file", file, "--type", "text/plain"}
		if fault != "" {
			args = append(args, "--fault", fault)
		}
		must(t, st.d.dir, args...)
	}

	st.merges(t)
	st.conflicts(t)
	st.addWebhook(t)

	st.tabs[admin] = newTab(t, st.d.url)
	st.tabs[admin].open(st.d.link)
	st.tabs[signedOut] = newTab(t, st.d.url)
	st.signIn(t, agent, st.workspace, "mei@parley.example")
	empty := must(t, st.d.dir, "workspace", "create", "--name", "Nothing yet")["workspace_id"].(string)
	must(t, st.d.dir, "member", "add", "--workspace", empty, "--name", "Ada", "--email", "ada@nothing.example", "--role", "admin")
	st.signIn(t, nothing, empty, "ada@nothing.example")
	st.tabs[first] = newTab(t, serve(t, newDir(t)).url)
	return st
}

// addWebhook adds a webhook whose receiver refuses some deliveries.
func (st *stage) addWebhook(t *testing.T) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"type":"contact.updated"`)) {
			http.Error(w, "The CRM is being updated. Come back later.", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(receiver.Close)
	var webhook struct{ Data struct{ ID string } }
	read(t, st.d.want(t, http.StatusCreated, st.key, "POST", "/webhooks", `{"url":"`+receiver.URL+`/crm/in","types":["message.*","contact.*"]}`), &webhook)
	st.d.want(t, http.StatusOK, st.key, "POST", "/webhooks/"+webhook.Data.ID+"/replay", `{"cursor":"oldest"}`)
	waitFor(t, "a delivery", func() bool {
		return strings.Contains(st.d.want(t, http.StatusOK, st.key, "GET", "/webhooks/"+webhook.Data.ID+"/deliveries?limit=50", ""), `"delivered"`)
	})
}

// merges makes a contact into which two were merged, and a merge that was undone.
func (st *stage) merges(t *testing.T) {
	t.Helper()
	merge := func(into, from string) (id string) {
		t.Helper()
		var made struct{ Data struct{ ID string } }
		read(t, st.d.want(t, 200, st.key, "POST", "/contacts/"+st.people[into]+"/merge", `{"from":"`+st.people[from]+`"}`), &made)
		return made.Data.ID
	}
	for name, fields := range map[string]string{
		"kept":  `"name":"Lucia Fern","phone":"+12025550171","note":"Prefers mornings"`,
		"other": `"name":"Lucia F.","phone":"+12025550172","note":"Asks for Ada"`,
		"third": `"name":"L. Fern","email":"lucia@parley.example"`,
		"again": `"name":"Lu","email":"lu@parley.example"`,
	} {
		var made struct{ Data struct{ ID string } }
		read(t, st.d.want(t, 201, st.key, "POST", "/contacts", "{"+fields+"}"), &made)
		st.people[name] = made.Data.ID
	}
	undone := merge("kept", "again")
	st.d.want(t, 200, st.key, "PATCH", "/contacts/"+st.people["kept"], `{"email":"fern@parley.example"}`)
	st.d.want(t, 200, st.key, "POST", "/merges/"+undone+"/undo", `{}`)
	st.undone = "/contacts/merges/" + undone + "/undo"
	merge("kept", "other")
	merge("kept", "third")
}

// conflicts makes two open conflicts, and one that is dismissed.
func (st *stage) conflicts(t *testing.T) {
	t.Helper()
	for _, fields := range []string{
		`"external_id":"crm-1","phone":"+12025550003"`,
		`"phone":"+12025550171","email":"lu@parley.example"`,
		`"phone":"+12025550188","identities":[{"kind":"phone","value":"+12025550189"}]`,
	} {
		st.d.want(t, http.StatusConflict, st.key, "POST", "/contacts", "{"+fields+"}")
		waitFor(t, "the conflict to be listed", func() bool {
			var open struct{ Data []struct{ ID string } }
			read(t, st.d.want(t, http.StatusOK, st.key, "GET", "/conflicts", ""), &open)
			if len(open.Data) == 0 || st.conflict == "/conflicts/"+open.Data[0].ID {
				return false
			}
			st.conflict = "/conflicts/" + open.Data[0].ID
			return true
		})
		if strings.Contains(fields, "crm-1") {
			st.d.want(t, http.StatusOK, st.key, "POST", st.conflict+"/resolve", `{"action":"dismiss"}`)
		}
	}
}

func (st *stage) signIn(t *testing.T, who, workspace, email string) {
	t.Helper()
	st.tabs[who] = newTab(t, st.d.url)
	st.tabs[who].open(st.linkOf(t, workspace, email))
	st.tabs[who].follow("main form button")
}

// linkOf returns the path of a member's sign-in link.
func (st *stage) linkOf(t testing.TB, workspace, email string) string {
	t.Helper()
	link, err := url.Parse(must(t, st.d.dir, "login-link", "--workspace", workspace, "--member", email)["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return link.Path
}

// A shot is a page in one state. open has the steps that lead to it.
type shot struct {
	name string
	who  string
	open func(*tab)
}

func at(path string) func(*tab) { return func(b *tab) { b.t.Helper(); b.open(path) } }

// through returns a function that opens a page, and then follows the first link of each
// selector.
func through(path string, links ...string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		b.open(path)
		for _, link := range links {
			b.wait(fmt.Sprintf("document.querySelector(%q)", link))
			b.open(look[string](b, fmt.Sprintf("document.querySelector(%q).href", link)))
		}
	}
}

// acting returns a function that opens a page, and then does the acts on it.
func acting(open func(*tab), acts ...func(*tab)) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		open(b)
		for _, act := range acts {
			act(b)
		}
	}
}

// pushing returns a function that clicks an element. The click opens another element on
// the page, and the function waits for it.
func pushing(selector, opens string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		b.wait("document.documentElement.classList.contains('js')")
		look[bool](b, fmt.Sprintf("document.querySelector(%q).click() || true", selector))
		b.wait(fmt.Sprintf("document.querySelector(%q)", opens))
	}
}

// with returns a function that fills fields, given as pairs of selector and value.
func with(pairs ...string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			b.wait(fmt.Sprintf("document.querySelector(%q)", pairs[i]))
			look[bool](b, fmt.Sprintf("{ const el = document.querySelector(%q); el.type === 'checkbox' ? el.checked = %t : el.value = %q; true }", pairs[i], pairs[i+1] != "", pairs[i+1]))
		}
	}
}

// sending returns a function that clicks a button and so sends the button's form.
func sending(button string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		b.wait("document.readyState === 'complete'")
		b.wait(fmt.Sprintf("document.querySelector(%q)", button))
		look[bool](b, "window.before = true")
		look[bool](b, fmt.Sprintf("document.querySelector(%q).click() || true", button))
		b.wait("!window.before && document.readyState === 'complete' || document.querySelector('#summary')")
	}
}

const mainButton = "main form .btn.main"

// wrong returns a function that sends a form with invalid values, and waits until the
// form is shown again.
func wrong(open func(*tab), pairs ...string) func(*tab) {
	return acting(open, with(pairs...), sending(mainButton), func(b *tab) {
		b.t.Helper()
		b.wait("document.querySelector('#summary')")
	})
}

// until returns a function that opens the rows of a list, one after the other. It stops
// at a page that has an element.
func until(list, has string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		b.open(list)
		for _, href := range look[[]string](b, "[...document.querySelectorAll('[data-row]')].map((el) => el.href)") {
			b.open(href)
			if look[bool](b, fmt.Sprintf("!!document.querySelector(%q)", has)) {
				return
			}
		}
		b.t.Fatalf("no page of %s has %s", list, has)
	}
}

// until is like the function until, but first it tries the page that it found last time.
func (st *stage) until(list, has string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		if last := st.found[list+has]; last != "" {
			b.open(last)
			if look[bool](b, fmt.Sprintf("!!document.querySelector(%q)", has)) {
				return
			}
		}
		until(list, has)(b)
		st.found[list+has] = look[string](b, "location.href")
	}
}

// shots lists every page and state. Their order matters: no shot removes data that a
// later shot needs.
func (st *stage) shots(t *testing.T) []shot {
	t.Helper()
	const talk = "/inbox?view=open"
	imports, broadcast := st.imports(t), st.broadcasts(t)
	attribute := through("/settings/attributes", "#a-plan a")
	aKey := through("/settings/keys", "#keys [data-row]")
	aMember := through("/settings/members", "#members tr:last-child a")
	aWebhook := through("/settings/webhooks", "[data-row]")
	aPolicy := through("/settings/policy", "nav[aria-label='Whose policy'] a:nth-child(2)")
	ownPolicy := func(b *tab) { // the channel's own policy, which it may have since an earlier state
		b.t.Helper()
		aPolicy(b)
		if !look[bool](b, `!!document.querySelector("#main [data-dialog]")`) {
			sending("main form .btn")(b)
			b.wait("document.querySelector('#main [data-dialog]')")
		}
	}
	aSnippet := through("/settings/snippets", "[data-row]")
	aSegment := through("/settings/segments", "[data-row]")
	segmentLine := acting(at("/settings/segments/new"), with("#f-name", "Silent for 90 days", "#f-c-add", "wrote_at"), sending("[name='c.new']"))
	aChannel := through("/settings/channels", "[data-row]")
	contact := at("/contacts/" + st.people["off"])
	send := func(b *tab) {
		b.open("/send?contact=" + st.people["off"])
		b.open(look[string](b, `document.querySelector("#templates li:nth-child(2) a").href`))
	}
	changed := func(b *tab) { // another member changes the conversation after the page was opened
		through(talk, "[data-row]")(b)
		look[bool](b, `(async () => { const form = document.querySelector("#head details form"), data = new URLSearchParams(new FormData(form)), now = document.querySelector("#head [name=seen_assignee]").value;
			document.querySelector("#head").removeAttribute("data-live"); // as if the stream were late
			data.set("to", [...form.querySelectorAll("option")].map((el) => el.value).find((id) => id && id !== now)); await fetch(form.action, { method: "POST", body: data }); return true; })()`)
	}
	return []shot{
		{"welcome", first, at("/")},
		{"sign-in", signedOut, at("/sign-in")},
		{"sign-in-wrong", signedOut, wrong(at("/sign-in"), "#f-email", "nora@parley.example", "#f-password", "not her password")},
		{"sign-in-link", signedOut, func(b *tab) { b.open(st.linkOf(t, st.workspace, "nora@parley.example")) }},
		{"sign-in-link-spent", signedOut, at("/sign-in/spent")},
		{"sign-in-link-other", agent, func(b *tab) { b.open(st.linkOf(t, st.workspace, "tomas@parley.example")) }},

		{"inbox-first", nothing, at("/inbox")},
		{"contacts-first", nothing, at("/contacts")},
		{"templates-first", nothing, at("/templates")},
		{"sends-first", nothing, at("/sends")},
		{"overview-first", nothing, at("/overview")},
		{"send-first", nothing, at("/send")},
		{"broadcasts-first", nothing, at("/broadcasts")},
		{"broadcast-new-first", nothing, at("/broadcasts/new")},
		{"keys-first", nothing, at("/settings/keys")},
		{"attributes-first", nothing, at("/settings/attributes")},
		{"channels-first", nothing, at("/settings/channels")},
		{"webhooks-first", nothing, at("/settings/webhooks")},
		{"events-first", nothing, at("/settings/events")},
		{"policy-first", nothing, at("/settings/policy")},
		{"snippets-first", nothing, at("/settings/snippets")},
		{"segments-first", nothing, at("/settings/segments")},

		{"inbox-agent", agent, at("/inbox")},
		{"contact-agent", agent, contact},
		{"template-agent", agent, through("/templates", "[data-row]")},
		{"attempt-doubt-agent", agent, through("/sends?doubt=yes", "[data-row]")},
		{"broadcasts-agent", agent, at("/broadcasts")},
		{"broadcast-agent", agent, at(broadcast["doubt"])},
		{"not-allowed", agent, at("/settings")},

		{"inbox", admin, at("/inbox")},
		{"inbox-unassigned", admin, at("/inbox?view=unassigned")},
		{"inbox-open", admin, at(talk)},
		{"inbox-closed", admin, at("/inbox?view=closed")},
		{"inbox-archived", admin, at("/inbox?view=archived")},
		{"inbox-views", admin, acting(at(talk), pushing("#views summary", "#views details[open]"))},
		{"inbox-member", admin, acting(at("/inbox"), func(b *tab) { b.open(look[string](b, "document.querySelector('#views details a:last-of-type').href")) })},
		{"inbox-waiting", admin, at("/inbox?view=open&order=waiting&unread=true")},
		{"inbox-nothing-unread", admin, at("/inbox?view=archived&unread=true")},
		{"more", admin, acting(at("/inbox"), pushing(".rail summary", ".rail details[open]"))},
		{"conversation", admin, through(talk, "[data-row]")},
		{"conversation-reply", admin, acting(st.until(talk, "#reply-do .main"), pushing("#reply-more summary", "#reply-more[open]"))},
		{"conversation-files", admin, acting(st.until(talk, "#reply-do .main"), func(b *tab) {
			look[bool](b, `{ const data = new DataTransfer(); for (const n of ["one.pdf", "a-rather-long-name-of-a-photo-from-the-holidays.jpg"]) data.items.add(new File(["x"], n)); const field = document.querySelector("#f-file"); field.files = data.files; field.dispatchEvent(new Event("change", { bubbles: true })); true }`)
		})},
		{"conversation-reply-wrong", admin, acting(st.until(talk, "#reply-do .main"), with("#f-reply", " "), sending("#reply .btn.main"))},
		{"conversation-quote", admin, acting(st.until(talk, "#reply-do .main"), func(b *tab) {
			b.open(look[string](b, `location.pathname + "?quote=" + document.querySelector("button.quoting").value`))
		})},
		{"conversation-saved", admin, acting(st.until(talk, "#reply-do .main"), pushing("#snippets summary", "#snippets[open]"))},
		{"conversation-shut", admin, st.until(talk, ".reply.shut")},
		{"conversation-assign", admin, acting(through(talk, "[data-row]"), pushing("#assign summary", "#assign-list button"))},
		{"conversation-panel", admin, acting(st.until(talk, "#reply-do .main"), pushing("[data-panel]", "#panel #templates"))},
		{"conversation-panel-form", admin, acting(st.until(talk, "#reply-do .main"), pushing("[data-panel]", "#panel #templates"), pushing("#templates li:nth-child(2) a", "#panel #preview"))},
		{"conversation-panel-wrong", admin, acting(st.until(talk, "#reply-do .main"), pushing("[data-panel]", "#panel #templates"), pushing("#templates li:nth-child(2) a", "#panel #preview"), pushing("#panel .btn.main", "#panel #summary"))},
		{"conversation-person", admin, acting(at("/contacts/"+st.people["long"]), func(b *tab) { b.open(look[string](b, `document.querySelector("#talks a").pathname`) + "?person=open") })},
		{"conversation-person-more", admin, acting(through(talk, "[data-row]"), func(b *tab) { b.open(look[string](b, `location.pathname`) + "?person=open&edit=more") })},
		{"conversation-person-edit", admin, acting(through(talk, "[data-row]"), func(b *tab) { b.open(look[string](b, `location.pathname`) + "?person=open&edit=note") })},
		{"conversation-person-wrong", admin, acting(through(talk, "[data-row]"), func(b *tab) {
			b.open(look[string](b, `location.pathname`) + "?person=open&edit=attributes.website")
		}, with("#person-edit [name='attributes.website']", "nonsense"), pushing("#person-edit .main", "#person-edit .error"))},
		{"conversation-before", admin, at("/inbox/" + st.again + "?view=open")},
		{"conversation-customer", admin, acting(through(talk, "[data-row]"), pushing(".customer summary", ".customer[open]"))},
		{"conversation-changed", admin, acting(changed, sending("#head [value=closed]"), func(b *tab) { b.wait("document.querySelector('#news')") })},
		{"conversation-kinds", admin, st.until(talk, ".picture")},
		{"conversation-reaction", admin, st.until(talk, ".reactions")},
		{"notes", admin, through(talk, "[data-row]", "[data-shortcut=n]")},
		{"notes-wrong", admin, wrong(through(talk, "[data-row]", "[data-shortcut=n]"), "#f-note", " ")},
		{"notes-dialog", admin, acting(through(talk, "[data-row]"), pushing("[data-shortcut=n]", "dialog[open]"))},
		{"note-delete", admin, acting(st.until(talk, ".jotted a"), func(b *tab) { b.open(look[string](b, "document.querySelector('.jotted a').href")) })},
		{"conversation-failed", admin, st.until(talk, ".why")},
		{"conversation-right-to-left", admin, st.until(talk, "#thread :dir(rtl)")},
		{"conversation-closed", admin, through("/inbox?view=closed", "[data-row]")},
		{"conversation-long", admin, through("/contacts/"+st.people["long"], "#talks a")},
		{"conversation-opted-out", admin, through("/contacts/"+st.people["off"], "#talks a")},

		{"contacts", admin, at("/contacts")},
		{"contacts-next", admin, through("/contacts", "[data-next]")},
		{"contacts-found", admin, at("/contacts?q=%2B12025550188")},
		{"contacts-none", admin, at("/contacts?q=nobody")},
		{"search", admin, at("/search?q=12025550188")},
		{"search-none", admin, at("/search?q=xyzzy")},
		{"search-palette", admin, acting(at("/inbox"), pushing("a[href=\"/search\"]", "dialog[open] #hit-0"))},
		{"import-none", nothing, at("/contacts/import")},
		{"imports", admin, at("/contacts/import")},
		{"imports-wrong", admin, wrong(at("/contacts/import"))},
		{"import", admin, at(imports[0])},
		{"import-wrong", admin, wrong(at(imports[0]))},
		{"import-stop", admin, at(imports[0] + "stop")},
		{"import-stop-dialog", admin, acting(at(imports[0]), pushing("#main [data-dialog]", "dialog[open]"))},
		{"import-checked", admin, at(imports[1])},
		{"import-done", admin, at(imports[2])},
		{"broadcast-file", admin, at(imports[3])},
		{"broadcast-file-wrong", admin, wrong(at(imports[3]))},
		{"broadcast-file-checked", admin, at(imports[4])},
		{"contact", admin, contact},
		{"contact-long", admin, at("/contacts/" + st.people["long"])},
		{"contact-nameless", admin, at("/contacts/" + st.people["nameless"])},
		{"contact-more", admin, acting(contact, pushing("#contact summary", "#contact details[open]"))},
		{"contact-wrong", admin, wrong(contact, "[name=phone]", "none", "[name=email]", "none")},
		{"contact-conflict", admin, acting(contact, with("[name=phone]", "+12025550189"), sending("#contact .btn.main"), func(b *tab) { b.wait("document.querySelector('.news')") })},
		{"contact-conflict-move", admin, acting(contact, with("[name=phone]", "+12025550189"), sending("#contact .btn.main"), pushing("[name=ask]", "[name=move]"))},
		{"contact-both", admin, acting(contact, func(b *tab) {
			b.wait("document.querySelector('[name=\"was.name\"]')")
			look[bool](b, `{ document.querySelector("[name='was.name']").value = "Somebody"; document.querySelector("[name=name]").value = "Else"; true }`)
		}, sending("#contact .btn.main"))},
		{"contact-delete", admin, at("/contacts/" + st.people["off"] + "/delete")},
		{"contact-delete-dialog", admin, acting(contact, pushing("#main [data-dialog]", "dialog[open]"))},
		{"contact-merge-find", agent, at("/contacts/" + st.people["off"] + "/merge?q=ada")},
		{"contact-merge-none", agent, at("/contacts/" + st.people["off"] + "/merge?q=xyzzy")},
		{"contact-merge", agent, at("/contacts/" + st.people["off"] + "/merge?with=" + st.people["long"])},
		{"contact-merge-itself", agent, at("/contacts/" + st.people["off"] + "/merge?with=" + st.people["off"])},
		{"contact-merged", agent, at("/contacts/" + st.people["kept"] + "?done=merged")},
		{"contact-merged-away", agent, at("/contacts/" + st.people["other"])},
		{"contact-unmerge", agent, through("/contacts/"+st.people["kept"], "#merges li:first-child a")},
		{"contact-unmerge-dialog", agent, acting(at("/contacts/"+st.people["kept"]), pushing("#merges [data-dialog]", "dialog[open]"))},
		{"contact-unmerge-blocked", agent, through("/contacts/"+st.people["kept"], "#merges li:last-child a")},
		{"contact-unmerged", agent, at(st.undone)},
		{"conflicts-first", nothing, at("/conflicts")},
		{"conflicts", agent, at("/conflicts")},
		{"conflicts-dismissed", agent, at("/conflicts?status=dismissed")},
		{"conflict", agent, at(st.conflict)},
		{"conflict-wrong", agent, at(st.conflict + "/decide?do=merge")},
		{"conflict-merge", agent, acting(at(st.conflict), sending("main form .btn.main"))},
		{"conflict-move", agent, acting(at(st.conflict), sending("main form .btn:not(.main)"))},
		{"conflict-dismiss", agent, at(st.conflict + "/decide?do=dismiss")},
		{"conflict-dismiss-dialog", agent, acting(at(st.conflict), pushing("#main [data-dialog]", "dialog[open]"))},
		{"conflict-dismissed", agent, through("/conflicts?status=dismissed", "[data-row]")},
		{"contact-new", admin, at("/contacts/new")},
		{"contacts-export", admin, at("/contacts/export")},
		{"contact-new-wrong", admin, wrong(at("/contacts/new"), "[name=phone]", "none")},

		{"templates", admin, at("/templates")},
		{"template", admin, through("/templates", "[data-row]")},
		{"template-not-sendable", admin, st.until("/templates", ".note.warn")},
		{"template-new", admin, through("/templates", ".bar .actions a")},
		{"template-new-wrong", admin, wrong(through("/templates", ".bar .actions a"), "textarea", "{")},
		{"send-find", admin, at("/send?find=%2B12025550188")},
		{"send-nobody", admin, at("/send?find=nobody")},
		{"send-choose", admin, at("/send?contact=" + st.people["off"])},
		{"send-nameless", admin, at("/send?contact=" + st.people["nameless"])},
		{"send", admin, send},
		{"send-wrong", admin, wrong(send)},

		{"broadcasts", admin, at("/broadcasts")},
		{"broadcasts-running", admin, at("/broadcasts?state=running")},
		{"broadcast", admin, at(broadcast["ended"])},
		{"broadcast-draft", admin, at(broadcast["draft"])},
		{"broadcast-scheduled", admin, at(broadcast["scheduled"])},
		{"broadcast-paused", admin, at(broadcast["paused"])},
		{"broadcast-doubt", admin, at(broadcast["doubt"])},
		{"broadcast-new", admin, at("/broadcasts/new")},
		{"broadcast-new-form", admin, through("/broadcasts/new", "#templates li:nth-child(2) a")},
		{"broadcast-new-wrong", admin, wrong(through("/broadcasts/new", "#templates li:nth-child(2) a"), "#f-name", "", "#f-send_at", "")},
		{"broadcast-edit", admin, at(broadcast["draft"] + "/edit")},
		{"broadcast-edit-later", admin, at(broadcast["paused"] + "/edit")},
		{"broadcast-people", admin, at(broadcast["draft"] + "/people")},
		{"broadcast-people-wrong", admin, wrong(at(broadcast["draft"]+"/people"), "#f-list", "12;A\nnobody@parley.example")},
		{"broadcast-people-remove", admin, at(broadcast["draft"] + "/people/remove")},
		{"broadcast-audience-rows", admin, at(broadcast["draft"] + "/audience")},
		{"broadcast-audience", admin, at(broadcast["chosen"] + "/audience")},
		{"broadcast-audience-segment", admin, at(broadcast["chosen"] + "/audience?from=segment")},
		{"broadcast-audience-broadcast", admin, at(broadcast["chosen"] + "/audience?from=broadcast")},
		{"broadcast-audience-wrong", admin, wrong(at(broadcast["chosen"]+"/audience?from=broadcast"), "#f-code", "0")},
		{"broadcast-chosen", admin, at(broadcast["chosen"])},
		{"broadcast-chosen-start", admin, at(broadcast["chosen"] + "/start?people=5")},
		{"broadcast-check", admin, at(broadcast["draft"] + "/check")},
		{"broadcast-start", admin, at(broadcast["draft"] + "/start")},
		{"broadcast-start-wrong", admin, wrong(at(broadcast["draft"]+"/start"), "#f-number", "12")},
		{"broadcast-nobody", admin, at(broadcast["ended"] + "?status=cancelled")},
		{"broadcast-resume", admin, at(broadcast["paused"] + "/resume")},
		{"broadcast-resume-dialog", admin, acting(at(broadcast["paused"]), pushing("#main [data-dialog]", "dialog[open]"))},
		{"broadcast-cancel", admin, at(broadcast["scheduled"] + "/cancel")},
		{"broadcast-delete", admin, at(broadcast["ended"] + "/delete")},
		{"broadcast-release", admin, at(broadcast["doubt"] + "/release?outcome=sent")},

		{"sends", admin, at("/sends")},
		{"sends-doubt", admin, at("/sends?doubt=yes")},
		{"sends-release", admin, acting(at("/sends?doubt=yes"), func(b *tab) {
			b.open("/sends/release?outcome=not-sent&id=" + look[string](b, "document.querySelector('.pick input').value"))
		})},
		{"sends-failed", admin, at("/sends?failed=yes")},
		{"attempt", admin, through("/sends", "[data-row]")},
		{"attempt-doubt", admin, through("/sends?doubt=yes", "[data-row]")},
		{"overview", admin, at("/overview")},
		{"overview-90", admin, at("/overview?days=90")},
		{"overview-tables", admin, acting(at("/overview"), func(b *tab) {
			look[bool](b, "{ for (const el of document.querySelectorAll('main details')) el.open = true; true }")
		})},

		{"settings", admin, at("/settings")},
		{"settings-wrong", admin, wrong(at("/settings"), "#f-name", "")},
		{"members", admin, at("/settings/members")},
		{"member-new", admin, at("/settings/members/new")},
		{"member-new-wrong", admin, wrong(at("/settings/members/new"), "#f-email", "none")},
		{"member", admin, aMember},
		{"member-link", admin, acting(aMember, sending("form[action$='/link'] button"))},
		{"member-remove", admin, acting(aMember, func(b *tab) { b.open(look[string](b, "location.href") + "/remove") })},
		{"member-remove-dialog", admin, acting(aMember, pushing("#main [data-dialog]", "dialog[open]"))},
		{"keys", admin, at("/settings/keys")},
		{"key-new", admin, at("/settings/keys/new")},
		{"key-new-preset", admin, at("/settings/keys/new?preset=crm")},
		{"key-new-wrong", admin, wrong(at("/settings/keys/new"), "#f-name", "")},
		{"key-made", admin, acting(at("/settings/keys/new"), with("#f-name", "Web shop", "[value='contacts:read']", "yes"), sending(mainButton))},
		{"key", admin, aKey},
		{"key-revoke", admin, acting(aKey, func(b *tab) { b.open(look[string](b, "location.href") + "/revoke") })},
		{"key-revoke-dialog", admin, acting(aKey, pushing("#main [data-dialog]", "dialog[open]"))},
		{"attributes", admin, at("/settings/attributes")},
		{"attribute-new", admin, at("/settings/attributes/new-attribute")},
		{"attribute-new-wrong", admin, wrong(at("/settings/attributes/new-attribute"), "#f-label", "")},
		{"attribute", admin, attribute},
		{"attribute-archive", admin, at("/settings/attributes/plan/archive")},
		{"attribute-archive-dialog", admin, acting(attribute, pushing("#main [data-dialog]", "dialog[open]"))},
		{"channels", admin, at("/settings/channels")},
		{"channel", admin, aChannel},
		{"channel-wrong", admin, acting(aChannel, sending("main form[action$='/customer'] .btn"))},
		{"channel-checked", admin, acting(aChannel, sending("main form[action$='/check'] .btn"))},
		{"channel-new", admin, at("/settings/channels/new")},
		{"channel-new-wrong", admin, wrong(at("/settings/channels/new"))},
		{"sandbox-new", admin, at("/settings/channels/new-sandbox")},
		{"policy", admin, at("/settings/policy")},
		{"policy-assign-wrong", admin, wrong(at("/settings/policy"), "#f-mode", "round_robin")},
		{"policy-assign", admin, acting(at("/settings/policy"), with("#f-mode", "least_open", "#f-members li:nth-child(2) input", "yes", "#f-members li:nth-child(3) input", "yes", "#f-max_open", "20"), sending(mainButton))},
		{"policy-hours-wrong", admin, acting(at("/settings/policy"), with("#f-open", "hours", "[name='mon.1.from']", "14:00"), sending("#hours .btn.main"), func(b *tab) { b.wait("document.querySelector('#summary')") })},
		{"policy-hours", admin, acting(at("/settings/policy"), with("#f-open", "hours", "[name='mon.1.from']", "18:30", "[name='mon.1.to']", "20:00"), sending("#hours .btn.main"))},
		{"policy-dates", admin, acting(at("/settings/policy"), with("#f-open", "hours", "[name='mon.1.from']", "18:30", "[name='mon.1.to']", "20:00"), sending("#hours .btn.main"), with("#f-date", "2099-12-24"), sending("#dates form:last-of-type .btn"))},
		{"policy-channel", admin, aPolicy},
		{"policy-own", admin, ownPolicy},
		{"policy-remove", admin, acting(ownPolicy, func(b *tab) { b.open(look[string](b, "location.pathname") + "/remove") })},
		{"policy-remove-dialog", admin, acting(ownPolicy, pushing("#main [data-dialog]", "dialog[open]"))},
		{"segment-new", admin, at("/settings/segments/new")},
		{"segment-line", admin, segmentLine},
		{"segment-wrong", admin, wrong(segmentLine, "#f-c-0-is", "older", "#f-c-0-days", "4000")},
		{"segment-added", admin, acting(segmentLine, with("#f-c-0-is", "older", "#f-c-0-days", "90", "#f-c-add", "owner"), sending("[name='c.new']"), pushing("[name='c.1.values']", "[name='c.1.values']:checked"), sending(mainButton))},
		{"segments", admin, at("/settings/segments")},
		{"segment", admin, aSegment},
		{"segment-delete", admin, acting(aSegment, func(b *tab) {
			b.open(strings.TrimSuffix(look[string](b, "location.pathname"), "edit") + "delete")
		})},
		{"snippet-new", admin, at("/settings/snippets/new")},
		{"snippet-new-wrong", admin, wrong(at("/settings/snippets/new"), "#f-shortcut", "Not one", "#f-text", "Hi {{name}}")},
		{"snippet-added", admin, acting(at("/settings/snippets/new"), with("#f-shortcut", "hours", "#f-text", strings.Repeat("Hi {{customer_first_name}}, we are open from nine to six. ", 20)), sending(mainButton))},
		{"snippets", admin, at("/settings/snippets")},
		{"snippet", admin, aSnippet},
		{"snippet-changed", admin, wrong(aSnippet, "[name=seen]", "Something else", "#f-text", "My own text")},
		{"snippet-delete", admin, acting(aSnippet, func(b *tab) { b.open(strings.TrimSuffix(look[string](b, "location.pathname"), "/edit") + "/delete") })},
		{"snippet-delete-dialog", admin, acting(aSnippet, pushing("#main [data-dialog]", "dialog[open]"))},
		{"webhooks", admin, at("/settings/webhooks")},
		{"webhook", admin, aWebhook},
		{"webhook-pinged", admin, acting(aWebhook, sending("form[action$=ping] button"))},
		{"delivery", admin, acting(aWebhook, func(b *tab) { b.open(look[string](b, "document.querySelector('tbody [data-row]').href")) })},
		{"webhook-new", admin, at("/settings/webhooks/new")},
		{"webhook-new-wrong", admin, wrong(at("/settings/webhooks/new"), "[name=url]", "crm.example")},
		{"webhook-rotate", admin, acting(aWebhook, func(b *tab) { b.open(look[string](b, "location.pathname") + "/rotate") })},
		{"webhook-replay", admin, acting(aWebhook, func(b *tab) { b.open(look[string](b, "location.pathname") + "/replay") })},
		{"webhook-remove", admin, acting(aWebhook, func(b *tab) { b.open(look[string](b, "location.pathname") + "/remove") })},
		{"webhook-dialog", admin, acting(aWebhook, pushing("#main [data-dialog]", "dialog[open]"))},
		{"events", admin, at("/settings/events")},
		{"events-settings", admin, at("/settings/events?types=settings")},

		{"me", admin, at("/me")},
		{"me-away", agent, acting(at("/me"), sending("#availability button"))},
		{"news", agent, at("/me/news")},
		{"news-none", nothing, at("/me/news")},
		{"me-wrong", admin, wrong(at("/me"), "#f-name", "")},
		{"saved", admin, at("/me?done=saved")},
		{"help", admin, func(b *tab) {
			b.open("/inbox")
			b.wait("document.documentElement.classList.contains('js')")
			b.press("?")
			b.wait("document.querySelector('dialog[open]')")
		}},
		{"not-here", admin, at("/nowhere")},
		{"somebody-else", admin, acting(at("/me"), func(b *tab) {
			look[bool](b, "{ for (const el of document.querySelectorAll('[name=member]')) el.value = ''; true }")
		}, sending(mainButton))},
	}
}

// broadcasts makes broadcasts: a draft, one with an audience, a scheduled one, a paused one, one that has ended, and
// one with messages in doubt. It returns their pages by these names.
func (st *stage) broadcasts(t *testing.T) map[string]string {
	t.Helper()
	made := map[string]string{}
	for name, v := range map[string]struct{ settings, phones string }{
		"draft":     {"", "+12025550111 +12025550112"},
		"chosen":    {`,"at_most":500,"audience":{"filter":{"all":[{"field":"name","is":"present"},{"any":[{"field":"wrote_at","is":"older","days":90},{"field":"wrote_at","is":"absent"}]}]}}`, ""},
		"scheduled": {`,"send_at":"` + time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339) + `","stop_at":"` + time.Now().Add(72*time.Hour).UTC().Format(time.RFC3339) + `","pace":{"people":1600,"minutes":1440}`, "+12025550113"},
		"paused":    {`,"send_at":"` + time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339) + `"`, "+12025550114 +12025550115"},
		"ended":     {"", "+12025550116 +12025550117 +12025550001 +12025550007 +12025560007 +12025550119"},
		"doubt":     {"", "+12025570003 +12025580003 +12025550118"},
	} {
		var b struct{ Data struct{ ID string } }
		read(t, st.d.want(t, 201, st.key, "POST", "/broadcasts", `{"name":"The `+name+` one","template":{"name":"thank_you","language":"en_US"},"consent":{"confirmed":true},"max_failed_percent":100`+v.settings+`}`), &b)
		var rows []string
		for phone := range strings.FieldsSeq(v.phones) {
			rows = append(rows, `{"to":{"phone":"`+phone+`"}}`)
		}
		at := "/broadcasts/" + b.Data.ID
		made[name] = at
		if name == "chosen" {
			continue
		}
		st.d.want(t, 200, st.key, "POST", at+"/rows", `{"rows":[`+strings.Join(rows, ",")+`]}`)
		if name != "draft" {
			st.d.want(t, 200, st.key, "POST", at+"/start", "{}")
		}
		if name == "paused" {
			st.d.want(t, 200, st.key, "POST", at+"/pause", "{}")
		}
	}
	for _, name := range []string{"ended", "doubt"} {
		waitFor(t, "a broadcast's end", func() bool {
			return strings.Contains(st.d.want(t, 200, st.key, "GET", made[name], ""), `"state":"done"`)
		})
	}
	var channels struct{ Data []struct{ ID string } }
	read(t, st.d.want(t, 200, st.key, "GET", "/channels", ""), &channels)
	for _, answer := range [][]string{{"+12025550116", "--choice", "yes", "--text", "Yes, please"}, {"+12025550117", "--text", "When do you open?"}, {"+12025550119", "--text", "STOP"}} {
		must(t, st.d.dir, append([]string{"sandbox", "inbound", "--channel", channels.Data[0].ID, "--from"}, answer...)...)
	}
	waitFor(t, "the answers", func() bool {
		return strings.Contains(st.d.want(t, 200, st.key, "GET", made["ended"], ""), `"replied":3,"opted_out":1`)
	})
	return made
}

// imports uploads three files, checks the second, and imports the third. It returns their
// pages; that of the files of people of a broadcast; and that of such a file, which is checked.
func (st *stage) imports(t *testing.T) (paths []string) {
	t.Helper()
	b := st.tabs[admin]
	table := "Kundennummer;Name;Telefon;Wo;Registriert am\\nc-1;Ayşe Yılmaz;+12025550161;Ankara;31.12.2025\\nc-2;" + strings.Repeat("Ali", 90) + ";12;;1.2.2026\\nc-3;Zoë;+12025550163;Rome;3.4.2026\\n"
	upload := func(page, table string) {
		t.Helper()
		b.open(page)
		b.wait("document.querySelector('[type=file]')")
		look[bool](b, `{ const t = new DataTransfer(); t.items.add(new File(["`+table+`"], "customers.csv")); document.querySelector("[type=file]").files = t.files; true }`)
		sending(mainButton)(b)
		paths = append(paths, look[string](b, "location.pathname"))
	}
	for n := range 3 {
		upload("/contacts/import", table)
		if n == 0 {
			continue
		}
		with("[name='columns.0']", "external_id", "[name='columns.3']", "-", "[name='columns.4']", "+", "[name=dates]", "DMY")(b)
		sending(fmt.Sprintf("[value=%s]", []string{"check", "import"}[n-1]))(b)
		b.wait("document.querySelector('#import .facts')")
	}
	var draft struct{ Data struct{ ID string } }
	read(t, st.d.want(t, 201, st.key, "POST", "/broadcasts", `{"name":"The one with a file","template":{"name":"autumn_sale","language":"en_US"},"consent":{"confirmed":true}}`), &draft)
	paths = append(paths, "/broadcasts/"+draft.Data.ID+"/import")
	upload(paths[3], "Phone;Name;Value 1;Discount\\n+12025550161;Ayşe Yılmaz;Ayşe;20 %\\n12;"+strings.Repeat("Ali", 90)+";Ali;20 %\\n+12025550163;Zoë;Zoë;30 %\\n")
	with("[name='columns.3']", "variables.2")(b)
	sending("[value=check]")(b)
	b.wait("document.querySelector('#import .facts')")
	return paths
}

// walk calls show for every page and state. show opens the page.
func (st *stage) walk(t *testing.T, show func(*tab, shot)) {
	t.Helper()
	st.tabs[admin].size(1440, 900, "light")
	if st.tabs[admin].follow("main form button"); t.Failed() {
		return
	}
	visited := map[string]bool{}
	for _, s := range st.shots(t) {
		b := st.tabs[s.who]
		show(b, s)
		visited[look[string](b, "location.pathname")] = true
	}
	text, err := os.ReadFile("../console/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	pages := regexp.MustCompile(`\{"GET (/\S*)"`).FindAllStringSubmatch(string(text), -1)
	if len(pages) < 20 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, page := range pages {
		pattern := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.TrimSuffix(page[1], "{$}"), "*")
		found := pattern == "/live" || pattern == "/choose" || pattern == "/media/*" || pattern == "/contacts/import/*/rejected" || pattern == "/contacts/export/file" || pattern == "/contacts/*/export" || pattern == "/broadcasts/*/people/file" // these are a stream, a page that needs two workspaces, and files
		for at := range visited {
			ok, _ := path.Match(pattern, at)
			found = found || ok
		}
		if !found {
			t.Errorf("no state is of the page %s", page[1])
		}
	}
}
