package guard

import (
	"path/filepath"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/hold"
)

// Held is a hold that stops an agent's changes, no matter which files they affect.
type Held struct {
	format.Hold
	Agent   string
	File    string // the hold's file
	Project string // the human key of the hold's project, or its slug if it has no human key
}

// held returns the hold on an agent in the project, or nil if the agent is not on hold. If the hold's file is invalid,
// the agent is not on hold, and bad contains the problem. An unidentified agent cannot be on hold. held returns any
// error from hold.Read.
func (p project) held(agent string, now time.Time) (h *Held, bad []format.Problem, err error) {
	found, problem, err := hold.Read(p.tree, agent)
	if problem != nil {
		bad = []format.Problem{*problem}
	}
	if err != nil || !hold.Stops(found, now) {
		return nil, bad, err
	}
	return &Held{*found, agent, filepath.Join(p.tree.Dir(), format.HoldPath(agent)), p.name}, bad, nil
}

// held prints that the agent is on hold, and what the agent can do about the hold.
func (r *report) held(h *Held, warn bool) {
	short := h.Hold
	short.Reason = clip(short.Reason, 200)
	r.say("mailtree guard: %s", format.Printable(hold.Sentence(&short, h.Agent)))
	r.say("")
	r.say("The hold ends in %s, at %s, unless %s ends it earlier.",
		format.TimeLeft(max(time.Minute, h.Until.Sub(r.q.Now))), h.Until.UTC().Format("2006-01-02 15:04 MST"), safe(h.By))
	r.say("hold file: %s", safe(h.File))
	if warn {
		r.say("This is only a warning: the %s continues.", r.q.doing())
		return
	}
	means := ""
	if r.q.Hook == editing {
		means = " with your mail tool or this command"
	}
	r.say("Do not change any files until then. To continue earlier, ask %s%s:", safe(h.By), means)
	r.say("  %s", r.message(h.By, h.Project, "May I continue?"))
	if r.q.Hook != editing {
		r.override()
	}
}
