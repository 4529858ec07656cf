package gitlog

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/tree"
)

// change is what a commit makes of one path.
type change struct {
	path     string
	old, new entry         // in HEAD, in the newest commit
	seen     tree.FileStat // of the file on disk, where its content is that of new and another change would bear another time
	data     []byte        // of new, where an operation has told it; else the importer has it
	gone     bool          // nothing is there on disk
	skipped  string        // why the file on disk cannot be committed; then new is old
}

// see notes the state of the file on disk, as it was before it is read.
func (c *change) see(st tree.FileStat) {
	if time.Since(time.Unix(0, st.CTime)) > tree.Racy {
		c.seen = st
	}
}

func (c *change) differs() bool { return c.new != c.old }

// plan is the content of the newest commit: that of HEAD, and of the named paths what operations
// wrote there, else what is on disk now.
type plan struct {
	repo    *repository
	base    hash // HEAD
	files   *tree.Tree
	to      *importer            // is given the files that are read; nil: nobody is
	written map[string]operation // the last that names a path, where it tells what it made of that
	apart   []string             // paths for another commit, such as of what somebody else has made since of an operation's file
	folders map[string]bool      // that hold the paths
	sizes   map[string]int       // of the folders in HEAD, as tree objects
	changes map[string]*change
}

func newPlan(r *repository, base hash, to *importer) (*plan, error) {
	files, err := tree.Open(r.dir, maxBlob)
	if err != nil {
		return nil, err
	}
	return &plan{repo: r, base: base, files: files, to: to,
		written: map[string]operation{}, changes: map[string]*change{}, folders: map[string]bool{}}, nil
}

func (p *plan) close() { p.files.Close() }

// mostPaths bounds a plan of edits: the rest follows when that is committed.
const mostPaths = 50000

// name takes paths into the plan. Paths that Git cannot have (in .git, with "..") and the run-time folder
// are left out.
func (p *plan) name(paths []string) {
	for _, path := range paths {
		path = named(path)
		switch {
		case !committable(path):
		case len(p.changes) == mostPaths && p.changes[path] == nil:
			p.apart = append(p.apart, path)
		default:
			p.add(path)
		}
	}
}

// named is a path as the plan names it; "" is the tree itself.
func named(path string) string {
	if path = strings.Trim(path, "/"); path == "." {
		return ""
	}
	return path
}

func (p *plan) add(path string) {
	if p.changes[path] != nil {
		return
	}
	p.changes[path] = &change{path: path}
	for dir, _ := splitPath(path); dir != ""; dir, _ = splitPath(dir) {
		p.folders[dir] = true
	}
}

// load finds out what every named path is in HEAD and on disk.
func (p *plan) load(log *slog.Logger) error {
	have, sizes, err := p.repo.entries(p.base, slices.Collect(maps.Keys(p.changes))...)
	if err != nil {
		return err
	}
	p.sizes = sizes
	for _, c := range p.sorted() {
		c.old = have[c.path]
		load := p.loadOne
		if _, ok := p.written[c.path]; ok {
			load = p.loadWritten
		}
		if err := load(c); err != nil {
			return err
		}
		if c.skipped != "" && c.old.Mode == 0 && log != nil {
			log.Debug("file left out of the audit", "path", c.path, "reason", c.skipped)
		}
	}
	return nil
}

func (p *plan) sorted() []*change {
	all := make([]*change, 0, len(p.changes))
	for _, c := range p.changes {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *change) int { return strings.Compare(a.path, b.path) })
	return all
}

// loadOne reads what is on disk.
func (p *plan) loadOne(c *change) error {
	st, err := p.files.Stat(c.path)
	made := entry{}
	switch {
	case err != nil:
	case st.Mode.IsDir():
		if !c.old.IsFile() {
			made = c.old
		}
	case !isKept(c.path, st):
		err = errors.New("is nothing that Git can have")
	default:
		made.Mode = p.modeOf(c, st)
		made.Hash, err = readBlob(p.files, c.path, st, p.to)
		c.see(st)
	}
	switch {
	case transient(err):
		return err
	case isGone(err):
		c.gone = true
		if !c.old.IsFile() {
			made = c.old
		}
	case err != nil:
		made, c.skipped = c.old, err.Error()
	}
	c.new = made
	return nil
}

// modeOf is the mode of a file or link in that state as Git writes it.
func (p *plan) modeOf(c *change, st tree.FileStat) uint32 {
	executable := st.Mode&0o100 != 0
	if !p.repo.config.fileMode {
		executable = c.old.Mode == modeExec
	}
	switch {
	case isLink(st):
		return modeLink
	case executable:
		return modeExec
	}
	return modeFile
}

// transient reports an error of the system that says nothing about the file but about the moment
// (tree.FaultOf).
func transient(err error) bool {
	return errors.As(err, new(unix.Errno)) && tree.FaultOf(err) == tree.FaultMachine
}

// ifTransient is an error that is transient, else nil.
func ifTransient(err error) error {
	if transient(err) {
		return err
	}
	return nil
}

// differing returns the changes that make a difference to HEAD, by path.
func (p *plan) differing() []*change {
	all := p.sorted()
	return slices.DeleteFunc(all, func(c *change) bool { return !c.differs() })
}

// differsAt reports whether a path differs.
func (p *plan) differsAt(path string) bool {
	return p.changes[path] != nil && p.changes[path].differs()
}

// addsAt reports whether a path is on disk but not in HEAD.
func (p *plan) addsAt(path string) bool { return p.differsAt(path) && p.changes[path].old == (entry{}) }
