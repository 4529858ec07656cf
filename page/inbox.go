package page

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"mailtree/maildir"
)

// myInbox is a page of the person's inbox, empty where they have written nothing yet: then they are
// no agent of the project.
func (v *view) myInbox(q maildir.InboxQuery) (*maildir.InboxPage, error) {
	const leaveUnread = false
	q.Agent, q.Peek = v.Me, true
	page, err := v.p.Inbox(v.ctx(), q, leaveUnread, 0)
	if v.Me == "" || errors.Is(err, maildir.ErrNotFound) {
		return &maildir.InboxPage{}, nil
	}
	return page, err
}

// inboxShown is a page of the person's inbox.
type inboxShown struct {
	*maildir.InboxPage
	Which string // what of it: "" is the unread, allMail, or withArchived
	Next  string
}

// Listed is how many messages the inbox lists where it is not asked for what is archived.
func (s inboxShown) Listed() int { return s.Total - s.Archived }

// Values of the inbox's parameter all.
const (
	allMail      = "1"
	withArchived = "archived"
)

func (h *Page) inbox(v *view) error {
	if err := v.in("inbox", "Inbox"); err != nil {
		return err
	}
	before, _ := strconv.ParseInt(v.asked("before"), 10, 64)
	shown := inboxShown{Which: v.asked("all")}
	var err error
	shown.InboxPage, err = v.myInbox(maildir.InboxQuery{
		UnreadOnly: shown.Which == "",
		Archived:   shown.Which == withArchived,
		Before:     before,
		Limit:      30,
	})
	if err != nil {
		return err
	}
	if shown.InboxPage.Next != 0 {
		shown.Next = strconv.FormatInt(shown.InboxPage.Next, 10)
	}
	return v.show("inbox", shown)
}

// item is one thing that waits for the person.
type item struct {
	Kind  string // mail, ack, owed, asleep, problem: how it looks
	Who   string
	What  string
	Why   string // what is asked for
	At    time.Time
	Link  string
	Agent string // to write to; "" for none
}

// waitingMost is how many things of one kind the first view shows.
const waitingMost = 50

// waiting shows what waits for the person: unread mail, acknowledgements to give and to get, agents
// whose mail lies with nobody to wake, files that are not valid.
func (h *Page) waiting(v *view) error {
	if err := v.in("waiting", "Waiting for you"); err != nil {
		return err
	}
	var all []item
	for _, find := range []func() ([]item, error){v.waitingMail, v.waitingAcks, v.waitingAgents, v.waitingProblems} {
		found, err := find()
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b item) int { return b.At.Compare(a.At) })
	return v.show("waiting", all)
}

func (v *view) waitingMail() (all []item, err error) {
	page, err := v.myInbox(maildir.InboxQuery{UnreadOnly: true, Limit: waitingMost})
	if err != nil {
		return nil, err
	}
	for i := range page.Messages {
		d := &page.Messages[i]
		why := ""
		switch {
		case d.AckRequired:
			why = "asks for an acknowledgement"
		case d.Importance == "urgent" || d.Importance == "high":
			why = d.Importance
		}
		all = append(all, v.mailItem("mail", d, d.From, why))
	}
	return all, nil
}

// waitingAcks are acknowledgements that the person has read about and not given, and those that
// others owe.
func (v *view) waitingAcks() (all []item, err error) {
	page, err := v.myInbox(maildir.InboxQuery{AwaitingAck: true, Limit: waitingMost})
	if err != nil {
		return nil, err
	}
	for i := range page.Messages {
		d := &page.Messages[i]
		switch {
		case d.Kind == maildir.KindSent:
			all = append(all, v.mailItem("owed", d, firstOf(append(d.To, d.CC...)...), "has not acknowledged"))
		case d.Read: // else it is among the mail
			all = append(all, v.mailItem("ack", d, d.From, "asks for an acknowledgement"))
		}
	}
	return all, nil
}

func (v *view) mailItem(kind string, d *maildir.Delivery, who, why string) item {
	return item{
		Kind: kind,
		Who:  who,
		What: d.Subject,
		Why:  why,
		At:   d.Created,
		Link: v.linkTo(&d.MessageRow),
	}
}

// linkTo is where a message is read: in its thread.
func (v *view) linkTo(m *maildir.MessageRow) string {
	return v.at("thread", cmp.Or(m.ThreadID, m.ID)) + "#" + m.ID
}

// LinkTo is linkTo for templates.
func (v *view) LinkTo(m maildir.MessageRow) string { return v.linkTo(&m) }

func (v *view) waitingAgents() (all []item, err error) {
	asleep, err := v.p.Unwoken(v.ctx())
	if err != nil {
		return nil, err
	}
	for _, u := range asleep {
		what := strconv.Itoa(u.Unread) + " unread since " + v.Age(u.Since)
		why := "its sessions could not be woken"
		if u.Ended {
			why = "all its sessions have ended"
		}
		all = append(all, item{
			Kind:  "asleep",
			Who:   u.Agent,
			What:  what,
			Why:   why,
			At:    u.Since,
			Link:  v.at("agents") + "#" + u.Agent,
			Agent: u.Agent,
		})
	}
	return all, nil
}

func (v *view) waitingProblems() ([]item, error) {
	if v.Broken == 0 {
		return nil, nil
	}
	what := strconv.Itoa(v.Broken) + " files cannot be read"
	if v.Broken == 1 {
		what = "one file cannot be read"
	}
	return []item{{
		Kind: "problem",
		Who:  "Files",
		What: what,
		Why:  "they hide only themselves",
		Link: v.at("problems"),
	}}, nil
}

// projects lists the projects, or shows the only one.
func (h *Page) projects(v *view) error {
	all := h.cfg.Store.Projects()
	if len(all) == 1 {
		return v.goTo(inProject(all[0].Slug()))
	}
	v.Title = "Projects"
	type row struct {
		*projectShown
		Unread int
	}
	var rows []row
	for _, p := range all {
		v.p = p
		page, err := v.myInbox(maildir.InboxQuery{Limit: 1})
		if err != nil {
			return err
		}
		rows = append(rows, row{shownProject(p), page.Unread})
	}
	v.p = nil
	return v.show("projects", rows)
}
