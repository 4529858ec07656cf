package media

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"strings"
)

// MaxPixels is the maximum number of pixels in an image. A viewer needs four bytes of memory for each pixel, and a
// file of only a few kB can contain 4 billion pixels.
const MaxPixels = 50_000_000

// File is a file to be stored as an attachment.
type File struct {
	Data   []byte
	Type   string // media type
	Ext    string // extension of the stored file, including its dot; may be empty
	Pixels int    // number of pixels; 0 if the file is not an image, or if no viewer should open it
	Odd    string // how the stored file differs from what its name suggests, as a clause; empty if it does not differ

	layout layout // set only for an image
}

// New examines a file. name may be empty. The File keeps a reference to data.
func New(name string, data []byte) *File {
	f := &File{Data: data, Ext: extension(name)}
	if i := imageOf(data); i != nil {
		f.openImage(i)
		return f
	}
	switch {
	case svg(f.Ext, data):
		f.inert("an SVG image can contain scripts, so it is stored as text")
	case NamesPicture(f.Ext):
		f.inert("the content is not an image of that type, so it is stored as " + plainWord(data))
	default:
		f.sniff()
	}
	return f
}

// openImage treats the file as an image in format i if the image is complete.
func (f *File) openImage(i *imageFormat) {
	named := f.Ext
	f.Type, f.Ext = i.mediaType, i.exts[0]
	size, err := i.config(bytes.NewReader(f.Data))
	if err == nil {
		f.layout, err = i.walk(f.Data)
	}
	if err == nil && (size.Width < 1 || size.Height < 1) {
		err = errors.New("it has no pixels")
	}
	switch {
	case err != nil:
		f.damaged(i, err)
	case size.Width > MaxPixels/size.Height:
		f.inert("the image has too many pixels to be opened safely, so it is stored as binary data")
	default:
		f.Pixels = size.Width * size.Height
		f.layout.width, f.layout.height = size.Width, size.Height
		if NamesPicture(named) && !i.named(named) {
			f.Odd = "this is a " + i.name + " image, so it is stored as one"
		}
	}
}

// damaged makes the file inert because it is not a valid image in format i.
func (f *File) damaged(i *imageFormat, err error) {
	f.inert(fmt.Sprintf("this is not a valid %s image (%v), so it is stored as binary data", i.name, err))
}

// inert changes the file's type and extension so that no viewer opens it as an image.
func (f *File) inert(why string) {
	f.Type, f.Ext, f.Pixels, f.Odd = "application/octet-stream", ".bin", 0, why
	if text(f.Data) {
		f.Type, f.Ext = "text/plain", ".txt"
	}
}

// sniff determines the type of a file that is not an image. It uses the extension if possible, and otherwise the bytes.
func (f *File) sniff() {
	if f.Ext != "" {
		f.Type = mime.TypeByExtension(f.Ext)
	}
	if f.Type == "" {
		f.Type = http.DetectContentType(f.Data)
	}
	f.Type, _, _ = strings.Cut(f.Type, ";")
	if f.Ext == "" {
		f.Ext = fitting[f.Type]
	}
}

// fitting maps a media type to the extension for a file that has none.
var fitting = map[string]string{
	"application/pdf":    ".pdf",
	"application/x-gzip": ".gz",
	"application/zip":    ".zip",
	"text/plain":         ".txt",
}

// extension returns a name's extension in lower case, or "" if the extension is too long or unusual.
func extension(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	odd := func(r rune) bool { return r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if len(ext) > 16 || strings.ContainsFunc(ext, odd) {
		return ""
	}
	return ext
}

// svg reports whether a file is an SVG image or claims to be one.
func svg(ext string, data []byte) bool {
	head := bytes.ToLower(data[:min(len(data), 4<<10)])
	return ext == ".svg" || ext == ".svgz" || ext == "" && bytes.Contains(head, []byte("<svg"))
}

func text(data []byte) bool { return strings.HasPrefix(http.DetectContentType(data), "text/") }

func plainWord(data []byte) string {
	if text(data) {
		return "text"
	}
	return "binary data"
}
