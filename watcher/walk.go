package watcher

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// walk contains the folders to visit. A full walk starts at the root and only adds watches. Between full walks,
// folders are visited when events report them, and their files are reported.
type walk struct {
	todo  []visit // last in, first out, so a folder's subfolders come before its siblings
	round int     // number of the last full walk
	full  bool    // whether a full walk is in progress
	again bool    // whether another full walk must follow, because events were lost during this one
}

// visit is a folder to watch and list.
type visit struct {
	rel    string
	report bool // whether to report its files
	noted  bool // whether to only note the folder as changed, because everything below it is already being watched
}

func (k *walk) push(v visit) { k.todo = append(k.todo, v) }

// left returns the number of remaining steps. The end of a full walk counts as a step.
func (k *walk) left() int { return len(k.todo) + count(k.full) }

// beginScan starts a full walk. The walk adds every watch again, which costs nothing if the watch exists. It reports no
// files, because a Scan follows. If a full walk is in progress, it continues, and another full walk follows. If the
// walk were restarted instead, constant overflow would keep any walk from finishing.
func (s *session) beginScan() {
	if s.walk.full {
		s.walk.again = true
		return
	}
	s.walk = walk{todo: []visit{{rel: "."}}, round: s.walk.round + 1, full: true}
}

// step visits one folder, or ends the walk if no folder is left. It returns an error if the session must end.
func (s *session) step() error {
	last := len(s.walk.todo) - 1
	if last < 0 {
		s.finishScan()
		return nil
	}
	v := s.walk.todo[last]
	s.walk.todo = s.walk.todo[:last]
	if v.noted {
		now := time.Now()
		s.w.waiting.noted(v.rel, now)
		return nil
	}
	return s.visit(v)
}

// finishScan ends a walk. After a full walk, all watches are in place. finishScan then drops the folders that the walk
// did not find, and requests a Scan. The very first walk needs no Scan, because earlier changes do not need to be
// reported.
func (s *session) finishScan() {
	s.closeRoot()
	if !s.walk.full {
		return
	}
	s.walk.full = false
	s.sweep()
	if s.walk.again {
		s.w.waiting.askScan()
		s.beginScan()
		return
	}
	s.stood, s.short = true, ""
	s.retry.Stop()
	if !s.w.stand() {
		s.w.waiting.askScan()
	}
}

// sweep drops the folders that the last full walk did not find.
func (s *session) sweep() {
	var unseen []string
	for rel, f := range s.folders.byPath {
		if f.round != s.walk.round {
			unseen = append(unseen, rel)
		}
	}
	for _, rel := range unseen {
		s.dropFolder(rel)
	}
}

// visit watches a folder and then lists it. It skips a folder that is gone or whose parent is no longer watched,
// because an event for the folder or its parent follows.
func (s *session) visit(v visit) error {
	if v.rel != "." && s.folders.byPath[path.Dir(v.rel)] == nil {
		return nil
	}
	dir, err := s.open(v.rel)
	if err != nil {
		return s.excuse(v.rel, err)
	}
	defer dir.Close() // opened only for reading, so an error does not matter
	info, err := dir.Stat()
	if err != nil {
		return s.excuse(v.rel, err)
	}
	f := s.claim(v.rel, info)
	if f == nil {
		return nil
	}
	err = s.w.sys.add(s.fs, s.w.abs(v.rel))
	if err == nil {
		err = s.listFolder(dir, f, v.report)
	}
	if err == nil {
		s.folders.accept(f)
	}
	return s.excuse(v.rel, err)
}

func (s *session) open(rel string) (*os.File, error) {
	root, err := s.openRoot()
	if err != nil {
		return nil, err
	}
	return openFolder(root, rel)
}

// claim records the folder at rel. It first drops any other entry with the same path or identity, because fsnotify
// would keep the old name. It returns nil if there is nothing to do, either because the folder has been visited since
// the last full walk began, or because it is a bind mount of a folder above it. It returns a refused folder again, so
// that the caller retries it.
func (s *session) claim(rel string, info fs.FileInfo) *folder {
	id := identify(info)
	known := s.folders.byPath[rel]
	if known != nil && known.id == id {
		if known.round == s.walk.round && !known.refused {
			return nil
		}
		known.round, known.mode = s.walk.round, info.Mode()
		return known
	}
	s.dropFolder(rel)
	if twin := s.folders.byID[id]; twin != nil {
		if within(rel, twin.rel) {
			return nil
		}
		s.dropFolder(twin.rel)
	}
	if rel != "." && s.folders.byPath[path.Dir(rel)] == nil {
		return nil // the parent's entry was dropped together with another entry
	}
	f := &folder{
		rel:   rel,
		id:    id,
		mode:  info.Mode(),
		round: s.walk.round,
	}
	s.folders.putFolder(f)
	return f
}

// listFolder reads an open, watched folder. It pushes its subfolders for later visits and, if report is
// set, notes everything else as changed.
func (s *session) listFolder(dir *os.File, f *folder, report bool) error {
	for {
		entries, err := dir.ReadDir(1024)
		now := time.Now()
		for _, e := range entries {
			s.found(child(f.rel, e.Name()), e.IsDir(), report, now)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// found handles one directory entry. It pushes a folder for a later visit, and notes any other path if report is set.
func (s *session) found(rel string, dir, report bool, now time.Time) {
	switch {
	case s.w.cfg.Skip(rel, dir):
	case dir:
		s.walk.push(visit{rel: rel, report: report})
	case report:
		s.w.waiting.noted(rel, now)
	}
}

// child returns the path of the entry with the given name in the folder dir.
func child(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
