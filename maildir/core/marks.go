package core

import (
	"errors"
	"io/fs"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Marking specifies the marks to set on selected deliveries of one agent.
type Marking struct {
	Verb string // "read", "acknowledge" or "archive"; the last two also mark the deliveries as read
	IDs  []string
	Page bool // skip deliveries that were removed or cannot be marked, instead of failing
}

// PlanMarking plans the marks that an agent's deliveries do not have yet.
func (c *Mail) PlanMarking(g *writer.Group, tx *writer.Tx, agent string, m Marking) error {
	for _, id := range m.IDs {
		d, err := c.Delivery(g, agent, id)
		if m.Page && (errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid)) {
			continue
		}
		if err == nil {
			err = c.PlanMarks(g, tx, m, d, g.Now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PlanMarks plans the marks that a delivery does not have yet. The marks get the time at. PlanMarks returns any error
// from FreeFor. If the index contains a mark that no longer exists, it returns Group.Behind's error.
func (c *Mail) PlanMarks(g *writer.Group, tx *writer.Tx, m Marking, d *index.Delivery, at time.Time) error {
	type mark struct {
		path  string
		there bool
	}
	read := mark{format.ReadMark(d.CopyPath), d.Read}
	acked, archived := mark{format.AckMark(d.CopyPath), d.Acked}, mark{format.ArchivedMark(d.CopyPath), d.Archived}
	switch { // an acknowledged or archived delivery also counts as read
	case acked.there:
		read = acked
	case archived.there:
		read = archived
	}
	marks := []mark{read}
	switch m.Verb {
	case "acknowledge":
		marks = append(marks, acked)
	case "archive":
		marks = append(marks, archived)
	}
	for _, mark := range marks {
		if mark.there {
			if err := g.Present(mark.path); err != nil {
				return err
			}
			continue
		}
		switch err := c.FreeFor(g, mark.path); {
		case err == nil:
			tx.Create(mark.path, format.FormatMark(at))
		case !m.Page || !errors.Is(err, refusal.ErrConflict):
			return err
		}
	}
	return nil
}

// FreeFor returns nil if nothing exists at path. If path is a mark that is not in the index yet, FreeFor returns
// Group.Behind's error. If path is anything else, such as a folder or an invalid mark, it returns ErrConflict.
func (c *Mail) FreeFor(g *writer.Group, path string) error {
	st, err := g.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && st.Mode.IsRegular():
		_, _, err := c.Tree.Read(path, format.MaxSmall)
		switch tree.FaultOf(err) {
		case tree.FaultFile:
			return &refusal.Error{What: refusal.MarkBlocked, Other: path, Why: tree.PlainFileError(err)}
		case tree.FaultMachine:
			return err
		}
		return g.Behind(path)
	case err == nil:
		return &refusal.Error{What: refusal.MarkBlocked, Other: path, Why: tree.NotRegular(st.Mode).Reason}
	}
	return err
}
