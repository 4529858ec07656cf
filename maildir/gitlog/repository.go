package gitlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mailtree/maildir/gitlog/gitindex"
	"mailtree/maildir/gitlog/object"
)

// hash names an object, and entry is what a tree says of a name: the words that this package is
// full of.
type (
	hash  = object.Hash
	entry = object.Entry
)

// repository is one look at a .git folder. It is made anew for each batch: a person's `git gc` may
// replace every pack (docs/durability.md, "Why it is done this way").
type repository struct {
	dir    string // the work tree
	git    string // its .git
	config settings
	mem    *memory
	*object.Store
}

func newRepository(dir string, mem *memory) *repository {
	git := filepath.Join(dir, ".git")
	return &repository{dir: dir, git: git, mem: mem, Store: object.NewStore(git, mem.Cache)}
}

// openRepository looks whether dir has a repository that we can write. The error is a *hold where
// it has not.
func openRepository(dir string, mem *memory) (*repository, error) {
	r := newRepository(dir, mem)
	fi, err := os.Lstat(r.git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notAudited("its .git folder is missing. " +
			"Put it back, or restart the server to begin a new history; the mail keeps working.")
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, notAudited(".git is not a folder. " +
			"Linked work trees are not supported; put a plain repository in its place.")
	}
	if _, err := readSmall(r.path("HEAD")); err != nil {
		return nil, noHead(err)
	}
	config, err := readSmall(r.path("config"))
	if errors.Is(err, errNotFile) {
		return nil, notFile("config")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may say that we cannot write this repository
		return nil, err
	}
	r.config = readSettings(config)
	if f := r.config.format; f != "" {
		return nil, notAudited("its repository uses %s, which the server cannot write. "+
			"Convert it to SHA-1 objects and plain refs.", f)
	}
	return r, nil
}

// memory is what is kept from batch to batch: content-addressed, so never stale, and bounded.
type memory struct {
	*object.Cache
	recent map[string]gitindex.Stat
	index  gitindex.Seen   // the Git index as we left it
	sound  gitindex.Seen   // an index whose checksum was right
	level  state           // index and HEAD as they were when our last commits were found in both
	own    []ownCommit     // our last commits, oldest first, until they are known to stand
	fresh  []object.Object // loose objects of the last commits, until then; at most freshBytes
}

const freshBytes = 4 << 20

// keepFresh remembers objects that were written loose, the newest where they are too many.
func (m *memory) keepFresh(all []object.Object) {
	m.fresh = append(m.fresh, all...)
	bytes := 0
	for i := len(m.fresh) - 1; i >= 0; i-- {
		if bytes += len(m.fresh[i].Data); bytes > freshBytes {
			m.fresh = slices.Clone(m.fresh[i+1:])
			return
		}
	}
}

func newMemory() *memory {
	return &memory{Cache: object.NewCache()}
}

// objects returns what writes objects of this repository.
func (r *repository) objects() *object.Writer {
	return object.NewWriter(r.git, r.path(newFolder), syncAll)
}

// restoreObjects writes those of the objects once more that are gone. `git prune`, and gc with
// --prune=now, remove what nothing refers to, and so what a commit has written before it moves the
// branch; one that began before the move does so after it. Packs have their .keep against that.
func (r *repository) restoreObjects(all []object.Object) (n int, names []string, err error) {
	again := r.objects()
	defer again.Discard()
	for _, x := range all {
		if r.Has(x.Hash) {
			continue
		}
		if _, err := again.Add(x.Kind, x.Data); err != nil {
			return 0, nil, err
		}
		n++
	}
	names, err = again.Finish()
	return n, names, err
}
