package core

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mailtree/maildir/clock"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// MaxListed is the maximum number of names that an error lists in full. If there are more names, an error lists only
// the most similar ones.
const MaxListed = 20

// Few returns names if there are few enough to list all of them, and nil otherwise.
func Few(names []string) []string {
	if len(names) > MaxListed {
		return nil
	}
	return names
}

// UnknownAgent returns the error for names that do not belong to any agent. The error lists similar names. If there are
// no similar names, it lists the projects that have an agent named names[0].
func (c *Mail) UnknownAgent(ctx context.Context, field refusal.Field, names ...string) error {
	e, err := c.NoAgent(field, names)
	if err != nil {
		return err
	}
	if err := c.AddAgents(ctx, e, names); err != nil {
		return err
	}
	if len(e.Near) == 0 {
		if e.In, err = c.Store.projectsWith(ctx, format.KindProfile, names[0]); err != nil {
			return err
		}
	}
	return e
}

// AddAgents adds hints to the error for the given names: all agents, and the agents with similar names.
func (c *Mail) AddAgents(ctx context.Context, e *refusal.Error, names []string) error {
	rows, err := c.Store.Index.Agents(ctx, c.Slug)
	if err != nil {
		return err
	}
	all := make([]string, len(rows))
	for i, a := range rows {
		all[i] = a.Name
	}
	for _, n := range names {
		for _, near := range format.Near(n, all) {
			if !slices.Contains(e.Near, near) {
				e.Near = append(e.Near, near)
			}
		}
	}
	e.All = Few(all)
	return nil
}

// NoAgent is like UnknownAgent, but for callers that must not learn other names. It returns an error if some files
// cannot currently be read, and ErrInvalid if a name contains an @ but cannot be an address at another domain.
func (c *Mail) NoAgent(field refusal.Field, names []string) (*refusal.Error, error) {
	if err := c.Sure(); err != nil {
		return nil, err
	}
	for _, n := range names {
		if err := addressFault(n); err != nil && strings.IndexByte(n, '@') > 0 {
			return nil, &refusal.Error{What: refusal.Invalid("No agent is named {name} {arg}, and {cause}."), Field: field, Name: n, Err: err}
		}
	}
	what := refusal.NotFound("No agent {names} {arg} in project {=other}. {near} {in} {all agents} {make an agent}")
	if slices.ContainsFunc(names, c.Store.IsElsewhere) {
		what = refusal.NotFound("No agent {names} {arg} in project {=other}: an email address at another " +
			"domain is not an agent. {near} {all agents} {make an agent}")
	}
	return &refusal.Error{
		What:  what,
		Field: field,
		Name:  names[0],
		More:  names[1:],
		Other: c.Name(),
	}, nil
}

// UnknownTo is like UnknownAgent, but for an OS user. It does not reveal other names to a foreign user.
func (c *Mail) UnknownTo(ctx context.Context, by Caller, field refusal.Field, names ...string) error {
	if !c.Store.IsForeignUser(by) {
		return c.UnknownAgent(ctx, field, names...)
	}
	e, err := c.NoAgent(field, names)
	if err != nil {
		return err
	}
	return e
}

// addressFault returns the reason why the given text cannot be an email address at another domain, or nil if it can.
// The error is a sentence without the final period.
func addressFault(address string) error {
	a, err := format.ParseAddress(address)
	if err == nil && a.OnThisMachine() {
		err = errors.New(format.Quote(address) + " is not an address at another domain: its domain refers to " +
			"this machine or is an IP address")
	}
	return err
}

// everybody lists words that people use to address all agents at once.
var everybody = []string{"*", "all", "broadcast", "everybody", "everyone", "team"}

func meansEverybody(name string) bool {
	return slices.Contains(everybody, strings.TrimPrefix(strings.ToLower(name), "@"))
}

