package gitlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"mailtree/maildir/tree"
)

const maxBlob = 256 << 20 // size in bytes of the largest file that is committed; far above all limits in mailtree

// errChanging means that a file's size changed while it was read.
var errChanging = errors.New("the file is changing while the server reads it")

// syncAll makes the files at paths below dir, and all folders above them, durable. On Linux it uses one syncfs, which
// reports write-back errors (docs/durability.md, "Why it is done this way").
func syncAll(dir string, paths ...string) error {
	t, err := tree.Open(dir, 0)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Sync(paths)
}

// isGone reports whether an error means that no file exists at a path. A path behind a link is treated as missing, as
// Git does.
func isGone(err error) bool { return tree.FaultOf(err) == tree.FaultGone }

// isLink reports whether the file is a symbolic link.
func isLink(st tree.FileStat) bool { return st.Mode.Type() == fs.ModeSymlink }

// isKept reports whether a file of this kind is committed.
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

// readBlob reads the file or link at path and returns the name of its blob. It also writes the blob, unless to is nil.
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

// nameBlob returns the name of a blob of size bytes. If in has fewer bytes, the error is errChanging or the error from
// in.
func nameBlob(size int64, in io.Reader) (hash, error) {
	sum := blobSum(size)
	n, err := io.Copy(sum, io.LimitReader(in, size))
	if err == nil && n < size {
		err = errChanging
	}
	return hash(sum.Sum(nil)), err
}
