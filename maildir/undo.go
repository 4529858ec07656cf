package maildir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
	"mailtree/maildir/writer"
)

// undoable lists the operations that can be undone, with the kinds of files that Undo restores.
var undoable = map[string][]format.Kind{
	"send":              nil, // files of any kind
	"reply":             nil,
	"delete":            nil,
	"read":              {format.KindRead},
	"pop":               {format.KindRead},
	"acknowledge":       {format.KindRead, format.KindAck},
	"archive":           {format.KindRead, format.KindArchived},
	"later":             {format.KindLater},
	"unread":            {format.KindRead, format.KindArchived},
	history.VerbClaim:   {format.KindClaim, format.KindReleased},
	history.VerbRenew:   {format.KindClaim, format.KindReleased},
	history.VerbRelease: {format.KindReleased},
	history.VerbHold:    {format.KindHold},
	history.VerbGo:      {format.KindHold},
	VerbAmend:           texts,
}

// texts lists the kinds of files that contain the text of a message.
var texts = []format.Kind{format.KindCanonical, format.KindInbox, format.KindOutbox}

// readings lists the verbs of readings, which are operations that only record whether an agent has read a message. Undo
// selects a reading only if the caller specifies the message's id.
var readings = []string{"read", "pop", "unread"}

// Undoing selects the operation to undo.
type Undoing struct {
	ID   string // selects the newest operation on this message, by full or shortened id; empty selects the newest that is not a reading
	Verb string // selects the newest operation with this verb; empty means any verb

	// ByAgent is true if the request comes from an agent's session. An agent's session may not undo or redo the start
	// or end of a hold.
	ByAgent bool
}

// isUndoable reports whether operations with the given verb can be undone.
func isUndoable(verb string) bool {
	_, ok := undoable[verb]
	return ok
}

// wants reports whether u selects operations with the given verb.
func (u *Undoing) wants(verb string) bool {
	return isUndoable(verb) && (u.Verb == "" || u.Verb == verb) && (u.ID != "" || !slices.Contains(readings, verb))
}

// OperationInfo describes an operation that an agent can undo, or has undone or redone.
type OperationInfo struct {
	ID        string       `json:"message_id,omitempty"` // "" if the operation concerns no message
	Operation string       `json:"operation"`            // the operation's verb in the history
	About     string       `json:"about,omitempty"`      // the message's subject, or a claim's patterns; "" if unknown
	At        format.Stamp `json:"at"`
	More      int          `json:"more,omitempty"` // number of other operations undone or redone together with this one
}

// Undone is an operation that was undone or redone.
type Undone struct {
	OperationInfo
	Readers  []string       `json:"read_by"`            // agents that had read the message; each gets a notice
	Outside  []string       `json:"left_for,omitempty"` // recipients at other domains, who keep a withdrawn message; see leftFor
	Queued   []string       `json:"queued,omitempty"`   // projects in which the message is removed or restored later
	Patterns []string       `json:"paths,omitempty"`    // the claims' patterns, for an operation on claims
	Text     string         `json:"text_at,omitempty"`  // location of the undone text in Git, as COMMIT:PATH, or ""
	Next     *OperationInfo `json:"next,omitempty"`     // what the next Undo or Redo without an id would do; nil if there is nothing to do
	Also     []Undone       `json:"also,omitempty"`     // the other operations of the same command

	done *history.Done
}

// Undo undoes the agent's newest operation on a message, ignoring operations that are already undone. The undo is
// itself an operation; it restores only the files that the undone operation changed. A sent message is removed for
// everyone, and agents that have read it get a notice.
//
// Without an id, Undo selects the newest operation that does more than mark messages as read or unread. This may also
// be an operation on claims: claimed paths are released, and released paths are claimed again. Undo then undoes every
// operation of the same step (format.InStep), including those that only mark messages as read or unread.
//
// Undo returns ErrNotFound if there is no such operation or message, and ErrInvalid if an agent's session may not undo
// the operation. It returns ErrConflict if a file has changed since, if another agent now holds the paths, or if the
// operation cannot be distinguished from others in its commit.
func (b *Box) Undo(ctx context.Context, u Undoing) (*Undone, error) {
	const undone = false
	step, err := b.lastStep(ctx, u, undone)
	if err != nil {
		return nil, err
	}
	return b.doStep(ctx, step, "undone", b.undoOne)
}

