package watcher

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// identity identifies a folder even if it is renamed.
type identity struct {
	dev, ino uint64
}

// identify returns the identity of the file or folder that info describes.
func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{dev: uint64(st.Dev), ino: st.Ino}
}

// folder is a folder that a walk has visited.
type folder struct {
	rel     string
	id      identity
	mode    fs.FileMode
	round   int  // number of the full walk that last visited the folder
	refused bool // whether the folder cannot be watched or listed, which has been logged
	parent  *folder
	below   map[*folder]struct{}
}

// folders is the tree of visited folders. Except for the root, a folder is in the tree only if its parent is.
type folders struct {
	byPath  map[string]*folder
	byID    map[identity]*folder
	refused int // number of folders that are not watched
}

func newFolders() *folders {
	return &folders{byPath: map[string]*folder{}, byID: map[identity]*folder{}}
}

// putFolder adds f. The tree must contain f's parent and must not contain f's path.
func (t *folders) putFolder(f *folder) {
	t.byPath[f.rel], t.byID[f.id] = f, f
	if f.rel == "." {
		return
	}
	f.parent = t.byPath[path.Dir(f.rel)]
	if f.parent.below == nil {
		f.parent.below = map[*folder]struct{}{}
	}
	f.parent.below[f] = struct{}{}
}

// refuse marks f as a folder that cannot be watched or listed, and reports whether the mark is new.
func (t *folders) refuse(f *folder) bool {
	if f.refused {
		return false
	}
	f.refused = true
	t.refused++
	return true
}

// accept removes the mark that refuse set.
func (t *folders) accept(f *folder) {
	t.refused -= count(f.refused)
	f.refused = false
}

// watched returns the number of watched folders.
func (t *folders) watched() int { return len(t.byPath) - t.refused }

// removeFolder removes the folder at rel and everything below it, and calls gone for each folder.
func (t *folders) removeFolder(rel string, gone func(*folder)) {
	f, ok := t.byPath[rel]
	if !ok {
		return
	}
	if f.parent != nil {
		delete(f.parent.below, f)
	}
	t.forget(f, gone)
}

func (t *folders) forget(f *folder, gone func(*folder)) {
	for child := range f.below {
		t.forget(child, gone)
	}
	delete(t.byPath, f.rel)
	t.refused -= count(f.refused)
	if t.byID[f.id] == f {
		delete(t.byID, f.id)
	}
	gone(f)
}

// within reports whether rel is dir or below it.
func within(rel, dir string) bool {
	return dir == "." || rel == dir || strings.HasPrefix(rel, dir+"/")
}
