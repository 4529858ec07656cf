package page

import (
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/seat"
)

// agentShown is an agent in the directory.
type agentShown struct {
	maildir.AgentInfo
	Oldest  time.Time        // when its oldest unread mail arrived; zero: no unread mail
	Asleep  *maildir.Unwoken // its mail that no session can be woken for; nil for none
	Asks    bool             // its client waits for a person's permission
	Reaches []maildir.Reach
}

// agentsMost is the most agents that one view shows.
const agentsMost = 1000

// agents shows the agents: presence, unread mail, claims, and how each can be woken and was woken last.
func (h *Page) agents(v *view) error {
	if err := v.in("agents", "Agents"); err != nil {
		return err
	}
	asleep, err := v.p.Unwoken(v.ctx())
	if err != nil {
		return err
	}
	var all []agentShown
	reaches := v.p.Reaches()
	_, err = v.p.EachAgent(v.ctx(), maildir.AgentsQuery{Take: func(a *maildir.AgentInfo) bool {
		shown := agentShown{AgentInfo: *a, Reaches: reaches[a.Name], Asks: v.p.Asks(a.Name)}
		if n := slices.IndexFunc(asleep, func(u maildir.Unwoken) bool { return u.Agent == a.Name }); n >= 0 {
			shown.Asleep = &asleep[n]
		}
		all = append(all, shown)
		return len(all) < agentsMost
	}})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Unread > 0 {
			if all[i].Oldest, err = v.p.Box(all[i].Name, v.origin()).UnreadSince(v.ctx()); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b agentShown) int { return b.LastActive.Compare(a.LastActive) })
	return v.show("agents", all)
}

// toAgent is a view with a form about an agent.
type toAgent struct {
	*view
	Agent string
}

// To returns the view for a form about an agent.
func (v *view) To(agent string) toAgent { return toAgent{v, agent} }

// CanNudge reports whether the person can wake agents from here.
func (v *view) CanNudge() bool { return v.Signed && v.page.cfg.Nudge != nil }

// nudge wakes an agent now and reports the result.
func (h *Page) nudge(v *view) (to string, err error) {
	if h.cfg.Nudge == nil {
		return "", errNoView
	}
	agent := v.r.PathValue("agent")
	text := agent + " was not woken: it has no unread mail, or its client waits for mail and tells of it by itself."
	tried := false
	err = h.cfg.Nudge(v.ctx(), v.p.Slug, agent, func(how, why string) {
		switch { // one woken session is enough
		case why == "":
			text, tried = agent+" was told of its mail"+hows[how]+".", true
		case !tried:
			text, tried = agent+" was not woken: "+why+".", true
		}
	})
	return v.saidAt(v.at("agents"), text) + "#" + agent, err
}

// hows are the outcomes of package seat in words.
var hows = map[string]string{
	seat.Queued: ": the notice is in the queue of its client",
	seat.Typed:  ": the notice was typed into its window",
}

// Way says how a session can be woken.
func (v *view) Way(r maildir.Reach) string {
	switch {
	case r.Ended:
		return r.Client + ", ended"
	case r.Waits:
		return r.Client + ", wakes by itself"
	case r.Way == seat.ByQueue:
		return r.Client + ", by its queue"
	case r.Way == seat.InWindow:
		return r.Client + ", in tmux"
	}
	return r.Client + ", cannot be woken"
}

// Woke says how the last wake of a session went; "" if none was needed.
func (v *view) Woke(r maildir.Reach) string {
	said := []string{}
	for _, s := range []string{r.Wake.Outcome, r.Wake.Why} {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, ": ")
}
