package media

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
)

// HeadBytes is the number of bytes at the beginning of a file that Picture examines.
const HeadBytes = 256 << 10

// Picture returns the media type of an image that a viewer may open. Both the extension and the first bytes must
// indicate the same known format, and the image must have at most MaxPixels. Picture returns "" for any other file.
// head contains the first HeadBytes of the file, or the whole file.
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

// NamesPicture reports whether a name's extension belongs to a known image format.
func NamesPicture(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return slices.ContainsFunc(imageFormats[:], func(i imageFormat) bool { return i.named(ext) })
}
