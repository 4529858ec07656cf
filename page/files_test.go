package page_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/page"
)

// drawn returns a small image in the given format.
func drawn(t *testing.T, kind string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch m := image.NewPaletted(image.Rect(0, 0, 60, 40), color.Palette{color.Black, color.White}); kind {
	case "png":
		err = png.Encode(&b, m)
	case "jpeg":
		err = jpeg.Encode(&b, m, nil)
	case "gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// huge returns the header of a PNG image that declares a size of 60,000 by 60,000 pixels.
func huge() string {
	chunk := "IHDR" + string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 60_000), 60_000)) + "\x08\x02\x00\x00\x00"
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk)))
	return "\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + chunk + string(sum)
}

// attach sends a message with an attached file.
func (s *site) attach(name, data, body string) *maildir.Sent {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.p.Dir(), name), []byte(data), 0o600); err != nil {
		s.Fatal(err)
	}
	return s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: name, Body: body, Attachments: []string{name}})
}

// TestPictures checks that an attached image is shown where the message's text refers to it, or otherwise below the
// text. Images on other sites must not be shown.
func TestPictures(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	for _, kind := range []string{"png", "jpeg", "gif"} {
		sent := s.attach("screen."+kind, drawn(t, kind), "Look: ![the \"menu\"](screen."+kind+") ![x](other.png) ![y](http://evil.example/screen."+kind+")")
		at := s.base + "/file/" + sent.Attachments[0].SHA1
		view := b.see(s.base + "/thread/" + sent.ID)
		inert(t, kind, view)
		contains(t, view, `<img src="`+at+`" alt="the &#34;menu&#34;" loading="lazy">`, "[image: x]", "[image: y]", `download="screen.`)
		if n := strings.Count(view, "<img "); n != 1 {
			t.Errorf("%s: there are %d images", kind, n)
		}
		res, data := b.get(at)
		kept := map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif"}[kind]
		if got := res.Header.Get("Content-Type"); got != kept || data != drawn(t, kind) || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "inline") {
			t.Errorf("%s: %d bytes as %s, %s", kind, len(data), got, res.Header.Get("Content-Disposition"))
		}
	}
	sent := s.attach("below.png", drawn(t, "png"), "See below.")
	contains(t, b.see(s.base+"/thread/"+sent.ID), `<a class="thumb" href="`+s.base+`/file/`+sent.Attachments[0].SHA1, `alt="below.png" loading="lazy"`, " bytes</small>")
	sent = s.attach("notes.txt", strings.Repeat("0123456789", 9_876), "b")
	view := b.see(s.base + "/thread/" + sent.ID)
	contains(t, view, "<small>99 KB</small>")
	if strings.Contains(view, "<img") {
		t.Errorf("text is shown as an image:\n%s", view)
	}
}

// TestInlined checks that an image embedded in a message's text is shown in its place, and is served as safely as an
// attachment. No view and no excerpt may contain its data. Data that is not a raster image must not be shown.
func TestInlined(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	uri := func(kind, data string) string {
		return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
	}
	data := drawn(t, "png")
	big := data + strings.Repeat("tail", 15<<10) // the image's data makes the text longer than markdown.Limit
	sum := sha1.Sum([]byte(big))
	sent := s.send("Ann", maildir.Draft{To: []string{"pat"}, Subject: "Menu", Body: "Look: ![account menu](" + uri("image/png", big) +
		") ![vector](" + uri("image/svg+xml", "<svg onload='alert(1)'/>") + ") ![page](" + uri("image/png", "<html>") + ") end"})
	at := s.base + "/message/" + sent.ID + "/image/" + hex.EncodeToString(sum[:])
	view := b.see(s.base + "/thread/" + sent.ID)
	inert(t, "inlined", view)
	contains(t, view, `<img src="`+at+`" alt="account menu" loading="lazy">`, "[image: vector]", "[image: page]", "end</p>")
	if n := strings.Count(view, "<img "); n != 1 {
		t.Errorf("there are %d images", n)
	}
	for _, path := range []string{"/thread/" + sent.ID, "/", "/threads", "/search?q=look", "/search?q=account"} {
		if text := b.see(s.base + path); strings.Contains(text, "base64") || !strings.Contains(text, "account") {
			t.Errorf("%s shows data, or no description:\n%s", path, text)
		}
	}
	res, got := b.get(at)
	if h := res.Header; got != big || h.Get("Content-Type") != "image/png" || !strings.HasPrefix(h.Get("Content-Disposition"), "inline") ||
		!strings.HasSuffix(h.Get("Content-Security-Policy"), "; sandbox") {
		t.Errorf("%d bytes, %v", len(got), h)
	}
	if res, _ := b.get(at[:len(at)-1] + "x"); res.StatusCode != http.StatusNotFound {
		t.Error("another checksum:", res.Status)
	}
	sent = s.attach("both.png", data, "![x]("+uri("image/png", data)+")")
	view = b.see(s.base + "/thread/" + sent.ID)
	contains(t, view, `<img src="`+s.base+"/file/"+sent.Attachments[0].SHA1)
	if n := strings.Count(view, "<img "); n != 1 {
		t.Errorf("an image that is also attached is shown %d times", n)
	}
}

