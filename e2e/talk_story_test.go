package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTalkStory: a team replies to a customer. This is done with script and mouse,
// without script, and with keys only.
func TestTalkStory(t *testing.T) {
	t.Parallel()
	withEachHand(t, talkStory)
}

// strike presses a key that only the page handles. (The method press also types its keys
// into the field, even if the page has handled them.)
func (h keyHand) strike(key string, code int64) {
	h.t.Helper()
	h.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: key, WindowsVirtualKeyCode: code})
		return err
	}))
}

// A customer writes to the sandbox of a demo.
type customer struct {
	t       *testing.T
	d       runningDemo
	key     string
	channel string
}

func newCustomer(t *testing.T, d runningDemo) *customer {
	t.Helper()
	c := &customer{t: t, d: d}
	_, key := d.access(t)
	var channels struct{ Data []struct{ ID string } }
	read(t, d.want(t, 200, key, "GET", "/channels", ""), &channels)
	c.key, c.channel = key, channels.Data[0].ID
	return c
}

// writes sends a message, and returns the ids of its conversation and of the message.
func (c *customer) writes(from, text string, more ...string) (conversation, message string) {
	c.t.Helper()
	said := must(c.t, c.d.dir, append([]string{"sandbox", "inbound", "--channel", c.channel, "--from", from, "--text", text}, more...)...)
	return said["conversation_id"].(string), said["message_id"].(string)
}

