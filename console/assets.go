package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/css"
	"github.com/tdewolff/minify/v2/js"
)

//go:embed assets
var assetFiles embed.FS

// assets are the stylesheet, the icon and the script. The script is made of the files in
// assets/script, in order. The path has a hash of the content, so browsers keep the
// assets until the next release.
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
	small := minify.New()
	small.AddFunc("text/css", css.Minify)
	small.AddFunc("text/javascript", js.Minify)
	sum := sha256.New()
	for _, name := range []string{"app.js", "icon.svg", "style.css"} {
		body := assetBody(name)
		if less, err := small.Bytes(assetTypes[name], body); err == nil { // there is no minifier for images
			body = less
		}
		sum.Write(body)
		a.bodies[name], a.zipped[name] = body, zip(body)
	}
	a.path = "/static/" + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"
	return a
}

// assetBody returns a file before it is minified. The script consists of several files,
// which are joined in the order of their names.
func assetBody(name string) (body []byte) {
	files := []string{"assets/" + name}
	if name == "app.js" {
		files, _ = fs.Glob(assetFiles, "assets/script/*.js") // the pattern is well formed
	}
	for _, file := range files {
		part, err := assetFiles.ReadFile(file)
		if err != nil {
			panic(err) // the files are in the program
		}
		body = append(body, part...)
	}
	return body
}

func zip(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // it fails only for an unknown level
	_, _ = w.Write(body)                                  // writing to memory does not fail
	_ = w.Close()
	return b.Bytes()
}

// Path returns the URL of a file.
func (a *assets) Path(name string) string { return a.path + name }
