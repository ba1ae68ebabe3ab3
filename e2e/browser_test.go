package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Browsers that tests share. The first test that needs one starts it. The shell has no
// windows: drawing a page costs it half the processor time.
var (
	shell    = sync.OnceValues(func() (context.Context, error) { return startBrowser("chromium-headless-shell") })
	chromium = sync.OnceValues(func() (context.Context, error) {
		return startBrowser("chromium", "chromium-browser", "google-chrome")
	})
)

// startBrowser starts the first of some programs that is installed.
func startBrowser(programs ...string) (context.Context, error) {
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, errNoBrowser
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"), // these hosts are not a secure context, localhost is
		chromedp.Flag("ignore-certificate-errors", true),             // tests start proxies with their own certificates
		chromedp.Flag("allow-pre-commit-input", true),                // otherwise keys are lost until a page is painted
		// Drawing in software costs a tenth less without a process for it.
		chromedp.DisableGPU, chromedp.Flag("in-process-gpu", true), chromedp.Flag("renderer-process-limit", "1"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	stopping.Lock()
	defer stopping.Unlock()
	stopBrowsers = append(stopBrowsers, stop)
	return ctx, chromedp.Do(ctx)
}

var errNoBrowser = errors.New("install chromium to run this test")

// stopBrowsers are called after all tests have ended.
var (
	stopping     sync.Mutex
	stopBrowsers []func()
)

// A tab is a page of the browser.
type tab struct {
	t       testing.TB
	browser func() (context.Context, error)
	ctx     context.Context
	url     string // of the server

	mu      sync.Mutex
	reports []string // violations of the Content-Security-Policy, exceptions, dialogs
}

// newTab opens a tab with its own cookies. The test fails if the tab violates the
// Content-Security-Policy, throws an exception, or opens a dialog of the browser.
func newTab(t testing.TB, url string) *tab {
	t.Helper()
	browser := shell
	if _, err := shell(); errors.Is(err, errNoBrowser) {
		browser = chromium
	}
	return openTab(t, browser, url, chromedp.WithNewBrowserContext())
}

// newWindow is newTab in a browser with windows. It asks the person for permissions, and
// closes what a tab held as soon as the tab has gone to another page.
func newWindow(t testing.TB, url string) *tab {
	t.Helper()
	return openTab(t, chromium, url, chromedp.WithNewBrowserContext())
}

// another opens a second tab, with the same cookies.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.browser, b.url, chromedp.WithExistingBrowserContext(chromedp.FromContext(b.ctx).BrowserContextID))
}

func openTab(t testing.TB, browser func() (context.Context, error), url string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	root, err := browser()
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(root, options...)
	b := &tab{t: t, browser: browser, ctx: ctx, url: url}
	t.Cleanup(func() {
		closeTab()
		for _, report := range b.reports {
			t.Error(report)
		}
	})
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	return b
}

func (b *tab) hear(event any) {
	report := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
			report = e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		report = exceptionText(e.ExceptionDetails)
	case *page.EventJavascriptDialogOpening:
		report = "a dialog of the browser: " + e.Message
	}
	if report != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reports = append(b.reports, report)
	}
}

// do runs steps in the tab. Their time is limited.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if len(steps) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.place())
	}
}

// place describes where the tab is, for the message of a failure.
func (b *tab) place() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + " " + document.title + ", focus in " + document.activeElement.outerHTML.slice(0, 100) + ": " + document.body.innerText.slice(0, 2000)`))
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text), " ")
}

// open loads a page.
func (b *tab) open(path string) {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.url + path
	}
	b.do(chromedp.Navigate(path))
}

// look evaluates a JavaScript expression, and returns its value.
func look[T any](b *tab, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v on %s", script, err, b.place())
	}
	return v
}

// wait waits until a JavaScript condition is true. A new page may be loaded meanwhile.
func (b *tab) wait(condition string) {
	b.t.Helper()
	for stop := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		cancel()
		if ok && err == nil {
			return
		}
		if time.Now().After(stop) {
			b.t.Fatalf("still waiting for: %s (%v) on %s", condition, err, b.place())
		}
	}
}

// shows waits until the page shows a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// click clicks an element with the mouse.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fill types into a field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.querySelector(%q)", selector))
	look[bool](b, fmt.Sprintf("{ const el = document.querySelector(%q); el.focus(); el.select(); true }", selector))
	if text == "" {
		text = kb.Backspace
	}
	b.press(text)
}

// press presses keys. As on a keyboard, a page that handles a key keeps it from typing its
// text. (chromedp.KeyEvent sends the text as an event of its own, which comes even then, and
// goes to what has the focus by that time.)
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, key := range keys {
			events := kb.Encode(key)
			down, up := events[0], events[len(events)-1]
			down.Type = kb.KeyRawDown
			if len(events) == 3 {
				down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, events[1].Text, events[1].UnmodifiedText
			}
			for _, event := range []*input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *event); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

func exceptionText(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

func mouseAt(x, y float64) chromedp.Action[chromedp.Void] {
	return chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y)
}
