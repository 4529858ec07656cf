package maildir

import (
	"context"
	"fmt"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/record"
	"mailtree/maildir/waiting"
)

// Decisions is the result of Store.Decided. RecordEntry is an entry in a Decisions or a CatchUp.
type (
	Decisions   = record.Decided
	RecordEntry = record.Entry
)

// CatchUp contains what happened while an agent was away, and which agents are stuck now. None of its lists is nil.
type CatchUp struct {
	record.Account
	Stopped []Stop    `json:"stopped"` // same as Waits.Stopped
	Asleep  []Unwoken `json:"asleep"`  // same as Waits.Asleep
}

// Decided returns the decisions made in a project, or in all projects if p is nil, since the given time.
func (s *Store) Decided(ctx context.Context, p *Project, since time.Time) (*Decisions, error) {
	return record.DecidedSince(ctx, mailsOf(s.these(p)), since)
}

// CatchUp reports what happened in a project, or in all projects if p is nil, since the given time. If since is zero,
// the report starts when the agent last looked at the mail (record.LastLooked). The agent need not exist. CatchUp
// writes nothing.
func (s *Store) CatchUp(ctx context.Context, p *Project, agent string, since time.Time) (*CatchUp, error) {
	projects := s.these(p)
	mails, now := mailsOf(projects), s.core.Now()
	if since.IsZero() {
		var err error
		if since, err = record.LastLooked(ctx, mails, agent, now); err != nil {
			return nil, err
		}
	}
	account, err := record.Since(ctx, mails, since, now)
	if err != nil {
		return nil, err
	}
	c := &CatchUp{Account: *account, Stopped: []Stop{}, Asleep: []Unwoken{}}
	for _, of := range projects {
		stopped, asleep, err := of.lister(agent).Stuck(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot find the stuck agents in project %s: %w", of.Slug, err)
		}
		if p == nil {
			stopped, asleep = waiting.InProject(of.Slug, stopped, asleep)
		}
		c.Stopped, c.Asleep = append(c.Stopped, stopped...), append(c.Asleep, asleep...)
	}
	return c, nil
}

// these returns p alone, or all projects if p is nil.
func (s *Store) these(p *Project) []*Project {
	if p == nil {
		return s.Projects()
	}
	return []*Project{p}
}

func mailsOf(projects []*Project) (all []*core.Mail) {
	for _, p := range projects {
		all = append(all, p.mail)
	}
	return all
}
