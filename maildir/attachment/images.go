package attachment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
	"mailtree/maildir/markdown"
	"mailtree/maildir/media"
	"mailtree/maildir/refusal"
)

// Images specifies how to handle the images that a message's markdown includes by path or as data URIs. The message is
// sent with copies of these images, and its markdown refers to the copies. The zero value uses the store's settings.
//
// See docs/reference/tools.md, "Attachments and images".
type Images struct {
	Convert   Conversion
	Embed     ImagePolicy // empty means the store's policy
	MaxInline int         // maximum size in bytes of an image in the body; 0 means the store's setting, negative means no images
}

// Conversion specifies which images to convert to WebP.
type Conversion int

// The values of Conversion.
const (
	ConvertDefault Conversion = iota // images in the body, unless the store's policy is ImagesKeep
	ConvertAll                       // images in the body and among the attachments
	ConvertNone
)

// ImagePolicy specifies where to store the images in a body.
type ImagePolicy string

// The values of ImagePolicy. ImagesKeep is valid only as a store's policy.
const (
	ImagesAuto   ImagePolicy = "auto"   // small images in the body, larger ones in files
	ImagesFile   ImagePolicy = "file"   // all images in files
	ImagesInline ImagePolicy = "inline" // like ImagesAuto, but with a note for each image that is too large for the body
	ImagesKeep   ImagePolicy = "keep"   // like ImagesAuto, but images are converted only on request
)

// MaxInline is the default maximum size, in bytes, of an image in the body.
const MaxInline = 64 << 10

// maxConverted is the maximum number of pixels to convert for one message. Converting that many pixels takes about five
// seconds on one core.
const maxConverted = 4 * media.MaxConvert

// bodyImages adds copies of the images in the body to the message's files. It returns the body with references to the
// copies.
func (g *gathering) bodyImages(ctx context.Context) string {
	known := map[string]string{}
	body, whole := markdown.RewriteImages(g.r.Body, func(destination string) string {
		to, ok := known[destination]
		if !ok {
			to = g.bodyImage(ctx, destination)
			known[destination] = to
		}
		return to
	})
	if !whole {
		g.notes = append(g.notes, &refusal.Error{
			What: refusal.Note("{field} is too long to search completely for images. Images whose references " +
				"were left unchanged are not attached."),
			Field: refusal.Body,
		})
	}
	return body
}

// bodyImage adds a copy of one image in the body to the message's files. It returns the destination to write into the
// body. If the given destination does not name a readable file, bodyImage returns that destination unchanged.
func (g *gathering) bodyImage(ctx context.Context, destination string) string {
	data, name, err := g.readImage(destination)
	if err == nil && len(g.files) == maxFiles {
		err = refusal.Over(refusal.TooManyAttachments, refusal.Body, maxFiles+1, maxFiles)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		g.notes = append(g.notes, &refusal.Error{
			What:  refusal.Note("{cause} The reference to the image in {field} was left unchanged."),
			Field: refusal.Body,
			Err:   err,
		})
		return destination
	}
	if data == nil {
		return destination
	}
	shown := shortURI(destination)
	f := media.New(name, data)
	g.noteOdd(refusal.Body, shown, f)
	if path := g.attached(data); path != "" {
		return path
	}
	if format.AttachmentSum(destination) != "" {
		return g.addImage(name, f) // an earlier message has already stored this file, so it is not converted again
	}
	if c := g.r.Images.Convert; c == ConvertAll || c == ConvertDefault && g.in.Images != ImagesKeep {
		g.toWebP(ctx, refusal.Body, shown, f)
	}
	if path := g.attached(f.Data); path != "" {
		return path
	}
	policy, most := cmp.Or(g.r.Images.Embed, g.in.Images), cmp.Or(g.r.Images.MaxInline, g.in.MaxInline)
	if f.Pixels > 0 && policy != ImagesFile {
		if len(f.Data) <= most {
			return "data:" + f.Type + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
		}
		if policy == ImagesInline {
			e := refusal.Over(refusal.Note("The image {name} is {count} bytes long, over the limit of {limit} for "+
				"images in {field}, so it was stored as a file."), refusal.Body, len(f.Data), most)
			e.Name = shown
			g.notes = append(g.notes, e)
		}
	}
	return g.addImage(name, f)
}

// attached returns the path of the message's file whose content equals data, or "" if the message has no such file.
func (g *gathering) attached(data []byte) string {
	for i := range g.files {
		if bytes.Equal(g.files[i].data, data) {
			return g.files[i].Path
		}
	}
	return ""
}

