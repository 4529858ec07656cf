package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"golang.org/x/image/webp"
)

// layout describes an image, as found by the walk function of the image's format.
type layout struct {
	width, height int
	webp          bool
	fixed         string // a clause that says why the image keeps its format; empty if it may be converted
}

// imageFormat is a known image format.
type imageFormat struct {
	name, mediaType string
	exts            []string // the first one is used for stored files
	magic           string   // first bytes; a ? means any byte
	config          func(io.Reader) (image.Config, error)
	decode          func(io.Reader) (image.Image, error)
	walk            func(data []byte) (layout, error) // reads to the end of the image; data must begin with magic
}

var imageFormats = [...]imageFormat{
	{
		name:      "PNG",
		mediaType: "image/png",
		exts:      []string{".png", ".apng"},
		magic:     "\x89PNG\r\n\x1a\n",
		config:    png.DecodeConfig,
		decode:    png.Decode,
		walk:      walkPNG,
	},
	{
		name:      "JPEG",
		mediaType: jpegType,
		exts:      []string{".jpg", ".jpeg", ".jpe"},
		magic:     "\xff\xd8\xff",
		config:    jpeg.DecodeConfig,
		decode:    jpeg.Decode,
		walk:      walkJPEG,
	},
	{
		name:      "GIF",
		mediaType: "image/gif",
		exts:      []string{".gif"},
		magic:     "GIF8?a",
		config:    gif.DecodeConfig,
		decode:    gif.Decode,
		walk:      walkGIF,
	},
	{
		name:      "WebP",
		mediaType: WebP,
		exts:      []string{webpExt},
		magic:     "RIFF????WEBP",
		config:    webpConfig,
		decode:    webp.Decode,
		walk:      walkWebP,
	},
}

// WebP is the media type of the images that ToWebP creates.
const WebP = "image/webp"

const jpegType = "image/jpeg"

const webpExt = ".webp"

func (i *imageFormat) named(ext string) bool { return slices.Contains(i.exts, ext) }

// imageOf returns the image format that the first bytes indicate, or nil.
func imageOf(data []byte) *imageFormat {
	for i := range imageFormats {
		f := &imageFormats[i]
		if len(data) < len(f.magic) {
			continue
		}
		same := true
		for at := range len(f.magic) {
			same = same && (f.magic[at] == '?' || f.magic[at] == data[at])
		}
		if same {
			return f
		}
	}
	return nil
}

const animated = "it is animated"

// errCut means that the data ends before the image is complete.
var errCut = errors.New("it is incomplete")

// walkPNG reads all chunks up to IEND and verifies their checksums.
func walkPNG(data []byte) (l layout, err error) {
	for at := len("\x89PNG\r\n\x1a\n"); len(data)-at >= 12; {
		size := int64(binary.BigEndian.Uint32(data[at:]))
		if size > int64(len(data)-at-12) {
			return l, errCut
		}
		end := at + 8 + int(size)
		kind, body := string(data[at+4:at+8]), data[at+8:end]
		if crc32.ChecksumIEEE(data[at+4:end]) != binary.BigEndian.Uint32(data[end:]) {
			return l, errors.New("a checksum is wrong")
		}
		switch {
		case kind == "IEND":
			return l, nil
		case kind == "acTL":
			l.fixed = animated
		case kind == "IHDR" && len(body) > 8 && body[8] == 16:
			l.fixed = "it has 16 bits per color, and WebP has only 8"
		}
		at = end + 4
	}
	return l, errCut
}

// maxScans is the maximum number of scans in a JPEG image. Each scan requires a pass over all pixels, even if it
// contains only a few bytes. Encoders write about ten scans.
const maxScans = 100

// walkJPEG reads all segments up to the end of the image.
func walkJPEG(data []byte) (l layout, err error) {
	scans := 0
	const startOfScan, endOfImage, app1 = 0xda, 0xd9, 0xe1
	for at := 2; at+2 <= len(data); {
		marker := data[at+1]
		switch {
		case data[at] != 0xff:
			return l, errors.New("a segment does not begin with a marker")
		case marker == 0xff: // a fill byte
			at++
			continue
		case marker == endOfImage:
			return l, nil
		case at+4 > len(data):
			return l, errCut
		}
		end := at + 2 + int(binary.BigEndian.Uint16(data[at+2:]))
		if end > len(data) {
			return l, errCut
		}
		if marker == app1 && bytes.HasPrefix(data[at+4:end], []byte("Exif\x00")) {
			l.fixed = "it contains Exif data, such as its orientation, that the conversion to WebP would lose"
		}
		if marker == startOfScan {
			if scans++; scans > maxScans {
				return l, errors.New("it has too many progressive scans")
			}
			end += scanLength(data[end:])
		}
		at = end
	}
	return l, errCut
}

// scanLength returns the number of bytes of coded data in a JPEG scan, up to the next marker.
func scanLength(data []byte) int {
	for at := 0; at+1 < len(data); at++ {
		restart := data[at+1] >= 0xd0 && data[at+1] <= 0xd7
		if data[at] == 0xff && data[at+1] != 0 && !restart {
			return at
		}
	}
	return len(data)
}

// walkGIF reads all blocks up to the trailer and counts the frames.
func walkGIF(data []byte) (l layout, err error) {
	const header, descriptor = 13, 10
	if len(data) < header {
		return l, errCut
	}
	frames := 0
	for at := header + colorTable(data[10]); at < len(data); {
		switch data[at] {
		case ';':
			return l, nil
		case '!':
			at += 2
		case ',':
			if len(data)-at < descriptor {
				return l, errCut
			}
			if frames++; frames > 1 {
				l.fixed = animated
			}
			at += descriptor + colorTable(data[at+9]) + 1
		default:
			return l, errors.New("a block has an unknown type")
		}
		for at < len(data) && data[at] != 0 { // sub-blocks
			at += 1 + int(data[at])
		}
		at++
	}
	return l, errCut
}

// colorTable returns the size in bytes of a GIF's color table, given the packed flags.
func colorTable(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// webpConfig is like webp.DecodeConfig, but also reads the canvas size of an animated image, which the decoder ignores.
func webpConfig(r io.Reader) (c image.Config, err error) {
	var head [30]byte
	if _, err := io.ReadFull(r, head[:20]); err != nil {
		return c, errCut
	}
	if string(head[12:16]) != "VP8X" {
		return webp.DecodeConfig(io.MultiReader(bytes.NewReader(head[:20]), r))
	}
	if _, err := io.ReadFull(r, head[20:]); err != nil {
		return c, errCut
	}
	uint24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	c.Width, c.Height = 1+uint24(head[24:]), 1+uint24(head[27:])
	return c, nil
}

// walkWebP reads all chunks up to the length stated in the file.
func walkWebP(data []byte) (l layout, err error) {
	l.webp = true
	end := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	if end > int64(len(data)) {
		return l, errCut
	}
	for at := int64(len("RIFF????WEBP")); at < end; {
		if end-at < 8 {
			return l, errCut
		}
		at += 8 + (int64(binary.LittleEndian.Uint32(data[at+4:]))+1)&^1 // chunks begin at even offsets
		if at > end {
			return l, errCut
		}
	}
	return l, nil
}
