package gitlog

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// hash names an object; the zero hash none.
type hash = plumbing.Hash

// Modes as tree objects write them. 0 stands for: nothing there.
const (
	modeTree   = 0o040000
	modeFile   = 0o100644
	modeExec   = 0o100755
	modeLink   = 0o120000
	modeModule = 0o160000
)

// entry is what a tree says of a name. The zero entry: nothing.
type entry struct {
	Mode uint32
	Hash hash
}

// IsTree reports whether e is a folder.
func (e entry) IsTree() bool { return e.Mode == modeTree }

// IsFile reports whether e has a blob: a file, an executable, a link.
func (e entry) IsFile() bool { return e.Mode != 0 && e.Mode != modeTree && e.Mode != modeModule }

// treeEntry is the entry of a tree; the zero entry of none.
func treeEntry(h hash) entry {
	if h.IsZero() {
		return entry{}
	}
	return entry{modeTree, h}
}

// blobHash is the name of a blob. Git's own SHA-1 also looks for collisions, which is what makes it
// slow.
func blobHash(data []byte) hash {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hash(h.Sum(nil))
}

// reader asks `git cat-file` for objects. The program starts with the first one.
type reader struct {
	cmd  *exec.Cmd
	ask  io.WriteCloser
	tell *bufio.Reader
}

// maxObject bounds what is read into memory of an object, in bytes.
const maxObject = 1 << 28

var errNoObject = errors.New("there is no such object")

// read returns the content of an object of that kind. Nobody may change what it returns. Errors:
// errNoObject, and those of the program.
func (r *repository) read(kind string, h hash) ([]byte, error) {
	if r.objects.cmd == nil {
		c, err := r.command(r.ctx, "cat-file", "--batch")
		if err != nil {
			return nil, err
		}
		ask, tell, err := startTalk(c)
		if err != nil {
			return nil, err
		}
		r.objects = reader{c, ask, tell}
	}
	data, err := r.objects.read(kind, h)
	if err != nil && !errors.Is(err, errNoObject) {
		r.Close()
	}
	if err != nil {
		err = fmt.Errorf("read %s %s: %w", kind, h, err)
	}
	return data, err
}

func (o *reader) read(kind string, h hash) ([]byte, error) {
	if _, err := io.WriteString(o.ask, h.String()+"\n"); err != nil {
		return nil, err
	}
	line, err := o.tell.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		return nil, errNoObject
	}
	size, err := strconv.Atoi(f[2])
	if err != nil || size > maxObject {
		return nil, fmt.Errorf("it has %s bytes", f[2])
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(o.tell, data); err != nil {
		return nil, err
	}
	if f[1] != kind {
		return nil, fmt.Errorf("%w: it is a %s", errNoObject, f[1])
	}
	return data[:size:size], nil
}

// Close ends the program that reads objects; a read starts it anew.
func (r *repository) Close() {
	if c := r.objects.cmd; c != nil {
		r.objects.ask.Close()
		_ = c.Wait()
		r.objects = reader{}
	}
}

// trees are tree objects that were read, for the next look: bounded, and never stale, because a name
// stands for a content.
type trees struct {
	young, old map[hash][]byte
	bytes      int
	commits    map[hash]hash // commit to its tree
}

const treesBytes = 16 << 20

func (c *trees) keep(h hash, data []byte) {
	if c.bytes += len(data) + 100; c.bytes > treesBytes {
		c.young, c.old, c.bytes = map[hash][]byte{}, c.young, len(data)
	}
	c.young[h] = data
}

func (c *trees) tree(h hash) ([]byte, bool) {
	data, ok := c.young[h]
	if !ok {
		if data, ok = c.old[h]; ok {
			c.keep(h, data)
		}
	}
	return data, ok
}

func (c *trees) keepCommit(commit, tree hash) {
	if len(c.commits) > 100 {
		clear(c.commits)
	}
	c.commits[commit] = tree
}

var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// Tree returns the content of a tree object. Errors: as read.
func (r *repository) Tree(h hash) ([]byte, error) {
	if data, ok := r.mem.tree(h); ok || h == emptyTree {
		return data, nil
	}
	data, err := r.read("tree", h)
	if err == nil {
		r.mem.keep(h, data)
	}
	return data, err
}

