package media

import (
	"context"
	"fmt"
)

// maxPhoto is the maximum number of pixels of a photograph that Recode may re-encode.
const maxPhoto = 1 << 23

// IsPhoto reports whether the file is a JPEG image that Recode may re-encode.
func (f *File) IsPhoto() bool {
	return f.Pixels > 0 && f.Pixels <= maxPhoto && f.Type == jpegType && f.layout.fixed == ""
}

// Recode replaces a photograph with the lossy WebP image that code returns, if that image is at least a fifth smaller.
// A smaller gain would not be worth the loss of detail. Recode returns a clause that says why the file stays unchanged,
// or "" if it was replaced.
func (f *File) Recode(ctx context.Context, code func(ctx context.Context, jpeg []byte) ([]byte, error)) (kept string) {
	coded, err := code(ctx, f.Data)
	if err != nil {
		return "cwebp could not convert it: " + err.Error()
	}
	made := New("", coded)
	switch {
	case made.Type != WebP || made.layout.width != f.layout.width || made.layout.height != f.layout.height:
		return "cwebp did not return a WebP image of the same size"
	case 5*len(coded) > 4*len(f.Data):
		return fmt.Sprintf("the WebP image (%d bytes) would not be small enough compared with the original (%d bytes)", len(coded), len(f.Data))
	}
	*f = *made
	return ""
}
