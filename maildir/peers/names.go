package peers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/keys"
	"mailtree/maildir/merge"
	"mailtree/maildir/namesake"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// settleNames finds the names under which the two sides have different agents. If our agent keeps the name,
// settleNames changes m so that the other agent's files get the new name. Otherwise, it renames our agent and sets
// renamed. In that case, m is out of date. named contains the profiles for which the other side wins, regardless of
// which profile is later.
func (sy *Sync) settleNames(ctx context.Context, m *history.MergeInput) (named map[string]bool, renamed bool, err error) {
	pairs, err := sy.findNamesakes(ctx, m)
	if err != nil {
		return nil, false, fmt.Errorf("cannot compare the agents on this and the other machines: %w", err)
	}
	named = map[string]bool{}
	for i := range pairs {
		switch p := &pairs[i]; {
		case p.Lost && p.Ours.Machine == sy.mail.Store.Machine():
			if err := sy.rename(ctx, m, p); err != nil {
				return nil, false, fmt.Errorf("cannot rename agent %s to %s: %w", p.Name, p.To, err)
			}
			renamed = true
		case p.Lost:
			named[format.ProfilePath(p.Name)] = true
		default:
			if m.Files, err = p.MoveFiles(m.Files, sy.entryAt); err != nil {
				return nil, false, err
			}
		}
	}
	return named, renamed, nil
}

// entryAt returns the file at path as a commit would record it.
func (sy *Sync) entryAt(path string) (merge.Entry, error) {
	hash, err := sy.blobAt(path)
	if err != nil || hash == "" {
		return merge.Entry{}, err
	}
	return merge.Entry{Mode: merge.Plain, Hash: hash}, nil
}

