package gitlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// repository is one look at a .git folder. It is made anew for each batch: what a person has changed
// there counts at once. Whoever makes one closes it.
type repository struct {
	dir     string // the work tree
	git     string // its .git
	ctx     context.Context
	program func() (string, error) // finds Git
	config  settings
	mem     *memory
	objects talk // with git cat-file
	owns    bool // ownFolder is made
	low     bool // its commands take long, at low priority, and make durable what they write
}

// newRepository is a look at the repository of the tree that does not ask whether there is one.
func (l *Log) newRepository(ctx context.Context, mem *memory) *repository {
	return &repository{
		dir: l.cfg.Dir, git: filepath.Join(l.cfg.Dir, ".git"), ctx: ctx, program: l.git, mem: mem,
		config: settings{fileMode: true},
	}
}

// openRepository looks whether there is a repository that we can write. The error is a *hold where
// there is none.
func (l *Log) openRepository(ctx context.Context, mem *memory) (*repository, error) {
	r := l.newRepository(ctx, mem)
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

// memory is what is kept from batch to batch, bounded.
type memory struct {
	level state       // index and HEAD as we left them, or found them sound and with our last commits
	own   []ownCommit // our last commits, oldest first, until they are known to stand
}

func newMemory() *memory { return &memory{} }
