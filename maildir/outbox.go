package maildir

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
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// A message file without an id that is saved below an outbox, or moved there, is sent once it has not
// changed for settleTime. Send removes the file in the same operation, so a file is never sent in part and
// never sent without being removed. The message's key is made of the file's bytes, so an editor that saves
// the same text again sends nothing. A file that cannot be sent stays, and Postmaster tells its author why.
// See docs/tree.md, "Sending by saving".

// Outbox sends the files that people and programs save in the outboxes of a project. It is safe for concurrent use.
type Outbox struct {
	mail   *core.Mail
	sender sender
	fresh  settling
}

// sender sends drafts.
type sender interface {
	send(ctx context.Context, verb string, d Draft) (*Sent, error)
	makeReply(ctx context.Context, id string, d *Draft) error
}

// saved is a file in an outbox that is to be sent.
type saved struct {
	path string
	sum  string // SHA-256 of its bytes

	day   string // date of the file's time (mtime) in the server's time zone, such as 2026-11-28
	own   string // the key in its header; "": none
	daily bool   // its header says "repeat: daily"
}

// key returns the idempotency key of the message: that in the header, or one made of the file's bytes, so
// that the same text is never sent twice; with "repeat: daily" the key also has the date.
func (s *saved) key() string {
	key := cmp.Or(s.own, "saved "+s.sum[:32])
	if s.daily {
		key += " " + s.day
	}
	return key
}

// sentBefore returns the refusal to send the file, whose text was sent before as the message with that id.
// The refusal suggests a key that was not used yet.
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
	what := refusal.Conflict("The same text was sent before, as message {id}, and nothing is sent twice. To send it again, give it a " +
		"key of its own in the header, such as `key: {=other}`. To send it once a day, write `repeat: daily` there. Otherwise remove " +
		"the file.")
	if s.daily {
		what = refusal.Conflict("The same text was sent before, as message {id}, on the day of the file's time, and `repeat: daily` sends " +
			"it once a day. To send it again on that day, give it a key of its own in the header, such as `key: {=other}`. Otherwise " +
			"remove the file.")
	}
	return &Error{What: what, ID: id, Other: key}
}

// errSavedAnew says that the file was changed or removed while it was about to be sent.
var errSavedAnew = errors.New("the file has changed meanwhile")

// planTaking plans the removal of the file that a message was read from, if s is not nil. It returns
// errSavedAnew if the file has changed since, and the errors of writer.Group.Take.
func (o *Outbox) planTaking(g *writer.Group, tx *writer.Tx, s *saved) error {
	if s == nil {
		return nil
	}
	taken, err := g.Take(tx, s.path, s.sum)
	if err == nil && !taken {
		err = errSavedAnew
	}
	return err
}

// noteSaved selects, from the files that others changed, those to handle once they have settled: files in
// outboxes, and inbox copies.
func (o *Outbox) noteSaved(paths []string, changes []index.Change) {
	at := map[string]bool{}
	for _, path := range paths {
		at[path] = format.Locate(path).Kind == format.KindOutbox
	}
	for _, c := range changes {
		switch format.Locate(c.Path).Kind {
		case format.KindOutbox:
			at[c.Path] = c.Kind != format.KindOutbox || c.Op == index.Removed // otherwise it is valid, and a copy of a sent message
		case format.KindInbox:
			at[c.Path] = c.Kind == format.KindInbox && c.Op != index.Removed
		}
	}
	due := o.fresh.in(settleTime) // the same for all, so that they are sent in the order in which they were saved
	for path, is := range at {
		if is {
			o.waitFor(path, due)
		}
	}
}

// waitFor has a file handled when it is due, if it is a regular file or gone.
func (o *Outbox) waitFor(path string, due time.Time) {
	if st, err := o.mail.Tree.Stat(path); err == nil && st.Mode.IsRegular() || tree.FaultOf(err) == tree.FaultGone {
		o.fresh.wait(path, st, due)
	}
}

