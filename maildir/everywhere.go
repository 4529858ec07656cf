package maildir

import (
	"context"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// ProjectWithAgent returns the project that an agent's call refers to. If p does not have the agent and exactly one
// other project does, ProjectWithAgent returns that project and a note. Otherwise it returns p, even if no project has
// the agent. ProjectWithAgent may be used only for calls by the store's owner or by a caller whose OS user is unknown.
func (s *Store) ProjectWithAgent(ctx context.Context, p *Project, agent string) (*Project, *Error, error) {
	if is, err := p.mail.HasAgent(ctx, agent); is || err != nil {
		return p, nil, err
	}
	found, err := p.mail.Namesakes(ctx, agent)
	if err != nil || len(found) != 1 {
		return p, nil, err
	}
	other := s.known(found[0].Slug)
	if other == nil { // the project was removed meanwhile
		return p, nil, nil
	}
	return other, &Error{
		What:  refusal.Note("{=name} is an agent of project {choices}, not of project {=other}, so the call applies to {choices}."),
		Name:  agent,
		Other: p.mail.Name(),
		Near:  []string{other.mail.Name()},
	}, nil
}

// AddressOf returns the address that an agent of this project has in other projects. The address contains the project's
// name if no other project has that name, and otherwise the project's slug.
func (p *Project) AddressOf(agent string) string { return p.mail.ShortAddress(agent) }

// Queued returns the slugs of the other projects to which a message from this project has not been delivered yet. It
// returns nil if the projects cannot be determined.
func (p *Project) Queued(ctx context.Context, id string) []string {
	m, err := p.sentCopy(ctx, id, nil)
	if err != nil || m == nil {
		return nil
	}
	return p.carrier.Waits(p.mail, m)
}

// InAnotherProject reports whether a party to a message is an agent in another project, based only on the form of the
// party's address. The project may not exist on this machine.
func (s *Store) InAnotherProject(party string) bool { return s.core.PartyOf(party).Project != "" }

// completeAgent returns up to limit names of agents that begin with prefix. It lists the agents of the project with
// the given slug first. If the prefix is not empty, addresses of agents in other projects follow. If the prefix
// contains an @, the part after the @ is matched against the beginning of a project's name or slug.
func (s *Store) completeAgent(ctx context.Context, slug, prefix string, limit int) (names []string, err error) {
	if names, err = s.core.Index.Names(ctx, slug, format.KindProfile, prefix, limit); err != nil || slug == "" || prefix == "" {
		return names, err
	}
	begun, in, _ := strings.Cut(prefix, "@")
	for _, other := range s.core.Projects.Mails() {
		if other.Slug == slug || !other.IsCalled(in) {
			continue
		}
		found, err := s.core.Index.Names(ctx, other.Slug, format.KindProfile, begun, limit-len(names))
		if err != nil {
			return names, err
		}
		for _, name := range found {
			if core.IsAgent(prefix) || strings.EqualFold(name, begun) {
				names = append(names, other.ShortAddress(name))
			}
		}
		if len(names) >= limit {
			break
		}
	}
	return names, nil
}
