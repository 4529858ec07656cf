package page

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
	"mailtree/maildir/media"
)

// writeFile sends an attachment. If its bytes are a raster image, the browser shows the image. Everything else is sent
// as a download, so that browsers do not open it as one of our pages.
func (v *view) writeFile(f *attachment.Opened, name string) error {
	head := make([]byte, min(f.Size, media.HeadBytes))
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	header := v.w.Header()
	kind, how := media.Picture(name, head), "inline"
	if kind == "" {
		kind, how = "application/octet-stream", "attachment"
	}
	header.Set("Content-Type", kind)
	header.Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": name}))
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	header.Set("Cache-Control", "private, max-age=86400, immutable") // the URL contains the content's checksum
	v.writePieces(http.StatusOK, f.Size, io.MultiReader(bytes.NewReader(head), f))
	return nil
}

// isPicture reports whether an attachment may be shown as an image.
func isPicture(a format.Attachment) bool { return media.NamesPicture(a.Path) }

// fileAt returns the URL of one of a message's attachments.
func fileAt(m *index.MessageRow, a *format.Attachment) string {
	return inProject(m.Project, "file", a.SHA1)
}

// inlined returns the image in a data URI and a name for it, or nil if the URI does not contain an image that may be
// shown.
func inlined(destination string) (data []byte, name string) {
	head, text, _ := strings.Cut(destination, ";base64,")
	data, err := base64.StdEncoding.DecodeString(text)
	name = "image." + strings.TrimPrefix(head, "data:image/")
	if err != nil || media.Picture(name, data[:min(len(data), media.HeadBytes)]) == "" {
		return nil, ""
	}
	return data, name
}

// inlinedAt returns the URL of an image embedded in a message's body. If the image is also an attachment, it
// returns the attachment's URL.
func inlinedAt(m *index.MessageRow, data []byte) string {
	sum := sumOf(data)
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.SHA1 == sum && isPicture(*a) {
			return fileAt(m, a)
		}
	}
	return inProject(m.Project, "message", m.ID, "image", sum)
}

func sumOf(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}

// image serves an image that is embedded in a message's body.
func (h *Page) image(v *view) error {
	m, err := v.p.Message(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	var found []byte
	var name string
	markdown.RewriteImages(m.Body, func(destination string) string {
		if data, as := inlined(destination); found == nil && data != nil && sumOf(data) == v.r.PathValue("sum") {
			found, name = data, as
		}
		return destination
	})
	if found == nil {
		return errNoView
	}
	return v.writeFile(&attachment.Opened{ReadCloser: io.NopCloser(bytes.NewReader(found)), Size: int64(len(found))}, name)
}

// pictureAt returns the URL of the attachment that an image in the message's body refers to, either by its path in
// the tree or by its name. If the message has no such attachment, it returns "".
func pictureAt(m *index.MessageRow, destination string) string {
	if whole, err := url.PathUnescape(destination); err == nil {
		destination = whole
	}
	for i := range m.Attachments {
		if a := &m.Attachments[i]; isPicture(*a) && means(destination, a) {
			return fileAt(m, a)
		}
	}
	return ""
}

// means reports whether an image's destination refers to the attachment. The extensions may differ, because the
// server may have converted the image to another format.
func means(destination string, a *format.Attachment) bool {
	stem := func(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }
	name := path.Base(destination)
	switch {
	case strings.Contains(destination, ":"): // a URL on another site
		return false
	case strings.HasSuffix(destination, a.Path), name == a.Name:
		return true
	}
	return a.Name != "" && media.NamesPicture(name) && stem(name) == stem(a.Name)
}

// thumbnail returns the URL of an attached image if the HTML of the message's body does not show the image. The page
// shows such an image below the message. For any other attachment, thumbnail returns "".
func thumbnail(body template.HTML, m index.MessageRow, a format.Attachment) string {
	at := fileAt(&m, &a)
	if !isPicture(a) || strings.Contains(string(body), `src="`+at) {
		return ""
	}
	return at
}

// inWords formats a number of bytes as text, such as "99 KB".
func inWords(n int64) string {
	switch {
	case n < 1000:
		return counted(int(n), "byte")
	case n < 999_500:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
