package agents

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Agents registers and lists the agents of a project. It is safe for concurrent use.
type Agents struct {
	mail   *core.Mail
	claims *claims.Claims
}

// New returns the agents of a project.
func New(mail *core.Mail, claims *claims.Claims) *Agents { return &Agents{mail, claims} }

// Named returns the exact name of the agent that the argument typed refers to. See core.Mail.AgentNamed.
func (ag *Agents) Named(ctx context.Context, typed string) (string, error) {
	return ag.mail.AgentNamed(ctx, typed)
}

// Registration is a request for a new agent.
type Registration struct {
	Program, Model, Task string
	NameHint             string // suggested name; Register sanitizes it and uses it if it is free
}

func (r *Registration) profile(name string) format.Profile {
	return format.Profile{Name: name, Program: r.Program, Model: r.Model, Task: r.Task}
}

// summary returns the description of the new agent for the history.
func (r *Registration) summary(name string) string {
	if in := strings.Trim(r.Program+", "+r.Model, ", "); in != "" {
		return name + " (" + in + ")"
	}
	return name
}

// Registered is the agent that Register returns.
type Registered struct {
	index.AgentRow
	Note *refusal.Error // explains why the name hint was changed or ignored (the agent was registered anyway); otherwise nil
}

// Register creates an agent that belongs to the store's user. If the hint names the agent of a running session of the
// same program, Register returns that agent instead, because the session's model is asking for its own name. Register
// may return ErrInvalid or ErrUnavailable. See docs/reference/tools.md, "Agents".
func (ag *Agents) Register(ctx context.Context, r Registration) (*Registered, error) {
	for _, f := range []struct {
		field refusal.Field
		text  string
	}{{refusal.Program, r.Program}, {refusal.Model, r.Model}, {refusal.Task, r.Task}, {refusal.NameHint, r.NameHint}} {
		if err := core.CheckText(f.field, f.text, 4096); err != nil {
			return nil, err
		}
	}
	if is, err := ag.inSession(ctx, r); is != nil || err != nil {
		return is, err
	}
	for {
		name, note, err := ag.freeName(ctx, r.NameHint)
		if err != nil {
			return nil, err
		}
		made, err := ag.register(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if made != nil { // nil means that another caller has just taken the name
			made.Note = note
			return made, nil
		}
	}
}

// register creates an agent with the given name. It returns nil if another agent already has the name.
func (ag *Agents) register(ctx context.Context, r Registration, name string) (made *Registered, err error) {
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbRegister, Agent: name}, Facts: []string{core.NameFact(name)}, Sure: true}
	tx.Summary = r.summary(name)
	tx.Plan = func(g *writer.Group) error {
		made = nil
		holder, err := ag.mail.NameHolder(g.Ctx, name)
		if err != nil || holder != "" {
			return err
		}
		made = &Registered{}
		made.Profile, err = ag.mail.PlanAgent(g, tx, r.profile(name), core.NoOwner)
		return err
	}
	if err := ag.mail.Writer.Do(ctx, tx); err != nil || made == nil {
		return nil, err
	}
	ag.mail.NoteSeen(ctx, name)
	made.HasProfile, made.LastActive = true, made.Inception
	return made, nil
}

// inSession returns the agent named in the hint if a running session of the same program acts as that agent. Otherwise
// it returns nil.
func (ag *Agents) inSession(ctx context.Context, r Registration) (*Registered, error) {
	live, _ := ag.mail.Seats.Sessions(strings.TrimSpace(r.NameHint))
	for _, s := range live {
		if !strings.Contains(strings.ToLower(r.Program), s.Client) {
			continue
		}
		row, err := ag.mail.Store.Index.Agent(ctx, ag.mail.Slug, s.Agent)
		if err != nil || row == nil {
			return nil, err
		}
		ag.mail.NoteSeen(ctx, s.Agent)
		ag.mail.AddSeen(row)
		return &Registered{AgentRow: *row, Note: &refusal.Error{
			What: refusal.Note("You are already {=other}: your session acts as that agent and gets notices about its " +
				"mail."),
			Other: s.Agent,
		}}, nil
	}
	return nil, nil
}

// EnsureAgent creates an agent with exactly the given name. If the agent exists, EnsureAgent changes nothing. It
// returns ErrInvalid for an invalid name, and ErrConflict if another agent's name differs only in case. See
// docs/reference/tools.md, "Agents".
func (ag *Agents) EnsureAgent(ctx context.Context, name string, r Registration) error {
	return ag.ensure(ctx, name, r, name+" (on first use)", nil)
}

// NewAgent creates an agent with exactly the given name. It returns ErrConflict if the agent exists, or any error from
// EnsureAgent.
func (ag *Agents) NewAgent(ctx context.Context, name string, r Registration) error {
	exists := &refusal.Error{What: refusal.Conflict("Agent {name} {arg} already exists."), Field: refusal.Agent, Name: name}
	return ag.ensure(ctx, name, r, r.summary(name), exists)
}

