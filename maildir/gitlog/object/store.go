package object

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
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
)

// Store reads the objects of a repository. It is made anew for each batch of work.
type Store struct {
	git   string
	cache *Cache
	packs *filesystem.Storage // opened when the first object is not in cache
	own   *packSet            // the same; asked before go-git
}

// NewStore reads the repository at git. It opens nothing yet; the caller closes it.
func NewStore(git string, cache *Cache) *Store { return &Store{git: git, cache: cache} }

// SpecialError says that something else than a regular file is where Git has one.
type SpecialError struct{ Name string } // below .git

// Error names the file.
func (e *SpecialError) Error() string { return e.Name + " is not a regular file" }

// Cache is what a Store has read, for the next one: bounded, and never stale.
type Cache struct {
	young, old map[Hash][]byte // tree objects
	bytes      int
	commits    map[Hash]Hash // commit to its tree
}

const cacheBytes = 16 << 20

// NewCache returns an empty Cache.
func NewCache() *Cache { return &Cache{young: map[Hash][]byte{}, commits: map[Hash]Hash{}} }

// Keep remembers a tree object.
func (c *Cache) Keep(h Hash, data []byte) {
	if c.bytes += len(data) + 100; c.bytes > cacheBytes {
		c.young, c.old, c.bytes = map[Hash][]byte{}, c.young, len(data)
	}
	c.young[h] = data
}

func (c *Cache) tree(h Hash) ([]byte, bool) {
	data, ok := c.young[h]
	if !ok {
		if data, ok = c.old[h]; ok {
			c.Keep(h, data)
		}
	}
	return data, ok
}

// KeepCommit remembers the tree of a commit.
func (c *Cache) KeepCommit(commit, tree Hash) {
	if len(c.commits) > 100 {
		clear(c.commits)
	}
	c.commits[commit] = tree
}

var emptyTree = HashOf(KindTree, nil)

// Tree returns the content of a tree object. Errors: as Read.
func (s *Store) Tree(h Hash) ([]byte, error) {
	if data, ok := s.cache.tree(h); ok || h == emptyTree {
		return data, nil
	}
	data, err := s.Read(KindTree, h)
	if err == nil {
		s.cache.Keep(h, data)
	}
	return data, err
}

// TreeOf returns the tree of a commit, zero for the zero hash. Errors: as Read.
func (s *Store) TreeOf(c Hash) (Hash, error) {
	if c.IsZero() {
		return Hash{}, nil
	}
	if t, ok := s.cache.commits[c]; ok {
		return t, nil
	}
	data, err := s.Read(KindCommit, c)
	if err != nil {
		return Hash{}, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	hex, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !plumbing.IsHash(string(hex)) {
		return Hash{}, fmt.Errorf("commit %s is damaged", c)
	}
	t := plumbing.NewHash(string(hex))
	s.cache.KeepCommit(c, t)
	return t, nil
}

// Read reads an object: out of the packs by a packSet, else through go-git. A miss is tried once
// more with a fresh list of packs, as Git does: they may just have been repacked
// (https://github.com/go-git/go-git/issues/2242). Nobody may change what it returns. Errors: a
// *SpecialError; plumbing.ErrObjectNotFound; those of the files, damaged ones among them.
func (s *Store) Read(k Kind, h Hash) ([]byte, error) { return s.read(plumbing.ObjectType(k), h) }

func (s *Store) read(t plumbing.ObjectType, h Hash) (data []byte, err error) {
	for range 2 {
		if data, err = s.readOnce(t, h); err == nil {
			return data, nil
		}
		s.Close()
	}
	return nil, fmt.Errorf("read %s %s: %w", t, h, err)
}

func (s *Store) readOnce(t plumbing.ObjectType, h Hash) (data []byte, err error) {
	defer func() { // a damaged pack is no reason to stop the server
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged repository: %v", p)
		}
	}()
	if s.own == nil {
		if err := s.checkFiles(h); err != nil {
			return nil, err
		}
		s.own = openPacks(s.git)
	}
	if data, err := s.own.read(Kind(t), h); err == nil {
		return data, nil
	}
	if err := s.checkFiles(h); err != nil {
		return nil, err
	}
	if s.packs == nil {
		s.packs = filesystem.NewStorage(osfs.New(s.git, osfs.WithBoundOS()), cache.NewObjectLRU(4<<20))
	}
	o, err := s.packs.EncodedObject(t, h)
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

// checkFiles refuses what would keep go-git waiting, which opens the files of the object store as
// they are.
func (s *Store) checkFiles(h Hash) error {
	names := []string{"objects/info/alternates", "objects/" + h.String()[:2] + "/" + h.String()[2:]}
	if s.own == nil && s.hasPacks() {
		files, err := os.ReadDir(filepath.Join(s.git, "objects/pack"))
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
		if fi, err := os.Stat(filepath.Join(s.git, filepath.FromSlash(name))); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
			return &SpecialError{Name: name}
		}
	}
	return nil
}

