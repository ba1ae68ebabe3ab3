package desk_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"parley/desk"
)

// box is a box of an ISO media file.
func box(kind string, content ...string) string {
	body := strings.Join(content, "")
	return string(binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))) + kind + body
}

func iso(brand string, tracks ...string) string {
	var traks []string
	for _, kind := range tracks {
		traks = append(traks, box("trak", box("tkhd", strings.Repeat("t", 84)), box("mdia", box("mdhd", "24 bytes of a header, no."), box("hdlr", "\x00\x00\x00\x00\x00\x00\x00\x00"+kind+"name"))))
	}
	return box("ftyp", brand, "\x00\x00\x02\x00", "isomiso2") + box("mdat", strings.Repeat("data", 3000)) + box("moov", append([]string{box("mvhd", strings.Repeat("m", 100))}, traks...)...)
}

func zipped(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range parts {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(strings.Repeat(name, 50)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ogg is the first page of a stream.
func ogg(packet string) string {
	return "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01" + string(byte(len(packet))) + packet
}

const ole = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

type sniffCase struct {
	name, claimed, content string
	mime                   string
	trait                  desk.MediaTrait
	kind                   desk.MessageKind
}

const (
	other = "application/octet-stream"
	docx  = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsx  = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	pptx  = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
)

func sniffCases(t testing.TB) []sniffCase {
	html := "<html><script>alert(1)</script></html>"
	word := zipped(t, "[Content_Types].xml", "_rels/.rels", "word/document.xml")
	return []sniffCase{
		{"jpeg", "text/html", "\xff\xd8\xff\xe0 and more", "image/jpeg", "", desk.KindImage},
		{"png", "", "\x89PNG\r\n\x1a\n more", "image/png", "", desk.KindImage},
		{"gif87", "", "GIF87a;", "image/gif", "", desk.KindImage},
		{"gif89 with markup", "text/html", "GIF89a/*" + html, "image/gif", "", desk.KindImage},
		{"webp", "", "RIFF\x10\x00\x00\x00WEBPVP8 ....", "image/webp", "", desk.KindSticker},
		{"webp lossless", "", "RIFF\x10\x00\x00\x00WEBPVP8L....", "image/webp", "", desk.KindSticker},
		{"webp extended", "", "RIFF\x10\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00", "image/webp", "", desk.KindSticker},
		{"webp animated", "", "RIFF\x10\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x12\x00\x00\x00", "image/webp", desk.TraitAnimated, desk.KindSticker},
		{"webp cut off", "", "RIFF\x10\x00\x00\x00WEBPVP8X", other, "", desk.KindDocument},
		{"wav", "audio/wav", "RIFF\x10\x00\x00\x00WAVEfmt ", other, "", desk.KindDocument},
		{"mp4", "", iso("isom", "vide", "soun"), "video/mp4", "", desk.KindVideo},
		{"mp4 of one track", "", iso("mp42", "vide"), "video/mp4", "", desk.KindVideo},
		{"mp4 of sound only", "video/mp4", iso("mp42", "soun"), "audio/mp4", "", desk.KindAudio},
		{"mp4 without tracks", "", iso("avc1"), "video/mp4", "", desk.KindVideo},
		{"m4a", "", iso("M4A ", "soun"), "audio/mp4", "", desk.KindAudio},
		{"m4a with pictures", "", iso("M4A ", "soun", "vide"), "video/mp4", "", desk.KindVideo},
		{"mp4 with long boxes", "", box("ftyp", "isom", "\x00\x00\x00\x00") + "\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x14data" + iso("isom", "soun")[len(box("ftyp", "isom", "\x00\x00\x02\x00", "isomiso2")):], "audio/mp4", "", desk.KindAudio},
		{"mp4 that goes on to the end", "", box("ftyp", "isom", "\x00\x00\x00\x00") + "\x00\x00\x00\x00mdat" + html, "video/mp4", "", desk.KindVideo},
		{"3gpp", "", iso("3gp5", "vide", "soun"), "video/3gpp", "", desk.KindVideo},
		{"quicktime", "video/quicktime", iso("qt  ", "vide"), other, "", desk.KindDocument},
		{"heic", "image/heic", iso("heic"), other, "", desk.KindDocument},
		{"avif", "image/avif", iso("avif"), other, "", desk.KindDocument},
		{"ftyp cut off", "", "\x00\x00\x00\x18ftypis", other, "", desk.KindDocument},
		{"box that is too short", "", "\x00\x00\x00\x07ftypisom", other, "", desk.KindDocument},
		{"aac", "", "\xff\xf1\x50\x80\x01\x7f\xfc\x00\x00\x00\x00\xff\xf1", "audio/aac", "", desk.KindAudio},
		{"aac without a second frame", "", "\xff\xf1\x50\x80\x01\x7f\xfc\x00\x00\x00\x00<html>", other, "", desk.KindDocument},
		{"amr", "", "#!AMR\n\x00", "audio/amr", "", desk.KindAudio},
		{"amr wide", "", "#!AMR-WB\n\x00", "audio/amr", "", desk.KindAudio},
		{"mp3", "", "\xff\xfb\x90\x64 more", "audio/mpeg", "", desk.KindAudio},
		{"mp3 with a tag", "", "ID3\x03\x00\x00\x00\x00\x00\x00 more", "audio/mpeg", "", desk.KindAudio},
		{"utf-16", "text/plain", "\xff\xfeh\x00i\x00", other, "", desk.KindDocument},
		{"opus", "", ogg("OpusHead\x01\x01"), "audio/ogg", desk.TraitOpus, desk.KindAudio},
		{"vorbis", "", ogg("\x01vorbis...."), "audio/ogg", "", desk.KindAudio},
		{"two streams", "", ogg("OpusHead\x01\x01") + ogg("OpusHead\x01\x01"), "audio/ogg", "", desk.KindAudio},
		{"theora", "video/ogg", ogg("\x80theora"), other, "", desk.KindDocument},
		{"theora behind opus", "", ogg("OpusHead\x01\x01") + ogg("\x80theora"), other, "", desk.KindDocument},
		{"pdf", "", "%PDF-1.7\n" + html, "application/pdf", "", desk.KindDocument},
		{"pdf behind markup", "application/pdf", html + "%PDF-1.7", other, "", desk.KindDocument},
		{"docx", "", word, docx, "", desk.KindDocument},
		{"xlsx", "application/zip", zipped(t, "[Content_Types].xml", "xl/workbook.xml"), xlsx, "", desk.KindDocument},
		{"pptx", "", zipped(t, "[Content_Types].xml", "ppt/presentation.xml"), pptx, "", desk.KindDocument},
		{"docx with macros", docx, zipped(t, "[Content_Types].xml", "word/document.xml", "word/vbaProject.bin"), other, "", desk.KindDocument},
		{"docx without its list", docx, zipped(t, "word/document.xml"), other, "", desk.KindDocument},
		{"docx behind markup", docx, html + word, other, "", desk.KindDocument},
		{"docx before markup", docx, word + html, other, "", desk.KindDocument},
		{"docx cut off", docx, word[:len(word)-1], other, "", desk.KindDocument},
		{"zip", "application/zip", zipped(t, "a.txt"), other, "", desk.KindDocument},
		{"epub", "application/epub+zip", zipped(t, "mimetype", "META-INF/container.xml"), other, "", desk.KindDocument},
		{"doc", "application/msword", ole + "more", "application/msword", "", desk.KindDocument},
		{"xls", "application/vnd.ms-excel; charset=x", ole, "application/vnd.ms-excel", "", desk.KindDocument},
		{"ppt", "application/vnd.ms-powerpoint", ole, "application/vnd.ms-powerpoint", "", desk.KindDocument},
		{"msi", "application/x-msi", ole, other, "", desk.KindDocument},
		{"doc that is none", "application/msword", "{\\rtf1", other, "", desk.KindDocument},
		{"text", "text/plain", "Grüße, 世界", "text/plain", "", desk.KindDocument},
		{"text of a charset", `text/plain; charset="utf-8"`, "hello", "text/plain", "", desk.KindDocument},
		{"text not claimed", "", "hello", other, "", desk.KindDocument},
		{"text as something else", "text/csv", "a,b", other, "", desk.KindDocument},
		{"text with NUL", "text/plain", "hel\x00lo", other, "", desk.KindDocument},
		{"text of another charset", "text/plain", "Gr\xfc\xdfe", other, "", desk.KindDocument},
		{"text cut off", "text/plain", "世"[:2], other, "", desk.KindDocument},
		{"html as text", "text/plain", "\ufeff \r\n\t" + html, other, "", desk.KindDocument},
		{"xml as text", "text/plain", "<?xml version='1.0'?>", other, "", desk.KindDocument},
		{"html", "text/html", html, other, "", desk.KindDocument},
		{"html as image", "image/jpeg", html, other, "", desk.KindDocument},
		{"svg as image", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, other, "", desk.KindDocument},
		{"svg as png", "image/png", `<?xml version="1.0"?><svg onload="alert(1)"/>`, other, "", desk.KindDocument},
		{"script", "text/javascript", "alert(1)", other, "", desk.KindDocument},
		{"nothing", "", "", other, "", desk.KindDocument},
		{"one byte", "image/jpeg", "\xff", other, "", desk.KindDocument},
	}
}

// The type does not depend on how the bytes are split into writes.
func TestSniffer(t *testing.T) {
	t.Parallel()
	for _, tc := range sniffCases(t) {
		for _, step := range []int{1, 3, 7, 4096, 1 << 20} {
			s := desk.NewSniffer(tc.claimed)
			for rest := tc.content; rest != ""; {
				n := min(step, len(rest))
				if _, err := s.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			mime, trait := s.Type()
			if mime != tc.mime || trait != tc.trait {
				t.Errorf("%s, in steps of %d: %s %q, want %s %q", tc.name, step, mime, trait, tc.mime, tc.trait)
			}
			if kind := desk.KindOfMedia(mime); kind != tc.kind {
				t.Errorf("%s: %s, want %s", tc.name, kind, tc.kind)
			}
		}
	}
}

// A document with many parts is recognised by the end of its directory.
func TestSniffer_large(t *testing.T) {
	t.Parallel()
	parts := []string{"[Content_Types].xml"}
	for range 2000 {
		parts = append(parts, "ppt/media/image"+strings.Repeat("x", 20)+".png")
	}
	content := zipped(t, append(parts, "ppt/presentation.xml")...)
	s := desk.NewSniffer("")
	for range 3 { // far from the beginning
		if _, err := s.Write([]byte(content[:0])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if mime, _ := s.Type(); mime != pptx {
		t.Errorf("a document of %d bytes is %s", len(content), mime)
	}
}

func TestMediaName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"shop.jpg":                      "shop.jpg",
		"":                              "",
		"../../x":                       "x",
		`C:\Users\nora\Documents\a.pdf`: "a.pdf",
		"dir/":                          "",
		"..":                            "",
		"a/..":                          "",
		".":                             "",
		".profile":                      ".profile",
		"a\x00b.txt":                    "ab.txt",
		"a\r\nSet-Cookie: x=1":          "aSet-Cookie: x=1",
		"gpj.\u202eexe":                 "gpj.exe",
		"\u2066a\u2069\u200f\u061c":     "a",
		"  spaced .txt ":                "spaced .txt",
		"\x7f\u0085\u2028":              "",
		"bad\xff.txt":                   "bad.txt",
		"Straße 世界.txt":                 "Straße 世界.txt",
		strings.Repeat("世", 300):        strings.Repeat("世", 255),
	} {
		if got := desk.MediaName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzMediaName(f *testing.F) {
	f.Add("../../x")
	f.Fuzz(func(t *testing.T, in string) {
		name := desk.MediaName(in)
		if !utf8.ValidString(name) || utf8.RuneCountInString(name) > desk.MaxMediaName || strings.ContainsAny(name, `/\`) || name == ".." ||
			strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("%q becomes %q", in, name)
		}
		if again := desk.MediaName(name); again != name {
			t.Errorf("%q becomes %q, and that %q", in, name, again)
		}
	})
}

// The result is always one of the types, and the same for one write and for two. A file that
// begins with markup is always application/octet-stream.
func FuzzSniffer(f *testing.F) {
	for _, tc := range sniffCases(f) {
		f.Add(tc.claimed, []byte(tc.content), 5)
	}
	f.Fuzz(func(t *testing.T, claimed string, content []byte, at int) {
		one, two := desk.NewSniffer(claimed), desk.NewSniffer(claimed)
		_, _ = one.Write(content)
		at = max(0, min(at, len(content)))
		_, _ = two.Write(content[:at])
		_, _ = two.Write(content[at:])
		mime, trait := one.Type()
		if m, tr := two.Type(); m != mime || tr != trait {
			t.Errorf("in one piece %s %q, in two %s %q", mime, trait, m, tr)
		}
		if bytes.HasPrefix(bytes.TrimSpace(content), []byte("<")) && mime != other {
			t.Errorf("markup is %s", mime)
		}
		for _, dangerous := range []string{"html", "xml", "script"} {
			if strings.Contains(mime, dangerous) && !strings.Contains(mime, "openxml") {
				t.Errorf("%s", mime)
			}
		}
	})
}

func TestUnsendable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mime    string
		trait   desk.MediaTrait
		size    int64
		caption bool
		want    *desk.UnsendableMedia
	}{
		{"image/jpeg", "", 5e6, true, nil},
		{"image/jpeg", "", 5e6 + 1, true, &desk.UnsendableMedia{Reason: "size", Max: 5e6}},
		{"image/png", "", 5e6, true, nil},
		{"image/gif", "", 1, false, &desk.UnsendableMedia{Reason: "type"}},
		{"image/webp", "", 100e3, false, nil},
		{"image/webp", "", 100e3 + 1, false, &desk.UnsendableMedia{Reason: "size", Max: 100e3}},
		{"image/webp", desk.TraitAnimated, 500e3, false, nil},
		{"image/webp", desk.TraitAnimated, 500e3 + 1, true, &desk.UnsendableMedia{Reason: "size", Max: 500e3}},
		{"image/webp", "", 100, true, &desk.UnsendableMedia{Reason: "caption", Max: 100e3}},
		{"video/mp4", "", 16e6, true, nil},
		{"video/3gpp", "", 16e6 + 1, true, &desk.UnsendableMedia{Reason: "size", Max: 16e6}},
		{"audio/aac", "", 16e6, false, nil},
		{"audio/amr", "", 16e6, true, &desk.UnsendableMedia{Reason: "caption", Max: 16e6}},
		{"audio/ogg", desk.TraitOpus, 16e6, false, nil},
		{"audio/ogg", "", 16, false, &desk.UnsendableMedia{Reason: "type"}},
		{"application/pdf", "", 100e6, true, nil},
		{"text/plain", "", 100e6 + 1, true, &desk.UnsendableMedia{Reason: "size", Max: 100e6}},
		{docx, "", 100e6, true, nil},
		{other, "", 1, false, &desk.UnsendableMedia{Reason: "type"}},
	} {
		m := &desk.Media{MIME: tc.mime, Trait: tc.trait, Size: tc.size, Kind: desk.KindOfMedia(tc.mime)}
		if tc.want != nil {
			tc.want.MIME, tc.want.Size = tc.mime, tc.size
		}
		if got := m.Unsendable(tc.caption); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s of %d bytes, caption %v: %+v, want %+v", tc.mime, tc.size, tc.caption, got, tc.want)
		}
	}
}