// TreeOf returns the tree of a commit, zero for the zero hash. Errors: as read.
func (r *repository) TreeOf(c hash) (hash, error) {
	if c.IsZero() {
		return hash{}, nil
	}
	if t, ok := r.mem.commits[c]; ok {
		return t, nil
	}
	data, err := r.read("commit", c)
	if err != nil {
		return hash{}, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	hex, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !plumbing.IsHash(string(hex)) {
		return hash{}, fmt.Errorf("commit %s is damaged", c)
	}
	t := plumbing.NewHash(string(hex))
	r.mem.keepCommit(c, t)
	return t, nil
}

// When is the committer's time of a commit; zero where it cannot be read.
func (r *repository) When(c hash) time.Time {
	data, err := r.read("commit", c)
	if err != nil {
		return time.Time{}
	}
	head, _, _ := bytes.Cut(data, []byte("\n\n"))
	for line := range strings.Lines(string(head)) {
		if who, ok := strings.CutPrefix(line, "committer "); ok {
			if f := strings.Fields(who); len(f) >= 2 {
				return unixTime(f[len(f)-2])
			}
		}
	}
	return time.Time{}
}

// unixTime reads seconds since 1970; the zero time where they are none.
func unixTime(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

var errDamaged = errors.New("damaged tree object")

// eachEntry calls fn for the entries of a tree object in their order; raw is the entry as it stands. It
// ends with an error at the first that is damaged.
func eachEntry(data []byte, fn func(name []byte, e entry, raw []byte)) error {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 {
			return errDamaged
		}
		nul := bytes.IndexByte(data[space:], 0)
		if nul < 2 || len(data) < space+nul+1+len(hash{}) {
			return errDamaged
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil || mode == 0 {
			return errDamaged
		}
		end := space + nul + 1 + len(hash{})
		fn(data[space+1:space+nul], entry{uint32(mode), hash(data[end-len(hash{}) : end])}, data[:end])
		data = data[end:]
	}
	return nil
}

// Lookup returns what the tree has at path, the zero entry where that is nothing. Errors: as read.
func (r *repository) Lookup(tree entry, path string) (entry, error) {
	for name := range strings.SplitSeq(path, "/") {
		if !tree.IsTree() {
			return entry{}, nil
		}
		data, err := r.Tree(tree.Hash)
		if err != nil {
			return entry{}, err
		}
		tree = entry{}
		err = eachEntry(data, func(n []byte, e entry, _ []byte) {
			if string(n) == name {
				tree = e
			}
		})
		if err != nil {
			return entry{}, err
		}
	}
	return tree, nil
}

// At returns what a commit has at path, the zero entry where that is nothing. The commit may be the
// zero hash. Errors: as read.
func (r *repository) At(commit hash, path string) (entry, error) {
	tree, err := r.TreeOf(commit)
	if err != nil || tree.IsZero() {
		return entry{}, err
	}
	return r.Lookup(treeEntry(tree), path)
}

// Walk calls fn for every file below a tree, in the order of an index; prefix is the tree's path.
// Errors: as read, after some calls maybe.
func (r *repository) Walk(tree hash, prefix string, fn func(path string, e entry)) error {
	data, err := r.Tree(tree)
	if err != nil {
		return err
	}
	var below error
	err = eachEntry(data, func(name []byte, e entry, _ []byte) {
		path := joined(prefix, string(name))
		switch {
		case below != nil:
		case e.IsTree():
			below = r.Walk(e.Hash, path, fn)
		case e.IsFile():
			fn(path, e)
		}
	})
	return cmp.Or(below, err)
}

// joined is the path of a name in a folder; "" is the tree itself.
func joined(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// Diff calls fn for every file that differs between two trees. Errors: as Walk.
func (r *repository) Diff(a, b entry, prefix string, fn func(path string, old, new entry)) error {
	return r.DiffIn(a, b, prefix, func(string) bool { return true }, fn)
}

// DiffIn is Diff, but looks at no folder for whose path enter is false.
func (r *repository) DiffIn(a, b entry, prefix string, enter func(dir string) bool, fn func(path string, old, new entry)) error {
	if a == b {
		return nil
	}
	var sides [2][]byte
	for side, e := range []entry{a, b} {
		if !e.IsTree() {
			continue
		}
		var err error
		if sides[side], err = r.Tree(e.Hash); err != nil {
			return err
		}
	}
	names := map[string][2]entry{}
	same := commonEntries(sides[0], sides[1])
	for side, data := range sides {
		err := eachEntry(data[same:], func(name []byte, e entry, _ []byte) {
			pair := names[string(name)]
			pair[side] = e
			names[string(name)] = pair
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pair := names[name]
		if pair[0] == pair[1] {
			continue
		}
		path := joined(prefix, name)
		if pair[0].IsFile() || pair[1].IsFile() {
			fn(path, fileOnly(pair[0]), fileOnly(pair[1]))
		}
		if (pair[0].IsTree() || pair[1].IsTree()) && enter(path) {
			if err := r.DiffIn(pair[0], pair[1], path, enter, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// commonEntries is how many bytes of whole entries two tree objects begin with alike: most of them,
// where mail is appended to a folder.
func commonEntries(a, b []byte) (n int) {
	_ = eachEntry(a, func(_ []byte, _ entry, raw []byte) {
		if end := n + len(raw); end <= len(b) && &raw[0] == &a[n] && bytes.Equal(raw, b[n:end]) {
			n = end
		}
	})
	return n
}

func fileOnly(e entry) entry {
	if e.IsFile() {
		return e
	}
	return entry{}
}

// commitFor is a commit to be made. Author and Committer are identities "Name <mail>".
type commitFor struct {
	Author, Committer string
	Written, Made     time.Time
	Message           string
}

// reflog is what a reflog line says of the commit.
func (c commitFor) reflog(initial bool) string {
	what := "commit"
	if initial {
		what = "commit (initial)"
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	return what + ": " + subject
}

// gitTime is a time as commits and reflogs write it. Git knows none before 1970.
func gitTime(t time.Time) string {
	return strconv.FormatInt(max(t.Unix(), 0), 10) + t.Format(" -0700")
}