// CheckFiles reports, as a *SpecialError, what would keep a program waiting that opens the packs as
// they are.
func (s *Store) CheckFiles() error { return s.checkFiles(Hash{}) }

func (s *Store) hasPacks() bool {
	fi, err := os.Lstat(filepath.Join(s.git, "objects/pack"))
	return err == nil && fi.IsDir()
}

// Close closes the packs; a read opens them anew.
func (s *Store) Close() {
	if s.own != nil {
		s.own.close()
		s.own = nil
	}
	if s.packs != nil {
		s.packs.Close()
		s.packs = nil
	}
}

// When is the committer's time of a commit; zero where it cannot be read.
func (s *Store) When(c Hash) time.Time {
	data, err := s.Read(KindCommit, c)
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

// Lookup returns what the tree has at path, the zero Entry where that is nothing. Errors: as Read.
func (s *Store) Lookup(tree Entry, path string) (Entry, error) {
	for _, name := range strings.Split(path, "/") {
		if !tree.IsTree() {
			return Entry{}, nil
		}
		data, err := s.Tree(tree.Hash)
		if err != nil {
			return Entry{}, err
		}
		tree = Entry{}
		err = EachEntry(data, func(n []byte, e Entry, _ []byte) {
			if string(n) == name {
				tree = e
			}
		})
		if err != nil {
			return Entry{}, err
		}
	}
	return tree, nil
}

// At returns what a commit has at path, the zero Entry where that is nothing. The commit may be the
// zero hash. Errors: as Read.
func (s *Store) At(commit Hash, path string) (Entry, error) {
	tree, err := s.TreeOf(commit)
	if err != nil || tree.IsZero() {
		return Entry{}, err
	}
	return s.Lookup(Entry{Mode: ModeTree, Hash: tree}, path)
}

// Walk calls fn for every file below a tree, in the order of an index; prefix is the tree's path.
// Errors: as Read, after some calls maybe.
func (s *Store) Walk(tree Hash, prefix string, fn func(path string, e Entry)) error {
	data, err := s.Tree(tree)
	if err != nil {
		return err
	}
	var below error
	err = EachEntry(data, func(name []byte, e Entry, _ []byte) {
		path := string(name)
		if prefix != "" {
			path = prefix + "/" + path
		}
		switch {
		case below != nil:
		case e.IsTree():
			below = s.Walk(e.Hash, path, fn)
		case e.IsFile():
			fn(path, e)
		}
	})
	return cmp.Or(below, err)
}

// Diff calls fn for every file that differs between two trees. Errors: as Walk.
func (s *Store) Diff(a, b Entry, prefix string, fn func(path string, old, new Entry)) error {
	return s.DiffIn(a, b, prefix, func(string) bool { return true }, fn)
}

// DiffIn is Diff, but looks at no folder for whose path enter is false.
func (s *Store) DiffIn(a, b Entry, prefix string, enter func(dir string) bool, fn func(path string, old, new Entry)) error {
	if a == b {
		return nil
	}
	var sides [2][]byte
	for side, e := range []Entry{a, b} {
		if !e.IsTree() {
			continue
		}
		var err error
		if sides[side], err = s.Tree(e.Hash); err != nil {
			return err
		}
	}
	names := map[string][2]Entry{}
	same := commonEntries(sides[0], sides[1])
	for side, data := range sides {
		err := EachEntry(data[same:], func(name []byte, e Entry, _ []byte) {
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
		path := name
		if prefix != "" {
			path = prefix + "/" + name
		}
		if pair[0].IsFile() || pair[1].IsFile() {
			fn(path, fileOnly(pair[0]), fileOnly(pair[1]))
		}
		if (pair[0].IsTree() || pair[1].IsTree()) && enter(path) {
			if err := s.DiffIn(pair[0], pair[1], path, enter, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// commonEntries is how many bytes of whole entries two tree objects begin with alike: most of them,
// where mail is appended to a folder.
func commonEntries(a, b []byte) (n int) {
	_ = EachEntry(a, func(_ []byte, _ Entry, raw []byte) {
		if end := n + len(raw); end <= len(b) && &raw[0] == &a[n] && bytes.Equal(raw, b[n:end]) {
			n = end
		}
	})
	return n
}

func fileOnly(e Entry) Entry {
	if e.IsFile() {
		return e
	}
	return Entry{}
}
