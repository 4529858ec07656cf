package maildir

import (
	"context"

	"mailtree/maildir/core"
	"mailtree/maildir/index"
)

// Changed returns a channel that is closed when the project next changes.
func (p *Project) Changed() <-chan struct{} {
	return p.mail.Store.Feed.Agent(p.mail.Slug, core.AnyAgent)
}

// Changes returns up to limit changes after the given position in the feed, from all projects, oldest first.
func (s *Store) Changes(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	return s.core.Index.Changes(ctx, after, limit)
}

// NewestChanges returns up to limit of the project's changes before the given position in the feed, newest first. If
// before is 0, it returns the newest changes.
func (p *Project) NewestChanges(ctx context.Context, before int64, limit int) ([]index.Change, error) {
	return p.mail.Store.Index.NewestChanges(ctx, p.mail.Slug, before, limit)
}

// WaitChanges waits until the feed contains changes after the given position, and returns up to limit of them. If ctx
// ends first, it returns context.Cause(ctx).
func (s *Store) WaitChanges(ctx context.Context, after int64, limit int) ([]index.Change, error) {
	for {
		bell := s.core.Feed.Any()
		changes, err := s.core.Index.Changes(ctx, after, limit)
		if err != nil && ctx.Err() != nil { // the query was interrupted because ctx ended
			return nil, context.Cause(ctx)
		}
		if err != nil || len(changes) > 0 {
			return changes, err
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// LastChange returns the position of the newest change in the feed.
func (s *Store) LastChange(ctx context.Context) (int64, error) { return s.core.Index.LastChange(ctx) }

// TurnEnded returns a channel that is closed the next time a turn ends in a session of any project.
func (s *Store) TurnEnded() <-chan struct{} { return s.core.Feed.TurnEnded() }
