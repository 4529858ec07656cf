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

// Deed returns people's word for an operation: VerbAmend is an edit.
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

// undoable are the operations that can be undone, with the kinds of the files that they write.
var undoable = map[string][]format.Kind{
	"send":              nil, // files of any kind
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

// texts are the kinds of the files that hold a message's text.
var texts = []format.Kind{format.KindCanonical, format.KindInbox, format.KindOutbox}

// Undoing says which operation to undo.
type Undoing struct {
	ID   string // the newest on this message, whose id may be shortened; "": on any message
	Verb string // the newest with this verb; "": with any verb
}

// Undone is an operation that was undone.
type Undone struct {
	ID        string       `json:"message_id,omitempty"` // "" for an operation on no message
	Operation string       `json:"operation"`            // see Deed
	At        format.Stamp `json:"at"`
	Readers   []string     `json:"read_by"`         // agents who had read the withdrawn or changed message; each gets a notice
	Patterns  []string     `json:"paths,omitempty"` // the claims' patterns, for an operation on claims

	done *history.Done
}

// Undo undoes the agent's newest operation on a message that is not undone yet, as an operation of its own.
// It restores the files of that operation and no others. A sent message is removed for everyone, and agents
// who had read it are told. Without an id, the operation may also be one on claims: claimed paths are
// released, and released ones claimed again. It returns ErrNotFound if there is no such operation or
// message, and ErrConflict if a file has changed since, if another agent has the paths by now, or if the
// operation cannot be told from others in its commit.
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
	// A start after a crash finishes operations without a commit: a deletion would remove the restored
	// files again.
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
	undone := &Undone{ID: done.ID, Operation: Deed(done.Verb), At: format.At(done.At), done: done}
	tx := &writer.Tx{Alone: true, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		undone.Readers, undone.Patterns, tx.Also = []string{}, nil, nil
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

// planWithdrawal plans the removal of a message, and a notice to agents who have read it. They do not learn
// of each other, because some may have got the message as bcc (Invariant I7). It returns ErrConflict if a
// file of the message was changed.
func (b *Box) planWithdrawal(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	gone, err := b.p.planDeletion(g, tx, undone.ID)
	if err != nil {
		return err
	}
	for _, v := range undone.done.Changes {
		if !slices.Contains(texts, format.Locate(v.Path).Kind) {
			continue
		}
		is, err := b.p.contentNow(v.Path)
		if err != nil {
			return err
		}
		if is != nil && !bytes.Equal(is, v.Is) {
			return &Error{What: refusal.ChangedSince, Other: v.Path, Why: undone.Operation}
		}
	}
	if err := b.p.planUnsettling(g, tx, &gone.row.Message); err != nil {
		return err
	}
	undone.Readers = gone.Readers
	return b.planNotice(g, tx, gone.row, undone.Readers, &format.Message{
		Subject: "Withdrawn: " + format.Cut(gone.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s has withdrawn the message %s, which you have read:\n\n    %s\n\nIt is no longer in the mail. Do not rely "+
			"on what it says.\n", b.agent, gone.ID, format.Printable(gone.Subject)),
	})
}

// planUnamending plans the restoration of a message's earlier content, and a notice to agents who have read
// it before or since.
func (b *Box) planUnamending(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	row, err := b.p.messageHead(g.Ctx, undone.ID)
	if err != nil {
		return err
	}
	if err := b.p.planRestore(g, tx, undone.done); err != nil {
		return err
	}
	undone.Readers, err = b.planTelling(g, tx, row)
	return err
}

// planRestore plans the restoration of an operation's files. It returns ErrConflict if one has changed
// since.
func (p *Project) planRestore(g *writer.Group, tx *writer.Tx, done *history.Done) error {
	var gone []string
	for _, v := range done.Changes {
		if kinds := undoable[done.Verb]; kinds != nil && !slices.Contains(kinds, format.Locate(v.Path).Kind) {
			continue // it belongs to another operation in the same commit
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

// contentNow returns the content of a file; nil if there is none.
func (p *Project) contentNow(path string) ([]byte, error) {
	data, _, err := p.Tree.Read(path, p.Tree.MaxFile()+format.MaxHeader)
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]byte{}, data...), nil // not nil for an empty file
}
