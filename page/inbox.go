package page

import (
	"cmp"
	"errors"
	"strconv"

	"mailtree/maildir"
	"mailtree/maildir/index"
)

// myInbox returns a page of the person's inbox. It is empty if the person has written nothing yet, because
// then they are not an agent of the project.
func (v *view) myInbox(q index.InboxQuery) (*maildir.InboxPage, error) {
	const leaveUnread = false
	q.Agent, q.Peek = v.Me, true
	page, err := v.p.Box(q.Agent, v.origin()).Inbox(v.ctx(), q, leaveUnread, maildir.Waiting{})
	if v.Me == "" || errors.Is(err, maildir.ErrNotFound) {
		return &maildir.InboxPage{}, nil
	}
	return page, err
}

// inboxShown is a page of the person's inbox.
type inboxShown struct {
	*maildir.InboxPage
	Which string // which part: "" for unread mail, allMail, or withArchived
	Next  string
}

// Listed is how many messages the inbox lists without archived ones.
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
	shown.InboxPage, err = v.myInbox(index.InboxQuery{
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

// linkTo returns the address of a message in its thread.
func (v *view) linkTo(m *index.MessageRow) string {
	return v.at("thread", cmp.Or(m.ThreadID, m.ID)) + "#" + m.ID
}

// LinkTo is linkTo for templates.
func (v *view) LinkTo(m index.MessageRow) string { return v.linkTo(&m) }

// projects lists the projects, or shows the only project.
func (h *Page) projects(v *view) error {
	all := h.cfg.Store.Projects()
	if len(all) == 1 {
		return v.goTo(inProject(all[0].Slug))
	}
	v.Title = "Projects"
	type row struct {
		*projectShown
		Unread int
	}
	var rows []row
	for _, p := range all {
		mine, err := p.Box(v.Me, v.origin()).Counts(v.ctx()) // zero if the person is no agent there
		if err != nil {
			return err
		}
		rows = append(rows, row{shownProject(p), mine.Unread})
	}
	return v.show("projects", rows)
}
