package page

import (
	"errors"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/maildir/seat"
)

// agentShown is an agent as shown in the list of agents.
type agentShown struct {
	maildir.AgentInfo
	State      string    // what the agent is doing, in one word
	Stuck      string    // why the agent needs help; "" if it does not
	Oldest     time.Time // arrival time of its oldest unread mail; zero if it has none
	Wakes      bool      // whether a nudge can reach the agent
	Reaches    []maildir.WakeStatus
	Hold       *format.Hold
	Edit       *editing.Edit // its newest edit of a file; nil if none is recorded
	On         string        // the machine that the agent belongs to; "" if it is this machine
	Unwakeable string        // why mail cannot wake the agent; "" if it can
}

// agents shows the agents, most recently active first. For each agent, it shows what the agent is doing, its unread
// mail and claims, how it can be woken, and how its last wake went.
func (h *Page) agents(v *view) error {
	if err := v.in("agents", "Now"); err != nil {
		return err
	}
	var all []agentShown
	reaches := v.p.Sessions.WakeStatuses()
	for i := range v.crowd.agents {
		info := &v.crowd.agents[i]
		a := agentShown{
			AgentInfo:  *info,
			State:      v.stateOf(info, v.crowd),
			Stuck:      v.crowd.stuck[info.Name].why,
			Reaches:    reaches[info.Name],
			Hold:       v.p.Holds.Of(&info.AgentRow),
			On:         v.p.MachineOf(&info.AgentRow),
			Unwakeable: v.p.Sessions.Unwakeable(&info.AgentRow),
		}
		if last, ok := v.p.Edits.Last(a.Name); ok {
			a.Edit = &last
		}
		if a.Unread > 0 {
			var err error
			if a.Oldest, err = v.p.Box(a.Name, v.origin()).UnreadSince(v.ctx()); err != nil {
				return err
			}
			if a.Wakes, err = v.CanNudge(a.Name); err != nil {
				return err
			}
		}
		all = append(all, a)
	}
	return v.show("agents", all)
}

// CanNudge reports whether the user can nudge an agent: the agent has unread mail, a nudge from this page can reach it,
// and its client is not asking for permission. If the client were asking, the text of the nudge would answer its
// question.
func (v *view) CanNudge(agent string) (bool, error) {
	asks := slices.ContainsFunc(v.p.Sessions.Prompts(), func(p maildir.Prompt) bool { return p.Agent == agent })
	if !v.Signed || v.page.cfg.Nudge == nil || agent == v.Me || asks {
		return false, nil
	}
	sleepers, err := v.p.Sessions.IdleSeats(v.ctx(), maildir.IdleQuery{Agent: agent, Windows: true, Again: true})
	return slices.ContainsFunc(sleepers, func(s maildir.IdleSeat) bool { return s.Way() != "" }), err
}

// toAgent pairs the view with the agent that a form acts on.
type toAgent struct {
	*view
	Agent string
}

// To pairs the view with the agent that a form acts on.
func (v *view) To(agent string) toAgent { return toAgent{v, agent} }

// nudge wakes an agent now and reports the result.
func (h *Page) nudge(v *view) (to string, err error) {
	if h.cfg.Nudge == nil {
		return "", errNoView
	}
	agent := v.r.PathValue("agent")
	text := ""
	err = h.cfg.Nudge(v.ctx(), v.p.Slug, agent, func(how, why string) {
		switch { // waking one session is enough
		case why == "":
			text = agent + " was notified of its unread mail" + hows[how] + "."
		case text == "":
			text = agent + " was not woken: " + why + "."
		}
	})
	if text == "" && err == nil {
		var why string
		why, err = v.whyNobody(agent)
		text = agent + " was not woken: " + why + "."
	}
	return v.saidAt(v.at("agents"), text) + "#" + agent, err
}

// whyNobody explains why none of an agent's sessions was woken to read its mail.
func (v *view) whyNobody(agent string) (string, error) {
	mail, err := v.p.Box(agent, v.origin()).Counts(v.ctx())
	waits := slices.ContainsFunc(v.p.Sessions.WakeStatuses()[agent], func(r maildir.WakeStatus) bool { return r.Waits })
	switch {
	case mail.Unread == 0:
		return "it has no unread mail", err
	case waits:
		return "its client is waiting for mail and wakes the agent itself", err
	}
	return "none of its sessions can be woken", err
}

// errNotPerson means that the browser is signed in as an agent that is not a person.
var errNotPerson = errors.New("only users may hold an agent or end a hold")

// holdAgent puts an agent on hold, so that it stops changing files.
func (h *Page) holdAgent(v *view) (to string, err error) {
	return v.changeHold("held", func(agent string) (*maildir.Held, error) {
		return v.box().Hold(v.ctx(), maildir.Holding{Agent: agent, Reason: strings.TrimSpace(v.r.PostForm.Get("reason"))})
	})
}

// endHold ends an agent's hold.
func (h *Page) endHold(v *view) (to string, err error) {
	return v.changeHold("let go", func(agent string) (*maildir.Held, error) { return v.box().Go(v.ctx(), agent) })
}

// changeHold calls do, which begins or ends the hold of the agent named in the request's path.
func (v *view) changeHold(did string, do func(agent string) (*maildir.Held, error)) (to string, err error) {
	is, err := v.p.Agents.IsPerson(v.ctx(), v.Me)
	if err != nil {
		return "", err
	}
	if !is {
		return "", errNotPerson
	}
	agent := v.r.PathValue("agent")
	changed, err := do(agent)
	if err != nil {
		return "", err
	}
	return v.saying(v.at("agents"), did, changed.ID, nil) + "#" + agent, nil
}

// hows maps the outcomes defined in package seat to phrases.
var hows = map[string]string{
	seat.Queued: ": the notice is in its client's queue",
	seat.Typed:  ": the notice was typed into its window",
}

// Way returns a phrase that says how a session can be woken.
func (v *view) Way(r maildir.WakeStatus) string {
	switch {
	case r.Ended:
		return r.Client + ", ended"
	case r.Waits:
		return r.Client + ", waiting for mail"
	case r.Way == seat.ByQueue:
		return r.Client + ", woken through its queue"
	case r.Way == seat.InWindow:
		return r.Client + ", woken in tmux"
	}
	return r.Client + ", cannot be woken"
}

// Woke returns a phrase that says how the last wake of a session went, or "" if the session has not been woken.
func (v *view) Woke(r maildir.WakeStatus) string {
	said := []string{}
	for _, s := range []string{r.Wake.Outcome, r.Wake.Why} {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, ": ")
}
