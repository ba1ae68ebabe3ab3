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
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "a directory in which TestScreenshots puts pictures of every page of the console, in two sizes, light and dark")

var readmePictures = flag.String("readme-pictures", "", "the directory in which TestReadmePictures makes the README's pictures of the console anew: -readme-pictures ../docs/pictures")

// TestScreenshots stores pictures of every page and state, in two sizes, light and dark.
// It does so only if -screenshots is set. TestAccess checks the same pages.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		return
	}
	newStage(t).walk(t, take)
}

func take(b *tab, s shot) {
	b.t.Helper()
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			b.size(size[0], size[1], scheme)
			s.open(b)
			b.wait(`document.readyState === "complete"`)
			b.picture(filepath.Join(*screenshots, fmt.Sprintf("%s-%d-%s.png", s.name, size[0], scheme)))
		}
	}
}

// follow clicks an element that leads to another page. It waits for this page.
func (b *tab) follow(selector string) {
	b.t.Helper()
	look[bool](b, "window.before = true")
	b.click(selector)
	b.wait("!window.before && document.readyState === 'complete'")
}

// size sets the size of the window, and the colour scheme: light or dark.
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

// picture stores a picture of the whole page.
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

// pictures are the pictures of the README.
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

// mostPicture is the greatest size of a picture in the repository, in bytes.
const mostPicture = 150 << 10

// TestReadmePictures checks the size of the pictures of the README. If -readme-pictures
// is set, it makes them again and stores them in the repository.
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
			b.shows("Read") // this takes a few seconds after the start of the demo
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

// shrink reduces a picture to its 256 most frequent colours.
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
