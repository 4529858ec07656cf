package media

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"runtime/debug"

	"github.com/HugoSmits86/nativewebp"
	"golang.org/x/image/webp"
)

// MaxConvert is the maximum number of pixels of an image that ToWebP converts. Converting a screenshot of 1920 × 1080
// pixels, which is just below this limit, takes about 130 MiB of memory.
const MaxConvert = 1 << 21

// ToWebP converts the image to lossless WebP if the result is smaller. It returns a clause that says why the file stays
// unchanged, or "" if the file was converted, is already WebP, or is not an image. A file that cannot be decoded is
// made inert, and its field Odd says why.
func (f *File) ToWebP() (kept string) {
	if !f.MayConvert() {
		return f.fixed()
	}
	defer debug.FreeOSMemory() // otherwise this image's garbage would still be in memory during the next conversion
	pixels, err := f.decode()
	if err != nil {
		f.damaged(imageOf(f.Data), err)
		return ""
	}
	if pixels == nil {
		return "it does not fill its canvas"
	}
	coded := encode(pixels)
	switch {
	case coded == nil:
		return "it could not be encoded without loss"
	case len(coded) >= len(f.Data):
		return fmt.Sprintf("the WebP image (%d bytes) would not be small enough compared with the original (%d bytes)", len(coded), len(f.Data))
	}
	f.Data, f.Type, f.Ext, f.layout.webp = coded, WebP, webpExt, true
	return ""
}

// MayConvert reports whether ToWebP would decode the image. If not, ToWebP returns its reason immediately.
func (f *File) MayConvert() bool { return f.Pixels > 0 && !f.layout.webp && f.fixed() == "" }

// fixed returns a clause that says why the image may not be converted, or "" if it may be.
func (f *File) fixed() string {
	switch {
	case f.Pixels == 0 || f.layout.webp:
		return ""
	case f.layout.fixed != "":
		return f.layout.fixed
	case f.Pixels > MaxConvert:
		return fmt.Sprintf("it has %d pixels, over the limit of %d", f.Pixels, MaxConvert)
	}
	return ""
}

// decode decodes the image. It returns nil if the image's size differs from the size in its header.
func (f *File) decode() (m image.Image, err error) {
	defer func() { // images are untrusted, and a panic in a decoder must not stop the server
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("%v", r)
		}
	}()
	m, err = imageOf(f.Data).decode(bytes.NewReader(f.Data))
	if err != nil || m.Bounds() != image.Rect(0, 0, f.layout.width, f.layout.height) {
		return nil, err
	}
	return m, nil
}

// encode encodes an image, and decodes the result to check it. The encoder does not limit the length of its Huffman
// codes, so in rare cases it produces a wrong image. encode returns nil if the result is wrong.
func encode(m image.Image) (coded []byte) {
	defer func() {
		if recover() != nil {
			coded = nil
		}
	}()
	var out bytes.Buffer
	if err := nativewebp.Encode(&out, m, nil); err != nil {
		return nil
	}
	back, err := webp.Decode(bytes.NewReader(out.Bytes()))
	if err != nil || !bytes.Equal(plainPixels(m), plainPixels(back)) {
		return nil
	}
	return out.Bytes()
}

// plainPixels returns the pixels of an image, with four bytes per pixel.
func plainPixels(m image.Image) []byte {
	if n, ok := m.(*image.NRGBA); ok && n.Stride == 4*n.Rect.Dx() {
		return n.Pix
	}
	n := image.NewNRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(n, n.Rect, m, m.Bounds().Min, draw.Src)
	return n.Pix
}
