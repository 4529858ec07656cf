package core

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
)

// NeedAgent returns an error if the project has no agent with that name.
func (c *Mail) NeedAgent(ctx context.Context, field refusal.Field, name string) error {
	ok, err := c.HasAgent(ctx, name)
	if err == nil && !ok {
		return c.UnknownAgent(ctx, field, name)
	}
	return err
}

// HasAgent reports whether the project has an agent with exactly that name.
func (c *Mail) HasAgent(ctx context.Context, name string) (bool, error) {
	c.mu.Lock()
	known, left := c.agents[name], c.left
	c.mu.Unlock()
	if known {
		return true, nil
	}
	if !format.ValidName(name) {
		return false, nil
	}
	row, err := c.Store.Index.Agent(ctx, c.Slug, name)
	if err != nil || row == nil {
		return false, err
	}
	c.mu.Lock()
	if c.left == left { // do not cache the name if agents were removed during the query
		c.agents[name] = true
	}
	c.mu.Unlock()
	return true, nil
}

// NameHolder returns the exact spelling of an agent's name, ignoring the case of name. It returns "" if there is no
// such agent.
func (c *Mail) NameHolder(ctx context.Context, name string) (holder string, err error) {
	const spellings = 10 // limit per name, because users may have created folders whose names differ only in case
	names, err := c.Store.Index.Names(ctx, c.Slug, format.KindProfile, name, spellings)
	for _, n := range names {
		if n == name || holder == "" && strings.EqualFold(n, name) {
			holder = n
		}
	}
	return holder, err
}

// AgentNamed finds the agent that a user or model refers to. It ignores case and a leading @. It returns the agent's
// exact name, or name unchanged if the project has no such agent.
func (c *Mail) AgentNamed(ctx context.Context, name string) (string, error) {
	if ok, err := c.HasAgent(ctx, name); err != nil || ok {
		return name, err
	}
	bare := strings.TrimPrefix(name, "@")
	if !format.ValidName(bare) {
		return name, nil
	}
	holder, err := c.NameHolder(ctx, bare)
	return cmp.Or(holder, name), err
}

// NoteSeen records in memory that the agent has just been active. KeepNotes writes the time to disk. NoteSeen ignores
// unknown names.
func (c *Mail) NoteSeen(ctx context.Context, agent string) {
	if ok, err := c.HasAgent(ctx, agent); err != nil || !ok {
		return
	}
	c.mu.Lock()
	c.seen[agent] = &lastSeen{last: c.Store.Now()}
	c.mu.Unlock()
	Ring(c.seenChanged)
}

// lastSeen records when an agent was last active, and whether that time has been written to disk.
type lastSeen struct {
	last    time.Time
	written bool
}

// KeepNotes writes to disk which notices the agents have received and, at most once a second, when each agent was last
// active. When ctx is done, KeepNotes writes any remaining records and returns.
func (c *Mail) KeepNotes(ctx context.Context) {
	sighted := c.seenChanged // nil for one second after each write, to limit the rate of writes
	var rested <-chan time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-c.told:
		case <-sighted:
			c.writeSeen()
			sighted, rested = nil, time.After(time.Second)
		case <-rested:
			sighted = c.seenChanged
		}
		c.Seats.Write()
	}
	c.writeSeen()
	c.Seats.Write()
}

// writeSeen writes to disk the last activity of each agent that has been active since the last call.
func (c *Mail) writeSeen() {
	unwritten := map[string]time.Time{}
	c.mu.Lock()
	for name, s := range c.seen {
		if !s.written {
			unwritten[name] = s.last
			s.written = true
		}
	}
	c.mu.Unlock()
	for name, last := range unwritten {
		if err := c.Tree.Touch(format.SeenDir+"/"+name, last); err != nil && !errors.Is(err, fs.ErrPermission) {
			c.Store.Log.Debug("failed to record an agent's last activity", "project", c.Slug, "agent", name, "error", err)
		}
	}
}

// AddSeen updates a row's LastActive if the server has seen the agent more recently.
func (c *Mail) AddSeen(a *index.AgentRow) {
	c.mu.Lock()
	seen := c.seen[a.Name]
	c.mu.Unlock()
	var last time.Time
	if seen != nil { // the time in the file may be older
		last = seen.last
	} else if st, err := c.Tree.Stat(format.SeenDir + "/" + a.Name); err == nil {
		last = time.Unix(0, st.MTime)
	}
	if last = last.UTC().Truncate(time.Microsecond); last.After(a.LastActive) {
		a.LastActive = last
	}
}

