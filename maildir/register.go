package maildir

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Registration asks for a new agent.
type Registration struct {
	Program, Model, Task string
	NameHint             string // sanitized; used if the name is free
}

// Registered is a new agent.
type Registered struct {
	index.AgentRow
	Note *Error // why the hint was not used unchanged; nil if it was. It is not an error
}

// Register creates an agent that belongs to the store's user. If the hint names the agent of a running
// session of the same program, it returns that agent, because the session's model is asking who it is. It
// returns ErrInvalid and ErrUnavailable. See docs/tools.md, "Agents".
func (p *Project) Register(ctx context.Context, r Registration) (*Registered, error) {
	for _, f := range []struct {
		field refusal.Field
		text  string
	}{{refusal.Program, r.Program}, {refusal.Model, r.Model}, {refusal.Task, r.Task}, {refusal.NameHint, r.NameHint}} {
		if err := checkText(f.field, f.text, 4096); err != nil {
			return nil, err
		}
	}
	if is, err := p.inSession(ctx, r); is != nil || err != nil {
		return is, err
	}
	for {
		name, note, err := p.freeName(ctx, r.NameHint)
		if err != nil {
			return nil, err
		}
		made, err := p.register(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if made != nil { // otherwise another caller has just taken the name
			made.Note = note
			return made, nil
		}
	}
}

// register creates an agent of that name. It returns nil if another agent has the name by now.
func (p *Project) register(ctx context.Context, r Registration, name string) (made *Registered, err error) {
	tx := &writer.Tx{Op: writer.Op{Verb: "register", Agent: name}, Facts: []string{nameFact(name)}, Sure: true}
	tx.Summary = name + " (" + strings.Trim(r.Program+", "+r.Model, ", ") + ")"
	tx.Plan = func(g *writer.Group) error {
		made = nil
		holder, err := p.nameHolder(g.Ctx, name)
		if err != nil || holder != "" {
			return err
		}
		if err := p.give(name, NoOwner); err != nil {
			return err
		}
		made = &Registered{}
		made.Profile = format.Profile{Name: name, Program: r.Program, Model: r.Model, Task: r.Task, Inception: g.Now.Truncate(time.Microsecond),
			Machine: p.store.machine()}
		tx.Create(format.ProfilePath(name), format.FormatProfile(made.Profile))
		return nil
	}
	if err := p.Writer.Do(ctx, tx); err != nil || made == nil {
		return nil, err
	}
	p.noteSeen(ctx, name)
	made.HasProfile, made.LastActive = true, made.Inception
	return made, nil
}

// inSession returns the agent that the hint names if a session of the program has that agent; nil if none
// has.
func (p *Project) inSession(ctx context.Context, r Registration) (*Registered, error) {
	live, _ := p.seats.Sessions(strings.TrimSpace(r.NameHint))
	for _, s := range live {
		if !strings.Contains(strings.ToLower(r.Program), s.Client) {
			continue
		}
		row, err := p.store.index.Agent(ctx, p.Slug, s.Agent)
		if err != nil || row == nil {
			return nil, err
		}
		p.noteSeen(ctx, s.Agent)
		p.addSeen(row)
		return &Registered{AgentRow: *row, Note: &Error{
			What:  refusal.Note("You are {=other} already: the session that you run in is that agent, and is told of its mail."),
			Other: s.Agent,
		}}, nil
	}
	return nil, nil
}

// EnsureAgent creates an agent of exactly that name if there is none, as first contact does. If the agent
// exists it changes nothing, whoever created it. It returns ErrInvalid for the name, and ErrConflict if
// another agent's name differs only in case. See docs/tools.md, "Agents".
func (p *Project) EnsureAgent(ctx context.Context, name string, r Registration) error {
	if ok, err := p.hasAgent(ctx, name); ok || err != nil {
		return err
	}
	if why := format.CheckName(name); why != "" || reserved(name) {
		return &Error{What: refusal.Invalid("The agent name {name} {arg} cannot be used: {why}."), Name: name, Why: cmp.Or(why, "reserved")}
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "register", Agent: name, Summary: name + " (at first use)"},
		Facts: []string{nameFact(name)},
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		switch holder, err := p.nameHolder(g.Ctx, name); {
		case err != nil:
			return err
		case holder == name:
			return nil
		case holder != "":
			return &Error{
				What:  refusal.Conflict("The agent name {name} {arg} differs from {other} only in case: use {other}, or another name."),
				Name:  name,
				Other: holder,
			}
		}
		if err := p.give(name, NoOwner); err != nil {
			return err
		}
		tx.Create(format.ProfilePath(name), format.FormatProfile(format.Profile{
			Name:      name,
			Program:   r.Program,
			Model:     r.Model,
			Task:      r.Task,
			Inception: g.Now,
			Machine:   p.store.machine(),
		}))
		return nil
	}
	return p.Writer.Do(ctx, tx)
}

