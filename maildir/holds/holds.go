// Package holds creates, ends and lists the holds of a project's agents. Package hold decides when a hold stops an
// agent. See docs/reference/guard.md, "Holding an agent".
package holds

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/hold"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Holds gives access to a project's holds. It is safe for concurrent use.
type Holds struct{ mail *core.Mail }

// New returns the holds of a project.
func New(mail *core.Mail) *Holds { return &Holds{mail} }

// Held is an agent's hold.
type Held struct {
	Project string `json:"project,omitempty"` // slug; set only in a list of all projects
	Agent   string `json:"agent"`
	format.Hold
	ID string `json:"message_id,omitempty"` // id of the message that notified the agent, if this call sent one
}

// Sentence returns text such as "robin holds AmberFox: wait for me". The name and the reason are untrusted.
func (h *Held) Sentence() string { return hold.Sentence(&h.Hold, h.Agent) }

// Ended returns text saying that an agent is no longer held.
func Ended(agent string) string { return "the hold on " + agent + " has ended" }

// Request is a request to hold an agent.
type Request struct {
	Agent  string
	Reason string        // one line; empty if there is no reason
	For    time.Duration // 0 means DefaultLength
}

// DefaultLength is the length of a hold if its request does not specify one.
const DefaultLength = 8 * time.Hour

// subjectEnded is the subject of the message about the end of a hold.
const subjectEnded = "You can continue: the hold has ended"

func fact(agent string) string { return "hold " + agent }

// Hold puts an agent on hold and sends the agent a message. It replaces an earlier hold. The parameter by is the name
// of the user who places the hold, and the caller must ensure that it really names a user. The hold and the message are
// written in one operation, so undo reverses both. Hold returns ErrInvalid for an invalid request, ErrNotFound for an
// unknown agent, and ErrConflict if the hold's file cannot be read.
func (hs *Holds) Hold(ctx context.Context, by string, origin format.Origin, r Request) (held *Held, err error) {
	r.For = cmp.Or(r.For, DefaultLength)
	switch {
	case r.For < claims.MinTTL || r.For > claims.MaxTTL:
		return nil, &refusal.Error{What: refusal.Invalid("A hold of {=name} is out of range: use 1m to 720h."), Name: r.For.String()}
	case r.Agent == by:
		return nil, &refusal.Error{What: refusal.Invalid("You cannot put yourself ({=name}) on hold."), Name: by}
	}
	if err := core.CheckText(refusal.Reason, r.Reason, 900); err != nil { // the message's subject contains the reason
		return nil, err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbHold, Agent: by}, Facts: []string{fact(r.Agent)}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		held = &Held{Agent: r.Agent}
		if err := hs.needAgents(g.Ctx, by, r.Agent); err != nil {
			return err
		}
		held.Hold = format.Hold{By: by, Reason: r.Reason, Since: g.Now, Until: g.Now.Add(r.For)}
		path := format.HoldPath(r.Agent)
		old, _, err := hs.mail.Tree.Read(path, format.MaxSmall)
		switch tree.FaultOf(err) {
		case tree.FaultMachine:
			return err
		case tree.FaultFile:
			return &refusal.Error{What: refusal.HoldBlocked, Other: path, Why: tree.PlainFileError(err)}
		}
		if err := g.Replace(tx, path, format.FormatHold(held.Hold, old)); err != nil {
			return err
		}
		err = hs.planMessage(g, tx, held, &format.Message{
			From:    by,
			Origin:  origin,
			Subject: hold.Sentence(&held.Hold, "you"),
			Body: fmt.Sprintf("%s\n\nDo not change this project's files until %s. Until then, your edits and commits here are "+
				"refused. %s or another user can end the hold earlier. You will get a message when the hold ends.\n",
				cmp.Or(r.Reason, "No reason was given."), held.Until.UTC().Format("2006-01-02 15:04 MST"), by),
		})
		tx.Summary = held.Sentence()
		return err
	}
	if err := hs.mail.Perform(ctx, by, tx); err != nil {
		return nil, err
	}
	return held, nil
}