// doStep calls do for each operation in a step. It returns the first operation and lists the others in its Also field.
// The operations performed by do form a new step. If do fails, the operations that it has already performed are kept.
func (b *Box) doStep(ctx context.Context, step []Undone, how string, do func(context.Context, *Undone) error) (*Undone, error) {
	if len(step) > 1 {
		ctx = format.InStep(ctx, format.NewStep())
	}
	for i := range step {
		err := do(ctx, &step[i])
		if err != nil && i > 0 {
			err = &Error{
				What:   refusal.Conflict("Only {count} of the command's {count 2} operations were {=other}. {cause}"),
				Counts: []int{i, len(step)},
				Other:  how,
				Err:    err,
			}
		}
		if err != nil {
			return nil, err
		}
	}
	first := step[0]
	first.Also = step[1:]
	return &first, nil
}

// undoOne undoes an operation.
func (b *Box) undoOne(ctx context.Context, undone *Undone) error {
	done := undone.done
	if i := slices.IndexFunc(done.Changes, func(v history.Version) bool { return format.Locate(v.Path).Kind == format.KindCanonical }); i >= 0 &&
		slices.Contains([]string{"send", "reply", VerbAmend}, done.Verb) {
		undone.Text = done.Commit + ":" + done.Changes[i].Path
	}
	regains := done.Verb == history.VerbRelease && b.p.mail.IsShared()
	if regains {
		if err := b.p.Sync.SyncClaims(ctx); err != nil {
			return err
		}
	}
	err := b.performEverywhere(ctx, undone, history.UndoPrefix, func(g *writer.Group, tx *writer.Tx) error {
		switch done.Verb {
		case "send", "reply":
			return b.planWithdrawal(g, tx, undone)
		case history.VerbClaim, history.VerbRenew, history.VerbRelease:
			return b.planUnclaiming(g, tx, undone)
		case history.VerbHold, history.VerbGo:
			if err := b.planWithdrawal(g, tx, undone); err != nil {
				return err
			}
		case VerbAmend:
			return b.planUnamending(g, tx, undone, refusal.ChangedSince)
		}
		return b.p.planRestore(g, tx, done, undoable[done.Verb], refusal.ChangedSince)
	})
	if err == nil && regains {
		err = b.p.Sync.KeepRegained(ctx, undone.done)
	}
	return err
}

// Redo redoes the agent's last undone operation on a message or, without an id, the agent's last undone step. It
// restores the files to their state before the undo. An undo can no longer be redone after the agent performs another
// operation that Undo without an id would select. If an id is given, only operations on that message have this effect.
// Agents that got a notice about the undo also get one about the redo. Redo returns any error from Undo, and
// ErrConflict for a claim, because another agent may have begun to work on the claimed paths.
func (b *Box) Redo(ctx context.Context, u Undoing) (*Undone, error) {
	const undone = true
	step, err := b.lastStep(ctx, u, undone)
	if err != nil {
		return nil, err
	}
	return b.doStep(ctx, step, "redone", b.redoOne)
}

// redoOne redoes an operation that was undone.
func (b *Box) redoOne(ctx context.Context, redone *Undone) error {
	done := redone.done
	return b.performEverywhere(ctx, redone, history.RedoPrefix, func(g *writer.Group, tx *writer.Tx) error {
		switch done.Verb {
		case "send", "reply":
			return b.planResending(g, tx, redone)
		case history.VerbRelease:
			redone.Patterns = []string{redone.About}
			return b.planResending(g, tx, redone)
		case history.VerbHold, history.VerbGo:
			return b.planResending(g, tx, redone)
		case history.VerbClaim, history.VerbRenew:
			return &Error{
				What: refusal.Conflict("The {why} operation on {name} cannot be redone, because other agents may have " +
					"started working there: claim the paths again. {redo something else}"),
				Name: redone.About,
				Why:  redone.Operation,
			}
		case history.VerbDelete:
			_, err := b.p.planDeletion(g, tx, done.ID)
			return err
		case VerbAmend:
			return b.planUnamending(g, tx, redone, refusal.ChangedSinceUndone)
		}
		return b.p.planRestore(g, tx, done, undoable[done.Verb], refusal.ChangedSinceUndone)
	})
}

