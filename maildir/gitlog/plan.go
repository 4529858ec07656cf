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

// change is a change that a commit makes to one path.
type change struct {
	path     string
	old, new entry         // the entries in HEAD and in the new commit
	seen     tree.FileStat // state of the file with new's content; zero if its times might not reveal a later change
	data     []byte        // content of new if an operation recorded it; otherwise, the blob has already been written
	gone     bool          // the file does not exist on disk
	skipped  string        // why the file on disk cannot be committed; if set, new is the same as old
}

// see stores the state of the file on disk, unless the file changed so recently that its times might not show a later
// change. The caller must have obtained the state before it read the file.
func (c *change) see(st tree.FileStat) {
	if time.Since(time.Unix(0, st.CTime)) > tree.Racy {
		c.seen = st
	}
}

func (c *change) differs() bool { return c.new != c.old }

// plan is the tree of the next commit. It equals the tree of HEAD, except at the named paths. There it contains the
// files that operations wrote, or the current files on disk.
type plan struct {
	repo    *repository
	base    hash // HEAD
	files   *tree.Tree
	to      objects              // receives the files that are read from disk; may be nil
	written map[string]operation // for each path, the last operation that lists it, if the operation recorded the content
	apart   []string             // paths to commit separately, such as an operation's file that a user changed later
	rest    []string             // edits beyond the limit of the commit
	folders map[string]bool      // folders that contain named paths
	changes map[string]*change
}

func newPlan(r *repository, base hash, to objects) (*plan, error) {
	files, err := tree.Open(r.dir, maxBlob)
	if err != nil {
		return nil, err
	}
	return &plan{repo: r, base: base, files: files, to: to,
		written: map[string]operation{}, changes: map[string]*change{}, folders: map[string]bool{}}, nil
}

func (p *plan) close() { p.files.Close() }

// name adds paths to the plan. It omits paths in the run-time folder, and paths that Git does not allow, such as paths
// in .git and paths with "..". If most is not 0, it adds at most that many paths and stores the others in rest.
func (p *plan) name(paths []string, most int) {
	for _, path := range paths {
		path = named(path)
		switch {
		case !committable(path):
		case most > 0 && len(p.changes) >= most && p.changes[path] == nil:
			p.rest = append(p.rest, path)
		default:
			p.add(path)
		}
	}
}

// named converts a path to the form that the plan uses, where "" is the root.
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

// load reads every path in the plan from HEAD, and its new content from an operation or from disk.
func (p *plan) load(log *slog.Logger) error {
	lookUp := func(paths ...string) (map[string]entry, error) { return p.repo.entries(p.base, paths...) }
	if p.to != nil {
		lookUp = p.to.entries
	}
	have, err := lookUp(slices.Collect(maps.Keys(p.changes))...)
	if err != nil {
		return err
	}
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
			log.Debug("file excluded from the history", "path", c.path, "reason", c.skipped)
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

// loadOne reads the file at the path of a change from disk.
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
		err = errors.New("it is neither a regular file nor a symbolic link that Git accepts at this path")
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

// modeOf returns Git's mode for the file or link with the given state.
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

// transient reports whether an error is a temporary system fault, rather than a fault of the file (tree.FaultOf).
func transient(err error) bool {
	return errors.As(err, new(unix.Errno)) && tree.FaultOf(err) == tree.FaultMachine
}

// ifTransient returns err if it is transient, and nil otherwise.
func ifTransient(err error) error {
	if transient(err) {
		return err
	}
	return nil
}

// differing returns the changes whose new entry differs from HEAD, sorted by path.
func (p *plan) differing() []*change {
	all := p.sorted()
	return slices.DeleteFunc(all, func(c *change) bool { return !c.differs() })
}

// differsAt reports whether the plan differs from HEAD at the path.
func (p *plan) differsAt(path string) bool {
	return p.changes[path] != nil && p.changes[path].differs()
}

// addsAt reports whether the plan contains the path but HEAD does not.
func (p *plan) addsAt(path string) bool { return p.differsAt(path) && p.changes[path].old == (entry{}) }
