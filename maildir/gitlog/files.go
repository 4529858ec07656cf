package gitlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"mailtree/maildir/tree"
)

const maxBlob = 256 << 20 // bytes of the largest file that is committed; it is far above every limit of the mail

// errChanging says that a file has another size by now.
var errChanging = errors.New("the file changes while it is read")

// syncAll makes the files at paths below dir, and all folders above them, durable. On Linux that is one syncfs,
// which reports write-back errors (docs/durability.md, "Why it is done this way").
func syncAll(dir string, paths ...string) error {
	t, err := tree.Open(dir, 0)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Sync(paths)
}

// isGone reports that nothing is at a path: to Git that holds behind a link, too.
func isGone(err error) bool { return tree.FaultOf(err) == tree.FaultGone }

// isLink reports whether that is the state of a symbolic link.
func isLink(st tree.FileStat) bool { return st.Mode.Type() == fs.ModeSymlink }

// isKept reports whether a file in that state is one that is committed.
func isKept(path string, st tree.FileStat) bool {
	return st.Mode.IsRegular() || isLink(st) && !dangerousLink(path)
}

// readLink reads the link at path.
func readLink(files *tree.Tree, path string) ([]byte, error) {
	root, err := os.OpenRoot(files.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := root.Readlink(path)
	return []byte(text), err
}

// readBlob reads the file or link at path, gives it to the importer where there is one, and returns its name.
func readBlob(files *tree.Tree, path string, st tree.FileStat, to *importer) (hash, error) {
	if isLink(st) {
		text, err := readLink(files, path)
		if err != nil {
			return hash{}, err
		}
		return to.blob(int64(len(text)), bytes.NewReader(text))
	}
	f, st, err := files.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return hash{}, err
	}
	defer f.Close()
	if st.Size > maxBlob {
		return hash{}, &tree.SizeError{Size: st.Size, Limit: maxBlob}
	}
	return to.blob(st.Size, f)
}
