package maildir

import (
	"context"
	"path/filepath"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// NewDraft makes a file among the drafts of an agent, for a message to those, and returns where on
// the disk it lies, and the folder in which it would be sent. It has no text yet. Errors:
// ErrNotFound for an unknown agent, the sender or one of those.
// See docs/tree.md, "Sending by saving".
func (p *Project) NewDraft(ctx context.Context, agent string, to []string) (file, outbox string, err error) {
	if err := p.needParties(ctx, &Draft{From: agent, To: to}); err != nil {
		return "", "", err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "draft", Agent: agent}, Keys: writer.On("drafts " + agent)}
	tx.Plan = func(g *writer.Group) error {
		path := ""
		for n := 1; ; n++ {
			path = format.DraftPath(agent, g.Now, n)
			if _, err := p.tree.Stat(path); tree.FaultOf(err) == tree.FaultGone {
				break
			} else if err != nil {
				return err
			}
		}
		tx.Summary = agent + " " + path
		tx.Create(path, format.FormatDraft(to))
		file = filepath.Join(p.tree.Dir(), filepath.FromSlash(path))
		return nil
	}
	defer p.noteSeen(ctx, agent)
	if err := p.writer.Do(ctx, tx); err != nil {
		return "", "", err
	}
	outbox = format.AgentsDir + "/" + agent + "/" + format.OutboxDir
	c := p.tree.Changer(p.store.limits.Folders)
	defer c.Close()
	err = c.MakeDir(outbox) // where there is none, `mv` would make the draft a file of that name
	return file, filepath.Join(p.tree.Dir(), filepath.FromSlash(outbox)), err
}
