package folders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
)

// Patience limits how long Find waits for Git. It allows for a large repository on a busy machine. NotePatience limits
// how long Note waits for Git, because hooks wait for Note. Only tests change these limits, because they must not depend
// on the machine's speed.
var (
	Patience     = 30 * time.Second
	NotePatience = 2 * time.Second
)

// Project is a project that the Finder compares a folder with. Folder is the project's human key.
type Project struct{ Slug, Folder string }

// Found contains the projects that are related to a folder that does not identify a project yet. A field is zero if
// there is no such project.
type Found struct {
	Clone Line      // line for a project whose repository is another clone of the folder's repository
	Forks []Project // projects whose repositories have the same first commit but a different remote
	Moved []Project // projects whose folders no longer exist and whose repositories had the same first commit

	// Unread is the reason why Forks may be incomplete: Git could not read a repository with a different remote.
	Unread error
}

// Finder looks for other clones of a repository. It is safe for concurrent use.
type Finder struct {
	File     *File
	Now      func() time.Time
	Patience time.Duration // 0 means the package variable Patience
}

// Find compares the repository of a working tree with the projects' repositories. path is the folder that the caller
// named, and top is the top of the working tree. Find writes the identities of the repositories that it read, and the
// line for a clone, to the file. If several projects match equally well, it uses the first one. It finds no clones of
// a repository that has no commits or is shallow. Find returns ErrUnavailable if Git fails, or does not finish within
// Patience, for a repository that decides whether there is a clone. It also returns errors from the file, machine
// faults, and ctx's error.
func (f *Finder) Find(ctx context.Context, path, top string, projects []Project) (Found, error) {
	known, err := f.File.Load()
	if err != nil {
		return Found{}, fmt.Errorf("cannot read the map of folders: %w", err)
	}
	s := &search{known: known, patience: cmp.Or(f.Patience, Patience)}
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	found, err := f.relate(limited, s, path, top, projects)
	if err != nil {
		found = Found{}
	}
	if werr := f.write(s.read, found.Clone); err == nil { // after an error too, so that the next call need not read that again
		err = werr
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return found, err
}

// relate does the work of Find, except that it writes nothing.
func (f *Finder) relate(ctx context.Context, s *search, path, top string, projects []Project) (found Found, err error) {
	own, err := s.identify(ctx, top)
	if isUnread(err) && len(projects) == 0 {
		return found, nil
	}
	if err != nil || len(own.First) == 0 {
		return found, err
	}
	for _, p := range likelyFirst(projects, own.Remote) {
		other, gone, err := s.repositoryOf(ctx, p)
		switch {
		case isUnread(err) && other.Remote != own.Remote: // it is not a clone
			found.Unread = err
		case err != nil:
			return found, err
		case other.Folder == top || !other.SharesFirst(own):
		case gone && other.isMoved(own):
			found.Moved = append(found.Moved, p)
		case gone || !other.IsTwin(own):
			found.Forks = append(found.Forks, p)
		default:
			if l := cloneLine(path, top, other.Folder, p); len(l.Folder) > len(found.Clone.Folder) {
				l.Day = f.Now()
				found.Clone = l
			}
		}
	}
	return found, nil
}

// Note reads the identity of the repository that contains a project's folder, and writes it to the file unless the file
// already contains it. If the repository has no identity, Note writes nothing. It returns ErrUnavailable if Git fails or
// takes too long, errors from the file, or a machine fault.
func (f *Finder) Note(ctx context.Context, p Project) error {
	known, err := f.File.Load()
	if err != nil {
		return fmt.Errorf("cannot read the map of folders: %w", err)
	}
	s := &search{known: known, patience: NotePatience}
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if _, _, err := s.repositoryOf(limited, p); err != nil {
		return err
	}
	return f.write(s.read, Line{})
}

// write adds the repositories in read to the file. It also adds l, unless l is zero.
func (f *Finder) write(read []Repository, l Line) error {
	err := f.File.Change(func(m *Map) (*Map, error) {
		for _, r := range read {
			m = m.WithRepository(r)
		}
		if l.Folder != "" {
			m = m.With(l)
		}
		return m, nil
	})
	if err != nil {
		return fmt.Errorf("cannot write the map of folders: %w", err)
	}
	return nil
}

// cloneLine returns the line that maps a folder in the clone at top to project p. This folder corresponds to p's folder
// in the clone at other. If the folder does not contain path, the line is zero.
func cloneLine(path, top, other string, p Project) Line {
	folder := filepath.Join(top, strings.TrimPrefix(p.Folder, other))
	if path != folder && !strings.HasPrefix(path, folder+"/") {
		return Line{}
	}
	return Line{Kind: Clone, Project: p.Slug, Folder: folder}
}

// search is the state of one call of Find or Note.
type search struct {
	known    *Map
	patience time.Duration // the time limit, as errors name it
	read     []Repository  // read in this call
}

// likelyFirst reorders the projects so that projects whose repository has the given remote come first. A slow
// repository then delays only less likely matches.
func likelyFirst(projects []Project, remote string) []Project {
	var likely, others []Project
	for _, p := range projects {
		place, err := repo.PlaceOf(p.Folder)
		if r, rerr := remoteOf(place.Top); err == nil && rerr == nil && r == remote {
			likely = append(likely, p)
		} else {
			others = append(others, p)
		}
	}
	return append(likely, others...)
}

// repositoryOf returns the repository of a project's folder. If the folder no longer exists, it returns the map's entry
// for the repository, and gone is true. It returns the zero Repository if no repository is found. Errors are those of
// identify.
func (s *search) repositoryOf(ctx context.Context, p Project) (r Repository, gone bool, err error) {
	if _, err := os.Stat(p.Folder); errors.Is(err, fs.ErrNotExist) {
		r, _ = s.known.RepositoryAround(p.Folder)
		return r, true, nil
	}
	place, err := repo.PlaceOf(p.Folder)
	if err != nil || place.Top == "" {
		return r, false, err
	}
	r, err = s.identify(ctx, place.Top)
	return r, false, err
}

// identify returns the repository of the working tree with the given top. It runs Git only if the first commits of a
// repository with the same top and remote are not recorded yet. If Git cannot list the first commits before ctx ends,
// identify returns ErrUnavailable and a Repository without them: see isUnread. Other errors are machine faults.
func (s *search) identify(ctx context.Context, top string) (r Repository, err error) {
	r.Folder = top
	if r.Remote, err = remoteOf(top); err != nil {
		return r, err
	}
	for _, known := range [][]Repository{s.read, s.known.Repositories} {
		for _, k := range known {
			if k.Folder == top && k.Remote == r.Remote && len(k.First) > 0 {
				return k, nil
			}
		}
	}
	r.First, err = repo.FirstCommits(ctx, top)
	if err != nil && !errors.Is(err, repo.ErrNoFirst) {
		return r, s.cannotRead(top, err)
	}
	if _, stale := s.known.Repository(top); stale || len(r.First) > 0 { // also replace a stale entry
		s.read = append(s.read, r)
	}
	return r, nil
}

var unread = refusal.Unavailable("Git did not list the first commits of {name} ({why}), so mailtree cannot tell whether this folder is " +
	"another clone of a project's code base. Nothing was changed. Try again. {choose the project}")

// isUnread reports whether err means that Git could not list a repository's first commits.
func isUnread(err error) bool {
	var e *refusal.Error
	return errors.As(err, &e) && e.What == unread
}

// cannotRead returns the refusal for an error from repo.FirstCommits.
func (s *search) cannotRead(top string, err error) error {
	e := &refusal.Error{What: unread, Name: top}
	var exit *exec.ExitError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Why = fmt.Sprintf("it did not finish within %v", s.patience)
		return e // without the context's error, which would mean that the caller has gone
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		e.Why = cmp.Or(format.Printable(format.Cut(line, maxReason)), exit.Error())
	default:
		e.Why = "it could not be run"
	}
	e.Err = err
	return e
}

