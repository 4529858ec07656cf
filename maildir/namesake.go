package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/keys"
	"mailtree/maildir/merge"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Two machines may make agents of one name while they are apart. When their mail meets, the agent that was
// made first keeps the name, and the other becomes NAME-machine with its folder and claims. Whichever machine
// meets the other's agent comes to the same names: that of the first agent takes the other's files in under
// the new name; that of the other agent renames its own before it merges, and tells both agents. See
// docs/sync.md, "Names".

// namesakes are two agents that two machines made under one name.
type namesakes struct {
	name         string
	ours, theirs format.Profile
	merged       bool   // the other machine has met ours already
	lost         bool   // theirs keeps the name
	to           string // the name that the other one gets
}

// first and second return the agent that keeps the name, and the other one.
func (n *namesakes) first() *format.Profile {
	if n.lost {
		return &n.theirs
	}
	return &n.ours
}

func (n *namesakes) second() *format.Profile {
	if n.lost {
		return &n.ours
	}
	return &n.theirs
}

// areApart reports whether two profiles of one name are of two agents, and not versions of one. base says
// that the last common commit has a version.
func areApart(a, b *format.Profile, base bool) bool {
	people := a.Program == personProgram && b.Program == personProgram
	handedOver := base && a.Inception.Equal(b.Inception)
	return a.Machine != "" && b.Machine != "" && a.Machine != b.Machine && !people && !handedOver
}

// isAfter reports whether b keeps a name before a: a person before a program, then the agent that was made
// first.
func isAfter(a, b *format.Profile) bool {
	if person := b.Program == personProgram; person != (a.Program == personProgram) {
		return person
	}
	return cmp.Or(a.Inception.Compare(b.Inception), cmp.Compare(a.Machine, b.Machine)) > 0
}

// settleNames finds the agents of a meeting that two machines made under one name. Where ours keeps the name
// it moves their files in m to the new name. Where it does not it renames ours, and returns errFilesMoved. It
// returns the profiles that are taken from theirs, whichever is later.
func (p *Project) settleNames(ctx context.Context, m *history.Meeting) (theirs map[string]bool, err error) {
	found, err := p.namesakes(ctx, m)
	theirs = map[string]bool{}
	renamed := false
	for i := 0; i < len(found) && err == nil; i++ {
		switch n := &found[i]; {
		case n.lost && n.ours.Machine == p.store.machine():
			renamed, err = true, p.rename(ctx, n)
		case n.lost:
			theirs[format.ProfilePath(n.name)] = true
		case !n.merged:
			err = p.moveTheirs(m, n)
		}
	}
	if err == nil && renamed {
		err = errFilesMoved
	}
	return theirs, err
}