// nameHolder returns the name of the agent that is called so in any case, spelled as the agent spells it. It
// returns "" if there is no such agent.
func (p *Project) nameHolder(ctx context.Context, name string) (holder string, err error) {
	const spellings = 10 // of one name, because people make folders
	names, err := p.store.index.Names(ctx, p.Slug, format.KindProfile, name, spellings)
	for _, n := range names {
		if n == name || holder == "" && strings.EqualFold(n, name) {
			holder = n
		}
	}
	return holder, err
}

// freeName returns the sanitized hint if no agent has that name in any case; otherwise a made name, and a
// note that says why.
func (p *Project) freeName(ctx context.Context, hint string) (name string, note *Error, err error) {
	if hint != "" {
		clean := sanitizeName(hint)
		holder := ""
		if clean != "" {
			if holder, err = p.nameHolder(ctx, clean); err != nil {
				return "", nil, err
			}
		}
		switch {
		case reserved(clean) || reserved(strings.TrimSpace(hint)):
			note = &Error{What: refusal.Note("{field} {name} is reserved, so a name was made."), Field: refusal.NameHint, Name: hint}
		case clean == "":
			note = &Error{
				What:  refusal.Note("{field} {name} cannot be a name ({why}), so a name was made."),
				Field: refusal.NameHint,
				Name:  hint,
				Why:   cmp.Or(format.CheckName(hint), "no letter or digit is left"),
			}
		case holder != "":
			note = &Error{
				What: refusal.Note("The name {=other} is taken, so a new one was made. If {=other} is you from an earlier session, simply " +
					"use it: an identity needs no second registration."),
				Other: holder,
			}
			row, err := p.store.index.Agent(ctx, p.Slug, holder)
			if err != nil {
				return "", nil, err
			}
			if row != nil && p.elsewhere(row) {
				note.What = refusal.Note("The name {=other} is that of an agent of the machine {why}, so a new one was made.")
				note.Why = format.Quote(p.machineName(row.Machine))
				switch ours, err := p.renamedHere(ctx, holder); {
				case err != nil:
					return "", nil, err
				case ours != "":
					note.What = refusal.Note("The name {=other} is that of an agent of the machine {why}, so a new one was made. The agent of this " +
						"machine that had the same name is {=name} now: if that is you, use it.")
					note.Name = ours
				}
			}
		default:
			if clean != hint {
				note = &Error{What: refusal.Note("{field} {name} was made into a valid name."), Field: refusal.NameHint, Name: hint}
			}
			return clean, note, nil
		}
	}
	for try := 0; ; try++ {
		n, err := p.store.madeName(try)
		if err != nil {
			return "", nil, err
		}
		if holder, err := p.nameHolder(ctx, n); holder == "" || err != nil {
			return n, note, err
		}
	}
}

// reserved reports whether a name cannot be registered: it is a name of the server, or a word for everyone
// that a sender would not take for one agent.
func reserved(name string) bool {
	return format.ServerName(name) || slices.Contains([]string{"all", "everybody", "everyone"}, strings.ToLower(name))
}

