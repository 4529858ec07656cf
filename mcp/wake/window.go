package wake

import (
	"context"
	"errors"
	"slices"

	"mailtree/maildir"
	"mailtree/mcp/agentmail/tmux"
)

// tellReady types the notice into the window of an agent that is ready; nil when there is nothing
// to tell.
//
// The window of an agent is the pane from which it last called an agentmail tool. For an agent that
// never called one, it is the only window of that name in the session of whoever asks, if the
// program in it works in the project's code base. A pane in which somebody scrolls, or whose input
// is shared, is left alone and tried again.
func (n *Waker) tellReady(ctx context.Context, by By, p *maildir.Project, agent string) ([]Outcome, error) {
	news, err := p.Notice(ctx, agent)
	if news == nil {
		return nil, err
	}
	o, text := Outcome{Project: p.Slug, Agent: agent, New: news.New}, notice(ctx, p, agent)
	s, pane, err := n.findWindow(ctx, by.Tmux, p, news)
	if err == nil {
		err = s.Free(ctx, pane, text)
	}
	if err != nil {
		o.Why = err.Error()
		return []Outcome{o}, nil
	}
	if news, err = p.Notice(ctx, agent); news == nil { // tmux took its time
		return nil, err
	}
	o.New = news.New
	if !p.Told(news) { // before: of a notice that came to nothing the agent hears with the next message, of two it hears too much
		return nil, nil
	}
	if err := s.Type(context.WithoutCancel(ctx), pane, text, n.cfg.Pause); err != nil { // it counts as told
		o.Why = err.Error()
	}
	return []Outcome{o}, nil
}

// findWindow finds the pane that the agent sits at: where it called from, else by its name. The
// error says why there is none now.
func (n *Waker) findWindow(
	ctx context.Context, session string, p *maildir.Project, of *maildir.Notice,
) (s tmux.Session, pane string, err error) {
	err = errors.New("it has not called from a tmux window")
	if seat := of.Seat; seat.Tmux != "" {
		s, pane, err = look(ctx, seat.Tmux, seat.Pane, func(at tmux.Pane) bool {
			return at.ID == seat.Pane && (seat.Window == "" || at.Window == seat.Window)
		})
	}
	if pane != "" || session == "" || errors.Is(err, errNotQuiet) {
		return s, pane, err
	}
	return look(ctx, session, "", func(at tmux.Pane) bool { return at.Window == of.Agent && at.Active && p.Covers(at.Dir) })
}

var errNotQuiet = errors.New("somebody scrolls in its window, or the window's input is off or shared")

// look finds the only pane of a session that is the agent's.
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
		return s, "", errors.New("it has no window here")
	case len(panes) > 1:
		return s, "", errors.New("several windows have its name")
	case !panes[0].Quiet:
		return s, "", errNotQuiet
	}
	return s, panes[0].ID, nil
}