// namesakes reads the profiles that differ, and chooses the new names.
func (p *Project) namesakes(ctx context.Context, m *history.Meeting) (all []namesakes, err error) {
	isProfile := func(f merge.File) bool {
		at := format.Locate(f.Path)
		return at.Kind == format.KindProfile && at.Bad == "" && f.Theirs.Mode == merge.Plain
	}
	differs := func(f merge.File) bool { return isProfile(f) && f.Ours.Mode == merge.Plain && f.Ours != f.Theirs }
	if !slices.ContainsFunc(m.Files, differs) {
		return nil, nil
	}
	err = p.History.Blobs(ctx, func(read func(hash string) ([]byte, error)) error {
		profile := func(name string, e merge.Entry) (is format.Profile, err error) {
			data, err := read(e.Hash)
			if err == nil && len(data) <= format.MaxSmall {
				is, _ = format.ParseProfile(name, data)
			}
			return is, err
		}
		there, machines := map[string]format.Profile{}, map[string]string{}
		for _, f := range m.Files {
			name := format.Locate(f.Path).Agent
			if id, is := format.MachineOfKey(f.Path); is && f.Theirs.Mode == merge.Plain {
				data, err := read(f.Theirs.Hash)
				if err != nil {
					return err
				}
				k, _ := keys.Parse(string(data))
				machines[id] = k.Name
			}
			if !isProfile(f) {
				continue
			}
			theirs, err := profile(name, f.Theirs)
			if err != nil {
				return err
			}
			if there[name] = theirs; !differs(f) {
				continue
			}
			ours, err := profile(name, f.Ours)
			if err != nil {
				return err
			}
			if areApart(&ours, &theirs, f.Base.Mode != 0) {
				all = append(all, namesakes{name: name, ours: ours, theirs: theirs, merged: f.Ours == f.Base, lost: isAfter(&ours, &theirs)})
			}
		}
		for i := range all {
			n := &all[i]
			machine := cmp.Or(machines[n.second().Machine], p.machineName(n.second().Machine))
			if n.to, err = p.newName(ctx, n, machine, there); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// newName chooses the name of the agent that does not keep its own. there are the profiles of the other side.
func (p *Project) newName(ctx context.Context, n *namesakes, machine string, there map[string]format.Profile) (string, error) {
	is := func(a *format.Profile) bool {
		return a.Machine == n.second().Machine && a.Inception.Equal(n.second().Inception)
	}
	for name, a := range there { // the other machine has chosen already
		if name != n.name && is(&a) {
			return name, nil
		}
	}
	for _, beside := range []string{machine, format.Cut(machine, 16) + "-" + format.Cut(n.second().Machine, 6)} {
		to := besides(n.name, beside)
		holder, err := p.nameHolder(ctx, to)
		if err != nil {
			return "", err
		}
		if _, taken := there[to]; holder == "" && !taken {
			return to, nil
		}
		row, err := p.store.index.Agent(ctx, p.Slug, to)
		if err != nil || row != nil && is(&row.Profile) { // an earlier round was interrupted
			return to, err
		}
	}
	return besides(n.name, n.second().Machine), nil
}

// besides returns NAME-machine, made valid.
func besides(name, machine string) string {
	machine = cmp.Or(sanitizeName(format.Cut(machine, 24)), "machine")
	return format.Cut(name, 64-1-len(machine)) + "-" + machine
}

// moveTheirs moves what theirs changed in the folder of an agent that does not keep its name.
func (p *Project) moveTheirs(m *history.Meeting, n *namesakes) error {
	for i := range m.Files {
		f := &m.Files[i]
		to, in := movedTo(f.Path, n)
		if !in || f.Theirs.Mode == 0 || f.Theirs == f.Base {
			continue
		}
		hash, err := p.blobAt(to) // of an earlier round that was interrupted
		if err != nil {
			return err
		}
		ours := merge.Entry{}
		if hash != "" {
			ours = merge.Entry{Mode: merge.Plain, Hash: hash}
		}
		*f = merge.File{Path: to, Base: ours, Ours: ours, Theirs: f.Theirs}
	}
	return nil
}

// movedTo returns the path of an agent's file under the new name. in reports whether the file is the agent's.
func movedTo(path string, n *namesakes) (to string, in bool) {
	rest, in := strings.CutPrefix(path, format.AgentsDir+"/"+n.name+"/")
	return format.AgentsDir + "/" + n.to + "/" + rest, in
}

// rename gives an agent of this machine its new name. It does so in several operations if the mailbox is
// large; the profile goes last, so that the next round finishes what was interrupted.
func (p *Project) rename(ctx context.Context, n *namesakes) error {
	if err := p.makeSecond(ctx, n); err != nil {
		return err
	}
	for last := false; !last; {
		if err := p.Writer.Do(ctx, p.moveOurs(n, &last)); err != nil {
			return err
		}
	}
	p.store.feed.ringAgent(p.Slug, n.name)
	return p.store.owners.set(p.Slug+"/"+n.name, NoOwner)
}

// makeSecond creates the agent of the new name, which has the owner, the hooks, the trusted senders and the
// sessions of the old.
func (p *Project) makeSecond(ctx context.Context, n *namesakes) error {
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: n.to, Summary: n.to + " from " + n.name}, Facts: []string{nameFact(n.to)}}
	tx.Plan = func(*writer.Group) error {
		if there, err := p.Tree.Exists(format.ProfilePath(n.to)); there || err != nil {
			return err
		}
		uid, owned := owners[p.Slug+"/"+n.name]
		if !owned {
			uid = NoOwner
		}
		data, _, err := p.Tree.Read(format.ProfilePath(n.name), format.MaxSmall)
		if err == nil {
			err = p.give(n.to, uid)
		}
		tx.Create(format.ProfilePath(n.to), data)
		return err
	}
	if err := p.Writer.Do(ctx, tx); err != nil {
		return err
	}
	p.seats.Rename(n.name, n.to)
	trusts, err := p.store.trusted.of(p.Slug, n.name)
	if err == nil && len(trusts) > 0 {
		err = errors.Join(p.store.trusted.edit(p.Slug, n.to, func([]string) ([]string, error) { return trusts, nil }),
			p.store.trusted.drop(p.Slug, n.name))
	}
	return errors.Join(err, p.store.hooks.Move(p.Slug, n.name, n.to, p.store.clock.Time()))
}

// moveOurs returns the operation that moves files of an agent to its new name. The last one, which it reports,
// moves the claims, removes the old profile and tells both agents.
func (p *Project) moveOurs(n *namesakes, last *bool) *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: n.to}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		tx.Summary = n.to + " from " + n.name
		bytes := 0
		var unsent []string
		err := p.Tree.Walk(g.Ctx, format.AgentsDir+"/"+n.name, func(path string, d fs.DirEntry) error {
			at := format.Locate(path)
			switch to, _ := movedTo(path, n); {
			case len(tx.Writes) >= 2*syncFiles || bytes >= syncBytes:
				return errEnough
			case !d.Type().IsRegular() || at.Kind == format.KindIgnored || at.Kind == format.KindProfile:
				return nil
			default:
				if at.Kind == format.KindOutbox && !format.IsSentCopy(path) {
					unsent = append(unsent, to)
				}
				size, err := p.planMove(g, tx, path, to)
				bytes += size
				return err
			}
		})
		tx.After = func() {
			for _, path := range unsent {
				p.waitFor(path, time.Now().Add(settleTime))
			}
		}
		*last = err == nil
		switch {
		case *last:
			return p.planRenamed(g, tx, n)
		case errors.Is(err, errEnough):
			return nil
		}
		return err
	}
	return tx
}

