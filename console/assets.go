package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"

	"parley/desk"
	"parley/web"
)

//go:embed assets
var assetFiles embed.FS

// assets are the stylesheet and the script. Their path has a hash of what is in them, so
// browsers keep them until the next release.
type assets struct {
	path   string // /static/HASH/
	bodies map[string][]byte
	zipped map[string][]byte
}

var assetTypes = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"app.js":    "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

func loadAssets() assets {
	a := assets{bodies: map[string][]byte{}, zipped: map[string][]byte{}}
	sum := sha256.New()
	for _, name := range []string{"app.js", "icon.svg", "style.css"} {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // they are in the program
		}
		body = compact(name, body)
		sum.Write(body)
		a.bodies[name], a.zipped[name] = body, zip(body)
	}
	a.path = "/static/" + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"
	return a
}

// compact leaves out what no browser needs: indentation, comments, and white space.
func compact(name string, body []byte) []byte {
	var out []byte
	comment := false // of several lines
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(line)
		if comment || bytes.HasPrefix(line, []byte("/*")) {
			comment = !bytes.HasSuffix(line, []byte("*/"))
			continue
		}
		if at := bytes.LastIndex(line, []byte(" // ")); at >= 0 && !bytes.ContainsAny(line[at:], "'\"`") { // in no string
			line = line[:at]
		}
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			out = append(append(out, line...), '\n')
		}
	}
	switch path.Ext(name) {
	case ".css":
		return []byte(inCSS.Replace(string(out)))
	case ".js":
		return compactScript(out)
	}
	return body
}

// inCSS drops white space that our stylesheet needs nowhere, not even in strings.
var inCSS = strings.NewReplacer(" {\n", "{", " { ", "{", "; }", "}", ";\n", ";", "; ", ";", ": ", ":", ", ", ",")

// compactScript drops white space between the words of a script: not in strings, templates
// and regular expressions.
func compactScript(in []byte) (out []byte) {
	word := func(c byte) bool {
		return c == '_' || c == '$' || c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' || c >= 0x80
	}
	last := func() byte {
		if len(out) == 0 {
			return ';'
		}
		return out[len(out)-1]
	}
	var quote byte    // what ends the text; 0: it is code
	var braces []byte // that are open; ` for one in a template
	for i := 0; i < len(in); i++ {
		c := in[i]
		switch {
		case quote != 0 && c == '\\':
			out = append(out, c)
			i++
			c = in[i]
		case quote == '`' && c == '$' && in[i+1] == '{':
			out, braces, quote = append(out, c), append(braces, '`'), 0
			i++
			c = '{'
		case quote == '/' && c == '[': // a class, in which a slash ends nothing
			quote = ']'
		case quote == ']' && c == ']':
			quote = '/'
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '"', c == '\'', c == '`', c == '/' && strings.IndexByte("(,=:[!&|?{};\n", last()) >= 0:
			quote = c
		case c == '{':
			braces = append(braces, c)
		case c == '}':
			if last() == '\n' || last() == ';' { // no statement is empty
				out = out[:len(out)-1]
			}
			if braces[len(braces)-1] == '`' {
				quote = '`'
			}
			braces = braces[:len(braces)-1]
		case c == ' ':
			before, next := last(), in[i+1]
			needed := word(before) && word(next) || before == next && (next == '+' || next == '-')
			if !needed {
				continue
			}
		case c == '\n' && strings.IndexByte("{};,(", last()) >= 0:
			continue
		}
		out = append(out, c)
	}
	return out
}

func zip(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	_, _ = w.Write(body)                                  // to memory
	_ = w.Close()
	return b.Bytes()
}

// Path is the URL of a file.
func (a *assets) Path(name string) string { return a.path + name }

func (s *Server) asset(w *web.Response, r *http.Request) error {
	guard(w.Header())
	name := r.PathValue("name")
	body, ok := s.files.bodies[name]
	if !ok {
		return desk.NotFoundf("no such file")
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = s.files.zipped[name]
	}
	w.Reply(http.StatusOK, assetTypes[name], body)
	return nil
}