// Undoable lists up to n of the agent's operations that Undo can undo without an id, newest first. For each step, it
// lists only the first operation. It searches only the newest commits.
func (b *Box) Undoable(ctx context.Context, n int) ([]OperationInfo, error) {
	all, err := b.p.mail.History.LastDone(ctx, history.DoneQuery{Agent: b.agent, Wants: (&Undoing{}).wants, Along: isUndoable, Most: n})
	if err != nil {
		return nil, fmt.Errorf("cannot look up the actions of %s: %w", b.agent, err)
	}
	acts := []OperationInfo{}
	for _, step := range stepsOf(all) {
		act, err := b.p.actOf(ctx, b.agent, &step[0])
		if err != nil {
			return nil, err
		}
		act.More = len(step) - 1
		acts = append(acts, act)
	}
	return acts, nil
}

// stepsOf groups the operations that LastDone returns into steps.
func stepsOf(all []history.Done) (steps [][]history.Done) {
	for i := range all {
		if i == 0 || all[i].Step == "" || all[i].Step != all[i-1].Step {
			steps = append(steps, nil)
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], all[i])
	}
	return steps
}

// actOf describes an agent's operation. If the message was removed, its subject comes from the history.
func (p *Project) actOf(ctx context.Context, agent string, done *history.Done) (OperationInfo, error) {
	act := OperationInfo{ID: done.ID, Operation: done.Verb, At: format.At(done.At)}
	if history.BesideMessage(done.Verb) {
		act.About = history.AboutBeside(done.Verb, agent, done.Summary)
		return act, nil
	}
	if done.ID == "" {
		// Cut off the word that says whether the claim is shared.
		_, act.About, _ = strings.Cut(strings.TrimPrefix(done.Summary, agent+" "), " ")
		return act, nil
	}
	m, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, done.ID, index.WithoutBody, nil)
	if m != nil {
		act.About = m.Subject
	} else if err == nil {
		_, act.About, _ = strings.Cut(done.Summary, ": ")
	}
	return act, err
}

// lastStep returns the operations that u selects, in the order in which they are to be undone or redone. If undone is
// true, lastStep considers only operations that have been undone. It returns any error from Undo.
func (b *Box) lastStep(ctx context.Context, u Undoing, undone bool) ([]Undone, error) {
	if err := b.p.mail.NeedAgent(ctx, refusal.Agent, b.agent); err != nil {
		return nil, err
	}
	if u.ID != "" {
		id, err := b.p.formerID(ctx, u.ID)
		switch {
		case err != nil:
			return nil, err
		case id == "":
			return nil, b.p.mail.NoMessage(ctx, refusal.Message, u.ID)
		}
		u.ID = id
	}
	q := history.DoneQuery{Agent: b.agent, ID: u.ID, Wants: u.wants, Undone: undone, Most: 1}
	if u.ID == "" && u.Verb == "" {
		q.Along = isUndoable
		q.Most++ // one more step, for Undone.Next
	}
	all, err := b.p.mail.History.LastDone(ctx, q)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot look up the actions of %s: %w", b.agent, err)
	case len(all) == 0 && undone:
		return nil, &Error{
			What: refusal.NotFound("{=other} has no recently undone action here that can be redone. After a newer action, an " +
				"earlier undo can no longer be redone."),
			Field: refusal.Message,
			Name:  u.ID,
			Other: b.agent,
		}
	case len(all) == 0 && u.ID != "":
		return nil, &Error{
			What:  refusal.NotFound("{=other} has no action on message {name} that can be undone. {list what to undo}"),
			Field: refusal.Message,
			Name:  format.ShortID(u.ID, b.p.mail.Store.Now()),
			Other: b.agent,
		}
	case len(all) == 0:
		return nil, &Error{
			What: refusal.NotFound("{=other} has no recent action here that can be undone. You can undo " +
				"sending, changing, acknowledging, archiving, hiding, deleting, claiming, releasing, and changes to holds. " +
				"To undo marking a message as read or unread, specify the message."),
			Field: refusal.Message,
			Other: b.agent,
		}
	}
	steps := stepsOf(all)
	changesHold := func(d history.Done) bool { return d.Verb == history.VerbHold || d.Verb == history.VerbGo }
	if u.ByAgent && slices.ContainsFunc(steps[0], changesHold) {
		return nil, &Error{What: refusal.Invalid("This operation begins or ends a hold. Only users may change holds, and this " +
			"command seems to come from an agent's session.")}
	}
	return b.describeStep(ctx, steps)
}

