package gitlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"mailtree/maildir/tree"
)

const maxBlob = 256 << 20 // maximum size, in bytes, of a file that is committed; far above mailtree's other limits

// errChanging means that a file's size changed while it was being read.
var errChanging = errors.New("the file is changing while the server reads it")

// syncAll makes the files at paths below dir, and all folders above them, durable. On Linux, it calls syncfs once,
// which also reports write-back errors (docs/explanation/durability.md, "Why it is done this way").
func syncAll(dir string, paths ...string) error {
	t, err := tree.Open(dir, 0)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Sync(paths)
}

// isGone reports whether an error means that no file exists at a path. Like Git, it treats a path that contains a
// symbolic link as missing.
func isGone(err error) bool { return tree.FaultOf(err) == tree.FaultGone }

// isLink reports whether the file is a symbolic link.
func isLink(st tree.FileStat) bool { return st.Mode.Type() == fs.ModeSymlink }

// isKept reports whether the file at path can be committed, which is the case for regular files and safe links.
func isKept(path string, st tree.FileStat) bool {
	return st.Mode.IsRegular() || isLink(st) && !dangerousLink(path)
}

// readLink returns the target of the link at path.
func readLink(files *tree.Tree, path string) ([]byte, error) {
	root, err := os.OpenRoot(files.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := root.Readlink(path)
	return []byte(text), err
}

// readBlob reads the file or link at path and returns the name of its blob. If to is not nil, it also writes the
// blob.
func readBlob(files *tree.Tree, path string, st tree.FileStat, to objects) (hash, error) {
	blob := nameBlob
	if to != nil {
		blob = to.blob
	}
	if isLink(st) {
		text, err := readLink(files, path)
		if err != nil {
			return hash{}, err
		}
		return blob(int64(len(text)), bytes.NewReader(text))
	}
	f, st, err := files.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return hash{}, err
	}
	defer f.Close()
	if st.Size > maxBlob {
		return hash{}, &tree.SizeError{Size: st.Size, Limit: maxBlob}
	}
	return blob(st.Size, f)
}

// nameBlob returns the name of a blob with size bytes from in. If in contains fewer bytes, the error is errChanging
// or the error from in.
func nameBlob(size int64, in io.Reader) (hash, error) {
	sum := blobSum(size)
	n, err := io.Copy(sum, io.LimitReader(in, size))
	if err == nil && n < size {
		err = errChanging
	}
	return hash(sum.Sum(nil)), err
}
