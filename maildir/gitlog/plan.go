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
	seen     tree.FileStat // of the file on disk, where its content is that of new
	calm     bool          // it had been so for long enough to tell by its time whether it has changed since
	data     []byte        // of new, where an operation has told it; else the file is read again
	gone     bool          // nothing is there on disk
	skipped  string        // why the file on disk cannot be committed; then new is old
}

// see notes the state of the file on disk before it is read.
func (c *change) see(st tree.FileStat) { c.seen, c.calm = st, isCalm(st) }

// isCalm reports that another change would bear another time.
func isCalm(st tree.FileStat) bool { return time.Since(time.Unix(0, st.CTime)) > tree.Racy }

func (c *change) differs() bool { return c.new != c.old }

// plan is the content of the newest commit: that of HEAD, and of the named paths what operations
// wrote there, else what is on disk now.
type plan struct {
	repo    *repository
	base    hash            // HEAD
	missing map[string]bool // paths that are meant to be missing on disk; nil: not asked yet
	files   *tree.Tree
	ignores bool                 // .gitignore counts
	written map[string]operation // the last that names a path, where it tells what it made of that
	apart   []string             // paths that somebody else changed after an operation had written them
	folders map[string]bool      // that hold the paths
	sizes   map[string]int       // of the folders in HEAD, as tree objects
	changes map[string]*change
}

func newPlan(r *repository, base hash) (*plan, error) {
	files, err := tree.Open(r.dir, maxBlob)
	if err != nil {
		return nil, err
	}
	return &plan{repo: r, base: base, files: files,
		written: map[string]operation{}, changes: map[string]*change{}, folders: map[string]bool{}}, nil
}

func (p *plan) close() { p.files.Close() }

// name takes paths into the plan; a folder stands for the changes below it that git status tells. Paths
// that Git cannot have (in .git, with "..") and the run-time folder are left out.
func (p *plan) name(paths []string) error {
	var folders, missing []string
	for _, path := range paths {
		if path = named(path); path != "" && !committable(path) {
			continue
		}
		if _, ok := p.written[path]; ok {
			p.add(path)
			continue
		}
		st, err := p.files.Stat(orDot(path))
		switch {
		case transient(err):
			return err
		case err == nil && st.Mode.IsDir():
			folders = append(folders, path)
		case isGone(err): // a folder that is gone, maybe
			missing = append(missing, path)
		default:
			p.add(path)
		}
	}
	have, _, err := p.repo.entries(p.base, missing...)
	if err != nil {
		return err
	}
	for _, path := range missing {
		if have[path].IsTree() {
			folders = append(folders, path)
		} else {
			p.add(path)
		}
	}
	if len(folders) == 0 {
		return nil
	}
	found, err := p.repo.differences(folders...)
	for _, path := range found {
		p.add(path)
	}
	if errors.Is(err, errFull) {
		p.apart = append(p.apart, folders...) // the rest comes with another commit
		err = nil
	}
	return err
}

// named is a path as the plan names it; "" is the tree itself.
func named(path string) string {
	if path = strings.Trim(path, "/"); path == "." {
		return ""
	}
	return path
}

func orDot(path string) string {
	if path == "" {
		return "."
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
	var ignored map[string]bool
	if p.ignores {
		var untracked []string
		for path := range p.changes {
			if _, err := p.files.Stat(path); err == nil && have[path].Mode == 0 {
				untracked = append(untracked, path)
			}
		}
		if ignored, err = p.ignored(untracked); err != nil {
			return err
		}
	}
	for _, c := range p.sorted() {
		c.old = have[c.path]
		load := p.loadOne
		if _, ok := p.written[c.path]; ok {
			load = p.loadWritten
		}
		if ignored[c.path] {
			c.skipped = "ignored"
		} else if err := load(c); err != nil {
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

func (p *plan) loadOne(c *change) error {
	c.new = c.old
	st, err := p.files.Stat(c.path)
	switch {
	case isGone(err):
		return p.loadGone(c)
	case err == nil && st.Mode.IsDir():
		if c.old.IsFile() {
			c.new = entry{}
		}
		return nil
	case err == nil && !st.Mode.IsRegular() && !isLink(st):
		c.skipped = "not a regular file"
		return nil
	case err == nil && isLink(st) && dangerousLink(c.path):
		c.skipped = "a link with a name that means something to Git"
		return nil
	}
	var e entry
	if err == nil {
		c.see(st)
		e, err = readBlob(p.files, c.path, st)
	}
	switch {
	case err == nil:
		if !p.repo.config.fileMode && e.Mode != modeLink {
			e.Mode = modeFile
			if c.old.Mode == modeExec {
				e.Mode = modeExec
			}
		}
		c.new = e
	case isGone(err):
		return p.loadGone(c)
	case transient(err):
		return err
	default:
		c.skipped = err.Error()
	}
	return nil
}

// loadGone is loadOne where nothing is on disk: because of a sparse checkout, maybe.
func (p *plan) loadGone(c *change) (err error) {
	c.gone = true
	if !c.old.IsFile() {
		return nil
	}
	if p.missing == nil {
		if p.missing, err = p.repo.sparse(); err != nil {
			return err
		}
	}
	if !p.missing[c.path] {
		c.new = entry{}
	}
	return nil
}

// giveRead gives the files that were read, again, to the importer. What was changed since it was
// looked at stays as HEAD has it, and is an edit of its own.
func (p *plan) giveRead(to *importer) error {
	for _, c := range p.differing() {
		if c.data != nil || !c.new.IsFile() || to.given[c.new.Hash] {
			continue
		}
		same, err := giveChange(p.files, c, to)
		if err != nil {
			return err
		}
		if !same {
			c.new = c.old
			p.apart = append(p.apart, c.path)
		}
	}
	return nil
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

// adds reports whether any of the paths is on disk but not in HEAD.
func (p *plan) adds(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		c := p.changes[path]
		return c != nil && c.old == (entry{}) && c.differs()
	})
}

// touches reports whether any of the paths, or a path below it, differs.
func (p *plan) touches(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		c := p.changes[path]
		return c != nil && c.differs()
	})
}
