package page

import (
	"time"

	"mailtree/maildir"
	"mailtree/maildir/summary"
)

// saidFrom is the minimum number of messages in a thread that is shown with a summary. saidMost is the maximum number
// of lines in each part of the summary.
const (
	saidFrom = 5
	saidMost = 3
)

// partShown contains the newest lines in one part of a thread's summary.
type partShown struct {
	summary.Part
	More int // number of lines that are not shown
}

// said returns a thread's summary: questions, decisions and open points. If the summary is empty, said returns nil.
func (v *view) said(thread string) (parts []partShown, err error) {
	s, err := v.p.Condense(v.ctx(), thread)
	if err != nil {
		return nil, err
	}
	lines := 0
	for _, part := range s.Parts() {
		lines += len(part.Items)
		more := max(0, len(part.Items)-saidMost)
		part.Items = part.Items[more:]
		parts = append(parts, partShown{part, more})
	}
	if lines == 0 {
		return nil, nil
	}
	return parts, nil
}

// decisions lists the project's decisions, newest first, with links to the threads. Store.Decided limits the length of
// the list.
func (h *Page) decisions(v *view) error {
	if err := v.in("decisions", "Decisions"); err != nil {
		return err
	}
	var always time.Time
	found, err := h.cfg.Store.Decided(v.ctx(), v.p, always)
	if err != nil {
		return err
	}
	return v.show("decisions", found)
}

// pastMost is the maximum number of decisions, and of open questions, in the catch-up.
const pastMost = 20

// pastShown is the catch-up, which lists what happened while the user was away.
type pastShown struct {
	*maildir.CatchUp
	MoreDecided, MoreOpen int // numbers of decisions and questions that are not shown
}

// catchUp reads the events since the user's last visit, which are shown in the pane next to the list. The script does
// not replace that pane, so catchUp reads nothing if the request asks for part of a view.
func (v *view) catchUp() error {
	since := v.lastLooked()
	if v.r.Header.Get(fragmentHeader) != "" {
		return nil
	}
	u, err := v.page.cfg.Store.CatchUp(v.ctx(), v.p, v.Me, since)
	if err != nil {
		return err
	}
	past := &pastShown{u, max(0, len(u.Decisions)-pastMost), max(0, len(u.Open)-pastMost)}
	u.Decisions, u.Open = u.Decisions[:len(u.Decisions)-past.MoreDecided], u.Open[:len(u.Open)-past.MoreOpen]
	v.Desk.Past = past
	return nil
}