// findNamesakes returns the agents with the same name, as found by namesake.Find. It reads the profiles in the folders
// that the other side changed, and the names of machines that are new on that side.
func (sy *Sync) findNamesakes(ctx context.Context, m *history.MergeInput) ([]namesake.Pair, error) {
	profiles, machines := map[string]*namesake.Versions{}, map[string]string{}
	err := sy.mail.History.Blobs(ctx, func(read func(name string) ([]byte, error)) error {
		for _, f := range m.Files {
			if id, is := format.MachineOfKey(f.Path); is && f.Theirs.Mode == merge.Plain {
				data, err := read(f.Theirs.Hash)
				if err != nil {
					return err
				}
				k, _ := keys.Parse(string(data))
				machines[id] = k.Name
			}
			name := format.Locate(f.Path).Agent
			if profiles[name] != nil || format.CheckName(name) != "" {
				continue
			}
			v := &namesake.Versions{}
			profiles[name] = v
			for _, side := range []struct {
				commit string
				is     *format.Profile
			}{{m.Base, &v.Base}, {m.Ours, &v.Ours}, {m.Theirs, &v.Theirs}} {
				data, err := read(side.commit + ":" + format.ProfilePath(name))
				if err != nil && !errors.Is(err, history.ErrNoFile) {
					return err
				}
				if err == nil && len(data) <= format.MaxSmall {
					*side.is, _ = format.ParseProfile(name, data)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err := sy.mail.Store.Index.Agents(ctx, sy.mail.Slug)
	if err != nil {
		return nil, err
	}
	here := namesake.Here{
		Machine: func(id string) string { return cmp.Or(machines[id], sy.mail.MachineName(id)) },
		Taken: func(name string) (bool, error) {
			holder, err := sy.mail.NameHolder(ctx, name)
			return holder != "", err
		},
	}
	for i := range rows {
		here.Agents = append(here.Agents, rows[i].Profile)
	}
	return namesake.Find(profiles, here)
}

// rename gives one of this machine's agents its new name. If the mailbox is large, it uses several operations. The
// profile is moved last, so that the next round can complete an interrupted rename.
func (sy *Sync) rename(ctx context.Context, m *history.MergeInput, p *namesake.Pair) error {
	if err := sy.makeSecond(ctx, p); err != nil {
		return err
	}
	for last := false; !last; {
		if err := sy.mail.Writer.Do(ctx, sy.moveOurs(p, m.Theirs, &last)); err != nil {
			return err
		}
	}
	sy.mail.Store.Feed.RingAgent(sy.mail.Slug, p.Name)
	return sy.mail.Store.Owners.Set(sy.mail.Slug+"/"+p.Name, core.NoOwner)
}

// makeSecond creates the agent with the new name. The new agent gets the old agent's owner, hooks, trusted senders and
// sessions.
func (sy *Sync) makeSecond(ctx context.Context, p *namesake.Pair) error {
	owners, err := sy.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: p.To, Summary: p.To + " from " + p.Name}, Facts: []string{core.NameFact(p.To)}}
	tx.Plan = func(*writer.Group) error {
		if there, err := sy.mail.Tree.Exists(format.ProfilePath(p.To)); there || err != nil {
			return err
		}
		uid, owned := owners[sy.mail.Slug+"/"+p.Name]
		if !owned {
			uid = core.NoOwner
		}
		data, _, err := sy.mail.Tree.Read(format.ProfilePath(p.Name), format.MaxSmall)
		if err == nil {
			err = sy.mail.SetOwner(p.To, uid)
		}
		tx.Create(format.ProfilePath(p.To), data)
		return err
	}
	if err := sy.mail.Writer.Do(ctx, tx); err != nil {
		return err
	}
	sy.mail.Seats.Rename(p.Name, p.To)
	trusts, err := sy.mail.Store.Trusted.Of(sy.mail.Slug, p.Name)
	if err == nil && len(trusts) > 0 {
		err = errors.Join(sy.mail.Store.Trusted.Edit(sy.mail.Slug, p.To, func([]string) ([]string, error) { return trusts, nil }),
			sy.mail.Store.Trusted.Drop(sy.mail.Slug, p.Name))
	}
	return errors.Join(err, sy.mail.Store.Hooks.Move(sy.mail.Slug, p.Name, p.To, sy.mail.Store.Clock.Time()))
}

// moveOurs returns an operation that moves an agent's files to the new name. The last such operation also moves the
// claims, removes the old profile, notifies both agents, and sets last. The argument theirs is the other side's
// commit.
func (sy *Sync) moveOurs(p *namesake.Pair, theirs string, last *bool) *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "rename", Agent: p.To}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		tx.Summary = p.To + " from " + p.Name
		bytes := 0
		var unsent []string
		err := sy.mail.History.Blobs(g.Ctx, func(read func(name string) ([]byte, error)) error {
			first := func(path string) ([]byte, error) { return read(theirs + ":" + path) }
			return sy.mail.Tree.Walk(g.Ctx, format.AgentsDir+"/"+p.Name, func(path string, d fs.DirEntry) error {
				at := format.Locate(path)
				switch to, _ := p.Path(path); {
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
			return sy.planRenamed(g, tx, p)
		case errors.Is(err, fs.SkipAll):
			return nil
		}
		return err
	}
	return tx
}

// planMove plans to move a file. If the first agent also has the file, planMove copies it instead. It does not move
// files that exceed the size limit for synchronized files.
func (sy *Sync) planMove(g *writer.Group, tx *writer.Tx, first func(path string) ([]byte, error), from, to string) (size int, err error) {
	data, _, err := sy.mail.Tree.Read(from, int64(sy.maxRemoteSize(from)))
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

// planRenamed plans the last step of a rename.
func (sy *Sync) planRenamed(g *writer.Group, tx *writer.Tx, p *namesake.Pair) error {
	held, err := sy.claims.Of(g.Ctx, p.Name)
	if err == nil {
		err = sy.claims.PlanRelease(g, tx, slices.Clone(held), format.FormatMark(g.Now))
	}
	for _, c := range held {
		c.Agent, c.Path = p.To, format.ClaimPath(c.Pattern, p.To, "")
		err = cmp.Or(err, sy.claims.Plan(g, tx, c))
	}
	if err == nil {
		err = g.Remove(tx, format.ProfilePath(p.Name))
	}
	if err != nil {
		return err
	}
	first, second := sy.mail.MachineName(p.First().Machine), sy.mail.MachineName(p.Second().Machine)
	err = sy.mail.PlanNotice(g, tx, &format.Message{
		To:      []string{p.Name, p.To},
		Subject: fmt.Sprintf("Two agents were called %s: the agent on %s is now %s", p.Name, second, p.To),
		Body: fmt.Sprintf("The machines %s and %s had each created an agent %s before they first synchronized "+
			"their mail. The agent on %s keeps the name. The agent on %s is now called %s, and keeps its mail and "+
			"its claims.\n\nEarlier messages still show the old name: check which of the two agents is meant, and "+
			"address your replies to %s or %s.\n", first, second, p.Name, first, second, p.To, p.Name, p.To),
	})
	tx.ID, tx.Summary = "", p.To+" from "+p.Name
	return err
}
