package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "a directory for pictures of every page of the console, in two sizes, light and dark")

var readmePictures = flag.String("readme-pictures", "", "the directory of the README's pictures of the console, which are made anew")

// A shot is a page of the demo in one state, and how to get there.
type shot struct {
	name string
	open func(b *tab)
}

func at(path string) func(*tab) { return func(b *tab) { b.open(path) } }

// through follows the first link of each of the selectors.
func through(path string, links ...string) func(*tab) {
	return func(b *tab) {
		b.open(path)
		for _, link := range links {
			b.wait(fmt.Sprintf("document.querySelector(%q)", link))
			b.open(look[string](b, fmt.Sprintf("document.querySelector(%q).href", link)))
		}
	}
}

// sent fills in a field of a form, and sends it.
func sent(path, form, name, value string) func(*tab) {
	return func(b *tab) {
		b.open(path)
		b.wait("document.documentElement.classList.contains('js')")
		b.fill(fmt.Sprintf("%s [name=%s]", form, name), value)
		look[bool](b, fmt.Sprintf("{ window.before = true; document.querySelector(%q).requestSubmit(); true }", form))
		b.wait("!window.before && document.readyState === 'complete'")
	}
}

// dialogAt follows a link of a page, and there one that opens a dialog.
func dialogAt(path, link string) func(*tab) {
	return func(b *tab) {
		through(path, link)(b)
		b.wait("document.documentElement.classList.contains('js')")
		look[bool](b, `{ document.querySelector("[data-dialog]").click(); true }`)
		b.wait("document.querySelector('dialog[open]')")
	}
}

// shots lists every page and state.
var shots = []shot{
	{"inbox", at("/inbox")},
	{"inbox-unassigned", at("/inbox?view=unassigned")},
	{"inbox-open", at("/inbox?view=open")},
	{"inbox-closed", at("/inbox?view=closed")},
	{"inbox-archived", at("/inbox?view=archived")},
	{"conversation", through("/inbox?view=open", "[data-row]")},
	{"conversation-closed", through("/inbox?view=closed", "[data-row]")},
	{"templates", at("/templates")},
	{"template", through("/templates", "[data-row]")},
	{"template-new", through("/templates", ".bar .actions a")},
	{"send-find", at("/send?find=nobody")},
	{"send-choose", through("/inbox?view=open", "[data-row]", "[data-shortcut=t]")},
	{"send", func(b *tab) {
		through("/inbox?view=open", "[data-row]", "[data-shortcut=t]")(b)
		b.open(look[string](b, `location.href + "&template=" + document.querySelector("#f-template option:nth-child(3)").value`))
	}},
	{"contacts", at("/contacts")},
	{"contacts-find", at("/contacts?find=nobody")},
	{"contact", through("/contacts", "[data-row]")},
	{"contact-new", at("/contacts/new")},
	{"contact-error", sent("/contacts/new", "main form[method=post]", "email", "nobody")},
	{"contact-delete", through("/contacts", "[data-row]", "[data-dialog]")},
	{"sends", at("/sends")},
	{"sends-doubt", at("/sends?doubt=yes")},
	{"attempt", through("/sends", "[data-row]")},
	{"overview", at("/overview")},
	{"overview-90", at("/overview?days=90")},
	{"settings", at("/settings")},
	{"settings-error", sent("/settings", "main form[method=post]", "name", " ")},
	{"members", at("/settings/members")},
	{"member", through("/settings/members", "[data-row]")},
	{"member-new", at("/settings/members/new")},
	{"member-remove", dialogAt("/settings/members", "[data-row]")},
	{"keys", at("/settings/keys")},
	{"key", through("/settings/keys", "[data-row]")},
	{"key-new", at("/settings/keys/new")},
	{"key-made", sent("/settings/keys/new", "main form[method=post]", "name", "Shop")},
	{"attributes", at("/settings/attributes")},
	{"attribute", through("/settings/attributes", "[data-row]")},
	{"attribute-new", at("/settings/attributes/new-attribute")},
	{"channels", at("/settings/channels")},
	{"channel", through("/settings/channels", "[data-row]")},
	{"channel-checked", func(b *tab) {
		through("/settings/channels", "[data-row]")(b)
		b.follow("form[action$=check] button")
	}},
	{"channel-new", at("/settings/channels/new")},
	{"channel-error", sent("/settings/channels/new", "main form[method=post]", "waba_id", "+90 212")},
	{"sandbox-new", at("/settings/channels/new-sandbox")},
	{"webhooks", at("/settings/webhooks")},
	{"webhook", through("/settings/webhooks", "[data-row]")},
	{"webhook-pinged", func(b *tab) {
		through("/settings/webhooks", "[data-row]")(b)
		b.follow("form[action$=ping] button")
	}},
	{"delivery", through("/settings/webhooks", "[data-row]", "tbody [data-row]")},
	{"webhook-new", at("/settings/webhooks/new")},
	{"webhook-error", sent("/settings/webhooks/new", "main form[method=post]", "url", "crm.example")},
	{"webhook-rotate", through("/settings/webhooks", "[data-row]", "a[href$=rotate]")},
	{"webhook-replay", through("/settings/webhooks", "[data-row]", "a[href$=replay]")},
	{"log", at("/settings/events")},
	{"log-settings", at("/settings/events?types=settings")},
	{"me", at("/me")},
	{"help", func(b *tab) {
		b.open("/inbox")
		b.wait("document.documentElement.classList.contains('js')")
		b.press("?")
		b.wait("document.querySelector('dialog[open]')")
	}},
	{"not-here", at("/nowhere")},
}

