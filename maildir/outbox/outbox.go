package outbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Outbox sends the files that people and programs save in a project's outboxes. It is safe for concurrent use.
type Outbox struct {
	mail    *core.Mail
	sender  *sending.Sender
	pending debouncer
}

// New returns the Outbox of a project.
func New(mail *core.Mail, sender *sending.Sender) *Outbox {
	return &Outbox{mail: mail, sender: sender, pending: newDebouncer(mail.Store.Monotonic)}
}

// Waiting returns the number of files that are still settling, that is, waiting until they have not changed for
// SettleTime.
func (o *Outbox) Waiting() int {
	o.pending.mu.Lock()
	defer o.pending.mu.Unlock()
	return len(o.pending.files)
}

// Moved schedules the file at path, which the server has moved into an outbox, as if it had just been saved there.
func (o *Outbox) Moved(path string) { o.schedule(path, o.pending.in(SettleTime)) }

// saved is a file in an outbox that the server will send.
type saved struct {
	path string
	sum  string // SHA-256 of the file's bytes

	day   string // date of the file's mtime in the server's time zone, such as 2026-11-28
	own   string // the key in the file's header; empty if the header has none
	daily bool   // the file's header contains "repeat: daily"
}

// key returns the message's idempotency key. It is the key in the header or, if there is none, a key derived from the
// file's bytes, so that the same text is never sent twice. With "repeat: daily", the key also contains the date.
func (s *saved) key() string {
	key := cmp.Or(s.own, "saved "+s.sum[:32])
	if s.daily {
		key += " " + s.day
	}
	return key
}

// sentBefore returns the refusal for a file whose text was already sent as the message with the given id. The refusal
// suggests a key that has not been used yet.
func (s *saved) sentBefore(id string) error {
	stem := strings.TrimSuffix(filepath.Base(s.path), ".md")
	if !format.PlainName(stem) {
		stem = "again"
	}
	key := cmp.Or(s.own, stem)
	if !strings.HasSuffix(key, s.day) {
		key += "-" + s.day
	}
	if key == s.own {
		key += "-2"
	}
	what := refusal.Conflict("The same text was already sent, as message {id}, and the server does not send the same " +
		"text twice. To send it again, add a new key to the header, such as `key: {=other}`. To send it once a day, add " +
		"`repeat: daily`. Otherwise delete the file.")
	if s.daily {
		what = refusal.Conflict("The same text was already sent, as message {id}, on the day that the file was last changed, " +
			"and `repeat: daily` sends it only once a day. To send it again on that day, add a new key to the header, " +
			"such as `key: {=other}`. Otherwise delete the file.")
	}
	return &refusal.Error{What: what, ID: id, Other: key}
}

// errSavedAnew means that the file was changed or removed just before the server would have sent it.
var errSavedAnew = errors.New("the file has changed in the meantime")

// take plans to remove the saved file. It returns errSavedAnew if the file has changed since it was read, or any error
// from writer.Group.Take.
func (s *saved) take(g *writer.Group, tx *writer.Tx) error {
	taken, err := g.Take(tx, s.path, s.sum)
	if err == nil && !taken {
		err = errSavedAnew
	}
	return err
}

// NoteSaved schedules changed outbox files and changed inbox copies to be handled once they have settled.
func (o *Outbox) NoteSaved(paths []string, changes []index.Change) {
	at := map[string]bool{}
	for _, path := range paths {
		at[path] = format.Locate(path).Kind == format.KindOutbox
	}
	for _, c := range changes {
		switch format.Locate(c.Path).Kind {
		case format.KindOutbox:
			at[c.Path] = c.Kind != format.KindOutbox || c.Op == index.Removed // a copy of a sent message need not be handled
		case format.KindInbox:
			at[c.Path] = c.Kind == format.KindInbox && c.Op != index.Removed
		}
	}
	due := o.pending.in(SettleTime) // the same time for all files, so that takeDue returns them together, in order
	for path, is := range at {
		if is {
			o.schedule(path, due)
		}
	}
}

// schedule schedules the file at path to be handled at the time due, if the file is regular or was removed.
func (o *Outbox) schedule(path string, due time.Time) {
	if st, err := o.mail.Tree.Stat(path); err == nil && st.Mode.IsRegular() || tree.FaultOf(err) == tree.FaultGone {
		o.pending.wait(path, st, due)
	}
}

