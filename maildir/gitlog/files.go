package gitlog

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"mailtree/maildir/tree"
)

const (
	maxBlob   = 256 << 20 // of the largest file that is committed; it is far above every limit of the mail
	largeFile = 1 << 20   // from which size a file is not held in memory
)

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

// readBlob reads the file or link at path: its mode as Git writes it, its hash, and its content unless it
// is large.
func readBlob(files *tree.Tree, path string, st tree.FileStat) (e entry, data []byte, err error) {
	if isLink(st) {
		data, err = readLink(files, path)
		return entry{modeLink, blobHash(data)}, data, err
	}
	f, st, err := files.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return entry{}, nil, err
	}
	defer f.Close()
	e.Mode = fileMode(st)
	switch {
	case st.Size > maxBlob:
		return e, nil, &tree.SizeError{Size: st.Size, Limit: maxBlob}
	case st.Size > largeFile:
		sum := sha1.New()
		fmt.Fprintf(sum, "blob %d\x00", st.Size)
		n, err := io.Copy(sum, io.LimitReader(f, st.Size))
		if err == nil && n != st.Size {
			err = errChanging
		}
		e.Hash = hash(sum.Sum(nil))
		return e, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, largeFile+1))
	if err == nil && len(data) > largeFile {
		err = errChanging
	}
	e.Hash = blobHash(data)
	return e, data, err
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
		data, err := readLink(files, c.path)
		if err != nil || blobHash(data) != c.new.Hash {
			return false, nil
		}
		return true, to.blob(data)
	}
	f, st, err := files.OpenFile(c.path, os.O_RDONLY)
	if transient(err) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	defer f.Close()
	return to.giveFile(f, st.Size, c.new.Hash)
}
