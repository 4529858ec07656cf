package gitlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"mailtree/maildir/gitlog/gitindex"
)

// repository is one look at a .git folder. It is made anew for each batch: a person's `git gc` may replace every
// pack (after one, a long-lived go-git handle failed 99 of 99 commits; RELIABILITY.md 3).
type repository struct {
	dir    string // the work tree
	git    string // its .git
	config settings
	mem    *memory
	packs  *filesystem.Storage // opened when the first object is not in mem
}

// openRepository looks whether dir has a repository that we can write. The error is a *hold where it has not.
func openRepository(dir string, mem *memory) (*repository, error) {
	r := &repository{dir: dir, git: filepath.Join(dir, ".git"), mem: mem}
	fi, err := os.Lstat(r.git)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &hold{mode: "off", reason: "The mail is not audited: its .git folder is missing. Put it back, or restart the server to begin a new history; the mail keeps working."}
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, &hold{mode: "off", reason: "The mail is not audited: .git is not a folder. Linked work trees are not supported; put a plain repository in its place."}
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
		return nil, &hold{mode: "off", reason: "The mail is not audited: its repository uses " + f + ", which the server cannot write. Convert it to SHA-1 objects and plain refs."}
	}
	return r, nil
}

// memory is what is kept from batch to batch: content-addressed, so never stale, and bounded.
type memory struct {
	young, old map[hash][]byte // tree objects
	bytes      int
	commits    map[hash]hash // commit to its tree
	recent     map[string]gitindex.Stat
	index      gitindex.Seen // the Git index as we left it
	sound      gitindex.Seen // an index whose checksum was right
	level      state         // index and HEAD as they were when our last commits were found in both
	own        []ownCommit   // our last commits, oldest first, until they are known to stand
	fresh      []object      // loose objects of the last commits, until then; at most freshBytes
}

const memoryBytes = 16 << 20

const freshBytes = 4 << 20

// keepFresh remembers objects that were written loose, the newest where they are too many.
func (m *memory) keepFresh(all []object) {
	m.fresh = append(m.fresh, all...)
	bytes := 0
	for i := len(m.fresh) - 1; i >= 0; i-- {
		if bytes += len(m.fresh[i].data); bytes > freshBytes {
			m.fresh = slices.Clone(m.fresh[i+1:])
			return
		}
	}
}

func newMemory() *memory {
	return &memory{young: map[hash][]byte{}, commits: map[hash]hash{}}
}

func (m *memory) keep(h hash, data []byte) {
	if m.bytes += len(data) + 100; m.bytes > memoryBytes {
		m.young, m.old, m.bytes = map[hash][]byte{}, m.young, len(data)
	}
	m.young[h] = data
}

func (m *memory) tree(h hash) ([]byte, bool) {
	data, ok := m.young[h]
	if !ok {
		if data, ok = m.old[h]; ok {
			m.keep(h, data)
		}
	}
	return data, ok
}

func (m *memory) keepCommit(c, tree hash) {
	if len(m.commits) > 100 {
		clear(m.commits)
	}
	m.commits[c] = tree
}

var emptyTree = objectHash(treeObject, nil)

// tree returns the content of a tree object.
func (r *repository) tree(h hash) ([]byte, error) {
	if data, ok := r.mem.tree(h); ok || h == emptyTree {
		return data, nil
	}
	data, err := r.read(plumbing.TreeObject, h)
	if err == nil {
		r.mem.keep(h, data)
	}
	return data, err
}

