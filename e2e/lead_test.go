package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestLead: the lead of a team sends a template and four files, and changes an attribute
// of the person. With the mouse and with keys only, this is possible without leaving the
// thread. Without script, it needs other pages.
func TestLead(t *testing.T) {
	t.Parallel()
	withEachHand(t, lead)
}

func lead(t *testing.T, d runningDemo, b *tab, h hand) {
	t.Helper()
	_, plain := h.(plainHand)
	_, keys := h.(keyHand)
	b.open(d.link)
	h.follow("main form button")
	_, key := d.access(t)
	var channels struct{ Data []struct{ ID string } }
	read(t, d.want(t, 200, key, "GET", "/channels", ""), &channels)
	talk := must(t, d.dir, "sandbox", "inbound", "--channel", channels.Data[0].ID, "--from", "+34612555777", "--name", "Rosa Marín", "--text", "When do you open?")["conversation_id"].(string)
	b.open("/inbox/" + talk + "?view=open")
	b.wait(`document.querySelector("#f-reply")`)
	here := func(when string) {
		t.Helper()
		if at := look[string](b, `location.pathname + location.search`); !strings.HasPrefix(at, "/inbox/"+talk) || !strings.Contains(at, "view=open") {
			t.Errorf("%s, the page is %s", when, at)
		}
	}

	// A template is found by a word in its text.
	const template = `#templates a[href*="template=appointment_reminder%2Fen_US"]`
	if plain {
		h.follow("#foot-do [data-panel]")
		h.write("#f-words", "appointment")
		h.follow("[role=search] .btn")
		h.follow(template)
	} else {
		if look[int](b, `document.querySelector("#panel").childElementCount`) != 0 {
			t.Error("the panel is loaded before it is opened")
		}
		h.push("#foot-do [data-panel]")
		b.wait(`document.activeElement.id === "f-words"`)
		b.press("appointment")
		b.wait(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes("{{") === false && document.querySelectorAll("#templates a").length < 4`, template))
		if keys {
			for range 3 {
				if look[bool](b, fmt.Sprintf(`document.querySelector(%q).ariaSelected === "true"`, template)) {
					break
				}
				b.press(kb.ArrowDown)
			}
			b.press(kb.Enter)
		} else {
			h.push(template)
		}
		b.wait(`document.querySelector("#panel #send")`)
		here("with a template chosen")
	}
	for _, empty := range look[[]string](b, `[...document.querySelectorAll("#send input[required]:not([type=checkbox])")].filter((el) => !el.value).map((el) => el.name)`) {
		h.write(fmt.Sprintf("#send [name=%q]", empty), "Friday")
	}
	h.push("#send [name=opt_in]")
	h.follow("#send .btn.main")
	b.wait(`document.querySelector("#thread")?.innerText.includes("Friday")`)
	here("after the template")

	// Four files are sent, the first one with the text.
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"one.txt", "two.txt", "three.txt", "four.txt"} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte("This is "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if plain { // one file at a time
		for i, file := range files {
			if i == 0 {
				h.write("#f-reply", "Here they are")
			}
			b.give("#f-file", file)
			h.follow("#reply-do .main")
		}
	} else {
		h.write("#f-reply", "Here they are")
		b.chooses(files, func() {
			if keys {
				keyHand{b}.reach("#f-file")
				b.press(" ")
			} else {
				h.push("[for=f-file]")
			}
		})
		b.wait(`document.querySelectorAll("#files li").length === 4`)
		here("with files chosen")
		look[bool](b, "window.before = true")
		h.push("#reply-do .main")
		for left := 3; left >= 0; left-- { // each file is sent as its own message
			b.wait(fmt.Sprintf(`!window.before || document.querySelectorAll("#files li:not(:has(.error))").length <= %d`, left))
		}
		b.wait("!window.before && document.readyState === 'complete'")
	}
	b.wait(`document.querySelectorAll("#thread .file").length === 4`)
	if got := look[string](b, `[...document.querySelectorAll("#thread .file bdi")].map((el) => el.textContent).join(" ")`); got != "one.txt two.txt three.txt four.txt" {
		t.Errorf("the files are %s", got)
	}
	if got := look[int](b, `document.querySelector("#thread").innerText.split("Here they are").length - 1`); got != 1 {
		t.Errorf("the text came %d times", got)
	}
	here("after the files")

	// An attribute gets a value that the person does not have yet.
	step := h.push
	if plain {
		step = h.follow
	}
	look[bool](b, "window.stays = true")
	step(`#person a.edit[href*="edit=more"]`)
	step(`#person a.edit[href*="edit=attributes.company"]`)
	b.wait(`document.querySelector("#person-edit")`)
	h.write(`#person-edit [name="attributes.company"]`, "Marín e hijos")
	step("#person-edit .main")
	b.wait(`!document.querySelector("#person-edit") && document.querySelector("#person").innerText.includes("Marín e hijos")`)
	here("after the attribute")
	if !plain && !look[bool](b, "!!window.stays") {
		t.Error("the page was loaded again")
	}
}

// give puts files into a field.
func (b *tab) give(selector string, files ...string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	b.do(chromedp.SetUploadFiles(chromedp.CSS(selector), files))
}

// chooses calls open, waits until the page opens a file chooser, and gives it the files.
func (b *tab) chooses(files []string, open func()) {
	b.t.Helper()
	opened := make(chan cdp.BackendNodeID, 1)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*page.EventFileChooserOpened); ok {
			opened <- e.BackendNodeID
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true})
		return err
	}))
	open()
	select {
	case field := <-opened:
		b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files, BackendNodeID: field})
			return err
		}))
	case <-ctx.Done():
		b.t.Fatalf("no chooser of files was opened\n%s", b.place())
	}
}
