package media

import (
	"bytes"
	"image"
	"image/color"
	"testing"

	"golang.org/x/image/webp"
)

// TestLossless checks that an image of each kind can be restored pixel by pixel from its WebP version.
func TestLossless(t *testing.T) {
	t.Parallel()
	gray := image.NewGray(image.Rect(0, 0, 50, 40))
	for i := range gray.Pix {
		gray.Pix[i] = uint8(i / 50 * 6)
	}
	indexed := image.NewPaletted(image.Rect(0, 0, 33, 21), color.Palette{color.White, color.Black, color.NRGBA{200, 0, 0, 100}})
	for i := range indexed.Pix {
		indexed.Pix[i] = uint8(i / 7 % 3)
	}
	for what, data := range map[string]string{
		"colors":    asPNG(t, drawn(200, 130)),
		"grays":     asPNG(t, gray),
		"a palette": asPNG(t, indexed),
		"one pixel": asPNG(t, drawn(1, 1)),
		"one line":  asPNG(t, drawn(300, 1)),
		"one frame": asGIF(t, 64, 64, 1),
	} {
		f := New("x", []byte(data))
		want, err := f.decode()
		if err != nil {
			t.Fatal(err)
		}
		coded := encode(want)
		got, err := webp.Decode(bytes.NewReader(coded))
		if err != nil || !bytes.Equal(plainPixels(want), plainPixels(got)) {
			t.Errorf("%s: the pixels differ (%v)", what, err)
		}
		smaller := len(coded) < len(data)
		if kept := f.ToWebP(); (kept == "") != smaller || (f.Type == "image/webp") != smaller || len(f.Data) != min(len(coded), len(data)) {
			t.Errorf("%s: %s, %d bytes of %d, %q", what, f.Type, len(f.Data), len(data), kept)
		}
		if again := New("x.webp", coded); again.ToWebP() != "" || again.Odd != "" || !bytes.Equal(again.Data, coded) {
			t.Errorf("%s: converted again: %q", what, again.Odd)
		}
	}
}

// TestPlainFiles checks that a file that is not an image keeps its extension, or gets one if it has none.
func TestPlainFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, data, want string }{
		{"page.html", "<html><svg/></html>", "text/html .html"},
		{"notes", "notes\n", "text/plain .txt"},
		{"paper", "%PDF-1.7", "application/pdf .pdf"},
		{"x.Go-Code", "x", "text/plain .txt"},
		{"x.veryveryveryverylong", "x", "text/plain .txt"},
		{"blob", "\x00\x01\x02", "application/octet-stream "},
		{"blob.Q7", "\x00\x01\x02", "application/octet-stream .q7"},
	} {
		if f := New(tt.name, []byte(tt.data)); f.Type+" "+f.Ext != tt.want || f.Odd != "" || f.Pixels != 0 {
			t.Errorf("%s: %s %s %s", tt.name, f.Type, f.Ext, f.Odd)
		}
	}
}