// addImage adds a file, unless the message already has it, and returns its path.
func (g *gathering) addImage(name string, f *media.File) string {
	a := newFile(name, f)
	if !slices.ContainsFunc(g.files, func(f File) bool { return f.Path == a.Path }) {
		g.files = append(g.files, a)
	}
	return a.Path
}

// scheme matches the beginning of a URI or of another destination that is not a file name.
var scheme = lazy.Regexp(`^(?:[A-Za-z][A-Za-z0-9+.-]*:|//|#|\?)`)

// readImage reads the image file that a destination in the body names. It returns the file's data, and its name if it
// has one. If the image is on another machine or the destination does not name a file, data is nil.
func (g *gathering) readImage(destination string) (data []byte, name string, err error) {
	if isDataURI(destination) {
		data, err = dataURI(refusal.Body, destination)
		if err == nil {
			err = g.count(refusal.Body, shortURI(destination), int64(len(data)))
		}
		return data, "", err
	}
	destination, local := strings.CutPrefix(destination, "file://")
	if !local && scheme().MatchString(destination) {
		return nil, "", nil
	}
	data, name, err = g.readNamed(refusal.Body, destination)
	if plain, bad := url.PathUnescape(destination); bad == nil && plain != destination && errors.Is(err, refusal.ErrNotFound) {
		return g.readNamed(refusal.Body, plain)
	}
	return data, name, err
}

func isDataURI(name string) bool { return strings.HasPrefix(name, "data:") }

// dataURI decodes a data URI (RFC 2397) in a field of the request.
func dataURI(field refusal.Field, uri string) ([]byte, error) {
	head, data, ok := strings.Cut(uri, ",")
	if plain, err := url.PathUnescape(data); err == nil {
		data = plain
	}
	if ok && !strings.HasSuffix(head, ";base64") {
		return []byte(data), nil
	}
	out, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	if !ok || err != nil {
		return nil, &refusal.Error{What: refusal.Invalid("The data URI {name} {arg} cannot be decoded."), Field: field, Name: shortURI(uri)}
	}
	return out, nil
}

// nameInURI returns the value of the "name" parameter in a data URI, which is the name of the file that the data comes
// from. It returns "" if the parameter is missing or is not a valid file name.
func nameInURI(uri string) string {
	head, _, _ := strings.Cut(uri, ",")
	for part := range strings.SplitSeq(head, ";") {
		value, is := strings.CutPrefix(part, "name=")
		name, err := url.PathUnescape(value)
		if is && err == nil && name != "" && name == filepath.Base(name) && name != "." && name != ".." && utf8.ValidString(name) &&
			!strings.ContainsFunc(name, format.Misleading) {
			return name
		}
	}
	return ""
}

// shortURI shortens a data URI for display. It returns any other destination unchanged.
func shortURI(destination string) string {
	head, _, ok := strings.Cut(destination, ",")
	if ok && isDataURI(destination) {
		return format.Cut(head, 100) + ",…"
	}
	return destination
}

// toWebP converts an image to WebP. It adds a note if it leaves the image unchanged. A store converts only one image
// at a time. The conversion is lossless, unless the image is a photograph and the sender asked to convert it. In that
// case, toWebP adds a note about the loss.
func (g *gathering) toWebP(ctx context.Context, field refusal.Field, name string, f *media.File) {
	kept := "the images of this message have too many pixels in total to convert all of them"
	odd := f.Odd
	code := g.in.CodePhoto
	recodes := code != nil && f.IsPhoto() && g.r.Images.Convert == ConvertAll
	if costs := recodes || f.MayConvert(); !costs || g.pixels+f.Pixels <= maxConverted {
		g.in.converting <- struct{}{}
		pixels, size := f.Pixels, len(f.Data)
		kept = f.ToWebP()
		if kept != "" && recodes {
			if kept = f.Recode(ctx, code); kept == "" {
				e := refusal.Over(refusal.Note("The image {name} {arg} was converted to WebP with some loss of "+
					"detail: {count} bytes instead of {limit}."), field, len(f.Data), size)
				e.Name = name
				g.notes = append(g.notes, e)
			}
		}
		<-g.in.converting
		if kept == "" {
			g.pixels += pixels
		}
	}
	if f.Odd != odd {
		g.noteOdd(field, name, f)
	}
	if kept != "" {
		g.note(refusal.Note("The image {name} {arg} was not converted to WebP: {why}."), field, name, kept)
	}
}
