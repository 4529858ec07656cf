package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"

	"mailtree/maildir/tree"
)

// Stage is the folder in .git where new objects are written until all of them are durable. Only one Writer at a time
// may use it. A killed process may leave it behind.
const Stage = "mailtree-objects"

// Writer writes objects for one or more commits, each of which is the parent of the next. The caller of Write must
// call Discard.
type Writer struct {
	repo    *Repository
	staged  map[Hash]string           // names in Stage
	n       int                       // number of files created in Stage
	newest  Hash                      // the newest commit
	top     Hash                      // the newest commit's tree; zero if it is unknown or empty
	folders map[Hash]map[string]Entry // folders written so far, which the Repository cannot read yet
}

// Write returns a Writer. The parent of its first commit is base, which may be the zero Hash.
func (r *Repository) Write(base Hash) *Writer {
	return &Writer{repo: r, newest: base, folders: map[Hash]map[string]Entry{}}
}

// Blob writes size bytes from in as a blob and returns the blob's name. If in contains fewer bytes, the error is
// io.ErrUnexpectedEOF or the error from in.
func (w *Writer) Blob(size int64, in io.Reader) (Hash, error) {
	return w.object(plumbing.BlobObject, size, in)
}

func (w *Writer) bytes(kind plumbing.ObjectType, data []byte) (Hash, error) {
	return w.object(kind, int64(len(data)), bytes.NewReader(data))
}

// object writes an object to Stage.
func (w *Writer) object(kind plumbing.ObjectType, size int64, in io.Reader) (Hash, error) {
	if w.staged == nil { // a killed Writer may have left files behind
		dir := filepath.Join(w.repo.git, Stage)
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			return Hash{}, err
		}
		w.staged = map[Hash]string{}
	}
	w.n++
	name := Stage + "/" + strconv.Itoa(w.n)
	f, err := os.OpenFile(filepath.Join(w.repo.git, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return Hash{}, err
	}
	to := objfile.NewWriter(f)
	err = to.WriteHeader(kind, size)
	var n int64
	if err == nil {
		n, err = io.Copy(to, io.LimitReader(in, size))
	}
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, to.Close(), f.Close()); err != nil {
		return Hash{}, err
	}
	w.staged[to.Hash()] = name
	return to.Hash(), nil
}

// NewCommit is a commit to write. Author and Committer are "Name <mail> SECONDS ZONE".
type NewCommit struct {
	Author, Committer, Message string
	Merges                     []string         // additional parents
	Makes                      map[string]Entry // the changed paths; a zero Entry removes the path
}

// Commit writes a commit and the tree objects of the folders above its paths.
func (w *Writer) Commit(c NewCommit) error {
	if w.top.IsZero() && !w.newest.IsZero() {
		root, err := w.repo.root(w.newest)
		if err != nil {
			return err
		}
		w.top = root
	}
	top, err := w.rewrite(w.top, c.Makes)
	if err == nil && top.IsZero() {
		top, err = w.bytes(plumbing.TreeObject, nil)
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "tree %s\n", top)
	for _, parent := range append([]string{w.newest.String()}, c.Merges...) {
		if parent != (Hash{}).String() {
			fmt.Fprintf(&text, "parent %s\n", parent)
		}
	}
	fmt.Fprintf(&text, "author %s\ncommitter %s\n\n%s", c.Author, c.Committer, c.Message)
	w.top = top
	w.newest, err = w.bytes(plumbing.CommitObject, text.Bytes())
	return err
}

// rewrite writes the tree objects of a folder and of the changed folders below it. The argument was is the folder's
// previous tree object. If the folder is empty after the changes, rewrite returns the zero Hash. A change replaces the
// file or folder at its path, and any file at a parent of its path.
func (w *Writer) rewrite(was Hash, makes map[string]Entry) (Hash, error) {
	all, known := w.folders[was]
	if !known {
		var err error
		if all, err = w.repo.folder(was); err != nil {
			return Hash{}, err
		}
	}
	all = maps.Clone(all)
	below := map[string]map[string]Entry{}
	for path, e := range makes {
		name, rest, deeper := strings.Cut(path, "/")
		switch {
		case !deeper:
			all[name] = e
		case below[name] == nil:
			below[name] = map[string]Entry{rest: e}
		default:
			below[name][rest] = e
		}
	}
	for name, makes := range below {
		folder := all[name]
		if !folder.IsTree() { // there is a file, or nothing, at the path
			maps.DeleteFunc(makes, func(_ string, e Entry) bool { return e.Mode == 0 })
			if len(makes) == 0 {
				continue
			}
			folder.Hash = Hash{}
		}
		h, err := w.rewrite(folder.Hash, makes)
		if err != nil {
			return Hash{}, err
		}
		if all[name] = (Entry{ModeTree, h}); h.IsZero() {
			delete(all, name)
		}
	}
	maps.DeleteFunc(all, func(_ string, e Entry) bool { return e.Mode == 0 })
	return w.folder(all)
}

// folder writes a tree object. It returns the zero Hash if there are no entries.
func (w *Writer) folder(all map[string]Entry) (h Hash, err error) {
	key := func(name string) string {
		if all[name].IsTree() {
			return name + "/" // Git sorts folders as if their names ended with "/"
		}
		return name
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return strings.Compare(key(a), key(b)) })
	var data []byte
	for _, name := range names {
		e := all[name]
		data = fmt.Appendf(data, "%o %s\x00%s", e.Mode, name, e.Hash[:])
	}
	if len(data) > 0 {
		h, err = w.bytes(plumbing.TreeObject, data)
		w.folders[h] = all
	}
	return h, err
}

// Finish makes all objects durable, moves them into place, and returns the newest commit.
func (w *Writer) Finish() (newest Hash, err error) {
	git, err := tree.Open(w.repo.git, 0)
	if err != nil {
		return Hash{}, err
	}
	defer git.Close()
	var from, to []string
	for h, name := range w.staged {
		hex := h.String()
		from, to = append(from, name), append(to, "objects/"+hex[:2]+"/"+hex[2:])
	}
	if err := git.Sync(from); err != nil { // otherwise, a power failure could leave objects without their content
		return Hash{}, err
	}
	for i, name := range to {
		dir := filepath.Join(w.repo.git, filepath.Dir(name))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return Hash{}, err
		}
		if err := os.Rename(filepath.Join(w.repo.git, from[i]), filepath.Join(w.repo.git, name)); err != nil {
			return Hash{}, err
		}
	}
	return w.newest, git.Sync(to)
}

// Discard removes the objects unless Finish has moved them into place.
func (w *Writer) Discard() {
	if w.staged != nil {
		_ = os.RemoveAll(filepath.Join(w.repo.git, Stage)) // if this fails, the next Writer tries again
	}
}
