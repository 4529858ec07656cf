package core

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Party is a sender or recipient of a message: an agent of the message's own project, an agent of another project, or
// an email address.
type Party struct {
	Name    string // the agent's name, or the whole email address
	Project string // for an agent of another project, the part after the @ (a slug in files); otherwise empty
	Email   bool
}

// IsHere reports whether the party is an agent of the message's own project.
func (p Party) IsHere() bool { return !p.Email && p.Project == "" }

// IsAgent reports whether a party to a message is an agent of the message's own project. Agents of other projects and
// email addresses contain an @.
func IsAgent(party string) bool { return !strings.Contains(party, "@") }

// noProject is a domain that never identifies a project. The domain is reserved (RFC 6761), and UnknownSender uses
// it.
const noProject = "invalid"

// PartyOf parses the address of a party. All code uses PartyOf to distinguish the kinds of parties. An address is an
// email address if the part after the @ contains a dot or is a configured domain (Domains, Outside.Allow). Any other
// address with an @ is an agent of another project, even if this machine does not have that project.
func (s *Store) PartyOf(party string) Party {
	at := strings.LastIndexByte(party, '@')
	if at < 0 {
		return Party{Name: party}
	}
	in := party[at+1:]
	listed := s.Domains.Has(in) || slices.Contains(s.Outside.Allow, strings.ToLower(in)) || in == noProject
	if in == "" || strings.Contains(in, ".") || listed || !format.ValidName(party[:at]) {
		return Party{Name: party, Email: true}
	}
	return Party{Name: party[:at], Project: in}
}

// IsElsewhere reports whether name is an email address at another domain. An address at this machine or at an IP
// address does not count.
func (s *Store) IsElsewhere(name string) bool {
	a, err := format.ParseAddress(name)
	return err == nil && s.PartyOf(name).Email && !s.Domains.Has(a.Domain) && !a.OnThisMachine()
}

// In returns the address that an agent of this project has in other projects.
func (c *Mail) In(agent string) string { return agent + "@" + c.Slug }

// IsAgentAt reports whether a party to a message of this project is the given agent. The party may be the agent's
// name, the agent's address in other projects, or an email address of the agent at the store's domains.
func (c *Mail) IsAgentAt(agent, party string) bool {
	if party == agent || party == c.In(agent) {
		return true
	}
	name := c.Store.Domains.Named(party)
	before, _, _ := strings.Cut(name, "+")
	return name != party && (strings.EqualFold(name, agent) || strings.EqualFold(before, agent))
}

// SeenFrom converts a party's name from the form that this project uses to the form that the project with the given
// slug uses. An agent of this project becomes an address, and the address of an agent of the other project becomes a
// bare name.
func (c *Mail) SeenFrom(slug, party string) string {
	p := c.Store.PartyOf(party)
	switch {
	case p.IsHere() && party != format.Postmaster:
		return c.In(party)
	case p.Project == slug:
		return p.Name
	}
	return party
}

// shortName returns the last element of the project's path, which people use as the project's name.
func (c *Mail) shortName() string { return path.Base(c.Name()) }

// IsCalled reports whether the project's short name or slug begins with the given text. It ignores case.
func (c *Mail) IsCalled(begun string) bool {
	begun = strings.ToLower(begun)
	return strings.HasPrefix(strings.ToLower(c.shortName()), begun) || strings.HasPrefix(c.Slug, begun)
}

// ShortAddress is like In, but uses the project's short name if that is unambiguous and can be part of an address.
func (c *Mail) ShortAddress(agent string) string {
	short := agent + "@" + c.shortName()
	found := c.Store.Called(c.shortName())
	if c.Store.PartyOf(short).Project == "" || len(found) != 1 || found[0] != c || strings.ContainsAny(short, " ,;<>\"'") {
		return c.In(agent)
	}
	return short
}

// Called returns the open projects whose slug or short name is exactly name. If a project has that slug, it is the
// only result.
func (s *Store) Called(name string) (all []*Mail) {
	if c := s.Projects.Mail(name); c != nil {
		return []*Mail{c}
	}
	for _, c := range s.Projects.Mails() {
		if c.shortName() == name {
			all = append(all, c)
		}
	}
	return all
}

// Addressed converts a party's name to the form that this project's files use: the bare name of an agent of this
// project, name@slug for an agent of another project, or an email address. It returns any other name unchanged. If the
// part after the @ is the name of several projects, Addressed returns an ErrConflict that lists the possible addresses.
// It does not check whether the agent exists.
func (c *Mail) Addressed(ctx context.Context, party string) (string, error) {
	p := c.Store.PartyOf(party)
	if p.Project == "" {
		name := c.Store.Domains.Named(party)
		if strings.LastIndexByte(name, '@') > 0 {
			return name, nil
		}
		agent, err := c.AgentNamed(ctx, name)
		if err != nil || agent != name {
			return agent, err
		}
		if ok, err := c.HasAgent(ctx, name); err != nil || ok {
			return name, err
		}
		return party, nil
	}
	switch found := c.Store.Called(p.Project); {
	case len(found) == 1 && found[0] == c:
		return c.AgentNamed(ctx, p.Name)
	case len(found) == 1:
		name, err := found[0].AgentNamed(ctx, p.Name)
		return found[0].In(name), err
	case len(found) > 1:
		return "", &refusal.Error{
			What:  refusal.Conflict("Several projects are called {=other}: use the project's slug instead, as in {choices}."),
			Field: refusal.Recipients,
			Name:  party,
			Other: p.Project,
			Near:  addressesIn(found, p.Name),
		}
	}
	return party, nil
}