// describeStep describes the first of one or two steps. If there is a second step, it is described in the Next field
// of the first operation.
func (b *Box) describeStep(ctx context.Context, steps [][]history.Done) (step []Undone, err error) {
	for i := range steps[0] {
		done := &steps[0][i]
		if len(done.Changes) == 0 {
			return nil, &Error{What: refusal.NotUndone, Other: b.agent, Why: done.Verb}
		}
		act, err := b.p.actOf(ctx, b.agent, done)
		if err != nil {
			return nil, err
		}
		step = append(step, Undone{OperationInfo: act, done: done})
	}
	if len(steps) > 1 {
		next, err := b.p.actOf(ctx, b.agent, &steps[1][0])
		if err != nil {
			return nil, err
		}
		next.More = len(steps[1]) - 1
		step[0].Next = &next
	}
	return step, nil
}

// performEverywhere is like performUndoing. If the operation removes or restores a message, it also removes or restores
// the copies in other projects. It sets of.Queued to the projects in which the change is still pending.
func (b *Box) performEverywhere(ctx context.Context, of *Undone, prefix string, plan func(*writer.Group, *writer.Tx) error) (err error) {
	do := func() error { return b.performUndoing(ctx, of, prefix, plan) }
	if !slices.Contains([]string{"send", "reply", history.VerbDelete}, of.done.Verb) {
		return do()
	}
	of.Queued, err = b.p.changeEverywhere(ctx, of.ID, of.done.Changes, do)
	return err
}

// changeEverywhere performs an operation that removes or restores a message (see crossing.Carrier.Change). If the
// message was removed, changes contains its files.
func (p *Project) changeEverywhere(ctx context.Context, id string, changes []history.Version, do func() error) ([]string, error) {
	m, err := p.sentCopy(ctx, id, changes)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, do()
	}
	return p.carrier.Change(ctx, p.mail, m, do)
}

// sentCopy returns the sender's copy of a message that this server sent, read from the tree or, if the message was
// removed, from changes. It returns nil if there is no such copy, or if the copy was edited by hand.
func (p *Project) sentCopy(ctx context.Context, id string, changes []history.Version) (*format.Message, error) {
	m, err := p.Post.SentOutside(ctx, id)
	if errors.Is(err, ErrConflict) {
		return nil, nil
	}
	if err != nil || m != nil {
		return m, err
	}
	for _, v := range changes {
		at := format.Locate(v.Path)
		if at.Kind != format.KindOutbox || v.Was == nil {
			continue
		}
		m, err := format.ParseMessage(id, v.Was)
		if err != nil {
			return nil, nil
		}
		if _, ok := p.mail.Store.VerifiedHere(m); ok && m.Project == p.mail.Name() && m.From == at.Agent {
			return m, nil
		}
	}
	return nil, nil
}

// performUndoing performs the operation that undoes or redoes another operation. The verb of the new operation begins
// with prefix.
func (b *Box) performUndoing(ctx context.Context, of *Undone, prefix string, plan func(*writer.Group, *writer.Tx) error) error {
	tx := &writer.Tx{Alone: true, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		of.Readers, of.Outside, of.Patterns, tx.Marks = []string{}, nil, nil, ""
		err := plan(g, tx)
		tx.Op = writer.Op{
			Verb:    prefix + of.done.Verb,
			Agent:   b.agent,
			ID:      of.ID,
			Marks:   tx.Marks,
			Summary: of.done.Summary,
			At:      g.Now,
		}
		return err
	}
	return b.perform(ctx, tx)
}

// planWithdrawal plans the removal of a message, and a notice to the agents that have read it. These agents do not see
// each other's names, because some may be bcc recipients of the message (Invariant I7). It returns ErrConflict if one
// of the message's files was changed.
func (b *Box) planWithdrawal(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	gone, err := b.p.planDeletion(g, tx, undone.ID)
	if err != nil {
		return err
	}
	for _, v := range undone.done.Changes {
		if !slices.Contains(texts, format.Locate(v.Path).Kind) {
			continue
		}
		is, err := b.p.mail.ContentNow(v.Path)
		if err != nil {
			return err
		}
		if is != nil && !bytes.Equal(is, v.Is) {
			return &Error{What: refusal.ChangedSince, Other: v.Path, Why: undone.Operation}
		}
	}
	if err := b.p.sender.PlanUndoAutoAck(g, tx, &gone.row.Message); err != nil {
		return err
	}
	undone.Readers, undone.Outside = gone.Readers, gone.Outside
	return b.planNotice(g, tx, gone.row, undone.Readers, &format.Message{
		Subject: "Withdrawn: " + format.Cut(gone.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s withdrew message %s after you had read it:\n\n    %s\n\nThe "+
			"message no longer exists. Do not rely on its content.\n", b.agent, gone.ID, format.Printable(gone.Subject)),
	})
}

