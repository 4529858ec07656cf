package maildir

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// VerbAmend is the verb that the history records for Amend.
const VerbAmend = "amend"

// Amendable is the part of a sent message that the user may change.
type Amendable struct {
	ID      string `json:"message_id"`
	Text    string `json:"text"`    // the part of the message that may be changed, as returned by format.Amendable
	Version string `json:"version"` // the version of the message that Text was read from
}

// Amendment is the new content of a message.
type Amendment struct {
	ID      string
	Text    string // the changed text, in the format of Amendable.Text
	Version string // the Amendable.Version that the text is based on; empty means any version
}

// Amended is a changed message.
type Amended struct {
	ID      string   `json:"message_id"`
	From    string   `json:"from"`
	Subject string   `json:"subject"`
	Same    bool     `json:"same,omitempty"`     // true if the text is the same as before, so nothing was written
	Sealed  bool     `json:"sealed"`             // whether the message is sealed now; false for another agent's message
	Readers []string `json:"read_by"`            // the author and the agents that read the old content; each gets a notice
	Outside []string `json:"left_for,omitempty"` // recipients in other projects and domains, who keep the old content
	Left    []string `json:"left,omitempty"`     // paths of copies that were edited by hand and therefore not changed

	message format.Message
}

// Amendable returns the part of a message that may be changed. It returns ErrNotFound if there is no such message.
func (p *Project) Amendable(ctx context.Context, id string) (*Amendable, error) {
	row, err := p.mail.HeadNamed(ctx, refusal.InReplyTo, p.mail.Store.Domains.IDNamed(id))
	if err != nil {
		return nil, err
	}
	data, m, err := p.readShown(row)
	if err != nil {
		return nil, err
	}
	return &Amendable{
		ID:      m.ID,
		Text:    string(format.Amendable(m)),
		Version: tree.SHA256(data),
	}, nil
}

// readShown reads the file that a message is displayed from, so that the caller can change it. It returns ErrInvalid
// for a message from another mail system, because mailtree never changes such files.
func (p *Project) readShown(row *index.MessageRow) (data []byte, m *format.Message, err error) {
	if data, _, err = p.mail.Tree.Read(row.Path, p.mail.Tree.MaxFile()); err != nil {
		return nil, nil, err
	}
	if format.IsForeign(data) {
		return nil, nil, &Error{
			What: refusal.Invalid("Message {name} comes from another mail system and has a TOML header: it can be " +
				"read, but not changed."),
			Field: refusal.Message,
			Name:  row.ID,
		}
	}
	m, err = format.ParseMessage(row.ID, data)
	return data, m, err
}

// Amend changes a message for everyone. In one operation by the agent, it changes the message's canonical file and
// every copy with the same content. If the agent wrote the message, Amend seals it again. Another agent's message loses
// its seal, because its author did not write the new text. The author and the agents that have read the message get a
// notice. The caller must check that the user is the store's owner. Amend returns ErrNotFound if the agent or the
// message does not exist. It returns ErrInvalid if the text cannot be parsed or the message is from another mail
// system, and ErrConflict if a.Version is no longer the message's version.
func (b *Box) Amend(ctx context.Context, a Amendment) (*Amended, error) {
	a.ID = b.p.mail.Store.Domains.IDNamed(a.ID)
	var done *Amended
	tx := &writer.Tx{Alone: true}
	tx.Plan = func(g *writer.Group) (err error) {
		if err := b.p.mail.NeedAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		if done, err = b.planAmendment(g, tx, &a); err != nil {
			return err
		}
		tx.Op = writer.Op{
			Verb:    VerbAmend,
			Agent:   b.agent,
			ID:      a.ID,
			Summary: core.SummaryOf(&done.message),
			At:      g.Now,
		}
		return nil
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	return done, nil
}

func (b *Box) planAmendment(g *writer.Group, tx *writer.Tx, a *Amendment) (*Amended, error) {
	row, err := b.p.mail.HeadNamed(g.Ctx, refusal.InReplyTo, a.ID)
	if err != nil {
		return nil, err
	}
	shown, m, err := b.p.readShown(row)
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, g.Behind(row.Path)
	case err != nil:
		return nil, err
	case a.Version != "" && a.Version != tree.SHA256(shown):
		return nil, &Error{What: refusal.AmendedSince, Field: refusal.Message, Name: a.ID}
	}
	done := &Amended{ID: m.ID, From: m.From, Sealed: m.From == b.agent, Readers: []string{}, message: *m}
	if err := format.Amend(&done.message, []byte(a.Text)); err != nil {
		return nil, &Error{What: refusal.Invalid("The changed text is not valid: {why}."), Why: err.Error()}
	}
	done.Subject = done.message.Subject
	if string(format.Amendable(m)) == string(format.Amendable(&done.message)) {
		done.Same = true
		return done, nil
	}
	done.message.Origin = format.Origin{}
	if done.Sealed {
		done.message.Project, done.message.Origin = b.p.mail.Name(), b.origin
	}
	if err := b.planCopies(g, tx, format.CopySum(a.ID, shown), done); err != nil {
		return nil, err
	}
	done.Readers, err = b.planTelling(g, tx, row)
	done.Outside = slices.Concat(leftFor(row), b.p.leftInProjects(row))
	return done, err
}