// maxReason is the maximum length in bytes of Git's message in a refusal.
const maxReason = 200

// IsStill reports whether the line of a clone still applies. The line applies if the folder no longer exists, or if its
// repository still has the same remote or has a remote on this machine. Otherwise, another repository has replaced the
// clone. IsStill reads files, and does not run Git. It returns an error only for a machine fault.
func (m *Map) IsStill(l Line) (bool, error) {
	then, ok := m.RepositoryAround(l.Folder)
	if _, err := os.Lstat(l.Folder); !ok || errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	address, err := repo.RemoteURL(then.Folder)
	if err != nil {
		return false, err
	}
	// The remote is a local path, and the repository there may have changed.
	if _, local := Remote(address, then.Folder); local && address != "" {
		return true, nil
	}
	now, err := remoteOf(then.Folder)
	return now == then.Remote, err
}

// remoteOf returns the remote of the working tree with the given top, in the form that Remote returns. If the remote is
// a path on this machine and the repository there has its own remote, remoteOf returns that repository's remote. If
// there is no remote, it returns top. It returns an error only for a machine fault.
func remoteOf(top string) (string, error) {
	address, err := repo.RemoteURL(top)
	if err != nil || address == "" {
		return top, err
	}
	plain, local := Remote(address, top)
	if !local {
		return plain, nil
	}
	if plain, err = repo.WithoutLinks(strings.TrimSuffix(plain, "/.git")); err != nil {
		return "", err
	}
	next, err := repo.RemoteURL(plain)
	if err != nil || next == "" {
		return plain, err
	}
	next, local = Remote(next, plain)
	if local {
		return repo.WithoutLinks(next)
	}
	return next, nil
}
