package maildir

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"mailtree/maildir/storedir"
)

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
	if known := s.projects[p.mail.Slug]; known != p {
		s.mu.Unlock()
		return known, nil
	}
	delete(s.projects, p.mail.Slug)
	clear(s.meant)
	stop := p.stop
	s.mu.Unlock()
	s.core.Log.Warn("the project's folder was removed: the project no longer exists", "project", p.mail.Slug, "folder", p.mail.Tree.Dir())
	p.mail.NoteRemoved()
	if stop != nil {
		stop()
		<-p.ended
	}
	is, err := s.isAdoptable(p.mail.Slug)
	if is {
		next, err = s.addNext(ctx, p.mail.Slug)
	}
	if next != nil || is && ctx.Err() != nil {
		return next, err
	}
	if err := s.core.Index.Detach(context.WithoutCancel(ctx), p.mail.Slug); err != nil {
		s.core.Log.Error("rows of a removed project are still in the index; the next start deletes them", "project", p.mail.Slug, "error", err)
	}
	s.core.Feed.Ring(nil)
	return nil, err
}

// forgetLeftOut forgets why a project could not be opened once its folder is removed.
func (s *Store) forgetLeftOut(slug string) {
	if _, err := os.Lstat(storedir.Repo(s.core.Root, slug)); errors.Is(err, fs.ErrNotExist) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leftOut, slug)
	}
}
