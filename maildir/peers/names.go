package peers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/keys"
	"mailtree/maildir/merge"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// namesakes are two agents that two machines made under one name.
type namesakes struct {
	name         string
	ours, theirs format.Profile
	lost         bool   // theirs keeps the name
	to           string // the name that the other one gets
	moved        bool   // both sides have renamed it since the last common commit
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

// versions are the profiles of a name in the commits of a meeting; one that is missing has no Name.
type versions struct{ base, ours, theirs format.Profile }

// isSame reports whether two profiles, of whichever names, are of one agent.
func isSame(a, b *format.Profile) bool {
	return a.Machine != "" && a.Machine == b.Machine && a.Inception.Equal(b.Inception)
}

// areApart reports whether the two sides have two agents under the name, and not versions of one.
func (v *versions) areApart() bool {
	people := v.ours.Program == core.PersonProgram && v.theirs.Program == core.PersonProgram
	handedOver := v.base.Name != "" && v.ours.Inception.Equal(v.theirs.Inception)
	return v.ours.Machine != "" && v.theirs.Machine != "" && v.ours.Machine != v.theirs.Machine && !people && !handedOver
}

// isAfter reports whether b keeps a name before a: a person before a program, then the agent that was made
// first.
func isAfter(a, b *format.Profile) bool {
	if person := b.Program == core.PersonProgram; person != (a.Program == core.PersonProgram) {
		return person
	}
	return cmp.Or(a.Inception.Compare(b.Inception), cmp.Compare(a.Machine, b.Machine)) > 0
}

// settleNames finds the agents of a meeting that two machines made under one name. Where ours keeps the name
// it moves their files in m to the new name. Where it does not it renames ours, and returns errFilesMoved. It
// returns the profiles that are taken from theirs, whichever is later.
func (sy *Sync) settleNames(ctx context.Context, m *history.Meeting) (theirs map[string]bool, err error) {
	found, err := sy.namesakes(ctx, m)
	theirs = map[string]bool{}
	renamed := false
	for i := 0; i < len(found) && err == nil; i++ {
		switch n := &found[i]; {
		case n.lost && n.ours.Machine == sy.mail.Store.Machine():
			renamed, err = true, sy.rename(ctx, m, n)
		case n.lost:
			theirs[format.ProfilePath(n.name)] = true
		default:
			err = sy.moveFiles(m, n)
		}
	}
	if err == nil && renamed {
		err = errFilesMoved
	}
	return theirs, err
}

// namesakes reads the profiles of the folders that theirs changed, and chooses the new names.
func (sy *Sync) namesakes(ctx context.Context, m *history.Meeting) (all []namesakes, err error) {
	seen, machines := map[string]*versions{}, map[string]string{}
	err = sy.mail.History.Blobs(ctx, func(read func(name string) ([]byte, error)) error {
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
			if seen[name] != nil || format.CheckName(name) != "" {
				continue
			}
			v := &versions{}
			seen[name] = v
			for i, commit := range []string{m.Base, m.Ours, m.Theirs} {
				data, err := read(commit + ":" + format.ProfilePath(name))
				if err != nil && !errors.Is(err, history.ErrNoFile) {
					return err
				}
				if err == nil && len(data) <= format.MaxSmall {
					*[]*format.Profile{&v.base, &v.ours, &v.theirs}[i], _ = format.ParseProfile(name, data)
				}
			}
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		v := seen[name]
		n := namesakes{name: name, ours: v.ours, theirs: v.theirs, lost: isAfter(&v.ours, &v.theirs)}
		switch {
		case v.areApart() && !isSame(&v.base, n.first()): // else somebody has put the second in the place of the first
			all = append(all, n)
		case v.base.Name == "" && isSame(&v.ours, &v.theirs):
			for was, w := range seen {
				if isSame(&w.base, &v.theirs) && !isSame(&w.theirs, &v.theirs) {
					all = append(all, namesakes{name: was, to: name, moved: true})
				}
			}
		}
	}
	for i := 0; i < len(all) && err == nil; i++ {
		if n := &all[i]; !n.moved {
			machine := cmp.Or(machines[n.second().Machine], sy.mail.MachineName(n.second().Machine))
			n.to, err = sy.newName(ctx, n, machine, seen)
		}
	}
	return all, err
}

// newName chooses the name of the agent that does not keep its own, and notes in seen that it is taken.
func (sy *Sync) newName(ctx context.Context, n *namesakes, machine string, seen map[string]*versions) (string, error) {
	for name, v := range seen {
		if name != n.name && isSame(&v.theirs, n.second()) { // the other machine has chosen already
			return name, nil
		}
	}
	rows, err := sy.mail.Store.Index.Agents(ctx, sy.mail.Slug)
	for i := range rows {
		if rows[i].Name != n.name && isSame(&rows[i].Profile, n.second()) { // this one has, in an earlier round
			return rows[i].Name, nil
		}
	}
	to := core.Besides(n.name, machine)
	for i := 2; err == nil; i++ {
		var holder string
		if holder, err = sy.mail.NameHolder(ctx, to); err == nil && holder == "" && seen[to] == nil {
			seen[to] = &versions{theirs: *n.second()}
			return to, nil
		}
		to = core.Besides(n.name, format.Cut(machine, 20)+"-"+strconv.Itoa(i))
	}
	return "", err
}

// moveFiles puts into m under the new name what the second agent had under the old one: in the last common
// commit, and in theirs if that has not renamed it.
func (sy *Sync) moveFiles(m *history.Meeting, n *namesakes) error {
	at := map[string]int{}
	for i, f := range m.Files {
		at[f.Path] = i
	}
	for i, f := range m.Files {
		to, in := movedTo(f.Path, n)
		if !in || !merge.Crosses(f.Path) {
			continue
		}
		if known, there := at[to]; there && n.moved {
			m.Files[i].Base, m.Files[known].Base = merge.Entry{}, f.Base
			continue
		}
		hash, err := sy.blobAt(to)
		if err != nil {
			return err
		}
		is := merge.File{Path: to, Base: f.Base, Theirs: f.Theirs}
		if hash != "" {
			is.Ours = merge.Entry{Mode: merge.Plain, Hash: hash}
		}
		switch {
		case n.moved:
			is.Theirs = merge.Entry{}
			m.Files[i].Base = merge.Entry{}
			m.Files = append(m.Files, is)
			continue
		case f.Base.Mode == 0: // what lies there is of an earlier round that was interrupted
			is.Base = is.Ours
		}
		m.Files[i] = is
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
func (sy *Sync) rename(ctx context.Context, m *history.Meeting, n *namesakes) error {
	if err := sy.makeSecond(ctx, n); err != nil {
		return err
	}
	for last := false; !last; {
		if err := sy.mail.Writer.Do(ctx, sy.moveOurs(n, m.Theirs, &last)); err != nil {
			return err
		}
	}
	sy.mail.Store.Feed.RingAgent(sy.mail.Slug, n.name)
	return sy.mail.Store.Owners.Set(sy.mail.Slug+"/"+n.name, core.NoOwner)
}

// makeSecond creates the agent of the new name, which has the owner, the hooks, the trusted senders and the
// sessions of the old.
func (sy *Sync) makeSecond(ctx context.Context, n *namesakes) error {
	owners, err := sy.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: n.to, Summary: n.to + " from " + n.name}, Facts: []string{core.NameFact(n.to)}}
	tx.Plan = func(*writer.Group) error {
		if there, err := sy.mail.Tree.Exists(format.ProfilePath(n.to)); there || err != nil {
			return err
		}
		uid, owned := owners[sy.mail.Slug+"/"+n.name]
		if !owned {
			uid = core.NoOwner
		}
		data, _, err := sy.mail.Tree.Read(format.ProfilePath(n.name), format.MaxSmall)
		if err == nil {
			err = sy.mail.GiveOwner(n.to, uid)
		}
		tx.Create(format.ProfilePath(n.to), data)
		return err
	}
	if err := sy.mail.Writer.Do(ctx, tx); err != nil {
		return err
	}
	sy.mail.Seats.Rename(n.name, n.to)
	trusts, err := sy.mail.Store.Trusted.Of(sy.mail.Slug, n.name)
	if err == nil && len(trusts) > 0 {
		err = errors.Join(sy.mail.Store.Trusted.Edit(sy.mail.Slug, n.to, func([]string) ([]string, error) { return trusts, nil }),
			sy.mail.Store.Trusted.Drop(sy.mail.Slug, n.name))
	}
	return errors.Join(err, sy.mail.Store.Hooks.Move(sy.mail.Slug, n.name, n.to, sy.mail.Store.Clock.Time()))
}

// moveOurs returns the operation that moves files of an agent to its new name. The last one, which it reports,
// moves the claims, removes the old profile and tells both agents. theirs is the commit of the other side.
func (sy *Sync) moveOurs(n *namesakes, theirs string, last *bool) *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: n.to}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		tx.Summary = n.to + " from " + n.name
		bytes := 0
		var unsent []string
		err := sy.mail.History.Blobs(g.Ctx, func(read func(name string) ([]byte, error)) error {
			first := func(path string) ([]byte, error) { return read(theirs + ":" + path) }
			return sy.mail.Tree.Walk(g.Ctx, format.AgentsDir+"/"+n.name, func(path string, d fs.DirEntry) error {
				at := format.Locate(path)
				switch to, _ := movedTo(path, n); {
				case len(tx.Writes) >= 2*syncFiles || bytes >= syncBytes:
					return fs.SkipAll
				case !d.Type().IsRegular() || at.Kind == format.KindIgnored || at.Kind == format.KindProfile:
					return nil
				default:
					if at.Kind == format.KindOutbox && !format.IsSentCopy(path) {
						unsent = append(unsent, to)
					}
					size, err := sy.planMove(g, tx, first, path, to)
					bytes += size
					return err
				}
			})
		})
		tx.After = func() {
			for _, path := range unsent {
				sy.saved(path)
			}
		}
		*last = err == nil
		switch {
		case *last:
			return sy.planRenamed(g, tx, n)
		case errors.Is(err, fs.SkipAll):
			return nil
		}
		return err
	}
	return tx
}