// madeName returns a name of an adjective and a noun, after a few tries with a number.
func (s *Store) madeName(try int) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(s.cfg.Rand, b[:]); err != nil {
		return "", err
	}
	n := binary.BigEndian.Uint64(b[:])
	name := adjectives[n%uint64(len(adjectives))] + nouns[n>>32%uint64(len(nouns))]
	if try >= 16 {
		name += strconv.Itoa(2 + int(n>>16%uint64(min(10*try, 1_000_000))))
	}
	return name, nil
}

func sanitizeName(hint string) string {
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

// AgentInfo is what whois and the directory tell about an agent. The directory leaves out Mail and Commits.
type AgentInfo struct {
	index.AgentRow
	Claims []claim.Row      // live ones
	Mail   []index.Delivery // the newest openly addressed messages in its inbox, newest first
	// Commits are the agent's newest commits in the mail's history, newest first; none if Git cannot be
	// read.
	Commits []history.Commit
}

// whoisCommits is how many of an agent's commits whois shows.
const whoisCommits = 5

// whoisMail is how many messages of the inbox whois shows, with the agent's marks.
const whoisMail = 10

// Whois looks an agent up. It returns ErrNotFound with similar names.
func (p *Project) Whois(ctx context.Context, name string) (*AgentInfo, error) {
	row, err := p.store.index.Agent(ctx, p.Slug, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, p.unknownAgent(ctx, refusal.Agent, name)
	}
	p.addSeen(row)
	info := &AgentInfo{AgentRow: *row}
	if info.Claims, err = p.claimsOf(ctx, name); err != nil {
		return nil, err
	}
	page, err := p.page(ctx, index.InboxQuery{Project: p.Slug, Agent: name, Limit: whoisMail})
	if err != nil {
		return nil, err
	}
	blind := func(d index.Delivery) bool { return d.Kind == "bcc" } // Invariant I7
	info.Mail = slices.DeleteFunc(page.Messages, blind)
	if info.Commits, err = p.History.Authored(ctx, name, 4*whoisCommits); err != nil {
		p.store.cfg.Log.Warn("whois shows no commits", "project", p.Slug, "agent", name, "error", err)
	}
	info.Commits = slices.DeleteFunc(info.Commits, marksMail)
	info.Commits = info.Commits[:min(len(info.Commits), whoisCommits)]
	return info, nil
}

// marksMail reports whether a commit marks one message. It may be a message that the agent got as bcc
// (Invariant I7), and Mail shows the other messages.
func marksMail(c history.Commit) bool {
	verb, _, _ := strings.Cut(c.Subject, ":")
	return slices.Contains([]string{"read", "unread", "acknowledge", "archive", "pop", "delete"}, verb)
}

// activeFor is how long an agent counts as active after it was last seen. See docs/tools.md, "Agents".
const activeFor = 7 * 24 * time.Hour

// Agents lists all agents by name, without Program, Model, Task and LastActive.
func (p *Project) Agents(ctx context.Context) ([]index.AgentRow, error) {
	return p.store.index.Agents(ctx, p.Slug)
}

// LastRead returns when each agent last read mail; agents that never did are missing.
func (p *Project) LastRead(ctx context.Context) (map[string]time.Time, error) {
	return p.store.index.LastRead(ctx, p.Slug)
}

// AgentsQuery selects agents, by name.
type AgentsQuery struct {
	After  string // only agents whose names come after this name
	Active bool   // only agents seen within seven days
	// Take is called with each agent. If it returns false, that agent is left out and the list ends.
	Take func(a *AgentInfo) bool
}

// agentsRead is how many agents are read at once. Their profiles may have 12 KiB each.
const agentsRead = 50

// EachAgent calls q.Take with the agents, by name, with all fields. end reports whether it reached the last
// agent.
func (p *Project) EachAgent(ctx context.Context, q AgentsQuery) (end bool, err error) {
	const all = false
	live, err := p.Claims(ctx, all)
	if err != nil {
		return false, err
	}
	claims := map[string][]claim.Row{}
	for _, c := range live {
		claims[c.Agent] = append(claims[c.Agent], c)
	}
	for {
		rows, err := p.store.index.AgentsAfter(ctx, p.Slug, q.After, agentsRead)
		if err != nil {
			return false, err
		}
		for i := range rows {
			a := &rows[i]
			p.addSeen(a)
			if q.Active && p.store.cfg.Now().Sub(a.LastActive) > activeFor {
				continue
			}
			if !q.Take(&AgentInfo{AgentRow: *a, Claims: claims[a.Name]}) {
				return false, nil
			}
		}
		if len(rows) < agentsRead {
			return true, nil
		}
		q.After = rows[len(rows)-1].Name
	}
}

// needAgent refuses a name that belongs to no agent of the project.
func (p *Project) needAgent(ctx context.Context, field refusal.Field, name string) error {
	ok, err := p.hasAgent(ctx, name)
	if err == nil && !ok {
		return p.unknownAgent(ctx, field, name)
	}
	return err
}

func (p *Project) hasAgent(ctx context.Context, name string) (bool, error) {
	p.mu.Lock()
	known, left := p.agents[name], p.left
	p.mu.Unlock()
	if known {
		return true, nil
	}
	if !format.ValidName(name) {
		return false, nil
	}
	row, err := p.store.index.Agent(ctx, p.Slug, name)
	if err != nil || row == nil {
		return false, err
	}
	p.mu.Lock()
	if p.left == left { // otherwise the agent may be gone since the index was asked
		p.agents[name] = true
	}
	p.mu.Unlock()
	return true, nil
}

// name returns the project's name for sentences.
func (p *Project) name() string {
	if p.human != "" {
		return p.human
	}
	return p.Slug
}

// noteSeen records in memory that the agent did something now; keepNotes writes it to disk. It ignores a
// name without an agent.
func (p *Project) noteSeen(ctx context.Context, agent string) {
	if ok, err := p.hasAgent(ctx, agent); err != nil || !ok {
		return
	}
	p.mu.Lock()
	p.seen[agent] = &sighting{last: p.store.cfg.Now()}
	p.mu.Unlock()
	ring(p.sighted)
}

// ring wakes the goroutine that receives from bell, a channel with room for one value. It never waits.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// sighting is when an agent was last seen, and whether its file says so.
type sighting struct {
	last    time.Time
	written bool
}

// keepNotes writes what agents were told of, and at most once a second when they were seen, until ctx ends;
// then it writes the rest. A kill loses a second of it.
func (p *Project) keepNotes(ctx context.Context) {
	sighted := p.sighted // nil: written less than a second ago
	var rested <-chan time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-p.told:
		case <-sighted:
			p.writeSeen()
			sighted, rested = nil, time.After(time.Second)
		case <-rested:
			sighted = p.sighted
		}
		p.seats.Write()
	}
	p.writeSeen()
	p.seats.Write()
}

// writeSeen writes the time of each agent that was seen since the last call to the agent's file.
func (p *Project) writeSeen() {
	unwritten := map[string]time.Time{}
	p.mu.Lock()
	for name, s := range p.seen {
		if !s.written {
			unwritten[name] = s.last
			s.written = true
		}
	}
	p.mu.Unlock()
	for name, last := range unwritten {
		if err := p.Tree.Touch(format.SeenDir+"/"+name, last); err != nil && !errors.Is(err, fs.ErrPermission) {
			p.store.cfg.Log.Debug("last activity not noted", "project", p.Slug, "agent", name, "error", err)
		}
	}
}

func (p *Project) addSeen(a *index.AgentRow) {
	p.mu.Lock()
	seen := p.seen[a.Name]
	p.mu.Unlock()
	var last time.Time
	if seen != nil { // its file may have just been created, and does not have this time yet
		last = seen.last
	} else if st, err := p.Tree.Stat(format.SeenDir + "/" + a.Name); err == nil {
		last = time.Unix(0, st.MTime)
	}
	if last = last.UTC().Truncate(time.Microsecond); last.After(a.LastActive) {
		a.LastActive = last
	}
}
