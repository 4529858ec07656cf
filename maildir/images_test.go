package maildir_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/HugoSmits86/nativewebp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// picture returns a PNG image that becomes smaller as WebP. The file size is 160 kB with noise, and about 100 bytes
// without.
func picture(t *testing.T, noise bool) []byte {
	t.Helper()
	m, r := image.NewNRGBA(image.Rect(0, 0, 200, 200)), rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = 255
		if noise {
			m.Pix[i] = uint8(r.Uint32())
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeFile(t *testing.T, p *maildir.Project, name string, data []byte) {
	t.Helper()
	file := filepath.Join(p.Dir(), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// shown returns a message's body, with long words shortened, and all its notes.
func shown(m *maildir.Sent) string {
	s := regexp.MustCompile(`(base64,|[0-9a-f]{2}/)[A-Za-z0-9+/=]{40,}`).ReplaceAllString(m.Body, "$1…")
	s = regexp.MustCompile(`attachments/[0-9a-f]{2}/`).ReplaceAllString(s, "attachments/xx/")
	for _, a := range m.Attachments {
		s += " [" + a.Name + " " + a.MediaType + "]"
	}
	for _, n := range m.Notes {
		s += " " + n.Error()
	}
	return s
}

// TestBodyImages checks what each policy does with an image in a body, which may be given as a path or as a data URI.
func TestBodyImages(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	small, large := picture(t, false), picture(t, true)
	writeFile(t, p, "docs/my flow.png", small)
	writeFile(t, p, "large.png", large)
	writeFile(t, p, "logo.svg", []byte("<svg onload='x()'/>"))
	writeFile(t, p, "half.png", small[:len(small)/2])
	uri := "data:image/png;base64," + base64.StdEncoding.EncodeToString(small)
	for _, tt := range []struct {
		body   string
		images attachment.Images
		want   string
	}{
		{"![f](docs/my%20flow.png)", attachment.Images{}, "![f](data:image/webp;base64,…)"},
		{"![f](<docs/my flow.png>)", attachment.Images{Embed: attachment.ImagesFile},
			"![f](attachments/xx/….webp) [my flow.webp image/webp]"},
		{"![f](docs/my flow.png) <img src=\"docs/my flow.png\">", attachment.Images{Embed: attachment.ImagesFile},
			"![f](attachments/xx/….webp) <img src=\"attachments/xx/….webp\"> [my flow.webp image/webp]"},
		{"<img src='docs/my%20flow.png'>", attachment.Images{}, "<img src='data:image/webp;base64,…'>"},
		{"![f](" + uri + ")", attachment.Images{}, "![f](data:image/webp;base64,…)"},
		{"![f](" + uri + ") ![g](docs/my%20flow.png)", attachment.Images{MaxInline: -1},
			"![f](attachments/xx/….webp) ![g](attachments/xx/….webp) [image.webp image/webp]"},
		{"![f](" + uri + ")", attachment.Images{Convert: attachment.ConvertNone, Embed: attachment.ImagesFile},
			"![f](attachments/xx/….png) [image.png image/png]"},
		{"![f](large.png)", attachment.Images{}, "![f](attachments/xx/….webp) [large.webp image/webp]"},
		{"![f](docs/my%20flow.png)", attachment.Images{Embed: attachment.ImagesInline, MaxInline: 9},
			"![f](attachments/xx/….webp) [my flow.webp image/webp]" +
				` The image "docs/my%20flow.png" is N bytes long, over the limit of 9 for images in the body, so it was stored as a file.`},
		{"![f](logo.svg)", attachment.Images{}, "![f](attachments/xx/….txt) [logo.svg text/plain]" +
			` The attachment "logo.svg" is stored with a different type than its name suggests: an SVG image can contain scripts, so it is stored as text.`},
		{"![f](half.png)", attachment.Images{}, "![f](attachments/xx/….bin) [half.png application/octet-stream]" +
			` The attachment "half.png" is stored with a different type than its name suggests: this is not a valid PNG image (it is incomplete), so it is stored as binary data.`},
		{"![f](none.png) `![f](large.png)`", attachment.Images{}, "![f](none.png) `![f](large.png)`" +
			` The attachment "none.png" was not found, or the server is not allowed to read it. The server reads attachments ` +
			`from the project's code base (if it is the top of a Git working tree), the mail tree, and the folders configured for attachments. ` +
			`It does not read hidden files or folders, and it does not follow links. The reference to the image in the body was left unchanged.`},
		{"![f](data:image/png;base64,?) ![](https://example.org/large.png) ![](//x) ![](#y)", attachment.Images{},
			"![f](data:image/png;base64,?) ![](https://example.org/large.png) ![](//x) ![](#y)" +
				` The data URI "data:image/png;base64,…" cannot be decoded. The reference to the image in the body was left unchanged.`},
		{"![f](../../../token) ![f](/etc/passwd) ![f](.git/config)", attachment.Images{},
			"![f](../../../token) ![f](/etc/passwd) ![f](.git/config)"},
	} {
		sent := send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: tt.body, Images: &tt.images})
		got := regexp.MustCompile(`is \d+ bytes long`).ReplaceAllString(shown(sent), "is N bytes long")
		if got != tt.want && !(strings.Contains(tt.body, "passwd") && strings.HasPrefix(got, tt.want) && len(sent.Notes) == 3) {
			t.Errorf("%.60s %+v\ngot  %s\nwant %s", tt.body, tt.images, got, tt.want)
		}
		for _, a := range sent.Attachments {
			if fi, err := os.Stat(filepath.Join(p.Dir(), a.Path)); err != nil || fi.Size() != a.Bytes {
				t.Errorf("%s: %v", a.Path, err)
			}
		}
	}
	if stored, _ := filepath.Glob(filepath.Join(p.Dir(), "attachments/*/*")); len(stored) != 5 {
		t.Errorf("stored %q, want it only once, however often it was sent", stored)
	}
	plain := send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "![f](large.png)"})
	if plain.Body != "![f](large.png)" || len(plain.Attachments) != 0 {
		t.Errorf("a draft without Images: %+v", plain)
	}
}