// planMove plans to move a file. It leaves a file that is too large for the mail where it is, and copies one that
// the first agent has as well.
func (sy *Sync) planMove(g *writer.Group, tx *writer.Tx, first func(path string) ([]byte, error), from, to string) (size int, err error) {
	data, _, err := sy.mail.Tree.Read(from, int64(sy.mostTheirs(from)))
	switch tree.FaultOf(err) {
	case tree.NoFault:
	case tree.FaultMachine:
		return 0, err
	default:
		return 0, nil
	}
	switch theirs, err := first(from); {
	case err != nil && !errors.Is(err, history.ErrNoFile):
		return 0, err
	case err == nil && bytes.Equal(theirs, data):
		if there, err := sy.mail.Tree.Exists(to); there || err != nil {
			return 0, err
		}
	default:
		if taken, err := g.Take(tx, from, tree.SHA256(data)); err != nil {
			return 0, err
		} else if !taken {
			return 0, g.Behind(from)
		}
	}
	tx.Create(to, data)
	return len(data), nil
}

// planRenamed plans the end of a renaming.
func (sy *Sync) planRenamed(g *writer.Group, tx *writer.Tx, n *namesakes) error {
	held, err := sy.claims.Of(g.Ctx, n.name)
	if err == nil {
		err = sy.claims.PlanRelease(g, tx, slices.Clone(held), format.FormatMark(g.Now))
	}
	for _, c := range held {
		c.Agent, c.Path = n.to, format.ClaimPath(c.Pattern, n.to, "")
		err = cmp.Or(err, sy.claims.Plan(g, tx, c))
	}
	if err == nil {
		err = g.Remove(tx, format.ProfilePath(n.name))
	}
	if err != nil {
		return err
	}
	first, second := sy.mail.MachineName(n.first().Machine), sy.mail.MachineName(n.second().Machine)
	err = sy.mail.PlanMessage(g, tx, &format.Message{
		Project:    sy.mail.Name(),
		From:       format.Postmaster,
		To:         []string{n.name, n.to},
		Subject:    fmt.Sprintf("Two agents were called %s: that of %s is %s now", n.name, second, n.to),
		Importance: format.Normal,
		Origin:     format.Origin{Auth: "uid:" + strconv.Itoa(sy.mail.Store.User())},
		Body: fmt.Sprintf("The machines %s and %s had each made an agent %s before their mail met. That of %s keeps the name. "+
			"That of %s is called %s now, and has its mail and its claims with it.\n\nMessages of before stand under the old name: look "+
			"which of the two is meant, and address answers to %s or %s yourself.\n", first, second, n.name, first, second, n.to, n.name, n.to),
	}, nil)
	tx.ID, tx.Summary = "", n.to+" from "+n.name
	return err
}