// treeOf returns the tree of a commit, zero for the zero hash.
func (r *repository) treeOf(c hash) (hash, error) {
	if c.IsZero() {
		return hash{}, nil
	}
	if t, ok := r.mem.commits[c]; ok {
		return t, nil
	}
	data, err := r.read(plumbing.CommitObject, c)
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

// read reads an object through go-git. A miss is tried once more with a fresh list of packs, as Git does: they may
// just have been repacked (https://github.com/go-git/go-git/issues/2242).
func (r *repository) read(t plumbing.ObjectType, h hash) (data []byte, err error) {
	for range 2 {
		if data, err = r.readOnce(t, h); err == nil {
			return data, nil
		}
		r.close()
	}
	return nil, fmt.Errorf("read %s %s: %w", t, h, err)
}

func (r *repository) readOnce(t plumbing.ObjectType, h hash) (data []byte, err error) {
	defer func() { // a damaged pack is no reason to stop the server
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged repository: %v", p)
		}
	}()
	if err := r.waitless(h); err != nil {
		return nil, err
	}
	if r.packs == nil {
		r.packs = filesystem.NewStorage(osfs.New(r.git, osfs.WithBoundOS()), cache.NewObjectLRU(4<<20))
	}
	o, err := r.packs.EncodedObject(t, h)
	if err != nil {
		return nil, err
	}
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// restoreObjects writes those of the objects once more that are gone. `git prune`, and gc with --prune=now, remove what
// nothing refers to, and so what a commit has written before it moves the branch; one that began before the move
// does so after it. Packs have their .keep against that.
func (r *repository) restoreObjects(all []object) (n int, names []string, err error) {
	again := newObjects(r.git)
	defer again.discard()
	for _, x := range all {
		if fi, err := os.Lstat(again.loose(x.hash)); err == nil && fi.Size() > 0 {
			continue
		}
		if _, err := r.read(plumbing.AnyObject, x.hash); err != nil {
			again.few = append(again.few, x)
		}
	}
	n = len(again.few)
	names, err = again.finishLoose()
	return n, names, err
}

// waitless refuses what would keep go-git waiting, which opens the files of the object store as they are.
func (r *repository) waitless(h hash) error {
	names := []string{"objects/info/alternates", "objects/" + h.String()[:2] + "/" + h.String()[2:]}
	if r.packs == nil && isFolder(r.path("objects/pack")) {
		files, err := os.ReadDir(r.path("objects/pack"))
		if err != nil {
			return err
		}
		for _, f := range files {
			if !f.Type().IsRegular() {
				names = append(names, "objects/pack/"+f.Name())
			}
		}
	}
	for _, name := range names {
		if fi, err := os.Stat(r.path(name)); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
			return notFile(name)
		}
	}
	return nil
}

func (r *repository) close() {
	if r.packs != nil {
		r.packs.Close()
		r.packs = nil
	}
}

// when is the committer's time of a commit; zero where it cannot be read.
func (r *repository) when(c hash) time.Time {
	data, err := r.read(plumbing.CommitObject, c)
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "committer "); ok {
			f := strings.Fields(rest)
			if len(f) >= 2 {
				if n, err := strconv.ParseInt(f[len(f)-2], 10, 64); err == nil {
					return time.Unix(n, 0).UTC()
				}
			}
		}
		if line == "\n" {
			break
		}
	}
	return time.Time{}
}

// lookup returns what the tree has at path.
func (r *repository) lookup(tree entry, path string) (entry, error) {
	for _, name := range strings.Split(path, "/") {
		if !tree.isTree() {
			return entry{}, nil
		}
		data, err := r.tree(tree.hash)
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

// committed returns what a commit has at path. The commit may be the zero hash.
func (r *repository) committed(commit hash, path string) (entry, error) {
	tree, err := r.treeOf(commit)
	if err != nil || tree.IsZero() {
		return entry{}, err
	}
	return r.lookup(entry{modeTree, tree}, path)
}

// walk calls fn for every file below a tree, in the order of an index; prefix is the tree's path.
func (r *repository) walk(tree hash, prefix string, fn func(path string, e entry)) error {
	data, err := r.tree(tree)
	if err != nil {
		return err
	}
	var below error
	err = eachEntry(data, func(name []byte, e entry, _ []byte) {
		path := string(name)
		if prefix != "" {
			path = prefix + "/" + path
		}
		switch {
		case below != nil:
		case e.isTree():
			below = r.walk(e.hash, path, fn)
		case e.isFile():
			fn(path, e)
		}
	})
	return cmp.Or(below, err)
}

// diff calls fn for every file that differs between two trees.
func (r *repository) diff(a, b entry, prefix string, fn func(path string, old, new entry)) error {
	if a == b {
		return nil
	}
	names := map[string][2]entry{}
	for side, e := range []entry{a, b} {
		if !e.isTree() {
			continue
		}
		data, err := r.tree(e.hash)
		if err != nil {
			return err
		}
		err = eachEntry(data, func(name []byte, e entry, _ []byte) {
			pair := names[string(name)]
			pair[side] = e
			names[string(name)] = pair
		})
		if err != nil {
			return err
		}
	}
	for name, pair := range names {
		if pair[0] == pair[1] {
			continue
		}
		path := name
		if prefix != "" {
			path = prefix + "/" + name
		}
		if pair[0].isFile() || pair[1].isFile() {
			fn(path, fileOnly(pair[0]), fileOnly(pair[1]))
		}
		if pair[0].isTree() || pair[1].isTree() {
			if err := r.diff(pair[0], pair[1], path, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

func fileOnly(e entry) entry {
	if e.isFile() {
		return e
	}
	return entry{}
}
