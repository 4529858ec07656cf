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

// endProject ends a project whose folder was removed: the project can no longer be found, waiting callers
// are told, and its rows are dropped. It returns when no operation of the project is in progress, because a
// folder made there next is another project.
func (s *Store) endProject(ctx context.Context, p *Project) {
	if s.beginAdding(ctx) != nil { // the server ends
		return
	}
	defer s.endAdding()
	s.mu.Lock()
	if s.projects[p.Slug] != p {
		s.mu.Unlock()
		return
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
	if err := s.index.Detach(context.WithoutCancel(ctx), p.Slug); err != nil {
		s.cfg.Log.Error("rows of a project that is gone are still in the index; the next start drops them", "project", p.Slug, "error", err)
	}
	s.feed.ring(nil)
}

// forgetLeftOut forgets why a project could not be opened once its folder is removed.
func (s *Store) forgetLeftOut(slug string) {
	if _, err := os.Lstat(storedir.Repo(s.cfg.Root, slug)); errors.Is(err, fs.ErrNotExist) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leftOut, slug)
	}
}
