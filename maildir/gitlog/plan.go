package gitlog

import (
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/tree"
)

// change is what a commit makes of one path.
type change struct {
	path     string
	at       *node
	old, new entry         // in HEAD, in the newest commit
	seen     tree.FileStat // of the file on disk that new was read from, or that is as new
	calm     bool          // it had been so for long enough to tell by its time whether it has changed since
	data     []byte        // of new, where it is a file that was read or written and is kept; else it is read again
	gone     bool          // nothing is there on disk
	mild     bool          // not named itself, but found below a folder that was: .gitignore counts
	skipped  string        // why the file on disk cannot be committed; then new is old
}

// see notes the state of the file on disk before it is read.
func (c *change) see(st tree.FileStat) { c.seen, c.calm = st, isCalm(st) }

// isCalm reports that another change would bear another time.
func isCalm(st tree.FileStat) bool { return time.Since(time.Unix(0, st.CTime)) > tree.Racy }

func (c *change) differs() bool { return c.new != c.old }

// plan is the content of the newest commit: HEAD's tree, and of the named paths what operations
// wrote there, else what is on disk now.
type plan struct {
	repo    *repository
	base    entry           // HEAD's tree
	missing map[string]bool // paths that are meant to be missing on disk; nil: not asked yet
	files   *tree.Tree
	ignore  *ignorer // nil: .gitignore does not count
	written map[string]delivery
	apart   []string // paths that somebody else changed after an operation had written them
	kept    int      // bytes of what was read
	root    node
	changes map[string]*change
}

func newPlan(r *repository, base hash) (*plan, error) {
	files, err := tree.Open(r.dir, maxBlob)
	if err != nil {
		return nil, err
	}
	p := &plan{repo: r, base: treeEntry(base), files: files, changes: map[string]*change{}}
	p.root.old = p.base
	return p, nil
}

func (p *plan) close() {
	p.files.Close()
	_ = p.ignore.endAsking()
}

// name takes paths into the plan; a folder stands for all that is below it on disk or in HEAD.
// Paths that Git cannot have (in .git, with "..") and the run-time folder are left out.
func (p *plan) name(paths []string) error {
	for _, path := range paths {
		path = named(path)
		if path != "" && !committable(path) {
			continue
		}
		if _, ok := p.written[path]; ok {
			p.add(path, byName)
			continue
		}
		st, err := p.files.Stat(orDot(path))
		if err == nil && st.Mode.IsDir() {
			if err := p.nameFolder(path); err != nil {
				return err
			}
			continue
		}
		if transient(err) {
			return err
		}
		if isGone(err) && path != "" { // a folder that is gone, maybe
			have, err := p.repo.Lookup(p.base, path)
			if err == nil && have.IsTree() {
				err = p.nameFolder(path)
			}
			if err != nil {
				return err
			}
			if have.IsTree() {
				continue
			}
		}
		p.add(path, byName)
	}
	return nil
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

// How a path comes into the plan: the values of change.mild.
const (
	byName   = false
	byFolder = true
)

func (p *plan) add(path string, mild bool) {
	if c := p.changes[path]; c != nil {
		c.mild = c.mild && mild
		return
	}
	c := &change{path: path, mild: mild}
	p.changes[path] = c
	c.at = p.root.findNode(path)
	c.at.leaf = c
}

// nameFolder takes in what is below a folder: what Git has there, for what is gone, and what is on
// disk.
func (p *plan) nameFolder(path string) error {
	have := p.base
	if path != "" {
		var err error
		if have, err = p.repo.Lookup(p.base, path); err != nil {
			return err
		}
	}
	switch {
	case have.IsTree():
		if err := p.repo.Walk(have.Hash, path, func(f string, _ entry) { p.add(f, byFolder) }); err != nil {
			return err
		}
	case have.IsFile(): // a file became a folder
		p.add(path, byFolder)
	}
	return p.walk(path)
}

// walk takes in the files on disk below a folder. Nested repositories and ignored folders are not
// entered.
func (p *plan) walk(path string) error {
	entries, err := p.files.List(orDot(path))
	if isGone(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if path != "" && slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return isGitFolder(d.Name()) }) {
		return nil
	}
	for _, d := range entries {
		f := joined(path, d.Name())
		if !committable(f) {
			continue
		}
		if !d.IsDir() {
			p.add(f, byFolder)
			continue
		}
		if p.ignore.match(f) {
			continue
		}
		if err := p.walk(f); err != nil {
			return err
		}
	}
	return nil
}

// load finds out what every named path is in HEAD and on disk.
func (p *plan) load(log *slog.Logger) error {
	if err := p.root.resolve(p.repo); err != nil {
		return err
	}
	for _, c := range p.sorted() {
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
	return p.ignore.endAsking()
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
	case err == nil && c.old.Mode == 0 && p.ignore.match(c.path):
		c.skipped = "ignored"
		return nil
	}
	var e entry
	if err == nil {
		c.see(st)
		e, c.data, err = readBlob(p.files, c.path, st)
	}
	if p.kept += len(c.data); p.kept > maxKept {
		c.data = nil
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

// maxKept bounds the contents of files that a plan keeps in memory.
const maxKept = 4 << 20

// giveUnkept gives the files that the plan has not kept to the importer. What was changed since it was
// looked at stays as HEAD has it, and is an edit of its own.
func (p *plan) giveUnkept(to *importer) error {
	for _, c := range p.differing() {
		if c.data != nil || !c.new.IsFile() {
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
