package page

import (
	"errors"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/editing"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// agentShown is an agent as shown in the list of agents.
type agentShown struct {
	maildir.AgentInfo
	State      string    // what the agent is doing, in one word
	Stuck      string    // why the agent needs help; "" if it does not
	Oldest     time.Time // when its oldest unread mail arrived; zero if it has no unread mail
	Wakes      bool      // whether a nudge can reach the agent
	Reaches    []maildir.WakeStatus
	Hold       *format.Hold
	Edit       *editing.Edit // its newest edit of a file; nil if none is known
	On         string        // the machine that the agent belongs to; "" if it is this machine
	Unwakeable string        // why mail cannot wake the agent; "" if it can
}

// agentsMost is the maximum number of agents in one view.
const agentsMost = 1000

// agents shows the agents, most recently active first. For each agent, it shows what the agent is doing, its unread
// mail and claims, how it can be woken, and how its last wake went.
func (h *Page) agents(v *view) error {
	if err := v.in("agents", "Agents"); err != nil {
		return err
	}
	var all []agentShown
	reaches := v.p.Sessions.WakeStatuses()
	_, err := v.p.Agents.EachAgent(v.ctx(), maildir.AgentsQuery{Take: func(a *maildir.AgentInfo) bool {
		var edit *editing.Edit
		if last, ok := v.p.Edits.Last(a.Name); ok {
			edit = &last
		}
		all = append(all, agentShown{
			AgentInfo:  *a,
			Edit:       edit,
			Reaches:    reaches[a.Name],
			Hold:       v.p.Holds.Of(&a.AgentRow),
			On:         v.p.MachineOf(&a.AgentRow),
			Unwakeable: v.p.Sessions.Unwakeable(&a.AgentRow),
		})
		return len(all) < agentsMost
	}})
	if err != nil {
		return err
	}
	stuck, err := v.stuck()
	if err != nil {
		return err
	}
	for i := range all {
		a := &all[i]
		why := stuck[a.Name]
		a.State, a.Stuck = firstOf(why.state, v.stateOf(&a.AgentRow)), why.why
		if a.Hold != nil && why.state != asking {
			a.State = held
		}
		if a.Unread == 0 {
			continue
		}
		if a.Oldest, err = v.p.Box(a.Name, v.origin()).UnreadSince(v.ctx()); err != nil {
			return err
		}
		if a.Wakes, err = v.CanNudge(a.Name); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b agentShown) int { return b.LastActive.Compare(a.LastActive) })
	return v.show("agents", all)
}

// states contains the words for the states that agents report.
var states = map[string]string{format.Ready: "ready", format.Work: "working", format.Offline: "offline"}

// States that the agents do not report themselves.
const (
	asking = "asks"
	held   = "held"
	asleep = "can’t wake"
	quiet  = "quiet"
)

// quietAfter is how long after its last call an agent that reports no state is still shown as active.
const quietAfter = 10 * time.Minute

func (v *view) stateOf(a *index.AgentRow) string {
	switch {
	case a.Name == v.Me:
		return "you"
	case v.p.Holds.Of(a) != nil:
		return held
	case a.Status != "":
		return states[a.Status]
	case v.Now.Sub(a.LastActive) < quietAfter:
		return "active"
	}
	return quiet
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
		all[p.Agent] = stuckAgent{asking, "Its client is waiting for the user's permission: " + firstOf(p.Pane.Attach(), p.Dir)}
	}
	return all, err
}

// CanNudge reports whether the user can nudge an agent: the agent has unread mail, and a nudge from this page can
// reach it.
func (v *view) CanNudge(agent string) (bool, error) {
	if !v.Signed || v.page.cfg.Nudge == nil || agent == v.Me {
		return false, nil
	}
	sleepers, err := v.p.Sessions.IdleSeats(v.ctx(), maildir.IdleQuery{Agent: agent, Windows: true, Again: true})
	return slices.ContainsFunc(sleepers, func(s maildir.IdleSeat) bool { return s.Way() != "" }), err
}

// toAgent is a view combined with the agent that one of its forms is about.
type toAgent struct {
	*view
	Agent string
}

// To combines the view with the agent that a form is about.
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
			text = agent + " was notified of its mail" + hows[how] + "."
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

// whyNobody explains why none of an agent's sessions was woken for its mail.
func (v *view) whyNobody(agent string) (string, error) {
	mail, err := v.p.Box(agent, v.origin()).Counts(v.ctx())
	waits := slices.ContainsFunc(v.p.Sessions.WakeStatuses()[agent], func(r maildir.WakeStatus) bool { return r.Waits })
	switch {
	case mail.Unread == 0:
		return "it has no unread mail", err
	case waits:
		return "its client waits for mail and wakes the agent on its own", err
	}
	return "none of its sessions can be woken", err
}

// errNotPerson means that the user is signed in as an agent that is not a person.
var errNotPerson = errors.New("only a person may hold an agent or end a hold")

// holdAgent puts an agent on hold, so that it changes no more files.
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

// hows contains the words for the outcomes defined in package seat.
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
		return r.Client + ", wakes on its own"
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
