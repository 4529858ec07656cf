package agents

import (
	"context"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/seat"
	"mailtree/maildir/writer"
)

// QuietAfter is how long an agent that does not report its presence counts as active after its last call.
const QuietAfter = 10 * time.Minute

// CheckPresence returns ErrInvalid unless status is exactly ready, work or offline. See docs/reference/agentmail.md,
// "Presence".
func CheckPresence(status string) error {
	if status != format.Ready && status != format.Work && status != format.Offline {
		return &refusal.Error{What: refusal.StatusUnknown, Field: refusal.Status, Name: status}
	}
	return nil
}

// SetPresence writes the agent's status file: ready, work or offline. It returns ErrInvalid if the status is invalid,
// or any error from core.Mail.Act.
func (ag *Agents) SetPresence(ctx context.Context, agent, status string) error {
	if err := CheckPresence(status); err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbPresence, Agent: agent, Summary: agent + " is " + status}, Facts: []string{"presence " + agent}}
	tx.Plan = func(g *writer.Group) error {
		if err := ag.mail.NeedAgent(g.Ctx, refusal.Agent, agent); err != nil {
			return err
		}
		row, err := ag.mail.Store.Index.Agent(g.Ctx, ag.mail.Slug, agent)
		if err != nil {
			return err
		}
		if row != nil && row.Status == status {
			data, _, err := ag.mail.Tree.Read(format.StatusPath(agent), format.MaxSmall)
			if says, bad := format.ParseStatus(data); err == nil && bad == nil && says == status {
				return nil
			}
			return g.Behind(format.StatusPath(agent))
		}
		return g.Replace(tx, format.StatusPath(agent), []byte(status+"\n"))
	}
	defer ag.mail.NoteSeen(ctx, agent)
	return ag.mail.Act(ctx, tx)
}

// NoteStatus handles changed status files. If an agent is no longer ready, NoteStatus forgets which messages were
// announced in its tmux window. All unread mail is announced there again once the agent is ready. NoteStatus reads each
// status from the index. If the file changes later, NoteStatus is called again.
func (ag *Agents) NoteStatus(changes []index.Change) {
	for _, c := range changes {
		if c.Kind != format.KindStatus {
			continue
		}
		// This call must not be canceled: the changes are already in the index, so NoteStatus will not be called for
		// them again.
		row, err := ag.mail.Store.Index.Agent(context.Background(), ag.mail.Slug, c.Agent)
		if err != nil || row == nil || row.Status != format.Ready {
			ag.mail.Seats.Change(seat.WindowOf(c.Agent), func(s *seat.Seat) {
				s.Cut(ag.mail.Store.Now())
				s.Wake = seat.Wake{}
			})
		}
	}
}
