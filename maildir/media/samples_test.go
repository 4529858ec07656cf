package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/HugoSmits86/nativewebp"
)

// The following functions build images and parts of images.

func chunk(kind, body string) string {
	sum := crc32.ChecksumIEEE([]byte(kind + body))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + kind + body + string(binary.BigEndian.AppendUint32(nil, sum))
}

func ihdr(width, height uint32, depth, kind, interlaced byte) string {
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return chunk("IHDR", string(size)+string([]byte{depth, kind, 0, 0, interlaced}))
}

func pngOf(chunks ...string) string {
	return "\x89PNG\r\n\x1a\n" + strings.Join(chunks, "") + chunk("IEND", "")
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func webpOf(chunks string) string {
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(4+len(chunks)))) + "WEBP" + chunks
}

// drawn returns an image with a regular pattern.
func drawn(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x / 8 * 16), uint8(y / 8 * 16), uint8(x ^ y), uint8(255 - y/16%2)})
		}
	}
	return m
}

// noise returns an image that cannot be compressed.
func noise(width, height int) *image.NRGBA {
	m, r := image.NewNRGBA(image.Rect(0, 0, width, height)), rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(r.Uint32())
	}
	return m
}

// skewed returns an image whose color frequencies grow like the Fibonacci numbers, so that their Huffman codes are as
// long as possible.
func skewed(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	at := 0
	for a, b, value := 1, 1, 0; at < width*height; a, b, value = b, a+b, value+1 {
		for range min(a, width*height-at) {
			to := at * 7919 % (width * height)
			m.SetNRGBA(to%width, to/width, color.NRGBA{uint8(value * 37), uint8(value * 91), uint8(value * 13), 255})
			at++
		}
	}
	return m
}

func encoded(t testing.TB, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func asPNG(t testing.TB, m image.Image) string {
	return encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, m) })
}

func asJPEG(t testing.TB, m image.Image) string {
	return encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) })
}

func asWebP(t testing.TB, m image.Image) string {
	return encoded(t, func(b *bytes.Buffer) error { return nativewebp.Encode(b, m, nil) })
}

func asGIF(t testing.TB, width, height, frames int) string {
	all := gif.GIF{Config: image.Config{Width: width, Height: height}}
	for i := range frames {
		f := image.NewPaletted(image.Rect(0, 0, min(width, 64), min(height, 64)), color.Palette{color.White, color.Black})
		f.Pix[0] = uint8(i % 2)
		all.Image, all.Delay = append(all.Image, f), append(all.Delay, 1)
	}
	return encoded(t, func(b *bytes.Buffer) error { return gif.EncodeAll(b, &all) })
}