// TestHostileFiles checks that no attachment is shown as a page or as an image with scripts, regardless of its name,
// its bytes, and the message that lists it.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	s := open(t, page.Config{Person: "pat"})
	b := s.browser()
	const (
		script = "<script>alert(1)</script>"
		svg    = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">` + script + `</svg>`
		page   = "<!doctype html><html>" + script
	)
	for _, f := range []struct {
		name, data, want string
	}{
		{"x.svg", svg, ""},
		{"y.png", svg, ""},
		{"x.html", page, ""},
		{"x.gif", page, ""},
		{"x.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml">` + script + "</html>", ""},
		{"x.pdf", "%PDF-1.7 " + script, ""},
		{"z.html", "GIF89a/*" + script + "*/", ""},
		{"z.gif", "GIF89a/*" + script + "*/", ""}, // not a valid image
		{"tail.png", drawn(t, "png") + page, "image/png"},
		{"comment.html", drawn(t, "gif") + page, "image/gif"}, // stored with its real type
		{"huge.png", huge(), ""},
		{"cut.png", "\x89PNG\r\n\x1a\n", ""},
	} {
		sent := s.attach(f.name, f.data, "![x]("+f.name+")")
		inert(t, f.name, b.see(s.base+"/thread/"+sent.ID))
		s.servedAs(b, f.name, sent.Attachments[0].SHA1, f.want)
	}
	// A user writes the message and its attachment into the tree.
	for name, data := range map[string]string{"svg": svg, "html": page, "huge": huge(), "gif": drawn(t, "gif")} {
		hash := sha1.Sum([]byte(data))
		sum := hex.EncodeToString(hash[:])
		a := format.Attachment{Type: "file", MediaType: "image/png", Path: format.AttachmentPath(sum, ".png"), SHA1: sum, Name: "a\"><script>.png"}
		m := format.Message{ID: "hand-" + name, Created: time.Now(), From: "Ann", To: []string{"pat"}, Subject: name, Importance: format.Normal,
			Attachments: []format.Attachment{a}, Body: "![x](" + a.Path + ")"}
		s.write(a.Path, data)
		s.write("messages/2026/11/01/hand-"+name+".md", string(format.FormatMessage(&m)))
		if err := s.p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		view := b.see(s.base + "/thread/hand-" + name)
		inert(t, name, view)
		contains(t, view, `<img src="`+s.base+"/file/"+sum)
		s.servedAs(b, name, sum, "")
	}
}

// ownFile matches the URL of an attachment, or of an image embedded in a message's text.
var ownFile = regexp.MustCompile(`^/p/[^/]+/(file|message/[^/]+/image)/[0-9a-f]{40}$`)

// servedAs checks that a file is served as an image of the type kind or, if kind is "", as a download.
func (s *site) servedAs(b *browser, name, sum, kind string) {
	s.Helper()
	how := "inline;"
	if kind == "" {
		kind, how = "application/octet-stream", "attachment;"
	}
	res, _ := b.get(s.base + "/file/" + sum)
	h := res.Header
	if res.StatusCode != http.StatusOK || h.Get("Content-Type") != kind || !strings.HasPrefix(h.Get("Content-Disposition"), how) {
		s.Errorf("%s is served as %s, %s, %s", name, res.Status, h.Get("Content-Type"), h.Get("Content-Disposition"))
	}
	policy := h.Get("Content-Security-Policy")
	if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(policy, "default-src 'none';") || !strings.HasSuffix(policy, "; sandbox") {
		s.Errorf("%s is served with %v", name, h)
	}
}

// write writes a file in the tree, as a user would.
func (s *site) write(path, data string) {
	s.Helper()
	file := filepath.Join(s.p.Dir(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		s.Fatal(err)
	}
}