// Run handles each file saved by another program once the file has settled. It runs concurrently with the writer. It
// starts with two groups of files: the outbox files that the index lists as problems, and the files mentioned in unread
// notices, which may have been deleted.
func (o *Outbox) Run(ctx context.Context) {
	problems, err := o.mail.Store.Index.Problems(ctx, o.mail.Slug, index.AllProblems)
	if err != nil && ctx.Err() == nil {
		o.mail.Store.Log.Error("cannot list unsent files in outboxes; they are not sent until they are saved again",
			"project", o.mail.Slug, "error", err)
	}
	due := o.pending.in(SettleTime)
	for _, bad := range problems {
		if format.Locate(bad.Path).Kind == format.KindOutbox {
			o.schedule(bad.Path, due)
		}
	}
	told, err := o.pathsTold(ctx)
	if err != nil && ctx.Err() == nil {
		o.mail.Store.Log.Error("cannot read Postmaster's notices; notices about deleted files stay unread", "project", o.mail.Slug, "error", err)
	}
	for _, path := range told {
		o.schedule(path, due)
	}
	away := false
	for {
		due, next := o.pending.takeDue()
		if len(due) > 0 && o.isAway(&away) { // this branch's outboxes may contain files that were already sent
			for _, f := range due {
				o.pending.wait(f.path, f.stat, o.pending.in(trySavedAgain))
			}
			continue
		}
		o.preserveSaved(ctx, due)
		for _, f := range due {
			o.handle(ctx, f)
		}
		if len(due) > 0 {
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-o.pending.bell:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// isAway reports whether a branch other than the mail branch is checked out, and stores the result in *was. When the
// result becomes true, isAway logs a warning.
func (o *Outbox) isAway(was *bool) bool {
	away := o.mail.History.State().Mode == history.Detached
	if away && !*was {
		o.mail.Store.Log.Warn("files in outboxes are not sent until the mail branch is checked out again", "project", o.mail.Slug)
	}
	*was = away
	return away
}

// preserveSaved commits all files that are about to be sent in one commit, instead of one commit for each file. It
// ignores errors, because sending the files reports them.
func (o *Outbox) preserveSaved(ctx context.Context, due []pendingFile) {
	var paths []string
	for _, f := range due {
		if format.Locate(f.path).Kind == format.KindOutbox {
			paths = append(paths, f.path)
		}
	}
	if len(paths) > 1 {
		_ = o.mail.History.Preserve(ctx, paths)
	}
}

// trySavedAgain is how long to wait before handling a file again after a temporary failure.
const trySavedAgain = 10 * time.Second

// handle sends a saved file, or reports an edited copy, if the file has not changed since it was scheduled. If the file
// was sent or removed, Postmaster's notices about it are marked as read.
func (o *Outbox) handle(ctx context.Context, f pendingFile) {
	st, err := o.mail.Tree.Stat(f.path)
	gone, outbox := tree.FaultOf(err) == tree.FaultGone, format.Locate(f.path).Kind == format.KindOutbox
	switch {
	case tree.FaultOf(err) == tree.FaultMachine:
		o.pending.wait(f.path, f.stat, o.pending.in(trySavedAgain))
		return
	case ctx.Err() != nil || !gone && (err != nil || !st.Mode.IsRegular()):
		return
	case !gone && (st != f.stat || o.mail.Tree.BeingWritten(f.path)):
		o.pending.wait(f.path, st, o.pending.in(SettleTime))
		return
	}
	switch {
	case outbox && gone:
		err = o.withdrawUnsent(ctx, f.path)
	case outbox:
		err = o.sendSaved(ctx, f)
	case gone:
		return
	default:
		err = o.tellOfEdit(ctx, f.path)
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, writer.ErrStopped):
	case errors.Is(err, errSavedAnew):
		o.schedule(f.path, o.pending.in(SettleTime))
	default:
		o.mail.Store.Log.Warn("failed to process a saved file; will retry", "project", o.mail.Slug, "path", f.path, "error", err)
		o.pending.wait(f.path, st, o.pending.in(trySavedAgain))
	}
}

// sendSaved sends a file, or tells its author why it cannot be sent. It returns errSavedAnew and temporary errors.
func (o *Outbox) sendSaved(ctx context.Context, f pendingFile) error {
	if format.ServerName(format.Locate(f.path).Agent) { // the index reports such a file as a problem
		return nil
	}
	data, st, err := o.mail.Tree.Read(f.path, o.mail.Tree.MaxFile())
	switch {
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		return o.tellUnsent(ctx, f.path, data, &refusal.Error{What: refusal.SavedMalformed, Why: tree.PlainFileError(err)})
	case st != f.stat:
		return errSavedAnew
	case len(bytes.TrimSpace(data)) == 0: // an empty file: the author is just starting to write
		return nil
	}
	file := &saved{path: f.path, sum: tree.SHA256(data), day: time.Unix(0, st.MTime).Format(time.DateOnly)}
	d, err := o.savedDraft(ctx, file, data)
	if d == nil && err == nil {
		return nil
	}
	var sent *sending.Sent
	if err == nil {
		sent, err = o.sender.Send(format.Through(ctx, format.DoorFile), d)
		err = o.withoutBlind(d, err)
	}
	if err == nil && sent.Again {
		err = file.sentBefore(sent.ID)
	}
	switch {
	case err == nil:
		return o.withdrawUnsent(ctx, f.path)
	case isTemporary(err):
		return err
	}
	return o.tellUnsent(ctx, f.path, data, err)
}

// withoutBlind returns a refusal about a draft's recipients in a form that Postmaster may send. Anyone can read
// Postmaster's mail, so the refusal must not mention a recipient that appears only in bcc, or names that resemble that
// recipient's name (invariant I7).
func (o *Outbox) withoutBlind(d *sending.Order, err error) error {
	var e *refusal.Error
	if !errors.As(err, &e) || !e.Field.OfRecipients() || e.Name == "" {
		return err
	}
	named := slices.Concat(d.To, d.CC)
	for _, name := range slices.Concat([]string{e.Name}, e.More) {
		if !slices.ContainsFunc(named, func(n string) bool { return strings.TrimSpace(n) == name }) {
			return &refusal.Error{
				What: refusal.NotFound("A name in bcc is not an agent of project {=other}, or is not allowed to " +
					"receive mail. The name is not repeated here, because others can read this message. Fix bcc, or remove the " +
					"name."),
				Other: o.mail.Name(),
			}
		}
	}
	return err
}

// isTemporary reports whether an error is temporary, so that sending the same message later may succeed.
func isTemporary(err error) bool {
	var e *refusal.Error
	return !errors.As(err, &e) || errors.Is(err, refusal.ErrUnavailable) && e.What != refusal.EditUncommitted
}

// savedDraft returns the message in a file, and sets file.own and file.daily from the file's header. It returns nil if
// the file is a copy of a sent message. It returns ErrInvalid, ErrConflict, or any error from sending.Sender.MakeReply.
func (o *Outbox) savedDraft(ctx context.Context, file *saved, data []byte) (*sending.Order, error) {
	place := format.Locate(file.path)
	sent, err := o.mail.Store.Index.Message(ctx, o.mail.Slug, place.ID, index.WithoutBody, nil)
	if err != nil {
		return nil, err
	}
	u, err := format.ParseUnsent(data)
	switch {
	case err != nil && sent != nil, err == nil && u.ID != "" && u.ID == place.ID: // the file is a copy of a sent message, damaged or intact
		return nil, nil
	case err != nil:
		return nil, &refusal.Error{What: refusal.SavedMalformed, Why: err.Error()}
	case u.ID != "":
		return nil, &refusal.Error{
			What: refusal.Conflict("The file has the id {name}, but only sent messages have ids: remove the id to send " +
				"the file as a new message."),
			Name: u.ID,
		}
	case sent != nil:
		return nil, &refusal.Error{
			What: refusal.Conflict("{name} was already sent, and a file with that name is treated as a copy " +
				"of that message: rename the file to send it as a new message."),
			Name: place.ID,
		}
	case u.From != "" && u.From != place.Agent:
		return nil, &refusal.Error{
			What: refusal.Invalid("{field} is {name}, but the file is in the outbox of {other}: remove the " +
				"sender, or move the file."),
			Field: refusal.From,
			Name:  u.From,
			Other: place.Agent,
		}
	case strings.TrimSpace(u.Body) == "" && u.Subject == "":
		return nil, &refusal.Error{What: refusal.Invalid("The message has no text: write the text below the header.")}
	}
	file.own, file.daily = u.Key, u.Daily
	d := &sending.Order{
		Draft: sending.Draft{
			Attachments: u.Attach,
			Variants:    sending.Variants{TextOnly: u.MediaType == format.PlainText},
		},
		Verb:   "send",
		From:   place.Agent,
		Origin: format.Origin{Door: format.DoorFile},
		Take:   file.take,
	}
	d.FillFrom(&u.Message)
	d.Key = file.key()
	if u.InReplyTo != "" {
		d.Verb = "reply"
		err = o.sender.MakeReply(ctx, u.InReplyTo, d)
	}
	return d, err
}
