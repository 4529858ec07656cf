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

// operation is one line in the activity view.
type operation struct {
	At        time.Time
	Who, What string // who did what; Who is "" if the agent is unknown
	Link      string // URL of the message, or of its history if the message is gone; "" for claims and agents
	Subject   string
	To        fewNames // the recipients of a new message
	Gone      bool     // the message no longer exists
	Path      string
}

type activityShown struct {
	Only   string   // the agent whose activity is shown; "" for all agents
	Agents []string // agents that the reader can choose from
	Rows   []operation
	Days   []dayShown // Rows by day
	Read   time.Time  // time of the oldest change read so far
	Next   int64      // the "before" parameter of the next page; 0 at the end
}

// dayShown contains a day's operations, newest first. Each fold consists of consecutive operations of the same kind by
// the same agent.
type dayShown struct {
	Title string
	Folds [][]operation
}

// act pairs the view with one of its operations.
type act struct {
	*view
	Op operation
}

// Act pairs the view with an operation.
func (v *view) Act(o operation) act { return act{v, o} }

// days groups operations by day.
func (v *view) days(rows []operation) (all []dayShown) {
	for _, o := range rows {
		title := o.At.Local().Format("Monday 2 January")
		if len(all) == 0 || all[len(all)-1].Title != title {
			all = append(all, dayShown{Title: title})
		}
		d := &all[len(all)-1]
		if n := len(d.Folds); n > 0 && d.Folds[n-1][0].Who == o.Who && d.Folds[n-1][0].What == o.What {
			d.Folds[n-1] = append(d.Folds[n-1], o)
		} else {
			d.Folds = append(d.Folds, []operation{o})
		}
	}
	return all
}

// activityRows is the number of operations on one page of the activity view. The view reads activityRead changes at a
// time, up to activityReads times.
const (
	activityRows  = 100
	activityRead  = 1000
	activityReads = 5
)

// activityAgents is the number of agents that the reader can choose from.
const activityAgents = 30

// told maps each kind of change to the verb that the activity view shows.
var told = map[format.Kind]map[string]string{
	format.KindCanonical: {index.Added: "wrote", index.Changed: "changed", index.Removed: "removed"},
	format.KindAck:       {index.Added: "acknowledged"},
	format.KindArchived:  {index.Added: "archived"},
	format.KindClaim:     {index.Added: "claimed", index.Changed: "renewed a claim"},
	format.KindReleased:  {index.Added: "released"},
	format.KindProfile:   {index.Added: "joined"},
	format.KindStatus:    {index.Added: "set its status", index.Changed: "set its status"},
}

// activity shows the project's newest operations, or older ones if the request has the parameter "before".
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
	a.shown.Days = v.days(a.shown.Rows)
	return v.show("activity", a.shown)
}

// activeAgents returns the sorted names of the most recently active agents. If also is not "", the result includes it.
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

// activityReading reads changes and converts them to rows of the activity view.
type activityReading struct {
	*view
	shown  activityShown
	held   map[string]claim.Row // claims, keyed by file
	before int64                // sequence number of the last change that was read; 0 if none has been read
	over   bool                 // there is nothing left to read, or the page is full

	deeds map[deed][]history.Entry // the newest operations, newest first; nil if not read yet
}

// deed identifies the effect of an operation on a message's file. id is the message's id, and op is index.Added,
// index.Changed or index.Removed.
type deed struct{ id, op string }

// deedsRead is the number of recent operations to read when looking for who undid, restored or changed a message.
const deedsRead = 300

// readDeeds fills a.deeds with the newest operations in the history.
func (a *activityReading) readDeeds() error {
	a.deeds = map[deed][]history.Entry{}
	return a.p.Log(a.ctx(), maildir.LogQuery{Limit: deedsRead}, func(e *history.Entry) error {
		if op := opOf(e.Verb); op != "" && e.ID != "" {
			a.deeds[deed{e.ID, op}] = append(a.deeds[deed{e.ID, op}], *e)
		}
		for i := range e.Files { // find edits that users made in the tree
			f := &e.Files[i]
			if at := format.Locate(f.Path); !e.IsOperation() && at.Kind == format.KindCanonical && f.Op != history.Added {
				of := deed{at.ID, map[string]string{history.Changed: index.Changed, history.Removed: index.Removed}[f.Op]}
				a.deeds[of] = append(a.deeds[of], *e)
			}
		}
		return nil
	})
}

// opOf returns the effect of an operation on its message's file, or "" if it has none.
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

// deedOf finds the operation that caused a change to a message's file, removes it from a.deeds and returns it. It
// returns nil if the operation is unknown. The time of an operation is the time of its commit, which is made after the
// change. Therefore deedOf chooses the operation nearest in time. Among operations in the same commit, it chooses the
// newest, because changes are read newest first.
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
	for i := range changes {
		c := &changes[i]
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
		a.before, a.shown.Read = c.Seq, c.At
	}
	a.over = len(changes) < activityRead
	return nil
}

// operationOf returns the operation that caused a change. It returns nil if no operation caused the change, or if the
// view shows the activity of a different agent.
func (a *activityReading) operationOf(c *index.Change) (*operation, error) {
	what := told[c.Kind][c.Op]
	if c.Kind == format.KindCanonical {
		e := a.deedOf(c)
		if e != nil && !a.Signed && e.Who != c.Agent {
			e = nil // hide other agents, who may be bcc recipients (Invariant I7)
		}
		switch {
		case e != nil && c.Op == index.Added && e.Verb != strings.TrimPrefix(strings.TrimPrefix(e.Verb, history.UndoPrefix), history.RedoPrefix):
			c.Agent, what = e.Who, "restored"
		case e != nil && c.Op == index.Removed && strings.HasPrefix(e.Verb, history.UndoPrefix):
			c.Agent, what = e.Who, "undid"
		case e != nil && c.Op != index.Added:
			c.Agent = e.Who
		case c.Op != index.Added:
			c.Agent = "" // c.Agent is the message's sender, who may not have made the change
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

// recipientsOf returns a message's recipients. If a message has only bcc recipients, recipientsOf returns them only to
// the author.
func (v *view) recipientsOf(m *index.MessageRow) []string {
	all := slices.Concat(m.To, m.CC)
	if len(all) > 0 || !v.Signed || m.From != v.Me {
		return all
	}
	own, err := v.myInbox(index.InboxQuery{ID: m.ID})
	if err != nil || len(own.Messages) == 0 {
		return nil
	}
	return own.Messages[0].BCC
}

// tellMessage fills in the message that the operation d affected. open reports whether everyone may see that the agent
// was involved (Invariant I7).
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
	if d.What == told[format.KindCanonical][index.Added] {
		d.To = v.Few(v.recipientsOf(m))
	}
	return c.Kind == format.KindCanonical || slices.Contains(slices.Concat([]string{m.From}, m.To, m.CC), c.Agent), nil
}
