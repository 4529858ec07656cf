package gitlog

import (
	"bytes"
	"errors"
	"io"
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

// readBlob looks at the file or link at path: its mode as Git writes it, and the hash of its content.
func readBlob(files *tree.Tree, path string, st tree.FileStat) (e entry, err error) {
	if isLink(st) {
		text, err := readLink(files, path)
		return entry{modeLink, blobHash(text)}, err
	}
	f, st, err := files.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	if st.Size > maxBlob {
		return entry{}, &tree.SizeError{Size: st.Size, Limit: maxBlob}
	}
	sum := blobSum(st.Size)
	n, err := io.Copy(sum, io.LimitReader(f, st.Size))
	if err == nil && n != st.Size {
		err = errChanging
	}
	return entry{fileMode(st), hash(sum.Sum(nil))}, err
}

// fileMode is the mode of a regular file as Git writes it.
func fileMode(st tree.FileStat) uint32 {
	if st.Mode&0o100 != 0 {
		return modeExec
	}
	return modeFile
}

// giveChange gives the content of a change to the importer and reports whether it is still what was seen.
// An error is the importer's, or transient.
func giveChange(files *tree.Tree, c *change, to *importer) (same bool, err error) {
	if c.new.Mode == modeLink {
		text, err := readLink(files, c.path)
		if err != nil {
			return false, nil
		}
		return to.blob(c.new.Hash, int64(len(text)), bytes.NewReader(text))
	}
	f, st, err := files.OpenFile(c.path, os.O_RDONLY)
	if err != nil {
		return false, ifTransient(err)
	}
	defer f.Close()
	return to.blob(c.new.Hash, st.Size, f)
}
