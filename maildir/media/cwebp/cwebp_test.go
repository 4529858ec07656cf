package cwebp

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/webp"
)

// photo returns a JPEG image of quality 100, with noise that resembles a photograph's grain.
func photo(t testing.TB, width, height int) []byte {
	t.Helper()
	m, r := image.NewRGBA(image.Rect(0, 0, width, height)), rand.New(rand.NewPCG(1, 2))
	for y := range height {
		for x := range width {
			grain := uint8(r.UintN(9))
			m.SetRGBA(x, y, color.RGBA{uint8(x*200/width) + grain, uint8(y*200/height) + grain, 90 + grain, 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReal checks the results of the real program for an image, an incomplete image, and data that is not an image.
func TestReal(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("cwebp")
	if err != nil {
		t.Skip("not done here: cwebp is not installed (Debian: webp)")
	}
	p, data := New(path, 0), photo(t, 400, 300)
	coded, err := p.Code(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	m, err := webp.Decode(bytes.NewReader(coded))
	if err != nil || m.Bounds() != image.Rect(0, 0, 400, 300) || 5*len(coded) > 4*len(data) {
		t.Errorf("%d bytes of %d: %v", len(coded), len(data), err)
	}
	if out, err := p.Code(t.Context(), data[:len(data)/9]); err == nil && len(out) > 0 {
		if _, err := webp.Decode(bytes.NewReader(out)); err != nil {
			t.Errorf("a JPEG that is cut off: %v", err)
		}
	}
	if out, err := p.Code(t.Context(), []byte("no image")); err == nil {
		t.Errorf("data that is not an image: %d bytes", len(out))
	}
}

// TestProgram checks how Code handles other programs named cwebp. A failing call must return in time and give the
// reason. The test is not parallel, because a process that another test starts would keep the script open for
// writing.
func TestProgram(t *testing.T) {
	for _, tt := range []struct {
		script, want string
		limit        time.Duration
	}{
		{"cat >/dev/null; echo webp", "", 0},
		{"echo no room >&2; exit 3", "exit status 3 no room", 0},
		{"cat; cat /dev/zero", "larger", 0},
		{"head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 3", "exit status 3 xxx", 0},
		{"sleep 60 & sleep 60", "timed out after 50ms", 50 * time.Millisecond},
		{`test "$(ulimit -v)" = 262144 && test -z "$HOME" || exit 4`, "", 0},
	} {
		path := filepath.Join(t.TempDir(), "cwebp")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := New(path, tt.limit).Code(t.Context(), []byte("jpeg image"))
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.script, err, tt.want)
		}
		if err != nil && len(err.Error()) > 5_000 {
			t.Errorf("%s: the error has %d bytes", tt.script, len(err.Error()))
		}
	}
}

func BenchmarkCode(b *testing.B) {
	path, err := exec.LookPath("cwebp")
	if err != nil {
		b.Skip("cwebp is not installed")
	}
	p, data := New(path, 0), photo(b, 3456, 2427)
	for b.Loop() {
		if _, err := p.Code(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
}