// aPicture makes a file with a picture.
func aPicture(t *testing.T, name string) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 60, 40))
	for x := range 60 {
		for y := range 40 {
			picture.Set(x, y, color.RGBA{uint8(4 * x), uint8(6 * y), 120, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func talkStory(t *testing.T, d runningDemo, b *tab, h hand) {
	t.Helper()
	_, plain := h.(plainHand)
	c := newCustomer(t, d)
	b.open(d.link)
	h.follow("main form button")
	b.wait(`location.pathname === "/inbox"`)

	// A saved reply.
	h.follow(`.rail a[href="/settings"]`)
	h.follow(`nav a[href="/settings/snippets"]`)
	h.follow(`main a[href="/settings/snippets/new"]`)
	h.write("#f-shortcut", "there")
	h.write("#f-text", "Yes {{customer_first_name}}, it is. {{agent_first_name}}")
	h.follow("main form .btn.main")
	b.shows("/there")

	// A customer sends a message with a photo. The conversation is unassigned, and waits.
	talk, asked := c.writes("+34600111222", "Is this one still there?", "--name", "Rosa Marín", "--file", aPicture(t, "shop.png"))
	h.follow(`.rail a[href="/inbox"]`)
	h.follow(`#views a[href*="view=unassigned"]`)
	row := "#c-" + talk
	b.wait(fmt.Sprintf(`document.querySelector("%s.waits.unread")?.textContent.includes("Is this one still there?")`, row))
	h.follow(row + " a")
	b.wait(`document.querySelector("#thread .bubble.theirs img")?.naturalWidth === 60`)
	if !look[bool](b, `!!document.querySelector("#foot .window") && document.querySelector("#head").innerText.includes("Take it")`) {
		t.Errorf("no window, or somebody holds it\n%s", b.place())
	}

	// A member sends the saved reply. This assigns the conversation to the member.
	switch h := h.(type) {
	case keyHand:
		h.strike("r", 'R')
		b.wait(`document.activeElement.id === "f-reply"`)
		h.strike("/", 191)
		b.wait(`document.activeElement.id === "f-snippets"`)
		b.press("there")
		b.wait(`document.querySelectorAll("#saved li").length === 1`)
		h.strike("Enter", 13)
	default:
		h.push("#snippets > summary")
		b.wait(`document.querySelector("#snippets").open`)
		if plain {
			h.follow("#s-there")
		} else {
			h.push("#s-there")
		}
	}
	b.wait(`document.querySelector("#f-reply").value === "Yes Rosa, it is. Nora"`)
	h.follow("#reply .btn.main")
	b.wait(`document.querySelector("#thread .bubble.ours:last-of-type")?.textContent.includes("Yes Rosa, it is. Nora")`)
	b.wait(fmt.Sprintf(`document.querySelector("#head").innerText.includes("yours") && !document.querySelector("%[1]s.waits, %[1]s.unread")`, row))

	// leaves the field of the reply
	b.press(kb.Escape) // leaves the field of the reply
	note := `#foot-do a[href*="/notes"]`
	if plain {
		h.follow(note)
	} else {
		h.push(note)
		b.wait(`document.querySelector("dialog[open]")`)
	}
	h.write(`form[action*="/notes"] textarea`, "Keep one aside")
	h.follow(`form[action*="/notes"] .btn.main`)
	if plain {
		b.open("/inbox/" + talk)
	}
	b.wait(`document.querySelector("#thread .jotted")?.textContent.includes("Keep one aside")`)

	// A reply with a file answers the first message.
	h.follow(fmt.Sprintf("#m-%s .quoting", asked))
	b.wait(fmt.Sprintf(`document.querySelector("#reply [name=reply_to]")?.value === %q`, asked))
	if !look[bool](b, `document.querySelector("#reply-more").open`) {
		h.push("#reply-more > summary")
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{aPicture(t, "aside.png")}))
	h.write("#f-reply", "It lies here for you")
	h.follow("#reply .btn.main")
	const last = `document.querySelector("#thread .messages:last-of-type .bubble.ours:last-of-type")`
	b.wait(last + `?.querySelector(".quote") && ` + last + `.querySelector("img")?.naturalWidth === 60 && ` + last + `.textContent.includes("It lies here for you")`)
	if list := d.want(t, 200, c.key, "GET", "/conversations/"+talk+"/messages", ""); strings.Contains(list, "Keep one aside") || !strings.Contains(list, `"reply_to":"`+asked+`"`) {
		t.Errorf("messages: %s", list)
	}

	// Give the conversation back to the pool.
	b.press(kb.Escape)
	assign(b, h, "pool")
	b.wait(`document.querySelector("#head").innerText.includes("Take it")`)

	closingWindow(t, b, h, c)

	// The policy assigns conversations only to members who are available. Nora sets
	// herself away.
	h.follow(`.rail a[href="/settings"]`)
	h.follow(`nav a[href="/settings/policy"]`)
	for _, name := range []string{"Mei", "Nora"} {
		id := look[string](b, fmt.Sprintf(`[...document.querySelectorAll("#f-members li")].find((el) => el.textContent.includes(%q)).querySelector("input").value`, name))
		h.push(fmt.Sprintf("#f-members input[value=%q]", id))
	}
	h.choose("#f-mode", "least_open")
	h.follow("#assign .btn.main")
	b.shows("has the fewest open")
	h.follow(`.rail a[href="/me"]`)
	h.follow("#availability button")
	b.shows("I am here again")
	c.writes("+34600111222", "Thank you, I am on my way")
	b.open("/inbox/" + talk)
	b.wait(`document.querySelector("#head").innerText.includes("held by Mei Tanaka")`)
	h.follow(`.rail a[href="/overview"]`)
	b.wait(`[...document.querySelectorAll("#team tr")].some((el) => el.textContent.includes("Nora") && el.textContent.includes("Away"))`)

	// Hours are set. From now on, the policy assigns no conversation at night.
	h.follow(`.rail a[href="/settings"]`)
	h.follow(`nav a[href="/settings/policy"]`)
	h.choose("#f-open", "hours")
	h.follow("#hours .btn.main")
	b.wait(`/(Open|Closed) now, until/.test(document.querySelector("#hours .note").textContent)`)
	if text := d.want(t, 200, c.key, "GET", "/channels/"+c.channel+"/policy", ""); !strings.Contains(text, `"fri":[["09:00","18:00"]]`) || !strings.Contains(text, `"least_open"`) {
		t.Errorf("the policy is %s", text)
	}
}

// closingWindow tests a window that closes while a member types. The text stays, and the
// page offers a template.
func closingWindow(t *testing.T, b *tab, h hand, c *customer) {
	t.Helper()
	_, plain := h.(plainHand)
	const typed = "Typed in time"
	talk, closes := "", time.Time{}
	for left := 15 * time.Second; ; left *= 2 { // on a slow machine, the window may close before the text is typed: then try a longer time
		closes = time.Now().Add(left)
		talk, _ = c.writes("+34600333444", "Are you there?", "--name", "Wanda Late", "--at", closes.Add(-86_100*time.Second).UTC().Format(time.RFC3339Nano))
		b.open("/inbox/" + talk)
		b.wait(`document.querySelector("#f-reply")`)
		h.write("#f-reply", typed)
		if look[bool](b, `!!document.querySelector("#foot .window") && !!document.querySelector("#reply .btn.main")`) || left > time.Minute {
			break
		}
	}
	waitFor(t, "the window to close", func() bool {
		return strings.Contains(c.d.want(t, 200, c.key, "GET", "/conversations/"+talk+"/state", ""), `"open":false`)
	})
	if plain {
		h.follow("#reply .btn.main")
		b.wait(`document.querySelector("#summary")`)
	}
	b.wait(fmt.Sprintf(`!document.querySelector("#foot .window, #reply .btn.main") && document.querySelector("#f-reply").value === %q && document.querySelector("#foot-do a.main[href^='/send']")`, typed))
	if list := c.d.want(t, 200, c.key, "GET", "/conversations/"+talk+"/messages", ""); strings.Contains(list, typed) {
		t.Errorf("it was sent: %s", list)
	}
	h.write("#f-reply", "")
}
