package page

import (
	"slices"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/index"
)

// menu holds what waits for the person, and the counts beside the menu.
type menu struct {
	mailDue
	Waits  []item // newest first
	Agents int
	Claims int // live claims
	Broken int // invalid files
}

// Waiting is how many things wait, including those that Waits leaves out.
func (m *menu) Waiting() int { return len(m.Waits) + m.More }

// mailDue is the mail that waits for the person: unread, to acknowledge or to answer.
type mailDue struct {
	Unread int
	More   int // unread messages that are not in due
	due    []item
}

// countMenu fills in the menu. Reading the due mail takes milliseconds in a large project, so all views of
// a person share it until the project changes. The rest is cheap to read, and changes with time, or when
// the guard or a session writes something, without an event.
func (v *view) countMenu() (err error) {
	m := &v.Menu
	if m.mailDue, err = v.page.dueTo(v).read(v); err != nil {
		return err
	}
	if m.Broken, err = v.p.CountProblems(v.ctx()); err != nil {
		return err
	}
	agents, err := v.p.Agents(v.ctx())
	if err != nil {
		return err
	}
	const ended = false
	claims, err := v.p.Claims(v.ctx(), ended)
	if err != nil {
		return err
	}
	m.Agents, m.Claims = len(agents), len(claims)
	m.Waits, err = concat(m.due, v.waitingStops, v.waitingAgents, v.waitingProblems)
	slices.SortStableFunc(m.Waits, func(a, b item) int { return b.At.Compare(a.At) })
	return err
}

// concat returns the items followed by those of each function.
func concat(items []item, lists ...func() ([]item, error)) ([]item, error) {
	all := slices.Clone(items)
	for _, list := range lists {
		found, err := list()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// readMailDue reads the due mail from the index.
func (v *view) readMailDue() (mailDue, error) {
	unread, err := v.myInbox(index.InboxQuery{UnreadOnly: true, Limit: waitingMost})
	if err != nil {
		return mailDue{}, err
	}
	due, err := concat(v.waitingMail(unread), v.waitingAcks, v.waitingQuestions)
	return mailDue{
		Unread: unread.Unread,
		More:   unread.Unread - len(unread.Messages),
		due:    due,
	}, err
}

// mailbox is a person's mail in one project.
type mailbox struct {
	p  *maildir.Project
	me string
}

// keptDue is a person's due mail as it was last read. It is safe for concurrent use.
type keptDue struct {
	mu   sync.Mutex      // held while mail is read: views that come meanwhile share the result
	bell <-chan struct{} // rings when the project has changed since; nil: never read
	tick int64           // the tick at which the last read began
	mailDue
}

// dueTo returns the due mail last read for the view's person. It creates an empty entry at first use.
func (h *Page) dueTo(v *view) *keptDue {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := mailbox{v.p, v.Me}
	if h.due[of] == nil {
		h.due[of] = &keptDue{}
	}
	return h.due[of]
}

// read returns the mail that is due now. For a part of a view it returns the mail that was due at the tick
// that the part asks for, or later.
func (k *keptDue) read(v *view) (mailDue, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bell != nil && (k.tick >= sinceTick(v.r) || !rung(k.bell)) {
		return k.mailDue, nil
	}
	bell, tick := v.p.Changed(), tickAt(time.Now())
	due, err := v.readMailDue()
	if err == nil {
		k.bell, k.tick, k.mailDue = bell, tick, due
	}
	return due, err
}

func rung(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}