// SanitizeName returns the hint without the characters that are illegal in names. It returns "" if no valid name is
// left.
func SanitizeName(hint string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, hint)
	clean = strings.TrimRight(strings.TrimLeft(format.Cut(clean, 64), "._-"), ".")
	if !format.ValidName(clean) {
		return ""
	}
	return clean
}

// Machine returns the id of this machine.
func (s *Store) Machine() string { return format.KeyID(s.Key.Public().(ed25519.PublicKey)) }

// MachineName returns the name that a machine has published with its key, or the machine's id if it has not published a
// name.
func (c *Mail) MachineName(id string) string {
	if !format.ValidID(id) { // the id may have been written by hand
		return format.Printable(format.Cut(id, 64))
	}
	data, _, err := c.Tree.Read(format.MachinePath(id), format.MaxSmall)
	if err != nil {
		return id
	}
	k, _ := keys.Parse(string(data))
	return cmp.Or(k.Name, id)
}

// Elsewhere reports whether an agent belongs to another machine.
func (c *Mail) Elsewhere(a *index.AgentRow) bool {
	return a.Machine != "" && a.Program != PersonProgram && c.IsShared() && a.Machine != c.Store.Machine()
}

// MachineOf returns the name of the other machine that an agent belongs to. It returns "" for an agent of this
// machine, an agent without a machine, or a user's agent. If the mail is not shared, it always returns "".
func (c *Mail) MachineOf(a *index.AgentRow) string {
	if !c.Elsewhere(a) {
		return ""
	}
	return c.MachineName(a.Machine)
}

// NeedThisMachine returns an error if the agent belongs to another machine.
func (c *Mail) NeedThisMachine(ctx context.Context, agent string) error {
	if !c.IsShared() {
		return nil
	}
	row, err := c.Store.Index.Agent(ctx, c.Slug, agent)
	if err != nil || row == nil || !c.Elsewhere(row) {
		return err
	}
	e := &refusal.Error{
		What: refusal.Conflict("Agent {other} belongs to machine {why}, and programs on this machine cannot act as that " +
			"agent: use an agent on this machine. If that machine is permanently gone, set \"machine\" to {name} in the " +
			"agent's profile.json: the agent then belongs to this machine."),
		Name:  c.Store.Machine(),
		Other: agent,
		Why:   format.Quote(c.MachineName(row.Machine)) + " with the key " + format.Quote(row.Machine),
	}
	switch ours, err := c.RenamedHere(ctx, agent); {
	case err != nil:
		return err
	case ours != "":
		e.What = refusal.Conflict("Agent {other} belongs to machine {why}. The agent on this machine that had the " +
			"same name is now {name}: act as {name}.")
		e.Name = ours
	}
	return e
}

// RenamedHere returns the current name of this machine's agent that had to be renamed because another machine has an
// agent with the same name. It returns "" if there is no such agent.
func (c *Mail) RenamedHere(ctx context.Context, agent string) (string, error) {
	ours, err := c.Store.Index.Agent(ctx, c.Slug, Suffixed(agent, c.MachineName(c.Store.Machine())))
	if err != nil || ours == nil || ours.Machine != c.Store.Machine() {
		return "", err
	}
	return ours.Name, nil
}

// Suffixed returns name and machine, joined with a hyphen, as a valid agent name.
func Suffixed(name, machine string) string {
	machine = cmp.Or(SanitizeName(format.Cut(machine, 24)), "machine")
	return format.Cut(name, 64-1-len(machine)) + "-" + machine
}

// Noticed removes from the cache the names of agents that may no longer exist.
func (c *Mail) Noticed(changes []index.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range changes {
		if change.Agent != "" && change.Op != index.Added {
			delete(c.agents, change.Agent)
			c.left++
		}
	}
}

// SeenHere returns the time when this server last saw each agent, by agent name. It omits agents that have not been
// active since the server started.
func (c *Mail) SeenHere() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]time.Time, len(c.seen))
	for name, s := range c.seen {
		all[name] = s.last
	}
	return all
}