// NoBroadcast returns the error for a name such as "all" or "everyone" that does not belong to any agent. The error
// lists the agents that the sender can write to. NoBroadcast returns nil if none of the names is such a word, or if
// there are no other agents.
func (c *Mail) NoBroadcast(ctx context.Context, from string, unknown []string) error {
	i := slices.IndexFunc(unknown, meansEverybody)
	if i < 0 {
		return nil
	}
	rows, err := c.Store.Index.Agents(ctx, c.Slug)
	if err != nil {
		return err
	}
	var others []string
	for _, a := range rows {
		if a.Name != from && len(others) < format.MaxRecipients {
			others = append(others, a.Name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return &refusal.Error{
		What: refusal.NotFound("No agent of project {=other} is named {name} {arg}. To write to " +
			"all agents, list each one by name. This project's agents: {choices}."),
		Field: refusal.Recipients,
		Name:  unknown[i],
		Other: c.Name(),
		Near:  others,
	}
}

// NoMessage returns the error for a message id that does not exist in the project. The error lists the projects that
// have the message. If there are none, it lists similar ids.
func (c *Mail) NoMessage(ctx context.Context, field refusal.Field, id string) error {
	if err := c.Sure(); err != nil {
		return err
	}
	rows, err := c.Store.Index.Thread(ctx, index.ThreadQuery{Project: c.Slug, Thread: id, Limit: 1})
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return &refusal.Error{
			What:  refusal.NotFound("{name} {arg} is a thread of project {=other}, not a message. {read a thread}"),
			Field: field,
			Name:  id,
			Other: c.Name(),
		}
	}
	what := refusal.NotFound("No message {name} {arg} in project {=other}. {near} {in} {find messages}")
	if len(id) < MinShort {
		what = refusal.NotFound("No message {name} {arg} in project {=other}. {shorten an id} {near} {in} {find messages}")
	}
	return c.missing(ctx, format.KindCanonical, &refusal.Error{
		What:  what,
		Field: field,
		Name:  id,
		Other: c.Name(),
		Limit: MinShort,
	})
}

// NoThread returns the error for a thread id that does not exist in the project.
func (c *Mail) NoThread(ctx context.Context, id string) error {
	if err := c.Sure(); err != nil {
		return err
	}
	return c.missing(ctx, format.KindOther, &refusal.Error{
		What:  refusal.UnknownThread,
		Field: refusal.Thread,
		Name:  id,
		Other: c.Name(),
	})
}

// NoMention returns the error for a name that is not an agent, a message, a thread or a path of the project. It
// contains the same hints as the error from NoMessage.
func (c *Mail) NoMention(ctx context.Context, name string) error {
	if err := c.Sure(); err != nil {
		return err
	}
	return c.missing(ctx, format.KindCanonical, &refusal.Error{
		What: refusal.NotFound("No agent, thread, message or path {name} in project {=other}. {near} {in} {find agents} " +
			"{find messages}"),
		Field: refusal.Message,
		Name:  name,
		Other: c.Name(),
	})
}

// missing adds hints to the error for an unknown message or thread id: the projects that have the id or, if there are
// none, similar ids.
func (c *Mail) missing(ctx context.Context, kind format.Kind, e *refusal.Error) error {
	name := e.Name
	if within := clock.FindID(name); within != "" && kind == format.KindCanonical && within != name {
		name = within
		m, err := c.Store.Index.Message(ctx, c.Slug, within, index.WithoutBody, nil)
		if err != nil {
			return err
		}
		if m != nil {
			e.Near = []string{within}
			return e
		}
	}
	var err error
	if e.In, err = c.Store.projectsWith(ctx, kind, name); err != nil {
		return err
	}
	begins := []int{3}
	if kind == format.KindCanonical {
		begins = []int{len(name), len(name) * 3 / 4, len(name) / 2} // all ids of one day begin with the same characters
	}
	for i := 0; i < len(begins) && len(e.In)+len(e.Near) == 0; i++ {
		names, err := c.Store.Index.Names(ctx, c.Slug, kind, format.Cut(name, begins[i]), 100)
		if err != nil {
			return err
		}
		e.Near = format.Near(name, names)
	}
	return e
}

// NoDelivery returns the error for a message id that is not in an agent's inbox. The error says whether the message
// does not exist, or is in another project, in the agent's own outbox, or only in other agents' inboxes.
func (c *Mail) NoDelivery(ctx context.Context, agent, id string) error {
	if err := c.Sure(); err != nil {
		return err
	}
	m, err := c.Store.Index.Message(ctx, c.Slug, id, index.WithoutBody, nil)
	if err != nil {
		return err
	}
	if m == nil {
		return c.NoMessage(ctx, refusal.Message, id)
	}
	e := &refusal.Error{
		What:  refusal.NotInInbox,
		Field: refusal.Message,
		Name:  id,
		Other: agent,
	}
	if m.From == agent {
		const forSender = false
		if err := c.AddReceipts(ctx, m, forSender); err != nil {
			return err
		}
		e.What, e.Why = refusal.Invalid("You ({=other}) sent message {name} {arg}, so it is not in your inbox. "+
			"Only its recipients can mark or acknowledge it ({why})."), c.sayReceipts(m.Receipts)
	}
	return e
}

// sayReceipts describes the delivery state of a message for each of the first MaxListed recipients.
func (c *Mail) sayReceipts(receipts []index.Receipt) string {
	var said []string
	for i, r := range receipts {
		switch {
		case i == MaxListed:
			return strings.Join(append(said, "…"), ", ")
		case r.Status != "" && !c.Store.PartyOf(r.Agent).Email:
			said = append(said, r.Agent+" does not have it yet")
		case r.Status != "":
			said = append(said, r.Agent+" is at another domain ("+r.Status+")")
		case !r.Delivered:
			said = append(said, r.Agent+" no longer has it")
		case r.Acked:
			said = append(said, r.Agent+" acknowledged it")
		case r.Read:
			said = append(said, r.Agent+" has read it")
		default:
			said = append(said, r.Agent+" has not read it")
		}
	}
	if len(said) == 0 {
		return "all recipients are in bcc"
	}
	return strings.Join(said, ", ")
}
