package maildir

import (
	"context"
	"io"

	"mailtree/maildir/backup"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Backup writes a backup of the store to the given writer. The program argument is the version of mailtree that the
// backup records. Backup may be called only while Run is running. It returns ErrUnavailable, or any error from the
// writer, ctx or the file system.
func (s *Store) Backup(ctx context.Context, to io.Writer, program string) error {
	done := s.carrier.Keep()
	defer done()
	var all []backup.Project
	for _, p := range s.Projects() {
		all = append(all, backup.Project{Slug: p.Slug, KeepPacks: p.mail.History.KeepPacks, Still: p.still})
	}
	for slug := range s.LeftOut() { // the server does not write to a project that could not be opened
		all = append(all, backup.Project{
			Slug:      slug,
			KeepPacks: func(context.Context) (func(), error) { return func() {}, nil },
			Still:     func(_ context.Context, fn func() error) error { return fn() },
		})
	}
	return backup.Write(ctx, to, s.core.Root, backup.Header{Program: program, Created: s.core.Clock.Time().UTC()}, all)
}

// still calls fn between two operations. Until fn returns, the server does not change the tree or the tree's history.
// See backup.Project.
func (p *Project) still(ctx context.Context, fn func() error) error {
	// The writer has to wait while Still runs. Flush leaves less for Still to commit. If Flush fails, Still commits
	// everything.
	_ = p.mail.History.Flush(ctx)
	done := make(chan error, 1)
	p.mail.Writer.Aside(func(context.Context, *tree.Changer) {
		if err := ctx.Err(); err != nil {
			done <- err
			return
		}
		done <- p.mail.History.Still(ctx, fn)
	})
	select {
	case err := <-done: // wait even if ctx ends, because fn must not be running after this method returns
		return err
	case <-p.mail.Writer.Stopped():
		return writer.ErrStopped
	}
}