// Go ends an agent's hold and sends the agent a message. The parameter by is the name of the user who ends the hold,
// and the caller must ensure that it really names a user. Undo reverses both the end of the hold and the message. Go
// returns ErrNotFound if the agent is unknown or not held.
func (hs *Holds) Go(ctx context.Context, by string, origin format.Origin, agent string) (held *Held, err error) {
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbGo, Agent: by}, Facts: []string{fact(agent)}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		if err := hs.needAgents(g.Ctx, by, agent); err != nil {
			return err
		}
		row, err := hs.mail.Store.Index.Agent(g.Ctx, hs.mail.Slug, agent)
		if err != nil {
			return err
		}
		if row == nil || !hold.Stops(row.Hold, g.Now) {
			return &refusal.Error{What: refusal.NotFound("{=name} is not on hold."), Name: agent}
		}
		held = &Held{Agent: agent, Hold: *row.Hold}
		if err := g.Remove(tx, format.HoldPath(agent)); err != nil {
			return err
		}
		err = hs.planMessage(g, tx, held, &format.Message{
			From:    by,
			Origin:  origin,
			Subject: subjectEnded,
			Body:    fmt.Sprintf("%s has ended this hold:\n\n    %s\n\nYou can change files again.\n", by, hold.Sentence(row.Hold, agent)),
		})
		tx.Summary = by + " ends the hold of " + agent
		return err
	}
	if err := hs.mail.Perform(ctx, by, tx); err != nil {
		return nil, err
	}
	return held, nil
}

func (hs *Holds) needAgents(ctx context.Context, by, agent string) error {
	if err := hs.mail.NeedAgent(ctx, refusal.From, by); err != nil {
		return err
	}
	return hs.mail.NeedAgent(ctx, refusal.Agent, agent)
}

// planMessage plans a message of high importance to the held agent.
func (hs *Holds) planMessage(g *writer.Group, tx *writer.Tx, held *Held, m *format.Message) error {
	m.Project, m.To, m.Importance, m.Auth = hs.mail.Name(), []string{held.Agent}, format.High, cmp.Or(m.Auth, "none")
	if err := hs.mail.PlanMessage(g, tx, m, nil); err != nil {
		return err
	}
	held.ID = m.ID
	return nil
}

// List lists the agents that are held now, sorted by name. It returns any error from the index.
func (hs *Holds) List(ctx context.Context) ([]Held, error) {
	rows, err := hs.mail.Store.Index.Held(ctx, hs.mail.Slug)
	if err != nil {
		return nil, fmt.Errorf("cannot list holds: %w", err)
	}
	all := []Held{}
	for i := range rows {
		if h := hs.Of(&rows[i]); h != nil {
			all = append(all, Held{Agent: rows[i].Name, Hold: *h})
		}
	}
	return all, nil
}

// Of returns the agent's hold, or nil if the agent is not held now.
func (hs *Holds) Of(a *index.AgentRow) *format.Hold {
	if !hold.Stops(a.Hold, hs.mail.Store.Now()) {
		return nil
	}
	return a.Hold
}

// Sweep returns the operation that removes the file of one expired hold and notifies the agent. Each such operation
// then schedules the next Sweep. Sweep skips agents of other machines, because those machines remove the files.
func (hs *Holds) Sweep() *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbGo}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		rows, err := hs.mail.Store.Index.Held(g.Ctx, hs.mail.Slug)
		if err != nil {
			return err
		}
		for i := range rows {
			a := &rows[i]
			h, _, err := hold.Read(hs.mail.Tree, a.Name) // the index may be out of date
			if err != nil || h == nil || hold.Stops(h, g.Now) || hs.mail.Elsewhere(a) {
				continue
			}
			if g.Remove(tx, format.HoldPath(a.Name)) != nil {
				continue // keep the file: a file that cannot be committed must not be removed
			}
			tx.After = func() { hs.mail.Writer.Later(hs.Sweep()) }
			err = hs.mail.PlanNotice(g, tx, &format.Message{
				To:      []string{a.Name},
				Subject: subjectEnded,
				Body:    fmt.Sprintf("This hold has expired:\n\n    %s\n\nYou can change files again.\n", hold.Sentence(h, a.Name)),
			})
			tx.Summary = Ended(a.Name)
			return err
		}
		return nil
	}
	return tx
}
