package maildir

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
)

// life is the state needed to end the work of a project: see Store.endProject.
type life struct {
	folder  os.FileInfo // of the tree when the project was opened
	removed chan struct{}
	stop    context.CancelFunc // ends Project.run; nil while the store does not run. Guarded by Store.mu
	ended   chan struct{}      // closed when run has returned
}

// isRemoved reports whether the project's folder is gone or was replaced by another folder. If the machine
// cannot tell, it reports false.
func (p *Project) isRemoved() bool {
	fi, err := os.Lstat(p.Tree.Dir())
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(fi, p.life.folder)
}

// wasRemoved refuses a call that was under way when the project's folder was removed.
func (p *Project) wasRemoved() error {
	return &Error{What: refusal.NotFound("The mail of project {name} was removed while the call waited."), Name: p.name()}
}

// endProject ends a project whose folder was removed or replaced: the project can no longer be found, and
// waiting callers are told. Then it opens the project that another folder holds in that place. That project
// keeps the rows, and they are compared with its files: if the server ends in the middle, the index still
// has the mail. Without such a project the rows are dropped. endProject returns when no operation of the
// ended project is in progress, with the errors of add.
func (s *Store) endProject(ctx context.Context, p *Project) (next *Project, err error) {
	if err := s.beginAdding(ctx); err != nil {
		return nil, err
	}
	defer s.endAdding()
	s.mu.Lock()
	if known := s.projects[p.Slug]; known != p {
		s.mu.Unlock()
		return known, nil
	}
	delete(s.projects, p.Slug)
	clear(s.meant)
	stop := p.life.stop
	s.mu.Unlock()
	s.cfg.Log.Warn("the project's folder was removed: the project is gone", "project", p.Slug, "folder", p.Tree.Dir())
	close(p.life.removed)
	if stop != nil {
		stop()
		<-p.life.ended
	}
	is, err := s.isAdoptable(p.Slug)
	if is {
		next, err = s.addNext(ctx, p.Slug)
	}
	if next != nil || is && ctx.Err() != nil {
		return next, err
	}
	if err := s.index.Detach(context.WithoutCancel(ctx), p.Slug); err != nil {
		s.cfg.Log.Error("rows of a project that is gone are still in the index; the next start drops them", "project", p.Slug, "error", err)
	}
	s.feed.ring(nil)
	return nil, err
}

// forgetLeftOut forgets why a project could not be opened once its folder is removed.
func (s *Store) forgetLeftOut(slug string) {
	if _, err := os.Lstat(storedir.Repo(s.cfg.Root, slug)); errors.Is(err, fs.ErrNotExist) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leftOut, slug)
	}
}
