package page

import (
	"slices"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// crowd contains the agents of a project.
type crowd struct {
	agents []maildir.AgentInfo // the most recently active agents, newest first, at most agentsMost
	count  int                 // total number of agents
	stuck  map[string]stuckAgent
}

// agentsMost is the maximum number of agents in one view.
const agentsMost = 1000

// readCrowd reads the agents of the view's project.
func (v *view) readCrowd() (*crowd, error) {
	var all []maildir.AgentInfo
	_, err := v.p.Agents.EachAgent(v.ctx(), maildir.AgentsQuery{Take: func(a *maildir.AgentInfo) bool {
		all = append(all, *a)
		return true
	}})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b maildir.AgentInfo) int { return b.LastActive.Compare(a.LastActive) })
	c := &crowd{agents: slices.Clone(all[:min(len(all), agentsMost)]), count: len(all)}
	c.stuck, err = v.stuck()
	return c, err
}

// stuckAgent describes why an agent cannot continue on its own.
type stuckAgent struct{ state, why string }

// stuck returns the agents that cannot continue on their own.
func (v *view) stuck() (map[string]stuckAgent, error) {
	all := map[string]stuckAgent{}
	unwoken, err := v.p.Sessions.Unwoken(v.ctx())
	for i := range unwoken {
		all[unwoken[i].Agent] = stuckAgent{asleep, unwoken[i].String()}
	}
	for _, p := range v.p.Sessions.Prompts() {
		all[p.Agent] = stuckAgent{asking, "Its client is waiting for the user's permission. Answer in its terminal: " +
			firstOf(p.Pane.Attach(), p.Dir)}
	}
	return all, err
}

// states maps the states that agents report to the words that the page shows.
var states = map[string]string{format.Ready: "ready", format.Work: "working", format.Offline: "offline"}

// States that the agents do not report themselves.
const (
	asking = "asks"
	held   = "held"
	asleep = "can’t wake"
	active = "active"
	quiet  = "quiet"
)

// stateOf returns what an agent is doing, in one or two words.
func (v *view) stateOf(a *maildir.AgentInfo, c *crowd) string {
	switch why := c.stuck[a.Name]; {
	case why.state == asking:
		return asking
	case v.p.Holds.Of(&a.AgentRow) != nil:
		return held
	case why.state != "":
		return why.state
	case a.Name == v.Me:
		return "you"
	case a.Status != "":
		return states[v.p.Sessions.Status(&a.AgentRow)]
	case v.Now.Sub(a.LastActive) < maildir.QuietAfter:
		return active
	}
	return quiet
}

// nowShown is an agent and what it is doing.
type nowShown struct {
	Name, State string
	Doing       string // "edits" or "claims"; "" if the state is more important
	File        string // the file that the agent is editing, or the pattern that it claimed last
}

// nowMost is the maximum number of agents shown in the rail.
const nowMost = 12

// now returns the most recently active agents, except the user, along with the files that they are editing or claiming.
// Agents that are asking for permission come first.
func (v *view) now(c *crowd) (all []nowShown) {
	var first, others []*maildir.AgentInfo
	for i := range c.agents {
		switch a := &c.agents[i]; {
		case a.Name == v.Me:
		case v.stateOf(a, c) == asking:
			first = append(first, a)
		default:
			others = append(others, a)
		}
	}
	agents, edits := slices.Concat(first, others), v.p.Edits.Recent()
	for _, a := range agents[:min(len(agents), nowMost)] {
		n := nowShown{Name: a.Name, State: v.stateOf(a, c)}
		if last := len(a.Claims) - 1; last >= 0 && !slices.Contains([]string{asking, held, asleep, states[format.Offline]}, n.State) {
			n.Doing, n.File = "claims", a.Claims[last].Pattern // the newest claim
		}
		for _, e := range slices.Backward(edits) { // from the oldest to the newest, so the newest wins
			if e.Agent == n.Name && n.State != asking && n.State != held {
				n.Doing, n.File = "edits", e.Path
			}
		}
		all = append(all, n)
	}
	return all
}
