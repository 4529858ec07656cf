package page

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// operation is one line in the activity.
type operation struct {
	At        time.Time
	Who, What string // Who is "" if unknown
	Link      string // to the message, or to its history if it is gone; "" for a claim or an agent
	Subject   string
	Gone      bool // the message no longer exists
	Path      string
}

type activityShown struct {
	Only   string   // the agent whose activity is shown; "" for everyone's
	Agents []string // agents that the reader can choose
	Rows   []operation
	Read   time.Time // time of the oldest change that was read
	Next   int64     // mark of the next page; 0 at the end
}

// activityRows is how many operations one page of the activity view shows. The page reads changes activityRead at a
// time, at most activityReads times.
const (
	activityRows  = 100
	activityRead  = 1000
	activityReads = 5
)

// activityAgents is how many agents the reader can choose from in the activity view.
const activityAgents = 30

// told contains the verb for each kind of change that represents an operation.
var told = map[format.Kind]map[string]string{
	format.KindCanonical: {index.Added: "wrote", index.Changed: "changed", index.Removed: "removed"},
	format.KindRead:      {index.Added: "read"},
	format.KindAck:       {index.Added: "acknowledged"},
	format.KindArchived:  {index.Added: "archived"},
	format.KindClaim:     {index.Added: "claimed", index.Changed: "renewed a claim"},
	format.KindReleased:  {index.Added: "released"},
	format.KindProfile:   {index.Added: "came"},
	format.KindStatus:    {index.Added: "set its status", index.Changed: "set its status"},
}

// activity shows the newest operations of the project, or those before a mark.
func (h *Page) activity(v *view) error {
	if err := v.in("activity", "Activity"); err != nil {
		return err
	}
	before, _ := strconv.ParseInt(v.asked("before"), 10, 64)
	a := activityReading{view: v, held: map[string]claim.Row{}, before: before}
	a.shown.Only = v.asked("agent")
	const all = true
	claims, err := v.p.Claims.List(v.ctx(), all)
	if err != nil {
		return err
	}
	for i := range claims {
		a.held[claims[i].Path] = claims[i]
	}
	for n := 0; n < activityReads && !a.over; n++ {
		if err := a.read(); err != nil {
			return err
		}
	}
	if !a.over {
		a.shown.Next = a.before
	}
	if a.shown.Agents, err = v.activeAgents(a.shown.Only); err != nil {
		return err
	}
	return v.show("activity", a.shown)
}

// activeAgents lists the agents that were active most recently, plus the agent in also, sorted by name.
func (v *view) activeAgents(also string) (names []string, err error) {
	var agents []maildir.AgentInfo
	_, err = v.p.Agents.EachAgent(v.ctx(), maildir.AgentsQuery{Take: func(a *maildir.AgentInfo) bool {
		agents = append(agents, *a)
		return len(agents) < agentsMost
	}})
	slices.SortStableFunc(agents, func(a, b maildir.AgentInfo) int { return b.LastActive.Compare(a.LastActive) })
	for _, a := range agents[:min(len(agents), activityAgents)] {
		names = append(names, a.Name)
	}
	if also != "" && !slices.Contains(names, also) {
		names = append(names, also)
	}
	slices.Sort(names)
	return names, err
}

// activityReading turns changes into rows.
type activityReading struct {
	*view
	shown  activityShown
	held   map[string]claim.Row // by claim file
	before int64                // mark of the change that was read last; 0: nothing was read
	over   bool                 // there is nothing more to read, or no room for it

	deeds map[deed][]history.Entry // the newest operations, newest first; nil: not read
}

// deed identifies an operation's effect on a message's file. op is index.Added, index.Changed or index.Removed.
type deed struct{ id, op string }

// deedsRead is the number of newest operations that are read to find out who undid, restored or changed a message.
const deedsRead = 300

// readDeeds reads the newest operations.
func (a *activityReading) readDeeds() error {
	a.deeds = map[deed][]history.Entry{}
	return a.p.Log(a.ctx(), maildir.LogQuery{Limit: deedsRead}, func(e *history.Entry) error {
		if op := opOf(e.Verb); op != "" && e.ID != "" {
			a.deeds[deed{e.ID, op}] = append(a.deeds[deed{e.ID, op}], *e)
		}
		return nil
	})
}

// opOf returns what an operation does to its message's file, or "" for nothing.
func opOf(verb string) string {
	of, undone := strings.CutPrefix(verb, history.UndoPrefix)
	if undone {
		return map[string]string{index.Added: index.Removed, index.Changed: index.Changed, index.Removed: index.Added}[opOf(of)]
	}
	switch strings.TrimPrefix(verb, history.RedoPrefix) {
	case "send", "reply":
		return index.Added
	case maildir.VerbAmend:
		return index.Changed
	case history.VerbDelete:
		return index.Removed
	}
	return ""
}