// TestScreenshots opens every page of the demo, in two sizes, light and dark. None may
// scroll sideways. With -screenshots it stores pictures.
func TestScreenshots(t *testing.T) {
	p := demo(t, newDir(t), "Ctrl-C")
	link := regexp.MustCompile(`http://\S+/sign-in/\S+`).FindString(p.stdout.String())
	url := regexp.MustCompile(`http://[^/\s]+`).FindString(link)
	b := newTab(t, url)
	b.open(link)
	take(b, shot{name: "sign-in-link"})
	b.follow("main form button")
	b.wait(`location.pathname === "/inbox"`)

	// A webhook whose receiver refuses some of what it gets.
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"type":"contact.updated"`)) {
			http.Error(w, "The CRM is being updated. Come back later.", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(receiver.Close)
	key := regexp.MustCompile(`prl_live_\w+`).FindString(p.stdout.String())
	api := &server{p, url}
	var hook struct{ Data struct{ ID string } }
	read(t, api.want(t, http.StatusCreated, key, "POST", "/webhooks", `{"url":"`+receiver.URL+`/crm/in","types":["message.*","contact.*"]}`), &hook)
	api.want(t, http.StatusOK, key, "POST", "/webhooks/"+hook.Data.ID+"/replay", `{"cursor":"oldest"}`)
	waitFor(t, "a delivery", func() bool {
		return strings.Contains(api.want(t, http.StatusOK, key, "GET", "/webhooks/"+hook.Data.ID+"/deliveries?limit=50", ""), `"delivered"`)
	})
	for _, s := range shots {
		take(b, s)
	}
}

func take(b *tab, s shot) {
	b.t.Helper()
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			if *screenshots == "" && scheme == "dark" {
				continue // colours make nothing wider
			}
			b.size(size[0], size[1], scheme)
			if s.open != nil && scheme == "light" && (*screenshots != "" || size[0] == 1440) {
				s.open(b)
			}
			b.wait(`document.readyState === "complete"`)
			if wide := look[float64](b, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				b.t.Errorf("%s at %d: %v pixels too wide", s.name, size[0], wide)
			}
			if *screenshots != "" {
				b.picture(filepath.Join(*screenshots, fmt.Sprintf("%s-%d-%s.png", s.name, size[0], scheme)))
			}
		}
	}
}

// follow clicks an element that leads to another page, and waits for that.
func (b *tab) follow(selector string) {
	b.t.Helper()
	look[bool](b, "window.before = true")
	b.click(selector)
	b.wait("!window.before && document.readyState === 'complete'")
}

// size sets the size of the window; light or dark is the scheme of colours.
func (b *tab) size(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600}
		if _, err := cdp.Call(ctx, tab, emulation.SetDeviceMetricsOverride, metrics); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
}

// picture stores a picture of the page, all of its height.
func (b *tab) picture(file string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	body, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, body, 0o644)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", file, err)
	}
}

// pictures are those of the README.
var pictures = []struct {
	name          string
	width, height int64
	scheme        string
	open          func(*tab)
}{
	{"inbox", 1280, 760, "light", through("/inbox?view=open", "[data-row]")},
	{"overview", 1280, 760, "light", at("/overview")},
	{"phone", 390, 760, "dark", through("/inbox?view=open", "[data-row]")},
}

// mostPicture is the largest picture that the repository takes, in bytes.
const mostPicture = 150 << 10

// TestReadmePictures makes the README's pictures, with -readme-pictures into the
// repository, and holds those that are there to their size.
func TestReadmePictures(t *testing.T) {
	p := demo(t, newDir(t), "Ctrl-C")
	link := regexp.MustCompile(`http://\S+/sign-in/\S+`).FindString(p.stdout.String())
	b := newTab(t, regexp.MustCompile(`http://[^/\s]+`).FindString(link))
	b.open(link)
	b.follow("main form button")
	dir := *readmePictures
	if dir == "" {
		dir = t.TempDir()
	}
	for _, s := range pictures {
		b.size(s.width, s.height, s.scheme)
		s.open(b)
		b.wait(`document.readyState === "complete"`)
		if s.name == "inbox" {
			b.shows("Read") // a few seconds after the demo began
		}
		b.picture(filepath.Join(dir, s.name+".png"))
		shrink(t, filepath.Join(dir, s.name+".png"))
		for _, file := range []string{filepath.Join(dir, s.name+".png"), filepath.Join("..", "docs", "pictures", s.name+".png")} {
			if info, err := os.Stat(file); err != nil || info.Size() > mostPicture {
				t.Errorf("%s: %v, %d bytes at most", file, err, mostPicture)
			}
		}
	}
}

// shrink stores a picture with the 256 colours that it uses most.
func shrink(t *testing.T, file string) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	area := full.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	used := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range used[:min(len(used), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(area, palette)
	draw.Draw(small, area, full, area.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