// planCopies plans the new content of the message's files. It replaces only files whose content has the given digest.
// It adds the paths of all other copies to the Left field of to.
func (b *Box) planCopies(g *writer.Group, tx *writer.Tx, sum *[sha256.Size]byte, to *Amended) error {
	files, err := b.p.mail.Store.Index.Files(g.Ctx, b.p.mail.Slug, to.ID)
	if err != nil {
		return err
	}
	for _, path := range files {
		switch format.Locate(path).Kind {
		case format.KindCanonical, format.KindInbox, format.KindOutbox:
		default:
			continue
		}
		old, _, err := b.p.mail.Tree.Read(path, b.p.mail.Tree.MaxFile())
		if tree.FaultOf(err) == tree.FaultGone {
			return g.Behind(path)
		}
		if err != nil {
			return err
		}
		is := format.CopySum(to.ID, old)
		if is == nil || *is != *sum {
			to.Left = append(to.Left, path)
			continue
		}
		file, err := b.amendedFile(to.ID, old, to.message)
		if err != nil {
			return err
		}
		if err := g.Replace(tx, path, file); err != nil {
			return err
		}
	}
	return nil
}

// amendedFile returns the new content of a file whose current content is old. It keeps the bcc recipients that the file
// lists.
func (b *Box) amendedFile(id string, old []byte, m format.Message) ([]byte, error) {
	was, err := format.ParseMessage(id, old)
	if err != nil {
		return nil, err
	}
	m.BCC = was.BCC
	file, err := format.Rewrite(old, &m)
	if err == nil && m.Auth != "" {
		file = format.Seal(b.p.mail.Store.Key, file)
	}
	if err == nil {
		err = b.p.mail.CheckSize(file)
	}
	return file, err
}

// planTelling plans a notice from the agent that a message has changed. The notice goes to the message's author and to
// every agent in the project that has read it. planTelling returns the names of the recipients. The recipients do not
// see each other's names, because some may be bcc recipients of the message (Invariant I7).
func (b *Box) planTelling(g *writer.Group, tx *writer.Tx, row *index.MessageRow) ([]string, error) {
	const forSender = true
	if err := b.p.mail.AddReceipts(g.Ctx, row, forSender); err != nil {
		return nil, err
	}
	told := row.Readers()
	if is, err := b.p.mail.HasAgent(g.Ctx, row.From); err != nil {
		return nil, err
	} else if is {
		told = append(told, row.From)
	}
	told = slices.DeleteFunc(told, func(name string) bool { return name == b.agent || !core.IsAgent(name) })
	return told, b.planNotice(g, tx, row, told, &format.Message{
		Subject: "Changed: " + format.Cut(row.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s has changed message %s, which you wrote or have read:\n\n    %s\n\nRead it "+
			"again: the new text replaces the old one.\n",
			b.agent, row.ID, format.Printable(row.Subject)),
	})
}

// planNotice plans a notice from the agent about a message. The notice goes, as bcc, to those of the given agents that
// belong to this project.
func (b *Box) planNotice(g *writer.Group, tx *writer.Tx, about *index.MessageRow, to []string, notice *format.Message) error {
	to = slices.DeleteFunc(slices.Clone(to), func(name string) bool { return !core.IsAgent(name) })
	if len(to) == 0 {
		return nil
	}
	notice.From, notice.Origin = b.agent, b.origin
	notice.Project, notice.ThreadID, notice.InReplyTo = b.p.mail.Name(), about.ThreadID, about.ID
	notice.Importance, notice.BCC = about.Importance, to
	return b.p.mail.PlanMessage(g, tx, notice, nil)
}