// TestImageTooLarge checks that the note says whether a single image is too large or the images together are too large.
func TestImageTooLarge(t *testing.T) {
	t.Parallel()
	uri := func(size int) string {
		return "![](data:text/plain;base64," + base64.StdEncoding.EncodeToString(make([]byte, size)) + ")"
	}
	pixels := func(width, height int) string {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
			t.Fatal(err)
		}
		return "![](data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()) + ")"
	}
	p := project(t, storetest.Config{NoWatcher: true, Attachments: attachment.Settings{MaxFile: 1000, MaxTotal: 1500}}, "Ann")
	wide := project(t, storetest.Config{NoWatcher: true}, "Ann")
	const left = " The reference to the image in the body was left unchanged."
	for _, tt := range []struct {
		p    *maildir.Project
		body string
		want string
	}{
		{p, uri(1001), `The file "data:text/plain;base64,…" is 1001 bytes long, over the limit of 1000 for one file.` + left},
		{p, uri(900) + uri(901), `The file "data:text/plain;base64,…" is 901 bytes long and would take this message's attachments ` +
			`over the limit of 1500 bytes: send it in another message.` + left},
		{wide, pixels(3000, 3000), `The image "data:image/png;base64,…" was not converted to WebP: ` +
			`it has 9000000 pixels, over the limit of 2097152.`},
	} {
		sent := send(t, tt.p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: tt.body, Images: &attachment.Images{}})
		if len(sent.Notes) != 1 || sent.Notes[0].Error() != tt.want {
			t.Errorf("got  %q\nwant %s", sent.Notes, tt.want)
		}
	}
}