// planResending plans to restore a withdrawn message. If the withdrawal also restored released claims, planResending
// plans to release them again. It also plans a notice to agents that had read the message. These agents do not see
// each other's names (I7). It returns ErrNotFound if a recipient no longer exists, and ErrConflict if a message with
// the same key has been sent since.
func (b *Box) planResending(g *writer.Group, tx *writer.Tx, redone *Undone) error {
	if err := b.p.planRestore(g, tx, redone.done, nil, refusal.ChangedSinceUndone); err != nil || redone.ID == "" {
		return err
	}
	row := &index.MessageRow{}
	for _, v := range redone.done.Changes {
		switch at := format.Locate(v.Path); at.Kind {
		case format.KindCanonical, format.KindOutbox:
			m, err := format.ParseMessage(redone.ID, v.Was)
			if err != nil {
				return &Error{What: refusal.ChangedSinceUndone, Other: v.Path, Why: redone.Operation}
			}
			if row.ID == "" || at.Kind == format.KindOutbox { // only the outbox copy lists the bcc recipients
				row.Message = *m
			}
		case format.KindInbox:
			if ok, err := b.p.mail.HasAgent(g.Ctx, at.Agent); err != nil {
				return err
			} else if !ok {
				return &Error{
					What: refusal.NotFound("{name}, a recipient of message {id}, is no longer an agent, so the " +
						"message cannot be sent again. {redo something else}"),
					Field: refusal.Recipients,
					Name:  at.Agent,
					ID:    redone.ID,
				}
			}
		case format.KindRead, format.KindAck, format.KindArchived:
			if at.Agent != b.agent && !slices.Contains(redone.Readers, at.Agent) {
				redone.Readers = append(redone.Readers, at.Agent)
			}
		}
	}
	again, err := b.p.mail.Store.Index.Keyed(g.Ctx, b.p.mail.Slug, row.From, row.Key)
	if err != nil {
		return err
	}
	for i := range again {
		if sending.SameNames(again[i].Recipients(), row.Recipients()) {
			return &Error{
				What: refusal.Conflict("The content of message {name} was sent again in the meantime, as {id}. " +
					"{redo something else}"),
				Name: redone.ID,
				ID:   again[i].ID,
			}
		}
	}
	if _, err := b.p.sender.PlanAutoAck(g, tx, &row.Message); err != nil {
		return err
	}
	return b.planNotice(g, tx, row, redone.Readers, &format.Message{
		Subject: "Sent again: " + format.Cut(row.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s withdrew message %s after you had read it, and has now sent it again:\n\n    "+
			"%s\n\nThe message is valid again.\n", b.agent, row.ID, format.Printable(row.Subject)),
	})
}

// planUnamending plans to restore the content that a message had before an edit, or before an edit was undone. It also
// plans a notice to the agents that read the message before or after that change.
func (b *Box) planUnamending(g *writer.Group, tx *writer.Tx, undone *Undone, changed refusal.What) error {
	row, err := b.p.mail.HeadNamed(g.Ctx, refusal.InReplyTo, undone.ID)
	if err != nil {
		return err
	}
	if err := b.p.planRestore(g, tx, undone.done, undoable[VerbAmend], changed); err != nil {
		return err
	}
	undone.Readers, err = b.planTelling(g, tx, row)
	return err
}

// planRestore plans to restore the files of the given kinds to their content before an operation. If kinds is nil, it
// restores files of all kinds. If a file has changed since the operation, planRestore returns ErrConflict with the text
// of changed.
func (p *Project) planRestore(g *writer.Group, tx *writer.Tx, done *history.Done, kinds []format.Kind, changed refusal.What) error {
	var gone []string
	for _, v := range done.Changes {
		if kinds != nil && !slices.Contains(kinds, format.Locate(v.Path).Kind) {
			continue // the file belongs to another operation in the same commit
		}
		is, err := p.mail.ContentNow(v.Path)
		if err != nil {
			return err
		}
		switch {
		case (is == nil) != (v.Is == nil) || !bytes.Equal(is, v.Is):
			return &Error{What: changed, Other: v.Path, Why: done.Verb}
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
