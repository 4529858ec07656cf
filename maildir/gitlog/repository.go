package gitlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"mailtree/maildir/gitlog/embedded"
)

// repository is a .git folder, opened for one batch. Each batch opens the folder again, so that a user's changes take
// effect immediately. A repository must be closed after use.
type repository struct {
	dir     string // the work tree
	git     string // its .git folder
	ctx     context.Context
	program func() (string, error) // finds the git program
	config  settings
	mem     *memory
	owns    bool // makeOwn has been called
	memory  int  // memory limit, in KiB, for each of its commands; 0 means no limit
	low     bool // its commands run at low priority, may take a long time, and make their writes durable

	engine
	embedded bool // the engine is builtIn
}

// newRepository returns the tree's repository, without checking whether it exists.
func (l *Log) newRepository(ctx context.Context, mem *memory) *repository {
	r := &repository{
		dir: l.cfg.Dir, git: filepath.Join(l.cfg.Dir, ".git"), ctx: ctx, program: l.git, mem: mem,
		config: settings{fileMode: true}, embedded: l.embedded,
	}
	if l.embedded {
		r.engine = &builtIn{repository: r, objects: embedded.Open(r.git)}
	} else {
		r.engine = &gitProgram{repository: r}
	}
	return r
}

// openRepository returns the tree's repository, after checking that we can write to it. If it is missing or unusable,
// the error is a *hold.
func (l *Log) openRepository(ctx context.Context, mem *memory) (*repository, error) {
	r := l.newRepository(ctx, mem)
	fi, err := os.Lstat(r.git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notAudited("the .git folder is missing. Restore it, or restart the server to begin a new " +
			"history; mail keeps working.")
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, notAudited(".git is not a folder. Linked worktrees are not supported; use an ordinary " +
			"repository instead.")
	}
	if _, err := readSmall(r.path("HEAD")); err != nil {
		return nil, noHead(err)
	}
	config, err := readSmall(r.path("config"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // we may lack permission to write to this repository
		return nil, err
	}
	r.config = readSettings(config)
	if f := r.config.format; f != "" {
		return nil, notAudited("the repository uses %s, which the server cannot write. Convert the repository to "+
			"SHA-1 objects and plain refs.", f)
	}
	return r, nil
}

// memory is the state that is kept between batches. Its size is limited.
type memory struct {
	level     state          // index and HEAD when they were last known to contain our last commits
	own       []ownCommit    // our last commits, oldest first, as long as a git command may undo them
	postponed string         // the commit of a postponed merge (see findIncompleteMerge)
	sizes     map[string]int // sizes of folders (see treeSize)
}

func newMemory() *memory { return &memory{sizes: map[string]int{}} }
