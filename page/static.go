package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// asset is a file that views load, such as a script. Its URL contains its version, so that browsers can cache it
// permanently.
type asset struct {
	data, zipped []byte
	kind         string // its media type
	version      string
}

// assets returns the assets by name. They are compressed when they are first used.
var assets = sync.OnceValue(func() map[string]*asset {
	all := map[string]*asset{}
	names, err := fs.Glob(static, "static/*")
	for _, name := range names {
		data, readErr := static.ReadFile(name)
		if err = readErr; err != nil {
			break
		}
		if data = lean(data); path.Ext(name) == ".css" {
			data = []byte(tight.Replace(string(data)))
		}
		sum := sha256.Sum256(data)
		all[path.Base(name)] = &asset{data, zip(data), mime.TypeByExtension(path.Ext(name)), hex.EncodeToString(sum[:6])}
	}
	if err != nil {
		panic(err) // cannot happen: the files are part of the program
	}
	return all
})

// lean returns a script or a style sheet without indentation, and without lines that contain only a comment.
func lean(text []byte) (kept []byte) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimLeft(line, " ")
		end := bytes.HasSuffix(line, []byte("*/\n"))
		if !bytes.HasPrefix(line, []byte("//")) && !(end && bytes.HasPrefix(line, []byte("/*"))) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// tight removes unnecessary white space from the rules of a style sheet.
var tight = strings.NewReplacer(" {\n", "{", " { ", "{", "; }", "}", " }", "}", "; ", ";", ": ", ":")

// assetAt returns the URL of an asset, for use in templates.
func assetAt(name string) string { return "/static/" + name + "?v=" + assets()[name].version }

// serveAsset serves an asset. If the URL contains the current version, the browser may cache the asset
// permanently.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	a := assets()[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	keep := "no-cache"
	if r.URL.Query().Get("v") == a.version {
		keep = "max-age=31536000, immutable"
	}
	w.Header().Set("Cache-Control", keep)
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	data := a.data
	if takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		data = a.zipped
	}
	_, _ = w.Write(data) // the browser may have disconnected
}

// takesGzip reports whether the browser accepts compressed responses.
func takesGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// zip compresses data.
func zip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // writing to a Buffer cannot fail
	_ = w.Close()
	return b.Bytes()
}