// TestImagePolicy checks that the store's policy applies if the sender chooses none. An image in the body that is
// also attached must be treated as an attachment, and attachments must be converted only on request.
func TestImagePolicy(t *testing.T) {
	t.Parallel()
	data := picture(t, false)
	for _, tt := range []struct {
		policy attachment.ImagePolicy
		images attachment.Images
		want   string
	}{
		{"", attachment.Images{}, "![](data:image/webp;base64,…)"},
		{attachment.ImagesFile, attachment.Images{}, "![](attachments/xx/….webp) [x.webp image/webp]"},
		{attachment.ImagesKeep, attachment.Images{}, "![](data:image/png;base64,…)"},
		{attachment.ImagesKeep, attachment.Images{Convert: attachment.ConvertAll}, "![](data:image/webp;base64,…)"},
		{attachment.ImagesFile, attachment.Images{Convert: attachment.ConvertAll}, "![](attachments/xx/….webp) [x.webp image/webp]"},
		{attachment.ImagesFile, attachment.Images{Embed: attachment.ImagesAuto}, "![](data:image/webp;base64,…)"},
		{"attached", attachment.Images{}, "![](attachments/xx/….png) [x.png image/png]"},
		{"attached", attachment.Images{Convert: attachment.ConvertAll}, "![](attachments/xx/….webp) [x.webp image/webp]"},
	} {
		var attached []string
		if tt.policy == "attached" {
			tt.policy, attached = "", []string{"x.png"}
		}
		p := project(t, storetest.Config{NoWatcher: true, Attachments: attachment.Settings{Images: tt.policy}}, "Ann")
		writeFile(t, p, "x.png", data)
		sent := send(t, p, "Ann", maildir.Draft{
			To:          []string{"Ann"},
			Subject:     "s",
			Body:        "![](x.png)",
			Attachments: attached,
			Images:      &tt.images,
		})
		if got := shown(sent); got != tt.want {
			t.Errorf("%s %+v\ngot  %s\nwant %s", tt.policy, tt.images, got, tt.want)
		}
	}
}

// photo returns a JPEG image with the grain of a photograph, and the same image without the grain. The second image is
// used as the output of cwebp.
func photo(t *testing.T) (grainy, coded []byte) {
	t.Helper()
	m, r := image.NewNRGBA(image.Rect(0, 0, 64, 64)), rand.New(rand.NewPCG(1, 2))
	var b, c bytes.Buffer
	err := nativewebp.Encode(&c, m, nil)
	for i := range m.Pix {
		m.Pix[i] = uint8(i/64) + uint8(r.Uint32()%9)
	}
	if err = errors.Join(err, jpeg.Encode(&b, m, &jpeg.Options{Quality: 100})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), c.Bytes()
}

