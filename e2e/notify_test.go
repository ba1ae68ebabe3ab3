package e2e_test

import (
	"fmt"
	"testing"
)

// TestNotifications: the member has allowed notifications. Then a hidden tab shows one
// for a message in the member's own or in an unassigned conversation. It has only the
// name of the person. A visible tab shows none.
func TestNotifications(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	st := &stage{d: d, tabs: map[string]*tab{}}
	b := newTab(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	workspace, key := d.access(t)
	st.signIn(t, agent, workspace, "mei@parley.example")
	var channels struct{ Data []struct{ ID string } }
	read(t, d.want(t, 200, key, "GET", "/channels", ""), &channels)
	channel := channels.Data[0].ID
	writes := func(from, name, text string) {
		t.Helper()
		must(t, d.dir, "sandbox", "inbound", "--channel", channel, "--from", from, "--name", name, "--text", text)
	}
	// The test replaces the browser's notifications, and records them.
	const note = `window.shown = []; window.Notification = class { static permission = window.allows ?? "default";
		static async requestPermission() { return this.permission = window.allows = "granted"; }
		constructor(title, more) { window.shown.push([title, more]); } }; true`
	writes("+34600000001", "Before", "Not told")
	b.open("/me")
	b.wait(`document.documentElement.classList.contains("js")`)
	// Notifications are turned on, but the browser no longer allows them.
	look[bool](b, `!!(localStorage.notify = "2026")`)
	b.open("/me")
	b.wait(`document.querySelector("#notify button").textContent === "Turn on" && !localStorage.notify`)
	look[bool](b, note)
	const hide = `Object.defineProperty(document, "hidden", { configurable: true, get: () => true }); true`
	look[bool](b, hide)
	b.click("#notify button")
	b.wait(`document.querySelector("#notify button").textContent === "Turn off"`)
	writes("+34600000002", "Rosa <b>Marín", "Secret words")
	b.wait(`window.shown.length === 1`)
	if got := look[string](b, `JSON.stringify(window.shown)`); got != look[string](b, `JSON.stringify([["Rosa <b>Marín", { tag: window.shown[0][1].tag }]])`) {
		t.Errorf("shown: %s", got)
	}
	// The same person writes again, and there is one more notification. A visible tab
	// shows none.
	writes("+34600000002", "Rosa", "More")
	b.wait(`window.shown.length === 2`)
	look[bool](b, `delete document.hidden || true`)
	writes("+34600000003", "Seen", "On the page")
	other := st.tabs[agent]
	other.open("/inbox?view=unassigned")
	other.shows("Seen")
	b.click("#notify button")
	b.wait(`document.querySelector("#notify button").textContent === "Turn on" && !localStorage.notify`)
	look[bool](b, hide)
	writes("+34600000004", "Off", "Turned off")
	other.shows("Off")
	if n := look[int](b, `window.shown.length`); n != 2 {
		t.Errorf("%d were shown", n)
	}
}

// TestSound: with the sound turned on, a tab rings once for new messages, on every page.
// It does not ring for older messages.
func TestSound(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	b := newWindow(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	b.size(1440, 900, "light")
	_, key := d.access(t)
	var channels struct{ Data []struct{ ID string } }
	read(t, d.want(t, 200, key, "GET", "/channels", ""), &channels)
	writes := func(from, text string) {
		t.Helper()
		must(t, d.dir, "sandbox", "inbound", "--channel", channels.Data[0].ID, "--from", from, "--text", text)
	}
	writes("+34600000001", "Before")
	b.open("/me")
	b.wait(`document.documentElement.classList.contains("js")`)
	b.click("#f-sound")
	b.follow(`form[action="/me/look"] .btn.main`)
	const note = `window.rung = 0; { const real = AudioContext.prototype.createGain; AudioContext.prototype.createGain = function () { window.rung++; return real.call(this); } } true`
	b.open("/settings/keys")
	b.wait(`localStorage.heard`)
	look[bool](b, note)
	before := look[int](b, `Number(document.querySelector("#waiting b")?.textContent ?? 0)`)
	var inbox struct {
		Data []struct{ Conversation struct{ ID string } }
	}
	read(t, d.want(t, 200, key, "GET", "/inbox?waiting=true&assignee=none&limit=1", ""), &inbox)
	d.want(t, 200, key, "PUT", "/conversations/"+inbox.Data[0].Conversation.ID+"/assignee", `{"member":"nora@parley.example"}`)
	b.wait(fmt.Sprintf(`document.querySelector("#waiting b").textContent === "%d" && document.title.startsWith("(%[1]d) Keys · ")`, before+1))
	writes("+34600000002", "Now")
	b.wait(`window.rung === 1`)
	writes("+34600000002", "Again")
	b.wait(`window.rung === 2`)

	// The inbox offers notifications until the member has accepted or refused.
	b.open("/inbox")
	if look[string](b, "Notification.permission") != "default" {
		t.Skip("this browser does not ask for notifications")
	}
	b.wait(`document.querySelector("#offer")?.checkVisibility()`)
	b.click("#offer [data-no]")
	b.wait(`!document.querySelector("#offer") && document.activeElement.id === "main"`)
	b.open("/inbox")
	b.wait(`document.documentElement.classList.contains("js")`)
	if look[bool](b, `document.querySelector("#offer").checkVisibility()`) {
		t.Error("they are offered again")
	}
}

// TestLiveTitle: the inbox's title has the number of the member's conversations in which
// a customer waits. It changes while the page stays open.
func TestLiveTitle(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	b := newTab(t, d.url)
	b.open(d.link)
	b.follow("main form button")
	_, key := d.access(t)
	b.open("/inbox")
	b.wait(`document.documentElement.classList.contains("js")`)
	const count = `Number(document.title.match(/^\((\d+)\) Inbox · .* · parley$/)?.[1] ?? 0)`
	before := look[int](b, count)
	look[bool](b, `(window.stayed = true)`)

	var inbox struct {
		Data []struct{ Conversation struct{ ID string } }
	}
	read(t, d.want(t, 200, key, "GET", "/inbox?waiting=true&assignee=none&limit=1", ""), &inbox)
	id := inbox.Data[0].Conversation.ID
	d.want(t, 200, key, "PUT", "/conversations/"+id+"/assignee", `{"member":"nora@parley.example"}`)
	b.wait(fmt.Sprintf(`%s === %d`, count, before+1))
	d.want(t, 200, key, "DELETE", "/conversations/"+id+"/assignee", "")
	b.wait(fmt.Sprintf(`%s === %d`, count, before))
	if !look[bool](b, `window.stayed === true`) {
		t.Error("the page was loaded again")
	}
}
