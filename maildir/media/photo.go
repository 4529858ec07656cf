package media

import (
	"context"
	"fmt"
)

// maxPhoto is how many pixels a photograph may have to be recoded.
const maxPhoto = 1 << 23

// IsPhoto reports whether the image is of the kind that photographs have, and may be recoded.
func (f *File) IsPhoto() bool {
	return f.Pixels > 0 && f.Pixels <= maxPhoto && f.Type == jpegType && f.layout.fixed == ""
}

// Recode makes a photograph the WebP image that code makes of it, with some loss, where that is
// smaller by a fifth: less is not worth the loss. It returns as a clause why the file stays as it
// is; "" where it was recoded.
func (f *File) Recode(ctx context.Context, code func(ctx context.Context, jpeg []byte) ([]byte, error)) (kept string) {
	coded, err := code(ctx, f.Data)
	if err != nil {
		return "cwebp could not make it: " + err.Error()
	}
	made := New("", coded)
	switch {
	case made.Type != WebP || made.layout.width != f.layout.width || made.layout.height != f.layout.height:
		return "cwebp made another image of it"
	case 5*len(coded) > 4*len(f.Data):
		return fmt.Sprintf("it would have %d bytes instead of %d", len(coded), len(f.Data))
	}
	*f = *made
	return ""
}