// ensure implements EnsureAgent and NewAgent. If the agent exists, ensure returns exists. summary describes the
// operation in the history.
func (ag *Agents) ensure(ctx context.Context, name string, r Registration, summary string, exists error) error {
	switch is, err := ag.mail.HasAgent(ctx, name); {
	case err != nil:
		return err
	case is:
		return exists
	}
	if why := format.CheckName(name); why != "" || reserved(name) {
		return &refusal.Error{
			What: refusal.Invalid("The agent name {name} {arg} cannot be used: {why}."),
			Name: name,
			Why:  cmp.Or(why, "it is reserved"),
		}
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: history.VerbRegister, Agent: name, Summary: summary},
		Facts: []string{core.NameFact(name)},
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		switch holder, err := ag.mail.NameHolder(g.Ctx, name); {
		case err != nil:
			return err
		case holder == name:
			return exists
		case holder != "":
			return &refusal.Error{
				What: refusal.Conflict("The agent name {name} {arg} differs from {other} only in case: use " +
					"{other}, or a different name."),
				Name:  name,
				Other: holder,
			}
		}
		_, err := ag.mail.PlanAgent(g, tx, r.profile(name), core.NoOwner)
		return err
	}
	return ag.mail.Writer.Do(ctx, tx)
}

// freeName returns the sanitized hint if no agent has that name, ignoring case. Otherwise it returns a generated name,
// and a note that explains why.
func (ag *Agents) freeName(ctx context.Context, hint string) (name string, note *refusal.Error, err error) {
	if hint != "" {
		clean := core.SanitizeName(hint)
		holder := ""
		if clean != "" {
			if holder, err = ag.mail.NameHolder(ctx, clean); err != nil {
				return "", nil, err
			}
		}
		switch {
		case reserved(clean) || reserved(strings.TrimSpace(hint)):
			note = &refusal.Error{What: refusal.Note("{field} {name} is reserved, so another name was " +
				"generated."), Field: refusal.NameHint, Name: hint}
		case clean == "":
			note = &refusal.Error{
				What:  refusal.Note("{field} {name} is not a valid name ({why}), so a name was generated."),
				Field: refusal.NameHint,
				Name:  hint,
				Why:   cmp.Or(format.CheckName(hint), "it contains no letter or digit"),
			}
		case holder != "":
			note = &refusal.Error{
				What: refusal.Note("The name {=other} is taken, so a new one was generated. If you were " +
					"{=other} in an earlier session, keep using that name: you do not need to register again."),
				Other: holder,
			}
			row, err := ag.mail.Store.Index.Agent(ctx, ag.mail.Slug, holder)
			if err != nil {
				return "", nil, err
			}
			if row != nil && ag.mail.Elsewhere(row) {
				note.What = refusal.Note("The name {=other} belongs to an agent on machine {why}, so a new one was " +
					"generated.")
				note.Why = format.Quote(ag.mail.MachineName(row.Machine))
				switch ours, err := ag.mail.RenamedHere(ctx, holder); {
				case err != nil:
					return "", nil, err
				case ours != "":
					note.What = refusal.Note("The name {=other} belongs to an agent on machine {why}, so a new one " +
						"was generated. The agent on this machine that had the same name is now {=name}: if that " +
						"is you, use {=name}.")
					note.Name = ours
				}
			}
		default:
			if clean != hint {
				note = &refusal.Error{What: refusal.Note("{field} {name} was converted to a valid name."), Field: refusal.NameHint, Name: hint}
			}
			return clean, note, nil
		}
	}
	for try := 0; ; try++ {
		n, err := ag.madeName(try)
		if err != nil {
			return "", nil, err
		}
		if holder, err := ag.mail.NameHolder(ctx, n); holder == "" || err != nil {
			return n, note, err
		}
	}
}

// reserved reports whether no agent may have the given name. The server's own names are reserved, and so are words that
// mean everyone, because senders would not expect them to reach a single agent.
func reserved(name string) bool {
	return format.ServerName(name) || slices.Contains([]string{"all", "everybody", "everyone"}, strings.ToLower(name))
}

// madeName returns a generated name: an adjective and a noun, with a number added after a few attempts.
func (ag *Agents) madeName(try int) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(ag.mail.Store.Rand, b[:]); err != nil {
		return "", err
	}
	n := binary.BigEndian.Uint64(b[:])
	name := adjectives[n%uint64(len(adjectives))] + nouns[n>>32%uint64(len(nouns))]
	if try >= 16 {
		name += strconv.Itoa(2 + int(n>>16%uint64(min(10*try, 1_000_000))))
	}
	return name, nil
}

// Person returns the name of a user's agent, which PersonName derives from the given name. It creates the agent on
// first use. It returns any error from EnsureAgent.
func (ag *Agents) Person(ctx context.Context, name string) (agent string, made bool, err error) {
	name = PersonName(name)
	is, err := ag.mail.HasAgent(ctx, name)
	if err != nil || is {
		return name, false, err
	}
	return name, true, ag.EnsureAgent(ctx, name, Registration{Program: core.PersonProgram})
}

// IsPerson reports whether a name belongs to a user's agent.
func (ag *Agents) IsPerson(ctx context.Context, name string) (bool, error) {
	a, err := ag.mail.Store.Index.Agent(ctx, ag.mail.Slug, name)
	if err != nil {
		return false, fmt.Errorf("cannot look up agent %s: %w", format.Printable(name), err)
	}
	return a != nil && a.Program == core.PersonProgram, nil
}

// PersonName returns the name of a user's agent: the given name without the characters that are not allowed in agents'
// names. If no characters would remain, it returns the name unchanged.
func PersonName(name string) string {
	if clean := core.SanitizeName(name); clean != "" {
		return clean
	}
	return name
}