// planMove plans to move a file. It leaves a file that is too large for the mail where it is.
func (p *Project) planMove(g *writer.Group, tx *writer.Tx, from, to string) (size int, err error) {
	data, _, err := p.Tree.Read(from, int64(p.mostTheirs(from)))
	switch tree.FaultOf(err) {
	case tree.NoFault:
	case tree.FaultMachine:
		return 0, err
	default:
		return 0, nil
	}
	taken, err := g.Take(tx, from, tree.SHA256(data))
	if err == nil && !taken {
		err = g.Behind(from)
	}
	tx.Create(to, data)
	return len(data), err
}

// planRenamed plans the end of a renaming.
func (p *Project) planRenamed(g *writer.Group, tx *writer.Tx, n *namesakes) error {
	held, err := p.claimsOf(g.Ctx, n.name)
	if err == nil {
		err = p.planRelease(g, tx, slices.Clone(held), format.FormatMark(g.Now))
	}
	for _, c := range held {
		c.Agent, c.Path = n.to, format.ClaimPath(c.Pattern, n.to, "")
		err = cmp.Or(err, p.planClaim(g, tx, c))
	}
	if err == nil {
		err = g.Remove(tx, format.ProfilePath(n.name))
	}
	if err != nil {
		return err
	}
	first, second := p.machineName(n.first().Machine), p.machineName(n.second().Machine)
	err = p.planMessage(g, tx, &format.Message{
		Project:    p.name(),
		From:       format.Postmaster,
		To:         []string{n.name, n.to},
		Subject:    fmt.Sprintf("Two agents were called %s: that of %s is %s now", n.name, second, n.to),
		Importance: format.Normal,
		Origin:     format.Origin{Auth: "uid:" + strconv.Itoa(p.store.cfg.User())},
		Body: fmt.Sprintf("The machines %s and %s had each made an agent %s before their mail met. That of %s was made first and keeps the name. "+
			"That of %s is called %s now, and has its mail and its claims with it.\n\nMessages of before stand under the old name: look "+
			"which of the two is meant, and address answers to %s or %s yourself.\n", first, second, n.name, first, second, n.to, n.name, n.to),
	}, nil)
	tx.ID, tx.Summary = "", n.to+" from "+n.name
	return err
}
