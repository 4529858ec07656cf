package repo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// Tracked lists the files that Git tracks. It reads them with `git ls-files`, and caches the last few lists until their
// indexes change. It is safe for concurrent use. The zero value is ready to use.
type Tracked struct {
	mu   sync.Mutex
	kept []tracked // most recently used first
}

// tracked is the list of names in one index.
type tracked struct {
	file  string
	stat  tree.FileStat
	names []string
}

// maxKept is the maximum number of cached lists. maxIndexBytes is the maximum size, in bytes, of an index to read. An
// index of that size lists about 150,000 files, whose names take 20 MB.
const (
	maxKept       = 4
	maxIndexBytes = 16 << 20
)

// Below lists the files below dir that are in the index of the working tree at or above dir. The names are relative to
// dir and sorted by bytes. The caller must not modify the list. A repository to which no file has been added yet has no
// index, so its list is empty. ok is false if there is no repository or no git program, or if the index could not be
// read before the deadline.
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
	if names, ok = t.readIndex(git, deadline); !ok {
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

// readIndex lists the names in the index of a .git folder, and caches the list. If there is no index, it asks Git
// whether the folder is a repository.
func (t *Tracked) readIndex(git string, deadline time.Time) (names []string, ok bool) {
	file := filepath.Join(git, "index")
	fi, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return listIndex(git, deadline)
	}
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxIndexBytes {
		return nil, false
	}
	stat := tree.StatOfInfo(fi)
	for i, k := range t.kept {
		if k.file == file && k.stat == stat {
			copy(t.kept[1:i+1], t.kept[:i])
			t.kept[0] = k
			return k.names, true
		}
	}
	if names, ok = listIndex(git, deadline); !ok {
		return nil, false
	}
	kept := []tracked{{file, stat, names}}
	for _, k := range t.kept {
		if k.file != file && len(kept) < maxKept {
			kept = append(kept, k)
		}
	}
	t.kept = kept
	return names, true
}

// listIndex runs Git to list the names in an index.
func listIndex(folder string, deadline time.Time) (names []string, ok bool) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	out, err := git(ctx, folder, "ls-files", "-z", "--cached", "--deduplicate")
	if err != nil {
		return nil, false
	}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	slices.Sort(names) // Git sorts the names, except in a collapsed folder
	return names, true
}
