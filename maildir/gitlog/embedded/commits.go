package embedded

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Commit is a commit object.
type Commit struct {
	Hash    Hash
	Parents []Hash
	Author  string    // "Name <mail>"
	Made    time.Time // the time of the commit
	Message string

	tree Hash
}

// readCommit reads a commit. It returns ErrNoObject if there is none.
func (r *Repository) readCommit(h Hash) (*Commit, error) {
	data, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	c := &Commit{Hash: h}
	header, message, _ := strings.Cut(string(data), "\n\n")
	c.Message = message
	for line := range strings.SplitSeq(header, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.tree = plumbing.NewHash(value)
		case "parent":
			c.Parents = append(c.Parents, plumbing.NewHash(value))
		case "author":
			c.Author, _ = signature(value)
		case "committer":
			_, c.Made = signature(value)
		}
	}
	return c, nil
}

// signature parses "Name <mail> SECONDS ZONE". The time is zero if it is invalid.
func signature(line string) (who string, at time.Time) {
	end := strings.LastIndexByte(line, '>') + 1
	seconds, _, _ := strings.Cut(strings.TrimSpace(line[end:]), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
		at = time.Unix(n, 0).UTC()
	}
	return line[:end], at
}

// EachCommit calls fn for a commit and its ancestors in the order of git log, newest first, until fn returns an
// error. It returns that error unless the error is fs.SkipAll. If path is not "", it skips commits in which the files
// at or below the path are the same as in all parents.
func (r *Repository) EachCommit(tip Hash, path string, fn func(*Commit) error) error {
	type found struct {
		*Commit
		at Entry // the entry at the path
	}
	var waiting []found      // newest first
	seen := map[Hash]Entry{} // the entry at the path in each commit
	add := func(h Hash) (at Entry, err error) {
		if at, known := seen[h]; known {
			return at, nil
		}
		c, err := r.readCommit(h)
		if err == nil && path != "" {
			at, err = r.At(h, path)
		}
		if err != nil {
			return at, err
		}
		seen[h] = at
		i := 0 // insert after the commits with the same time
		for i < len(waiting) && !waiting[i].Made.Before(c.Made) {
			i++
		}
		waiting = slices.Insert(waiting, i, found{c, at})
		return at, nil
	}
	if _, err := add(tip); err != nil {
		return err
	}
	for len(waiting) > 0 {
		next := waiting[0]
		waiting = waiting[1:]
		touched := path == "" || len(next.Parents) == 0 && next.at != Entry{}
		for _, parent := range next.Parents {
			at, err := add(parent)
			if err != nil {
				return err
			}
			touched = touched || at != next.at
		}
		if !touched {
			continue
		}
		if err := fn(next.Commit); errors.Is(err, fs.SkipAll) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Change is a file that differs between two commits. An entry is zero if its commit has no file at the path.
type Change struct {
	Path     string
	Old, New Entry
}

// Changes returns the files at or below a path ("" for all files) that differ between two commits or trees, sorted by
// path. Either commit may be the zero Hash.
func (r *Repository) Changes(from, to Hash, path string) (all []Change, err error) {
	was, err := r.At(from, path)
	if err != nil {
		return nil, err
	}
	is, err := r.At(to, path)
	if err != nil {
		return nil, err
	}
	err = r.differ(path, was, is, func(c Change) { all = append(all, c) })
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

// differ calls each for all files that differ between two entries at the same path.
func (r *Repository) differ(path string, from, to Entry, each func(Change)) error {
	if from == to {
		return nil
	}
	if !from.IsTree() && !to.IsTree() {
		c := Change{Path: path, Old: ifFile(from), New: ifFile(to)}
		if c.Old != c.New {
			each(c)
		}
		return nil
	}
	was, err := r.below(path, from, func(e Entry) { each(Change{Path: path, Old: e}) })
	if err != nil {
		return err
	}
	is, err := r.below(path, to, func(e Entry) { each(Change{Path: path, New: e}) })
	if err != nil {
		return err
	}
	for name, e := range was {
		if err := r.differ(joined(path, name), e, is[name], each); err != nil {
			return err
		}
	}
	for name, e := range is {
		if _, both := was[name]; !both {
			if err := r.differ(joined(path, name), Entry{}, e, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// below returns the entries of the folder e. If e is a file, below passes it to is and returns no entries.
func (r *Repository) below(path string, e Entry, is func(Entry)) (map[string]Entry, error) {
	if e.IsTree() {
		return r.folder(e.Hash)
	}
	if e.IsFile() {
		is(e)
	}
	return nil, nil
}

func ifFile(e Entry) Entry {
	if e.IsFile() {
		return e
	}
	return Entry{}
}

// joined returns the path of name in a folder; folder is "" for the root.
func joined(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}
