package maildir

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Deed is what people call an operation: VerbAmend is an edit to them.
func Deed(verb string) string {
	undone, undoes := strings.CutPrefix(verb, history.UndoPrefix)
	switch {
	case undone != VerbAmend:
		return verb
	case undoes:
		return history.UndoPrefix + history.VerbEdit
	}
	return history.VerbEdit
}

// undoable are the operations that can be taken back, and of what kinds the files are that they
// write.
var undoable = map[string][]format.Kind{
	"send":              nil, // all of them
	"reply":             nil,
	"delete":            nil,
	"read":              {format.KindRead},
	"pop":               {format.KindRead},
	"acknowledge":       {format.KindRead, format.KindAck},
	"archive":           {format.KindRead, format.KindArchived},
	"unread":            {format.KindRead, format.KindArchived},
	"claim":             {format.KindClaim, format.KindReleased},
	"renew":             {format.KindClaim, format.KindReleased},
	history.VerbRelease: {format.KindReleased},
	VerbAmend:           texts,
}

// texts are the kinds of the files that say what a message says.
var texts = []format.Kind{format.KindCanonical, format.KindInbox, format.KindOutbox}

// Undoing says what is taken back.
type Undoing struct {
	ID   string // the newest on this message, which may be shortened; "": on any
	Verb string // the newest that is called so; "": whatever it is called
}

// Undone is what was taken back.
type Undone struct {
	history.Done
	Readers  []string // who had read the message that was withdrawn or changed, by name; each gets a notice
	Patterns []string // of the claims, of an operation on such
}

// Undo takes back an agent's newest operation on a message that is not taken back yet, in an
// operation of its own: it restores the files of that one and no other. A message that was sent is
// removed for everybody, and who had read it is told. Without an id it may be an operation on
// claims, too: paths that were claimed are released, and those that were released claimed again.
// Errors: ErrNotFound where there is none, or no such message; ErrConflict where a file has changed
// since, where another agent has the paths by now, and where it cannot be told from others in its
// commit.
func (b *Box) Undo(ctx context.Context, u Undoing) (*Undone, error) {
	if err := b.p.needAgent(ctx, refusal.Agent, b.agent); err != nil {
		return nil, err
	}
	if u.ID != "" {
		id, err := b.p.formerID(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		u.ID = id
	}
	// A start after a crash finishes what is in no commit: a deletion would take again what was restored.
	if err := b.p.History.Flush(ctx); err != nil {
		return nil, err
	}
	done, err := b.p.History.LastDone(ctx, b.agent, u.ID, func(verb string) bool {
		_, ok := undoable[verb]
		return ok && (u.Verb == "" || u.Verb == verb)
	})
	switch {
	case err != nil:
		return nil, err
	case done == nil:
		return nil, &Error{
			What: refusal.NotFound("{=other} has lately sent, changed, read, acknowledged, archived, deleted, claimed or released " +
				"nothing here that is not undone yet."),
			Field: refusal.Message,
			Name:  u.ID,
			Other: b.agent,
		}
	case len(done.Changes) == 0:
		return nil, &Error{What: refusal.NotUndone, Other: b.agent, Why: Deed(done.Verb)}
	}
	undone := &Undone{Done: *done}
	tx := &writer.Tx{Alone: true, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		undone.Readers, undone.Patterns = nil, nil
		switch done.Verb {
		case "send", "reply":
			err = b.planWithdrawal(g, tx, undone)
		case "claim", "renew", history.VerbRelease:
			err = b.planUnclaiming(g, tx, undone)
		case VerbAmend:
			err = b.planUnamending(g, tx, undone)
		default:
			err = b.p.planRestore(g, tx, done)
		}
		tx.Op = writer.Op{
			Verb:    history.UndoPrefix + done.Verb,
			Agent:   b.agent,
			ID:      done.ID,
			Summary: b.agent + " " + cmp.Or(strings.Join(undone.Patterns, ", "), done.ID),
			At:      g.Now,
		}
		return err
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	return undone, nil
}

// planWithdrawal plans the removal of a message, and a notice to those who have read it. They do
// not learn of each other: some may have got it blind (Invariant I7). Errors: ErrConflict where
// somebody has changed what a file of it says.
func (b *Box) planWithdrawal(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	gone, err := b.p.planDeletion(g, tx, undone.ID)
	if err != nil {
		return err
	}
	for _, v := range undone.Changes {
		if !slices.Contains(texts, format.Locate(v.Path).Kind) {
			continue
		}
		is, err := b.p.contentNow(v.Path)
		if err != nil {
			return err
		}
		if is != nil && !bytes.Equal(is, v.Is) {
			return &Error{What: refusal.ChangedSince, Other: v.Path, Why: Deed(undone.Verb)}
		}
	}
	undone.Readers = gone.Readers()
	return b.planNotice(g, tx, &gone.MessageRow, undone.Readers, &format.Message{
		Subject: "Withdrawn: " + format.Cut(gone.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s has withdrawn the message %s, which you have read:\n\n    %s\n\nIt is no longer in the mail. Do not rely "+
			"on what it says.\n", b.agent, gone.ID, format.Printable(gone.Subject)),
	})
}

// planUnamending plans that a message says again what it said, and a notice to those who have read it
// meanwhile or before.
func (b *Box) planUnamending(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	row, err := b.p.messageHead(g.Ctx, undone.ID)
	if err != nil {
		return err
	}
	if err := b.p.planRestore(g, tx, &undone.Done); err != nil {
		return err
	}
	undone.Readers, err = b.planTelling(g, tx, row)
	return err
}

// planRestore plans that the files of an operation are as they were before it. Errors: ErrConflict
// where one has changed since.
func (p *Project) planRestore(g *writer.Group, tx *writer.Tx, done *history.Done) error {
	var gone []string
	for _, v := range done.Changes {
		if kinds := undoable[done.Verb]; kinds != nil && !slices.Contains(kinds, format.Locate(v.Path).Kind) {
			continue // of another operation in the same commit
		}
		is, err := p.contentNow(v.Path)
		if err != nil {
			return err
		}
		switch {
		case (is == nil) != (v.Is == nil) || !bytes.Equal(is, v.Is):
			return &Error{What: refusal.ChangedSince, Other: v.Path, Why: Deed(done.Verb)}
		case v.Was == nil:
			gone = append(gone, v.Path)
		case is == nil:
			tx.Create(v.Path, v.Was)
		default:
			if err := g.Replace(tx, v.Path, v.Was); err != nil {
				return err
			}
		}
	}
	return g.Remove(tx, gone...)
}

// contentNow reads a file; nil where there is none.
func (p *Project) contentNow(path string) ([]byte, error) {
	data, _, err := p.Tree.Read(path, p.Tree.MaxFile()+format.MaxHeader)
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]byte{}, data...), nil // not nil where it is empty
}
