package object

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// Modes as tree objects write them. 0 stands for: nothing there.
const (
	ModeTree   = 0o040000
	ModeFile   = 0o100644
	ModeExec   = 0o100755
	ModeLink   = 0o120000
	ModeModule = 0o160000
)

// Entry is what a tree says of a name. The zero Entry: nothing.
type Entry struct {
	Mode uint32
	Hash Hash
}

// IsTree reports whether e is a folder.
func (e Entry) IsTree() bool { return e.Mode == ModeTree }

// IsFile reports whether e has a blob: a file, an executable, a link.
func (e Entry) IsFile() bool { return e.Mode != 0 && e.Mode != ModeTree && e.Mode != ModeModule }

var errDamaged = errors.New("damaged tree object")

// EachEntry calls fn for the entries of a tree object in their order; raw is the Entry as it
// stands. It ends with an error at the first that is damaged.
func EachEntry(data []byte, fn func(name []byte, e Entry, raw []byte)) error {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 {
			return errDamaged
		}
		nul := bytes.IndexByte(data[space:], 0)
		if nul < 2 || len(data) < space+nul+1+len(Hash{}) {
			return errDamaged
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil || mode == 0 {
			return errDamaged
		}
		end := space + nul + 1 + len(Hash{})
		fn(data[space+1:space+nul], Entry{Mode: uint32(mode), Hash: Hash(data[end-len(Hash{}) : end])}, data[:end])
		data = data[end:]
	}
	return nil
}

// AppendEntry appends an entry to a tree object.
func AppendEntry(b []byte, name string, e Entry) []byte {
	b = strconv.AppendUint(b, uint64(e.Mode), 8)
	b = append(append(append(b, ' '), name...), 0)
	return append(b, e.Hash[:]...)
}

// TreeOrder compares names as Git sorts them: a folder as if its name ended in a slash.
func TreeOrder[A, B string | []byte](a A, aTree bool, b B, bTree bool) int {
	n := min(len(a), len(b))
	if c := strings.Compare(string(a[:n]), string(b[:n])); c != 0 {
		return c
	}
	next := func(rest int, at byte, tree bool) int {
		switch {
		case rest > 0:
			return int(at)
		case tree:
			return '/'
		}
		return -1
	}
	var ca, cb byte
	if len(a) > n {
		ca = a[n]
	}
	if len(b) > n {
		cb = b[n]
	}
	return next(len(a)-n, ca, aTree) - next(len(b)-n, cb, bTree)
}
