package wake

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/seat"
	"mailtree/mcp/agentmail/tmux"
)

// knock wakes the agent at a seat in the best available way. It returns an outcome, as defined in package seat, or ""
// if there is nothing left to announce. If the agent could not be woken, why gives the reason.
//
// For a session, knock does not record that the agent was notified. The prompt begins a turn, and the client's hook
// then reports all unread mail. For an agent without a session, Recheck records the notification before anything is
// typed.
func (n *Waker) knock(ctx context.Context, by By, p *maildir.Project, s *maildir.IdleSeat) (how string, why error) {
	switch way := s.Way(); {
	case way == seat.ByQueue:
		return seat.Queued, queueCodex(ctx, &s.Seat, notice(s.Program))
	case way == "":
		return "", errors.New("its client does not wait for mail, and is not running in tmux")
	case !by.Types:
		return "", errors.New("its client does not wait for mail, and this server does not type into tmux windows")
	}
	text := notice(s.Program)
	window, pane, err := findPane(ctx, by.Tmux, p, s)
	if err == nil {
		err = window.Free(ctx, pane, text)
	}
	if err != nil {
		return "", err
	}
	if still, err := p.Sessions.Recheck(ctx, by.query(s.Agent), s); !still { // the calls to tmux may have taken a while
		return "", err
	}
	return seat.Typed, window.Type(context.WithoutCancel(ctx), pane, text, n.cfg.Pause)
}

// findPane finds a seat's pane: the pane in which its session runs, or from which its agent called. If an agent has no
// session and no such pane, findPane searches the given tmux session for a window with the agent's name
// (format.NameOfWindow). There must be only one such window, and its program must be working in the project's code
// base. If the pane is in copy mode, or its input is disabled or synchronized with other panes, findPane returns
// errNotQuiet. If there is no suitable pane, the error says why.
func findPane(ctx context.Context, session string, p *maildir.Project, of *maildir.IdleSeat) (s tmux.Session, pane string, err error) {
	err = errors.New("it has not called the server from a tmux window")
	if its := of.Pane; its.Tmux != "" {
		s, pane, err = look(ctx, its.Tmux, its.Pane, func(at tmux.Pane) bool {
			return at.ID == its.Pane && (its.Window == "" || at.Window == its.Window)
		})
	}
	if pane != "" || session == "" || !of.IsWindow() || errors.Is(err, errNotQuiet) {
		return s, pane, err
	}
	return look(ctx, session, "", func(at tmux.Pane) bool {
		return strings.EqualFold(format.NameOfWindow(at.Window), of.Agent) && at.Active && p.Code.Covers(at.Dir)
	})
}

var errNotQuiet = errors.New("its window is in copy mode, or the window's input is disabled or synchronized")

// look returns the pane in a tmux session for which the function its returns true. It returns an error if there is not
// exactly one such pane, or if that pane is not Quiet.
func look(ctx context.Context, value, near string, its func(tmux.Pane) bool) (s tmux.Session, pane string, err error) {
	if s, err = tmux.Parse(value); err != nil {
		return s, "", err
	}
	panes, err := s.Panes(ctx, near)
	if err != nil {
		return s, "", err
	}
	panes = slices.DeleteFunc(panes, func(at tmux.Pane) bool { return !its(at) })
	switch {
	case len(panes) == 0:
		return s, "", errors.New("it has no tmux window on this machine")
	case len(panes) > 1:
		return s, "", errors.New("several tmux windows have the agent's name")
	case !panes[0].Quiet:
		return s, "", errNotQuiet
	}
	return s, panes[0].ID, nil
}
