package media

import (
	"cmp"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mostMemory is the maximum memory, in kB, of a process that calls New and ToWebP for hostile images.
const mostMemory = 256 << 10

// hostileImages returns images, and files that claim to be images, each with the expected result.
func hostileImages(t testing.TB) []sample {
	t.Helper()
	small := drawn(64, 64)
	p, j, w := asPNG(t, small), asJPEG(t, small), asWebP(t, small)
	g, film := asGIF(t, 64, 64, 1), asGIF(t, 64, 64, 200)
	point := chunk("IDAT", deflated("\x00\x00\x00\x00\x00"))
	zeros := strings.Repeat("\x00", 64<<20)
	deep := image.NewNRGBA64(image.Rect(0, 0, 1024, 1024))
	flag := func(s string, at int, b byte) string { return s[:at] + string(b) + s[at+1:] }
	frame := strings.Index(j, "\xff\xc0") // height and width follow after five bytes
	huge := j[:frame+5] + "\xff\xff\xff\xff" + j[frame+9:]
	scan := strings.Index(j, "\xff\xda")
	return []sample{
		{"PNG of 4,000 million pixels.png", pngOf(ihdr(65535, 65535, 8, 6, 0), chunk("IDAT", deflated("x"))), ".bin too many pixels"},
		{"PNG of the widest kind.png", pngOf(ihdr(1<<31-1, 1, 8, 6, 0), chunk("IDAT", deflated("x"))), ".bin too many pixels"},
		{"PNG that overflows.png", pngOf(ihdr(1<<31-1, 1<<31-1, 16, 6, 0)), ".bin not a valid PNG"},
		{"PNG of no width.png", pngOf(ihdr(0, 9, 8, 6, 0)), ".bin not a valid PNG"},
		{"PNG of 49 million pixels.png", pngOf(ihdr(7000, 7000, 1, 0, 0), chunk("IDAT", deflated(zeros[:7000*876]))),
			".png over the limit"},
		{"PNG interlaced, the largest that is converted.png",
			pngOf(ihdr(2048, 1024, 8, 6, 1), chunk("IDAT", deflated(zeros[:8<<20+1920]))), ".webp"},
		{"PNG of noise and as large.png", asPNG(t, noise(2048, 1024)), ""},
		{"PNG with codes as long as can be.png", asPNG(t, skewed(512, 512)), ""},
		{"PNG of 16 bits.png", asPNG(t, deep), ".png 16 bits"},
		{"PNG cut off.png", p[:len(p)/2], ".bin not a valid PNG"},
		{"PNG without its end.png", strings.TrimSuffix(p, chunk("IEND", "")), ".bin not a valid PNG"},
		{"PNG with a wrong byte.png", flag(p, 50, p[50]^1), ".bin not a valid PNG"},
		{"PNG without pixels.png", pngOf(ihdr(64, 64, 8, 6, 0)), ".bin not a valid PNG"},
		{"PNG of rubbish.png", pngOf(ihdr(64, 64, 8, 6, 0), chunk("IDAT", "rubbish")), ".bin not a valid PNG"},
		{"PNG of too few pixels.png", pngOf(ihdr(64, 64, 8, 6, 0), chunk("IDAT", deflated("x"))), ".bin not a valid PNG"},
		{"PNG with 64 MiB behind its pixels.png", pngOf(ihdr(1, 1, 8, 6, 0), chunk("IDAT", deflated(zeros))), ""},
		{"PNG with a text of 64 MiB.png", pngOf(ihdr(1, 1, 8, 6, 0), chunk("zTXt", "a\x00\x00"+deflated(zeros)), point), ".webp"},
		{"PNG with a color profile of 64 MiB.png", pngOf(ihdr(1, 1, 8, 6, 0), chunk("iCCP", "a\x00\x00"+deflated(zeros)), point), ".webp"},
		{"PNG without its palette.png", pngOf(ihdr(64, 64, 8, 3, 0), chunk("IDAT", deflated(zeros[:5000]))), ".bin"},
		{"PNG, a chunk longer than the file.png", p[:33] + "\xff\xff\xff\xffIDAT", ".bin not a valid PNG"},
		{"PNG animated.png", pngOf(ihdr(1, 1, 8, 6, 0), chunk("acTL", zeros[:8]), point), ".png animated"},
		{"PNG, only the first bytes.png", p[:8], ".bin not a valid PNG"},
		{"JPEG of 4,000 million pixels.jpg", huge, ".bin too many pixels"},
		{"JPEG cut off.jpg", j[:len(j)-40], ".bin not a valid JPEG"},
		{"JPEG cut off behind a small picture.jpg",
			j[:2] + "\xff\xe1\x00\x0cExif\x00\x00\xff\xd9" + j[2:len(j)-40], ".bin not a valid JPEG"},
		{"JPEG without pixels.jpg", j[:2] + "\xff\xd9", ".bin not a valid JPEG"},
		{"JPEG with Exif data.jpg", j[:2] + "\xff\xe1\x00\x08Exif\x00\x00" + j[2:], ".jpg Exif"},
		{"JPEG of 5,000 scans.jpg", j[:scan] + strings.Repeat(j[scan:len(j)-2], 5000) + "\xff\xd9", ".bin too many progressive scans"},
		{"JPEG of noise.jpg", asJPEG(t, noise(256, 256)), ".jpg not be small enough"},
		{"GIF of 4,000 million pixels.gif", asGIF(t, 65535, 65535, 1), ".bin too many pixels"},
		{"GIF cut off.gif", g[:len(g)-20], ".bin not a valid GIF"},
		{"GIF animated.gif", film, ".gif animated"},
		{"GIF that does not fill its canvas.gif", asGIF(t, 500, 500, 1), ".gif canvas"},
		{"GIF with an unknown block.gif", flag(g, 13, 'x'), ".bin not a valid GIF"},
		{"WebP of 268 million pixels.webp", webpOf("VP8L\x06\x00\x00\x00\x2f\xff\xff\xff\x0f\x00"), ".bin too many pixels"},
		{"WebP of the largest canvas.webp",
			webpOf("VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff"), ".bin too many pixels"},
		{"WebP cut off.webp", w[:len(w)-10], ".bin not a valid WebP"},
		{"WebP, a chunk longer than the file.webp", flag(w, 19, 0x7f), ".bin not a valid WebP"},
		{"WebP.webp", w, ".webp"},
		{"SVG with a script.svg", "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", ".txt scripts"},
		{"SVG without a name", "<?xml version='1.0'?>\n<SVG onload='x()'/>", ".txt scripts"},
		{"SVG of entities.svg", "<!DOCTYPE svg [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><svg>&b;</svg>", ".txt scripts"},
		{"HTML that says PNG.png", "<html><script>alert(1)</script>", ".txt not an image of that type"},
		{"PHP that says JPEG.jpg", "<?php system($_GET['c']); ?>", ".txt not an image of that type"},
		{"ZIP that says GIF.gif", "PK\x03\x04\x00\x00\x00\x00", ".bin not an image of that type"},
		{"nothing that says PNG.png", "", ".txt not an image of that type"},
		{"PNG that says JPEG.jpg", p, ".webp a PNG image"},
		{"PNG that says text.txt", p, ".webp"},
	}
}

// sample is a file with the expected result.
type sample struct {
	name, data string
	want       string // the stored extension, a space, and text that the note contains; "" accepts any result
}

// TestHostile checks that only images are treated as images, and that a process that examines and converts all of the
// files stays below mostMemory.
func TestHostile(t *testing.T) {
	if dir := os.Getenv("MEDIA_HOSTILE"); dir != "" {
		convertAll(t, dir)
		return
	}
	dir, all := t.TempDir(), hostileImages(t)
	if len(all) < 30 {
		t.Errorf("%d images", len(all))
	}
	for i, s := range all {
		name := fmt.Sprintf("%02d%s", i, filepath.Ext(s.name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s.data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostile$")
	child.Env = append(os.Environ(), "MEDIA_HOSTILE="+dir)
	out, err := child.CombinedOutput()
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) <= len(all) {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, s := range all {
		ext, said, _ := strings.Cut(lines[i], " ")
		if wantExt, want, _ := strings.Cut(s.want, " "); ext != cmp.Or(wantExt, ext) || !strings.Contains(said, want) {
			t.Errorf("%s: stored as %s with the note %q", s.name, ext, said)
		}
	}
	kb, err := strconv.Atoi(strings.Fields(lines[len(all)])[1])
	if err != nil || kb > mostMemory && !slow {
		t.Errorf("%d kB of memory, allowed %d (%v)", kb, mostMemory, err)
	}
	t.Logf("%d kB of memory at most", kb)
}

// convertAll converts each file in a folder. It prints each file's extension and note and, at the end, the process's
// maximum memory use.
func convertAll(t *testing.T, dir string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range files {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f := New(strings.TrimLeft(e.Name(), "0123456789"), data)
		kept := f.ToWebP()
		fmt.Println(f.Ext, cmp.Or(f.Odd, kept))
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println("peak", strings.Fields(peak)[0])
}
