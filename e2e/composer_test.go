package e2e_test

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// An uploadCutter forwards connections. While cuts is set, it cuts each connection that has
// sent much.
type uploadCutter struct {
	net.Listener
	cuts atomic.Bool
}

// cutUploadsAfter is the number of bytes that a connection can send before it is cut.
const cutUploadsAfter = 1 << 20

func newUploadCutter(t *testing.T, to string) *uploadCutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &uploadCutter{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(in, to)
		}
	}()
	return c
}

func (c *uploadCutter) pass(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}()
	if n, _ := io.CopyN(out, in, cutUploadsAfter); n == cutUploadsAfter && !c.cuts.Load() {
		_, _ = io.Copy(out, in)
	}
}

// TestComposer: a member replies in the browser. A draft of the typed text is kept when
// the window closes, and when an upload is cut off. The draft is deleted after the text
// is sent, and after signing out.
func TestComposer(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newDir(t), nil)
	m.member("Mei", "agent")
	api := m.nodes[0].client(t, m.key, 1)
	api.must(t, 201, "PUT", "/snippets/hours", `{"text":"Hi {{customer_first_name}}, we open at nine. {{agent_first_name}}"}`)
	writes := func(phone string, ago time.Duration) string {
		t.Helper()
		made := m.must("sandbox", "inbound", "--channel", m.channel, "--from", phone, "--name", "Rosa Marín", "--text", "When do you open?", "--at", time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))
		return made["conversation_id"].(string)
	}
	talk := writes("+34612555777", 0)
	c := newUploadCutter(t, strings.TrimPrefix(m.nodes[0].url, "http://"))
	b := newTab(t, "http://"+c.Addr().String())
	b.size(1440, 900, "light")
	b.open(m.link("Mei"))
	b.follow("main form button")
	ready := func(id string) {
		t.Helper()
		b.open("/inbox/" + id)
		b.wait(`document.documentElement.classList.contains("js") && document.querySelector("#f-reply")`)
	}
	typed := func() string {
		t.Helper()
		return look[string](b, `document.querySelector("#f-reply").value`)
	}
	state := func(id string) (v struct {
		Data struct{ Unread int }
	}) {
		return decode[struct{ Data struct{ Unread int } }](t, api.must(t, 200, "GET", "/conversations/"+id+"/state", ""))
	}

	// Visible messages are marked as read.
	ready(talk)
	waitFor(t, "the mark", func() bool { return state(talk).Data.Unread == 0 })
	b.wait(`!document.querySelector("form[data-read]")`)

	// A saved reply is chosen with keys only.
	b.press("r")
	b.wait(`document.activeElement.id === "f-reply"`)
	look[string](b, `document.querySelector("#f-reply").value = ""`) // the test's keys are typed into the field, although the page has handled them
	b.press("/")
	b.wait(`document.activeElement.id === "f-snippets" && document.querySelector("#saved [role=option][aria-selected=true]")`)
	b.press("hou")
	b.wait(`document.querySelectorAll("#saved [aria-selected=true]").length === 1`)
	b.press(kb.Enter)
	b.wait(`document.querySelector("#f-reply").value === "Hi Rosa, we open at nine. Mei" && document.activeElement.id === "f-reply"`)

	// A draft belongs to one conversation, and is deleted when its text is sent.
	other := writes("+34612555778", 0)
	ready(other)
	if text := typed(); text != "" {
		t.Errorf("another conversation has the draft %q", text)
	}
	ready(talk)
	if text := typed(); text != "Hi Rosa, we open at nine. Mei" {
		t.Errorf("the draft is %q", text)
	}
	look[bool](b, `document.querySelector("#f-reply").focus() || (window.before = true)`)
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.wait(`!window.before && document.querySelector("#thread .bubble.ours")?.innerText.includes("we open at nine") && document.activeElement.id === "f-reply"`)
	if text := typed(); text != "" || look[int](b, "localStorage.length") != 0 {
		t.Errorf("after sending, the draft is %q", text)
	}

	// An upload is cut off. The text and the file stay in the form. The second try sends
	// them, once.
	b.fill("#f-reply", "Our price list")
	look[bool](b, `{ const files = new DataTransfer(); files.items.add(new File(["%PDF-1.7\n", new Uint8Array(6e6)], "prices.pdf")); document.querySelector("#f-file").files = files.files; true }`)
	c.cuts.Store(true)
	b.click("#reply .btn.main")
	b.wait(`document.querySelector("#reply .btn.main").textContent === "Try again"`)
	if text := typed(); text != "Our price list" {
		t.Errorf("after the cut, the text is %q", text)
	}
	// The customer writes meanwhile. The page shows this, and still tells how the send went.
	m.must("sandbox", "inbound", "--channel", m.channel, "--from", "+34612555777", "--text", "Also on Sundays?")
	b.wait(`document.querySelector("#thread").innerText.includes("Also on Sundays?")`)
	if seen := look[string](b, `{ const form = document.querySelector("#reply"), main = form.querySelector(".main"); [main.textContent, main.inert, form.querySelector("[name=close]").inert, form.querySelector(".state")?.textContent].join(", ") }`); seen != "Try again, false, true, No answer came. If you try again, each is still sent only once." {
		t.Errorf("after an update of the page, the form is: %s", seen)
	}
	c.cuts.Store(false)
	look[bool](b, "window.before = true")
	b.click("#reply .btn.main")
	b.wait(`!window.before && document.querySelector("#thread")?.innerText.includes("Our price list")`)
	if list := decode[struct{ Data []struct{ Kind string } }](t, api.must(t, 200, "GET", "/conversations/"+talk+"/messages", "")).Data; len(list) != 4 || list[0].Kind != "document" {
		t.Errorf("messages: %+v", list)
	}

	// The response to the second of two files is lost. At this time, the first file, the
	// text and the quote have already left the form. The second try sends the second
	// file, once.
	type said struct {
		ID, Direction, Text string
		ReplyTo             string `json:"reply_to"`
	}
	thread := func() []said {
		return decode[struct{ Data []said }](t, api.must(t, 200, "GET", "/conversations/"+talk+"/messages", "")).Data
	}
	before := thread()
	asked := before[len(before)-1].ID
	b.open("/inbox/" + talk + "?quote=" + asked)
	b.wait(`document.documentElement.classList.contains("js") && document.querySelector("#reply [name=reply_to]")`)
	b.fill("#f-reply", "Both of them")
	look[bool](b, `{ const files = new DataTransfer(); for (const name of ["one.txt", "two.txt"]) files.items.add(new File([name], name, { type: "text/plain" })); document.querySelector("#f-file").files = files.files;
		let posts = 0; const send = XMLHttpRequest.prototype.send; XMLHttpRequest.prototype.send = function (data) { if (++posts === 2) this.onload = this.onerror; return send.call(this, data); }; true }`)
	b.click("#reply .btn.main")
	b.wait(`document.querySelector("#files .error")?.textContent === "No answer came."`)
	look[bool](b, "window.before = true")
	b.click("#reply .btn.main")
	b.wait(`!window.before && document.readyState === "complete" && document.querySelector("#thread")?.innerText.includes("two.txt")`)
	if list := thread(); len(list) != len(before)+2 || list[0].Text != "[document: two.txt]" || list[0].ReplyTo != "" || list[1].ReplyTo != asked {
		t.Errorf("two files became %+v", list[:len(list)-len(before)])
	}

	// The provider refuses the file. The page shows the reason, and a second try does not
	// store the file again.
	refused := writes("+34612550002", 0)
	ready(refused)
	look[bool](b, `{ const files = new DataTransfer(); for (const name of ["three.txt", "four.txt"]) files.items.add(new File([name], name, { type: "text/plain" })); document.querySelector("#f-file").files = files.files; true }`)
	for range 2 {
		look[bool](b, `document.querySelector("#files .error")?.remove() ?? true`)
		b.click("#reply .btn.main")
		b.wait(`document.querySelector("#files .error")?.textContent.includes("Rate limit hit")`)
	}
	if list := parley(t, nil, "media", "list", "--workspace", m.workspace, "--data", m.dir).stdout; strings.Count(list, "three.txt") != 1 {
		t.Errorf("files: %s", list)
	}

	// The window closes while the member types.
	for left := 15 * time.Second; ; left *= 2 { // on a slow machine, it may close before the text is typed: then try a longer time
		ready(writes("+34612555779", 86_100*time.Second-left))
		b.fill("#f-reply", "This took me long")
		if look[bool](b, `!!document.querySelector(".window")`) || left > time.Minute {
			break
		}
	}
	b.wait(`document.querySelector("#foot").innerText.includes("could be answered freely for 24 hours, until")`)
	if !look[bool](b, `document.querySelector("#f-reply").value === "This took me long" && document.querySelector("#f-reply").getClientRects().length > 0 && !document.querySelector("#reply-do button")`) {
		t.Errorf("the text is gone\n%s", b.place())
	}

	// Signing out deletes the drafts.
	if n := look[int](b, "localStorage.length"); n != 1 {
		t.Errorf("%d drafts", n)
	}
	b.open("/me")
	b.wait(`document.documentElement.classList.contains("js")`)
	for whose, left := range map[string]int{"document.body.dataset.member": 0, `"another"`: 1} { // on the page of a member, which admins have
		n := look[int](b, `{ const kept = { ...localStorage }, form = document.createElement("form"); form.method = "post"; form.action = "/settings/members/" + `+whose+` + "/sign-out"; document.body.append(form);
			form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })); form.remove(); const n = localStorage.length; Object.assign(localStorage, kept); n }`)
		if n != left {
			t.Errorf("after signing out %s, %d drafts are kept", whose, n)
		}
	}
	b.follow(`form[action="/sign-out"] button`)
	if n := look[int](b, "localStorage.length"); n != 0 {
		t.Errorf("after signing out, %d drafts are kept", n)
	}
}
