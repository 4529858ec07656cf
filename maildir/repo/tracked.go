package repo

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/gitlog/gitindex"
)

// Tracked reads the names of the files that Git tracks, from the index file of a work tree, and
// remembers the last few lists until their files change. Safe for concurrent use; the zero Tracked
// has read none.
type Tracked struct {
	mu   sync.Mutex
	kept []tracked // the one used last comes first
}

// tracked is what was read of one index.
type tracked struct {
	file  string
	seen  gitindex.Seen
	names []string
}

// maxKept is how many lists are remembered, and maxIndexBytes how large an index is read: some
// 150,000 files, whose names take 20 MB.
const (
	maxKept       = 4
	maxIndexBytes = 16 << 20
)

// Below lists what the index of the work tree at or above dir has below dir, relative to dir and
// sorted by bytes; the caller does not change the list. ok is false where there is no index, where
// it is of a form that is not read, and where it was not read before the deadline.
func (t *Tracked) Below(dir string, deadline time.Time) (names []string, ok bool) {
	top, err := WorkTree(dir)
	if err != nil || top == "" {
		return nil, false
	}
	git, _, err := GitFolders(top)
	if err != nil || git == "" {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if names, ok = t.readIndex(filepath.Join(git, "index"), deadline); !ok {
		return nil, false
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." {
		return names, err == nil
	}
	var below []string
	for _, name := range names {
		if name, ok := strings.CutPrefix(name, filepath.ToSlash(rel)+"/"); ok {
			below = append(below, name)
		}
	}
	return below, true
}

// readIndex lists the names in an index, and remembers them.
func (t *Tracked) readIndex(file string, deadline time.Time) (names []string, ok bool) {
	seen, err := gitindex.See(file)
	if err != nil || !seen.Exists || seen.Stat.Size > maxIndexBytes {
		return nil, false
	}
	for i, k := range t.kept {
		if k.file == file && k.seen.Same(seen) {
			copy(t.kept[1:i+1], t.kept[:i])
			t.kept[0] = k
			return k.names, true
		}
	}
	index, err := gitindex.Open(file, &seen) // a count needs no checksum
	if err != nil {
		return nil, false
	}
	defer index.Close()
	if !index.Seen.Same(seen) { // exchanged meanwhile
		return nil, false
	}
	names = make([]string, 0, min(index.Count, maxIndexBytes/64)) // an entry takes 64 bytes at least
	for e := range index.All(&err) {
		if len(names)%1024 == 0 && time.Now().After(deadline) {
			return nil, false
		}
		names = append(names, string(e.Name))
	}
	if err != nil {
		return nil, false
	}
	kept := []tracked{{file, seen, names}}
	for _, k := range t.kept {
		if k.file != file && len(kept) < maxKept {
			kept = append(kept, k)
		}
	}
	t.kept = kept
	return names, true
}
