package gitlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

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
	index  gitindex.Seen // the Git index as we left it
	sound  gitindex.Seen // an index whose checksum was right
	level  state         // index and HEAD as they were when our last commits were found in both
	own    []ownCommit   // our last commits, oldest first, until they are known to stand
}

func newMemory() *memory {
	return &memory{Cache: object.NewCache()}
}
