package object

import (
	"bytes"
	"errors"
	"strconv"
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
