package embedded

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Hash is the name of an object. The zero Hash means that there is no object.
type Hash = plumbing.Hash

// Errors from reading objects.
var (
	ErrNoObject  = errors.New("no such object")
	ErrAmbiguous = errors.New("several commits match that prefix")

	errDamaged = errors.New("damaged tree object")
)

// Modes in tree objects. The mode is 0 if there is no entry at a path.
const (
	ModeTree   = 0o040000
	ModeModule = 0o160000
)

// Entry is an entry of a tree object. The zero Entry means that there is no entry at a path.
type Entry struct {
	Mode uint32
	Hash Hash
}

// IsTree reports whether e is a folder.
func (e Entry) IsTree() bool { return e.Mode == ModeTree }

// IsFile reports whether e is a file or a link, and therefore has a blob.
func (e Entry) IsFile() bool { return e.Mode != 0 && e.Mode != ModeTree && e.Mode != ModeModule }

// EachEntry calls fn for the entries of a tree object in order. It stops at the first damaged entry and returns an
// error.
func EachEntry(data []byte, fn func(name []byte, e Entry)) error {
	for len(data) > 0 {
		head, rest, _ := bytes.Cut(data, []byte{0})
		mode, name, _ := bytes.Cut(head, []byte{' '})
		n, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil || n == 0 || len(name) == 0 || len(rest) < len(Hash{}) {
			return errDamaged
		}
		fn(name, Entry{uint32(n), Hash(rest[:len(Hash{})])})
		data = rest[len(Hash{}):]
	}
	return nil
}

// Repository reads a .git folder. It is not safe for concurrent use. It must be closed after use.
type Repository struct {
	git     string
	dir     *dotgit.DotGit
	objects *filesystem.ObjectStorage
}

// cached is the maximum total size, in bytes, of the objects that a Repository caches. Most of them are tree objects.
const cached = 16 * cache.MiByte

// maxObject is the maximum size, in bytes, of an object that is read.
const maxObject = 1 << 28

// Open returns the repository in a .git folder. It reads nothing yet.
func Open(git string) *Repository {
	dir := dotgit.New(files{git})
	return &Repository{git: git, dir: dir, objects: filesystem.NewObjectStorageWithOptions(dir,
		cache.NewObjectLRU(cached), filesystem.Options{KeepDescriptors: true})}
}

// Close closes the pack files that were read.
func (r *Repository) Close() error { return r.objects.Close() }

// Read returns the content of an object of the given kind ("blob", "tree", "commit"). The argument name is an
// object's hash, or COMMIT:PATH. The error wraps ErrNoObject if there is no object with that name and kind.
func (r *Repository) Read(kind, name string) ([]byte, error) {
	want, err := plumbing.ParseObjectType(kind)
	at, path, within := strings.Cut(name, ":")
	h := plumbing.NewHash(at)
	if within && err == nil {
		var e Entry
		e, err = r.At(h, path)
		h = e.Hash
	}
	var data []byte
	if err == nil {
		data, err = r.object(want, h)
	}
	if err != nil {
		err = fmt.Errorf("cannot read %s %s: %w", kind, name, err)
	}
	return data, err
}

// object returns the content of an object.
func (r *Repository) object(want plumbing.ObjectType, h Hash) ([]byte, error) {
	if h == emptyTree && want == plumbing.TreeObject {
		return nil, nil
	}
	o, err := r.objects.EncodedObject(plumbing.AnyObject, h)
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return nil, ErrNoObject
	case err != nil:
		return nil, err
	case o.Type() != want:
		return nil, fmt.Errorf("%w: it is a %s", ErrNoObject, o.Type())
	case o.Size() > maxObject:
		return nil, fmt.Errorf("it has %d bytes", o.Size())
	}
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err == nil && int64(len(data)) != o.Size() {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// emptyTree is the name of an empty tree object. Git knows this object even if it is not stored.
var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// folder returns the entries of a tree object by name. It returns no entries for the zero Hash.
func (r *Repository) folder(h Hash) (map[string]Entry, error) {
	all := map[string]Entry{}
	if h.IsZero() {
		return all, nil
	}
	data, err := r.object(plumbing.TreeObject, h)
	if err == nil {
		err = EachEntry(data, func(name []byte, e Entry) { all[string(name)] = e })
	}
	return all, err
}

// At returns the entry at a path of a commit or a tree; the path "" is the root. If the commit does not exist, the
// error wraps ErrNoObject. If the commit has no entry at the path, At returns the zero Entry and no error.
func (r *Repository) At(commit Hash, path string) (Entry, error) {
	root, err := r.root(commit)
	e := Entry{ModeTree, root}
	for path != "" && err == nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if !e.IsTree() {
			return Entry{}, nil
		}
		var all map[string]Entry
		if all, err = r.folder(e.Hash); err == nil {
			e = all[name]
		}
	}
	return e, err
}

// root returns the tree of a commit. If h is a tree or the zero Hash, root returns h.
func (r *Repository) root(h Hash) (Hash, error) {
	if h.IsZero() {
		return h, nil
	}
	c, err := r.readCommit(h)
	if errors.Is(err, ErrNoObject) {
		_, err = r.object(plumbing.TreeObject, h)
		return h, err
	}
	if err != nil {
		return Hash{}, err
	}
	return c.tree, nil
}

// Resolve returns the commit whose name begins with prefix. It returns ErrNoObject if there is none, and ErrAmbiguous
// if there are several.
func (r *Repository) Resolve(prefix string) (found Hash, _ error) {
	if len(prefix) < 4 || strings.Trim(prefix, "0123456789abcdef") != "" || len(prefix) > 2*len(found) {
		return Hash{}, ErrNoObject
	}
	begin, err := hex.DecodeString(prefix[:len(prefix)&^1])
	if err != nil {
		return Hash{}, err
	}
	all, err := r.objects.HashesWithPrefix(begin)
	if err != nil {
		return Hash{}, err
	}
	for _, h := range all {
		if !strings.HasPrefix(h.String(), prefix) || h == found {
			continue
		}
		_, err := r.object(plumbing.CommitObject, h)
		switch {
		case errors.Is(err, ErrNoObject):
		case err != nil:
			return Hash{}, err
		case !found.IsZero():
			return Hash{}, ErrAmbiguous
		default:
			found = h
		}
	}
	if found.IsZero() {
		return Hash{}, ErrNoObject
	}
	return found, nil
}
