package maildir

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"mailtree/maildir/storedir"
)

// endProject ends a project whose folder was removed or replaced, or that this server must no longer use
// (core.Mail.Refused). The project can then no longer be found, and waiting callers are notified.
//
// If another folder has replaced the removed one, or the project is no longer refused, endProject opens the project
// again and returns the new Project. The new Project keeps the index rows and compares them with its files, so the
// index keeps the mail even if the server stops before the comparison. Otherwise, endProject deletes the rows. It
// returns only after all operations on the ended project have finished. It returns any error from add.
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
	s.meant = map[string]keyMeaning{}
	refused := p.mail.Refused()
	if refused != nil {
		s.leftOut[p.mail.Slug] = refused
	}
	stop := p.stop
	s.mu.Unlock()
	if refused == nil {
		s.core.Log.Warn("the project's folder was removed, so the project no longer exists", "project", p.mail.Slug, "folder", p.mail.Tree.Dir())
	}
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
		s.core.Log.Error("failed to delete a removed project's rows from the index; the "+
			"next start will delete them", "project", p.mail.Slug, "error", err)
	}
	s.core.Feed.Ring(nil)
	return nil, err
}

// endRefused ends projects that this server must no longer use. It runs until ctx ends.
func (s *Store) endRefused(ctx context.Context) {
	for {
		select {
		case <-s.reread:
		case <-ctx.Done():
			return
		}
		for _, p := range s.Projects() {
			if p.mail.Refused() == nil {
				continue
			}
			if _, err := s.endProject(ctx, p); err != nil && ctx.Err() == nil {
				s.core.Log.Error("a project is unavailable", "project", p.mail.Slug, "error", err)
			}
		}
	}
}

// noteLeftOut records why a project could not be opened.
func (s *Store) noteLeftOut(slug string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leftOut[slug] = why
}

// forgetLeftOut drops the recorded error of a project that could not be opened, if the project's folder has been
// removed.
func (s *Store) forgetLeftOut(slug string) {
	if _, err := os.Lstat(storedir.Repo(s.core.Root, slug)); errors.Is(err, fs.ErrNotExist) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leftOut, slug)
	}
}