// handleSaved runs beside the writer and handles files saved by others once each has settled. It begins
// with the files already in the outboxes, which an earlier server may not have sent, and with those of which
// Postmaster wrote, which may be gone.
func (o *Outbox) handleSaved(ctx context.Context) {
	problems, err := o.mail.Store.Index.Problems(ctx, o.mail.Slug, index.AllProblems)
	if err != nil && ctx.Err() == nil {
		o.mail.Store.Log.Error("files in outboxes are not sent before they are saved again", "project", o.mail.Slug, "error", err)
	}
	due := o.fresh.in(settleTime)
	for _, bad := range problems {
		if format.Locate(bad.Path).Kind == format.KindOutbox {
			o.waitFor(bad.Path, due)
		}
	}
	told, err := o.pathsTold(ctx)
	if err != nil && ctx.Err() == nil {
		o.mail.Store.Log.Error("what Postmaster said of files that are gone stays unread", "project", o.mail.Slug, "error", err)
	}
	for _, path := range told {
		o.waitFor(path, due)
	}
	away := false
	for {
		due, next := o.fresh.takeDue()
		if len(due) > 0 && o.isAway(&away) { // another branch has outboxes of its own, whose files may have been sent already
			for _, f := range due {
				o.fresh.wait(f.path, f.stat, o.fresh.in(trySavedAgain))
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
		case <-o.fresh.bell:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// isAway reports whether another branch than the mail's is checked out, and logs when that begins.
func (o *Outbox) isAway(was *bool) bool {
	away := o.mail.History.State().Mode == history.Detached
	if away && !*was {
		o.mail.Store.Log.Warn("what lies in outboxes is not sent until the mail's branch is checked out again", "project", o.mail.Slug)
	}
	*was = away
	return away
}

// preserveSaved has the history take several files to be sent in one commit instead of one each. An error
// shows up when each file is sent.
func (o *Outbox) preserveSaved(ctx context.Context, due []settlingFile) {
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

// trySavedAgain is the time until the next try for a file that could not be handled for a temporary reason.
const trySavedAgain = 10 * time.Second

// handle sends a saved file, or reports an edited copy, if the file has not changed since. What Postmaster
// said of a file that was sent or is gone becomes read.
func (o *Outbox) handle(ctx context.Context, f settlingFile) {
	st, err := o.mail.Tree.Stat(f.path)
	gone, outbox := tree.FaultOf(err) == tree.FaultGone, format.Locate(f.path).Kind == format.KindOutbox
	switch {
	case tree.FaultOf(err) == tree.FaultMachine:
		o.fresh.wait(f.path, f.stat, o.fresh.in(trySavedAgain))
		return
	case ctx.Err() != nil || !gone && (err != nil || !st.Mode.IsRegular()):
		return
	case !gone && (st != f.stat || o.mail.Tree.BeingWritten(f.path)):
		o.fresh.wait(f.path, st, o.fresh.in(settleTime))
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
		o.waitFor(f.path, o.fresh.in(settleTime))
	default:
		o.mail.Store.Log.Warn("a saved file could not be handled; that is tried again", "project", o.mail.Slug, "path", f.path, "error", err)
		o.fresh.wait(f.path, st, o.fresh.in(trySavedAgain))
	}
}

// sendSaved sends a file, or tells its author why it cannot be sent. It returns errSavedAnew and temporary
// errors.
func (o *Outbox) sendSaved(ctx context.Context, f settlingFile) error {
	if format.ServerName(format.Locate(f.path).Agent) { // the index reports it as a problem
		return nil
	}
	data, st, err := o.mail.Tree.Read(f.path, o.mail.Tree.MaxFile())
	switch {
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		return o.tellUnsent(ctx, f.path, data, &Error{What: refusal.SavedMalformed, Why: tree.PlainFileError(err)})
	case st != f.stat:
		return errSavedAnew
	case len(bytes.TrimSpace(data)) == 0: // an empty file: the author begins to write
		return nil
	}
	verb, d, err := o.savedDraft(ctx, f.path, data, time.Unix(0, st.MTime))
	if d == nil && err == nil {
		return nil
	}
	var sent *Sent
	if err == nil {
		sent, err = o.sender.send(format.Through(ctx, format.DoorFile), verb, *d)
		err = o.withoutBlind(d, err)
	}
	if err == nil && sent.Again {
		err = d.saved.sentBefore(sent.ID)
	}
	switch {
	case err == nil:
		return o.withdrawUnsent(ctx, f.path)
	case passes(err):
		return err
	}
	return o.tellUnsent(ctx, f.path, data, err)
}

// withoutBlind returns a refusal about a draft's recipients in a form that Postmaster may send. Everyone
// can read Postmaster's mail, so the refusal must not name a recipient that is only in bcc, nor similar
// names (invariant I7).
func (o *Outbox) withoutBlind(d *Draft, err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.Field.OfRecipients() || e.Name == "" {
		return err
	}
	named := slices.Concat(d.To, d.CC)
	for _, name := range slices.Concat([]string{e.Name}, e.More) {
		if !slices.ContainsFunc(named, func(n string) bool { return strings.TrimSpace(n) == name }) {
			return &Error{
				What: refusal.NotFound("A name in bcc is no agent's of project {=other}, or mail may not go there. It is not repeated here, where others can read it: " +
					"mend bcc, or take the name out."),
				Other: o.mail.Name(),
			}
		}
	}
	return err
}

// passes reports whether an error is temporary, so that the same message may be sent later.
func passes(err error) bool {
	var e *Error
	return !errors.As(err, &e) || errors.Is(err, ErrUnavailable) && e.What != refusal.EditUncommitted
}

// savedDraft returns the message in a file of that time and the verb that sends it; nil if the file is a copy
// of a sent message. It returns ErrInvalid, ErrConflict, and the errors of Reply.
func (o *Outbox) savedDraft(ctx context.Context, path string, data []byte, at time.Time) (verb string, d *Draft, err error) {
	place := format.Locate(path)
	sent, err := o.mail.Store.Index.Message(ctx, o.mail.Slug, place.ID, index.WithoutBody, nil)
	if err != nil {
		return "", nil, err
	}
	u, err := format.ParseUnsent(data)
	switch {
	case err != nil && sent != nil, err == nil && u.ID != "" && u.ID == place.ID: // a copy, damaged or whole
		return "", nil, nil
	case err != nil:
		return "", nil, &Error{What: refusal.SavedMalformed, Why: err.Error()}
	case u.ID != "":
		return "", nil, &Error{
			What: refusal.Conflict("It has the id {name}, as mail has that was sent: take the id out to send it as a new message."),
			Name: u.ID,
		}
	case sent != nil:
		return "", nil, &Error{
			What: refusal.Conflict("{name} was sent before, and a file of that name is a copy of it: give the file another name to send " +
				"it as a new message."),
			Name: place.ID,
		}
	case u.From != "" && u.From != place.Agent:
		return "", nil, &Error{
			What:  refusal.Invalid("{field} is {name}, but the file lies in the outbox of {other}: leave the sender out, or move the file."),
			Field: refusal.From,
			Name:  u.From,
			Other: place.Agent,
		}
	case strings.TrimSpace(u.Body) == "" && u.Subject == "":
		return "", nil, &Error{What: refusal.Invalid("It has no text: write it below the header.")}
	}
	file := &saved{path: path, sum: tree.SHA256(data), day: at.Format(time.DateOnly), own: u.Key, daily: u.Daily}
	verb, d = "send", &Draft{
		Attachments: u.Attach,
		Variants:    Variants{TextOnly: u.MediaType == format.PlainText},
		from:        place.Agent,
		origin:      format.Origin{Door: format.DoorFile},
		saved:       file,
	}
	d.fillFrom(&u.Message)
	d.Key = file.key()
	if u.InReplyTo != "" {
		verb = "reply"
		err = o.sender.makeReply(ctx, u.InReplyTo, d)
	}
	return verb, d, err
}

// NewDraft creates a file among the agent's drafts for a message to the given agents. It returns the file's
// path on disk and the folder from which the file would be sent. The draft has no text yet. It returns
// ErrNotFound for an unknown agent, sender or recipient. See docs/tree.md, "Sending by saving".
func (b *Box) NewDraft(ctx context.Context, to []string) (file, outbox string, err error) {
	d := &Draft{from: b.agent, To: to}
	if err := b.p.resolveOwn(ctx, d); err != nil {
		return "", "", err
	}
	if err := b.p.needParties(ctx, d); err != nil {
		return "", "", err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "draft", Agent: b.agent}, Facts: []string{"drafts " + b.agent}}
	tx.Plan = func(g *writer.Group) error {
		path := ""
		for n := 1; ; n++ {
			path = format.DraftPath(b.agent, g.Now, n)
			if _, err := b.p.mail.Tree.Stat(path); tree.FaultOf(err) == tree.FaultGone {
				break
			} else if err != nil {
				return err
			}
		}
		tx.Summary = b.agent + " " + path
		tx.Create(path, format.FormatDraft(d.To))
		file = filepath.Join(b.p.mail.Tree.Dir(), filepath.FromSlash(path))
		return nil
	}
	if err := b.perform(ctx, tx); err != nil {
		return "", "", err
	}
	outbox = format.AgentsDir + "/" + b.agent + "/" + format.OutboxDir
	c := b.p.mail.Tree.Changer(b.p.mail.Store.Limits.Folders())
	defer c.Close()
	err = c.MakeDir(outbox) // without the folder, `mv` would rename the draft to a file of that name
	return file, filepath.Join(b.p.mail.Tree.Dir(), filepath.FromSlash(outbox)), err
}
