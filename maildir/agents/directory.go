package agents

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// AgentInfo is the information about an agent that whois and the directory show. The directory omits Mail and Commits.
type AgentInfo struct {
	index.AgentRow
	Claims []claim.Row      // the agent's live claims
	Mail   []index.Delivery // newest messages in the inbox, newest first, without messages received as bcc
	// Commits contains the agent's newest commits in the mail's history, newest first. It is empty if Git cannot be
	// read.
	Commits []history.Commit
}

// whoisCommits is the number of an agent's commits that whois shows.
const whoisCommits = 5

// whoisMail is the number of inbox messages that whois shows, each with its marks.
const whoisMail = 10

// Whois looks up an agent. It returns ErrNotFound with similar names if there is no such agent.
func (ag *Agents) Whois(ctx context.Context, name string) (*AgentInfo, error) {
	name, err := ag.mail.AgentNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	row, err := ag.mail.Store.Index.Agent(ctx, ag.mail.Slug, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, ag.mail.UnknownAgent(ctx, refusal.Agent, name)
	}
	ag.mail.AddSeen(row)
	info := &AgentInfo{AgentRow: *row}
	if info.Claims, err = ag.claims.Of(ctx, name); err != nil {
		return nil, err
	}
	mail, _, err := ag.mail.Store.Index.Inbox(ctx, index.InboxQuery{Project: ag.mail.Slug, Agent: name, Limit: whoisMail})
	if err != nil {
		return nil, err
	}
	blind := func(d index.Delivery) bool { return d.Kind == "bcc" } // other agents must not learn of bcc deliveries (Invariant I7)
	info.Mail = slices.DeleteFunc(mail, blind)
	if info.Commits, err = ag.mail.History.Authored(ctx, name, 4*whoisCommits); err != nil {
		ag.mail.Store.Log.Warn("whois: cannot read commits", "project", ag.mail.Slug, "agent", name, "error", err)
	}
	info.Commits = slices.DeleteFunc(info.Commits, marksMail)
	info.Commits = info.Commits[:min(len(info.Commits), whoisCommits)]
	return info, nil
}

// marksMail reports whether a commit marks one message, or undoes or redoes such a mark. whois omits these commits,
// because the agent may have received the message as bcc (Invariant I7). For all other messages, the marks are visible
// in Mail.
func marksMail(c history.Commit) bool {
	verb, _, _ := strings.Cut(c.Subject, ":")
	verb = strings.TrimPrefix(strings.TrimPrefix(verb, history.UndoPrefix), history.RedoPrefix)
	return slices.Contains([]string{"read", "unread", "acknowledge", "archive", "pop", "delete"}, verb)
}

// activeFor is how long an agent counts as active after it was last seen. See docs/reference/tools.md, "Agents".
const activeFor = 7 * 24 * time.Hour

// List lists all agents, sorted by name. The rows do not include Program, Model, Task or LastActive.
func (ag *Agents) List(ctx context.Context) ([]index.AgentRow, error) {
	return ag.mail.Store.Index.Agents(ctx, ag.mail.Slug)
}

// LastRead returns when each agent last read mail. It omits agents that have never read mail.
func (ag *Agents) LastRead(ctx context.Context) (map[string]time.Time, error) {
	return ag.mail.Store.Index.LastRead(ctx, ag.mail.Slug)
}

// AgentsQuery selects agents for EachAgent.
type AgentsQuery struct {
	After  string // list only agents whose names come after this name
	Active bool   // list only agents seen in the last seven days
	// Take is called for each agent. It returns false to reject the agent and stop EachAgent.
	Take func(a *AgentInfo) bool
}

// agentsRead is the number of agents that one query reads. The number is limited because a profile may be up to 12 KiB
// long.
const agentsRead = 50

// EachAgent calls q.Take for each agent, in order of name. Mail and Commits are not set. end reports whether EachAgent
// reached the last agent.
func (ag *Agents) EachAgent(ctx context.Context, q AgentsQuery) (end bool, err error) {
	const all = false
	live, err := ag.claims.List(ctx, all)
	if err != nil {
		return false, err
	}
	claims := map[string][]claim.Row{}
	for _, c := range live {
		claims[c.Agent] = append(claims[c.Agent], c)
	}
	for {
		rows, err := ag.mail.Store.Index.AgentsAfter(ctx, ag.mail.Slug, q.After, agentsRead)
		if err != nil {
			return false, err
		}
		for i := range rows {
			a := &rows[i]
			ag.mail.AddSeen(a)
			if q.Active && ag.mail.Store.Now().Sub(a.LastActive) > activeFor {
				continue
			}
			isNamesakes := func(c claim.Row) bool { return ag.claims.Elsewhere.IsNamesakes(c.Path, a) }
			if !q.Take(&AgentInfo{AgentRow: *a, Claims: slices.DeleteFunc(claims[a.Name], isNamesakes)}) {
				return false, nil
			}
		}
		if len(rows) < agentsRead {
			return true, nil
		}
		q.After = rows[len(rows)-1].Name
	}
}