// addressesIn returns the agent's address in each of the given projects.
func addressesIn(all []*Mail, agent string) (addresses []string) {
	for _, c := range all {
		addresses = append(addresses, c.In(agent))
	}
	return addresses
}

// Namesakes returns the other open projects that have an agent with exactly the given name, sorted by slug.
func (c *Mail) Namesakes(ctx context.Context, agent string) (all []*Mail, err error) {
	slugs, err := c.Store.Index.ProjectsWith(ctx, format.KindProfile, agent)
	slices.Sort(slugs)
	for _, slug := range slugs {
		if other := c.Store.Projects.Mail(slug); other != nil && other != c {
			all = append(all, other)
		}
	}
	return all, err
}

// OnlyNamesake finds an agent in another project, if this project has no agent of that name. If exactly one other
// project has the agent, OnlyNamesake returns the agent's address there, with a note about it. It returns "" if no
// other project has the agent. If several projects have the agent, it returns an ErrNotFound that lists the addresses.
func (c *Mail) OnlyNamesake(ctx context.Context, field refusal.Field, agent string) (address string, note *refusal.Error, err error) {
	found, err := c.Namesakes(ctx, agent)
	switch {
	case err != nil || len(found) == 0 || meansEverybody(agent):
		return "", nil, err
	case len(found) > 1:
		return "", nil, &refusal.Error{
			What: refusal.NotFound("No agent {name} {arg} in project {=other}, but several other projects have one: use one of " +
				"the addresses {choices}."),
			Field: field,
			Name:  agent,
			Other: c.Name(),
			Near:  addressesIn(found, agent),
		}
	}
	return found[0].In(agent), &refusal.Error{
		What:  refusal.Note("{=name} is an agent of project {=other}, not of this project, so the message goes to {choices}."),
		Name:  agent,
		Other: found[0].Name(),
		Near:  []string{found[0].In(agent)},
	}, nil
}

// NeedParty returns the project of a party that is an agent of another project. It returns ErrNotFound if the project
// is not on this machine or does not have the agent, and ErrUnavailable if the project could not be opened.
func (c *Mail) NeedParty(ctx context.Context, field refusal.Field, party string) (*Mail, error) {
	p := c.Store.PartyOf(party)
	other := c.Store.Projects.Mail(p.Project)
	if other == nil {
		return nil, c.noProject(field, party, p)
	}
	ok, err := other.HasAgent(ctx, p.Name)
	if err == nil && !ok {
		err = other.Sure()
	}
	if err != nil || ok {
		return other, err
	}
	e := &refusal.Error{
		What:  refusal.NotFound("No agent {name} {arg} in project {=other}: nothing was sent. {near}"),
		Field: field,
		Name:  party,
		Other: other.Name(),
	}
	if err := other.AddAgents(ctx, e, []string{p.Name}); err != nil {
		return nil, err
	}
	e.All = nil
	for i, name := range e.Near {
		e.Near[i] = other.In(name)
	}
	return nil, e
}

// noProject returns the error for a party in a project that is not open. The error lists the party's possible addresses
// in projects with similar names.
func (c *Mail) noProject(field refusal.Field, party string, p Party) error {
	if err := c.Store.Projects.LeftOut()[p.Project]; err != nil {
		return &refusal.Error{
			What:  refusal.Unavailable("Project {=other} is currently unavailable, so nothing was sent to {name} {arg}. {if it stays so}"),
			Field: field,
			Name:  party,
			Other: p.Project,
			Err:   err,
		}
	}
	slugs := map[string]string{} // slugs by short name and by slug
	for _, m := range c.Store.Projects.Mails() {
		slugs[m.shortName()], slugs[m.Slug] = m.Slug, m.Slug
	}
	e := &refusal.Error{
		What: refusal.NotFound("This machine has no project {=other}, so nothing was sent to {name} {arg}. {near} If you meant " +
			"an email address, its domain must contain a dot."),
		Field: field,
		Name:  party,
		Other: p.Project,
	}
	for _, name := range format.Near(p.Project, slices.Sorted(maps.Keys(slugs))) {
		if at := p.Name + "@" + slugs[name]; !slices.Contains(e.Near, at) {
			e.Near = append(e.Near, at)
		}
	}
	return e
}
