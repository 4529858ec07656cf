package media

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

// HeadBytes is how much of a file Picture looks at.
const HeadBytes = 256 << 10

// Picture returns the media type of an image that a viewer may open: a file of a known format, as both its
// extension and its first bytes say, of at most MaxPixels. It returns "" for any other file. head are the
// first HeadBytes of the file, or all of it.
func Picture(name string, head []byte) string {
	i := imageOf(head)
	if i == nil || !i.named(strings.ToLower(filepath.Ext(name))) {
		return ""
	}
	size, err := i.config(bytes.NewReader(head))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width > MaxPixels/size.Height {
		return ""
	}
	return i.mediaType
}

// NamesPicture reports whether the extension of a name is that of a known image format.
func NamesPicture(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return slices.ContainsFunc(imageFormats[:], func(i imageFormat) bool { return i.named(ext) })
}