// TestPhoto checks that a photo is converted with loss only if the sender requests the conversion and the result is at
// least a fifth smaller. Unless conversion is turned off, the sender must get a note that says what happened.
func TestPhoto(t *testing.T) {
	t.Parallel()
	data, coded := photo(t)
	wide := "RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x3f\x00\x00"
	all := attachment.Images{Convert: attachment.ConvertAll, Embed: attachment.ImagesFile}
	const as = " [x.webp image/webp] The image \"x.jpg\" was converted to WebP with some loss of detail: N bytes instead of N."
	const kept = ` [x.jpg image/jpeg] The image "x.jpg" was not converted to WebP: `
	for what, tt := range map[string]struct {
		images attachment.Images
		coded  string
		err    error
		want   string
	}{
		"requested":             {images: all, coded: string(coded), want: "![](attachments/xx/….webp)" + as},
		"not requested":         {images: attachment.Images{Embed: attachment.ImagesFile}, coded: string(coded), want: kept + "the WebP image (N bytes) would not be small enough compared with the original (N bytes)."},
		"slightly smaller":      {images: all, coded: string(padded(coded, len(data)*9/10)), want: kept + "the WebP image (N bytes) would not be small enough compared with the original (N bytes)."},
		"different image":       {images: all, coded: wide, want: kept + "cwebp did not return a WebP image of the same size."},
		"not an image":          {images: all, coded: "x", want: kept + "cwebp did not return a WebP image of the same size."},
		"conversion failed":     {images: all, err: errors.New("no room"), want: kept + "cwebp could not convert it: no room."},
		"conversion turned off": {images: attachment.Images{Convert: attachment.ConvertNone, Embed: attachment.ImagesFile}, want: "[x.jpg image/jpeg]"},
	} {
		code := func(_ context.Context, jpeg []byte) ([]byte, error) {
			if !bytes.Equal(jpeg, data) {
				t.Errorf("%s: the wrong bytes were encoded", what)
			}
			return []byte(tt.coded), tt.err
		}
		p := project(t, storetest.Config{NoWatcher: true, Attachments: attachment.Settings{CodePhoto: code}}, "Ann")
		writeFile(t, p, "x.jpg", data)
		sent := send(t, p, "Ann", maildir.Draft{
			To:      []string{"Ann"},
			Subject: "s",
			Body:    "![](x.jpg)",
			Images:  &tt.images,
		})
		got := regexp.MustCompile(`\d+ bytes|of \d+[.,]`).ReplaceAllStringFunc(shown(sent), func(s string) string {
			return regexp.MustCompile(`\d+`).ReplaceAllString(s, "N")
		})
		if !strings.HasSuffix(strings.ReplaceAll(got, " of the body", ""), tt.want) {
			t.Errorf("%s\ngot  %s\nwant %s", what, got, tt.want)
		}
	}
}

// padded returns a WebP image that has been extended to size bytes with an unused chunk.
func padded(webp []byte, size int) []byte {
	size -= size % 2
	rest := size - len(webp) - 8
	out := append(slices.Clone(webp), "JUNK"...)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(rest)), make([]byte, rest)...)
	binary.LittleEndian.PutUint32(out[4:], uint32(size-8))
	return out
}

// TestImageForwarded checks that if a body refers to a stored image, the image becomes part of the message, and no
// second file is created. Sending the message again with the same key must return the first message.
func TestImageForwarded(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	writeFile(t, p, "x.png", picture(t, false))
	file := &attachment.Images{Embed: attachment.ImagesFile}
	d := maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "![](x.png)", Images: file, Key: "k"}
	first := send(t, p, "Ann", d)
	if again := send(t, p, "Ann", d); !again.Again || again.ID != first.ID {
		t.Errorf("sent again: %+v", again)
	}
	reply, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), first.ID, maildir.Draft{Body: first.Body, Images: &attachment.Images{}})
	if err != nil || reply.Body != first.Body || len(reply.Attachments) != 1 || reply.Attachments[0].Path != first.Attachments[0].Path {
		t.Errorf("forwarded: %+v, %v", reply, err)
	}
}

// TestReadAttachment checks that an attachment can be read by the hash of its content, provided that it is within the
// size limit and its content still matches the hash.
func TestReadAttachment(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	writeFile(t, p, "a.txt", []byte("text"))
	sent := send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{"a.txt"}}).Attachments[0]
	got, err := p.Attachment(strings.ToUpper(sent.SHA1), 4)
	if err != nil || string(got.Data) != "text" || got.Path != sent.Path || got.MediaType != "text/plain" {
		t.Errorf("%+v, %v", got, err)
	}
	refused := func(sum string, limit int64, kind error) {
		t.Helper()
		if _, err := p.Attachment(sum, limit); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", sum, err, kind)
		}
	}
	refused(sent.SHA1, 3, maildir.ErrTooLarge)
	for _, none := range []string{"", "a", strings.Repeat("0", 40), "../" + sent.SHA1[3:], sent.SHA1[:39], sent.SHA1 + ".txt"} {
		refused(none, 4, maildir.ErrNotFound)
	}
	writeFile(t, p, sent.Path, []byte("else"))
	refused(sent.SHA1, 4, maildir.ErrConflict)
}
