package peers

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/keys"
	"mailtree/maildir/merge"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// publishMachine writes this machine's public key into the tree if the key is missing. It also writes the highest
// format that this machine supports, unless the tree already states that format. The machine is named after its host.
// If another machine has that name, a part of the key's id is added. Other machines accept the key once a user there
// trusts it. publishMachine returns any error from the writer.
func (sy *Sync) publishMachine(ctx context.Context) error {
	id := sy.mail.Store.Machine()
	known, err := sy.mail.Tree.Exists(format.MachinePath(id))
	if err != nil {
		return err
	}
	highest, err := projectformat.Published(sy.mail.Tree, id)
	if err != nil || known && highest == sy.mail.Store.Format {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "sync", Summary: fmt.Sprintf("this machine supports format %d", sy.mail.Store.Format)}}
	key := ""
	if !known {
		k, err := sy.ownKey()
		if err != nil {
			return err
		}
		key, tx.Summary = k.String()+"\n", "the public key of this machine, "+k.Name
	}
	tx.Plan = func(g *writer.Group) error {
		if key != "" {
			tx.Create(format.MachinePath(id), []byte(key))
		}
		return g.Replace(tx, format.MachineFormatPath(id), format.FormatMachineFormat(sy.mail.Store.Format))
	}
	return sy.mail.Writer.Do(ctx, tx)
}

// ownKey returns this machine's public key with the machine's name.
func (sy *Sync) ownKey() (k keys.Key, err error) {
	others, err := keys.Published(sy.mail.Tree)
	if err != nil {
		return k, err
	}
	k.Public = sy.mail.Store.Key.Public().(ed25519.PublicKey)
	if k.Name, err = os.Hostname(); err == nil {
		_, err = keys.Parse(k.String())
	}
	if err != nil {
		k.Name = "machine"
	}
	if slices.ContainsFunc(others, func(o keys.Key) bool { return o.Name == k.Name }) {
		k.Name += "-" + sy.mail.Store.Machine()[:6]
	}
	return k, nil
}

// checkFormat refuses a merge if the shared branch has a format that this machine does not support. See
// projectformat.Refuse. Until a later call returns nil, the shared list of claims is not used either. checkFormat
// returns any error from the history.
func (sy *Sync) checkFormat(ctx context.Context, m *history.MergeInput) error {
	var refused error
	if m.Behind > 0 {
		n, bad, err := sy.formatIn(ctx, m.Theirs)
		if err != nil {
			return err
		}
		refused = projectformat.Refuse(n, bad, sy.mail.Name(), sy.mail.Store.Format)
	}
	sy.mu.Lock()
	defer sy.mu.Unlock()
	sy.newer = refused
	return refused
}

// formatIn returns the result of format.ProjectFormat for project.json in a commit, and any error from the history.
func (sy *Sync) formatIn(ctx context.Context, commit string) (n int, bad, err error) {
	n = 1
	err = sy.mail.History.Blobs(ctx, func(read func(name string) ([]byte, error)) error {
		data, err := read(commit + ":" + format.ProjectFile)
		if errors.Is(err, history.ErrNoFile) {
			return nil
		}
		if err == nil {
			n, bad = format.ProjectFormat(data)
		}
		return err
	})
	return n, bad, err
}

// raisedBy reports which side of a merge, if any, has the higher format in project.json. The merge then keeps that
// side's file, even if the other side's file is newer, because a merge must not lower the format.
func (sy *Sync) raisedBy(ctx context.Context, m *history.MergeInput) (ours, theirs bool, err error) {
	isProject := func(f merge.File) bool { return f.Path == format.ProjectFile }
	if !slices.ContainsFunc(m.Files, isProject) {
		return false, false, nil
	}
	here, _, err := sy.formatIn(ctx, m.Ours)
	if err != nil {
		return false, false, err
	}
	there, _, err := sy.formatIn(ctx, m.Theirs)
	return here > there, there > here, err
}

// refusedFormat returns the last refusal from checkFormat, or nil if there is none.
func (sy *Sync) refusedFormat() error {
	sy.mu.Lock()
	defer sy.mu.Unlock()
	return sy.newer
}

// RaiseFormat raises the project's format to the highest format that this machine supports. It returns the format
// before and after. If the mail is shared, RaiseFormat first synchronizes the mail, and then pushes the new format. It
// returns ErrConflict if a machine in the project supports only lower formats or if project.json is invalid, and any
// error from Now or the writer.
func (sy *Sync) RaiseFormat(ctx context.Context) (was, now int, err error) {
	if sy.mail.IsShared() {
		if _, err := sy.Now(ctx); err != nil {
			return 0, 0, err
		}
	}
	now = sy.mail.Store.Format
	tx := &writer.Tx{Op: writer.Op{Verb: "format", Summary: fmt.Sprintf("the project has format %d", now)}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		data, _, err := sy.mail.Tree.Read(format.ProjectFile, format.MaxSmall)
		if err == nil {
			_, _, err = format.ParseProject(data)
		}
		if err != nil {
			return sy.invalidProject(err)
		}
		if was, err = format.ProjectFormat(data); err != nil || was >= now {
			return err
		}
		if err := sy.refuseOlder(was, now); err != nil {
			return err
		}
		raised, err := format.WithFormat(data, now)
		if err != nil || bytes.Equal(raised, data) {
			return err
		}
		return g.Replace(tx, format.ProjectFile, raised)
	}
	if err := sy.mail.Act(ctx, tx); err != nil || was >= now || !sy.mail.IsShared() {
		return was, now, err
	}
	_, err = sy.Now(ctx)
	return was, now, err
}

// invalidProject returns the refusal to raise a project's format because project.json cannot be used. err is the error
// from reading project.json. If err is a machine fault, invalidProject returns err itself.
func (sy *Sync) invalidProject(err error) error {
	if tree.FaultOf(err) == tree.FaultMachine {
		return err
	}
	return &refusal.Error{
		What:  refusal.Conflict("The format cannot be upgraded, because {=other} is missing or invalid: {why}. Fix that file first."),
		Other: format.ProjectFile,
		Why:   tree.PlainFileError(err),
		Err:   err,
	}
}

// refuseOlder returns a refusal if another machine in the project does not support the format given by to. This machine
// is not checked, because the running program supports that format, even if an older version published a lower one.
func (sy *Sync) refuseOlder(was, to int) error {
	all, err := projectformat.Machines(sy.mail.Tree)
	if err != nil {
		return err
	}
	var older, files []string
	for _, m := range all {
		if m.Format < to && m.ID != sy.mail.Store.Machine() {
			older = append(older, fmt.Sprintf("%s with the key %s (up to format %d)", format.Quote(m.Name), format.Quote(m.ID), m.Format))
			files = append(files, format.MachinePath(m.ID))
		}
	}
	if len(older) == 0 {
		return nil
	}
	return &refusal.Error{
		What: refusal.Conflict("Project {=name} stays at format {count}, because a machine in the project does not support " +
			"format {count 2}: {why}. Upgrade mailtree there and let that machine synchronize its mail. If the machine is " +
			"retired, delete its key from the mail folder: {=other}."),
		Name:   sy.mail.Name(),
		Counts: []int{was, to},
		Why:    strings.Join(older, ", "),
		Other:  strings.Join(files, ", "),
	}
}