// deedOf takes from a.deeds the operation behind a change to a message's file, or returns nil if it is unknown. It
// takes the operation nearest in time, because a commit comes after its operations. Among the operations of one commit
// it takes the newest, because changes come newest first.
func (a *activityReading) deedOf(c *index.Change) *history.Entry {
	key := deed{c.ID, c.Op}
	all, at := a.deeds[key], 0
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		if all[i].At.Sub(c.At).Abs() < all[at].At.Sub(c.At).Abs() {
			at = i
		}
	}
	e := all[at]
	a.deeds[key] = slices.Delete(all, at, at+1)
	return &e
}

// read reads the next changes.
func (a *activityReading) read() error {
	changes, err := a.p.NewestChanges(a.ctx(), a.before, activityRead)
	if err != nil {
		return err
	}
	taken := func(c index.Change) bool { return c.Kind == format.KindCanonical && c.Op != index.Added }
	if a.deeds == nil && slices.ContainsFunc(changes, taken) {
		if err := a.readDeeds(); err != nil {
			return err
		}
	}
	more := readWith(changes)
	for i := range changes {
		c := &changes[i]
		if c.Kind != format.KindRead || !more[markOf(c)] {
			d, err := a.operationOf(c)
			if err != nil {
				return err
			}
			if d != nil && len(a.shown.Rows) == activityRows {
				a.shown.Next, a.over = a.before, true
				return nil
			}
			if d != nil {
				a.shown.Rows = append(a.shown.Rows, *d)
			}
		}
		a.before, a.shown.Read = c.Seq, c.At
	}
	a.over = len(changes) < activityRead
	return nil
}

// operationOf returns the operation that a change shows. It returns nil if the change shows no operation, or one that
// the chosen agent did not do.
func (a *activityReading) operationOf(c *index.Change) (*operation, error) {
	what := told[c.Kind][c.Op]
	if c.Kind == format.KindCanonical {
		e := a.deedOf(c)
		if e != nil && !a.Signed && e.Who != c.Agent {
			e = nil // an agent other than the sender may be a blind recipient (Invariant I7)
		}
		switch {
		case e != nil && c.Op == index.Added && e.Verb != strings.TrimPrefix(strings.TrimPrefix(e.Verb, history.UndoPrefix), history.RedoPrefix):
			c.Agent, what = e.Who, "restored"
		case e != nil && c.Op == index.Removed && strings.HasPrefix(e.Verb, history.UndoPrefix):
			c.Agent, what = e.Who, "undid"
		case e != nil && c.Op != index.Added:
			c.Agent = e.Who
		case c.Op != index.Added:
			c.Agent = "" // the feed contains the message's sender here
		}
	}
	file := c.Path
	if c.Kind == format.KindReleased {
		file = format.ClaimOfMark(file)
		c.Agent = cmp.Or(a.p.Claims.ReleasedBy(c.Path), a.held[file].Agent)
	}
	d := &operation{At: c.At, Who: c.Agent, What: what}
	if d.What == "" || a.shown.Only != "" && c.Agent != a.shown.Only {
		return nil, nil
	}
	if c.Kind == format.KindClaim || c.Kind == format.KindReleased {
		d.Path = cmp.Or(a.held[file].Pattern, file)
	}
	if c.ID != "" {
		if open, err := a.tellMessage(d, c); err != nil || !open && !a.Signed {
			return nil, err
		}
	}
	return d, nil
}

// mark is an agent's mark on its copy of a message, with the mark's time.
type mark struct {
	id, agent string
	at        int64
}

func markOf(c *index.Change) mark { return mark{c.ID, c.Agent, c.At.UnixMicro()} }

// readWith returns the marks for acknowledging and archiving. Each of these operations has also marked the message as
// read, but is shown as one operation.
func readWith(changes []index.Change) map[mark]bool {
	all := map[mark]bool{}
	for i := range changes {
		if c := &changes[i]; c.Op == index.Added && (c.Kind == format.KindAck || c.Kind == format.KindArchived) {
			all[markOf(c)] = true
		}
	}
	return all
}

// tellMessage fills in an operation's message. open reports whether everyone may know that the agent is involved
// (Invariant I7).
func (v *view) tellMessage(d *operation, c *index.Change) (open bool, err error) {
	m, err := v.p.MessageHead(v.ctx(), c.ID)
	if errors.Is(err, maildir.ErrNotFound) {
		d.Gone, d.Link = true, v.at("message", c.ID, "history")
		return c.Kind == format.KindCanonical, nil
	}
	if err != nil {
		return false, err
	}
	d.Subject, d.Link = m.Subject, v.linkTo(m)
	return c.Kind == format.KindCanonical || slices.Contains(slices.Concat([]string{m.From}, m.To, m.CC), c.Agent), nil
}
