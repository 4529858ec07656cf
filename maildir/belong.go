package maildir

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// An agent belongs to the machine that made it, which is named in its profile by the id of its key. Where
// machines share the mail of a project, programs act only as agents of their own machine. A person is one
// person on all machines. See docs/sync.md, "Names".

// machine returns the id of this machine.
func (s *Store) machine() string { return format.KeyID(s.key.Public().(ed25519.PublicKey)) }

// machineName returns the name that a machine has published with its key; its id if it has published none.
func (p *Project) machineName(id string) string {
	if !format.ValidID(id) { // somebody has written it by hand
		return format.Printable(format.Cut(id, 64))
	}
	data, _, err := p.Tree.Read(format.MachinePath(id), format.MaxSmall)
	if err != nil {
		return id
	}
	k, _ := keys.Parse(string(data))
	return cmp.Or(k.Name, id)
}

// elsewhere reports whether an agent belongs to another machine.
func (p *Project) elsewhere(a *index.AgentRow) bool {
	return a.Machine != "" && a.Program != personProgram && p.shared.isOn() && a.Machine != p.store.machine()
}

// MachineOf returns the name of the other machine that an agent belongs to. It returns "" for an agent of this
// machine or of none, for a person, and while the mail is not shared.
func (p *Project) MachineOf(a *index.AgentRow) string {
	if !p.elsewhere(a) {
		return ""
	}
	return p.machineName(a.Machine)
}

// act writes an operation of an agent. It returns ErrConflict for an agent of another machine, unless a person
// acts, ErrNotFound if the project is removed meanwhile, and the errors of the writer.
func (p *Project) act(ctx context.Context, tx *writer.Tx) error {
	if err := p.mayAct(ctx, tx.Agent); err != nil {
		return err
	}
	err := p.Writer.Do(ctx, tx)
	if errors.Is(err, writer.ErrStopped) && p.isRemoved() {
		return p.wasRemoved()
	}
	return err
}

// mayAct refuses a program that would act as an agent of another machine.
func (p *Project) mayAct(ctx context.Context, agent string) error {
	if door := format.DoorOf(ctx); door == format.DoorPage || door == format.DoorCLI {
		return nil
	}
	return p.needOurs(ctx, agent)
}

// needOurs refuses an agent that belongs to another machine.
func (p *Project) needOurs(ctx context.Context, agent string) error {
	if !p.shared.isOn() {
		return nil
	}
	row, err := p.store.index.Agent(ctx, p.Slug, agent)
	if err != nil || row == nil || !p.elsewhere(row) {
		return err
	}
	e := &Error{
		What: refusal.Conflict("Agent {other} belongs to the machine {why}, and programs here do not act as it: use an agent of this " +
			"machine. If that machine is gone for good, write {name} for \"machine\" into the agent's profile.json, and it belongs to this one."),
		Name:  p.store.machine(),
		Other: agent,
		Why:   format.Quote(p.machineName(row.Machine)) + ", of the key " + format.Quote(row.Machine),
	}
	switch ours, err := p.renamedHere(ctx, agent); {
	case err != nil:
		return err
	case ours != "":
		e.What = refusal.Conflict("Agent {other} belongs to the machine {why}. The agent of this machine that had the same name is {name} now: " +
			"act as {name}.")
		e.Name = ours
	}
	return e
}

// renamedHere returns the present name of the agent of this machine that had the name of another machine's agent
// while the two had not met, or "".
func (p *Project) renamedHere(ctx context.Context, agent string) (string, error) {
	ours, err := p.store.index.Agent(ctx, p.Slug, besides(agent, p.machineName(p.store.machine())))
	if err != nil || ours == nil || ours.Machine != p.store.machine() {
		return "", err
	}
	return ours.Name, nil
}
