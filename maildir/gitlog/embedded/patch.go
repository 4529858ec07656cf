package embedded

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"mailtree/maildir/lazy"
)

// binaryPart is the number of bytes at the start of a file that Git searches for a NUL byte to decide whether the
// file is binary.
const binaryPart = 8000

var (
	hunk      = lazy.Regexp(`(?m)^@@ .* @@$`)
	omitsOnes = strings.NewReplacer(",1 ", " ")
)

// Patch returns the changed lines of a file in the format of git diff --full-index.
func (r *Repository) Patch(from, to Hash, path string) (string, error) {
	var sides [2]struct {
		Entry
		name string
		data []byte
	}
	binary := false
	for i, at := range []Hash{from, to} {
		e, err := r.At(at, path)
		s := &sides[i]
		if s.Entry = ifFile(e); s.Mode == 0 {
			s.name = os.DevNull
		} else if err == nil {
			s.name = string("ab"[i]) + "/" + path
			s.data, err = r.Read("blob", s.Hash.String())
		}
		if err != nil {
			return "", err
		}
		binary = binary || bytes.IndexByte(s.data[:min(len(s.data), binaryPart)], 0) >= 0
	}
	old, now := sides[0], sides[1]
	var text strings.Builder
	fmt.Fprintf(&text, "diff --git a/%s b/%s\n", path, path)
	mode := ""
	switch {
	case old.Mode == 0:
		fmt.Fprintf(&text, "new file mode %o\n", now.Mode)
	case now.Mode == 0:
		fmt.Fprintf(&text, "deleted file mode %o\n", old.Mode)
	case old.Mode == now.Mode:
		mode = fmt.Sprintf(" %o", now.Mode)
	default:
		fmt.Fprintf(&text, "old mode %o\nnew mode %o\n", old.Mode, now.Mode)
	}
	if old.Hash != now.Hash {
		fmt.Fprintf(&text, "index %s..%s%s\n", old.Hash, now.Hash, mode)
	}
	if binary {
		fmt.Fprintf(&text, "Binary files %s and %s differ\n", old.name, now.name)
		return text.String(), nil
	}
	_, lines, _ := bytes.Cut(diff.Diff(old.name, old.data, now.name, now.data), []byte{'\n'})
	text.WriteString(hunk().ReplaceAllStringFunc(string(lines), omitsOnes.Replace))
	return text.String(), nil
}
