package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// TodayAsk is the body of POST /mailtree/today.
type TodayAsk struct {
	Project string    `json:"project"` // as of DeskAsk
	Since   time.Time `json:"since"`
}

// Today is what happened since then. Its fields are named as those of the tools' answers.
type Today struct {
	Project  string       `json:"project"`
	Since    string       `json:"since_ts"`
	Messages []DayMessage `json:"messages"`
	More     bool         `json:"more,omitempty"` // there were more messages
	Agents   []DayAgent   `json:"agents"`
	Claims   []DayClaim   `json:"claims"`
}

// DayMessage is a message that was sent.
type DayMessage struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"thread_id,omitempty"`
	From     string   `json:"from"`
	To       []string `json:"to"`
	Subject  string   `json:"subject"`
	Created  string   `json:"created"`
}

// DayAgent is an agent that did something.
type DayAgent struct {
	Name       string `json:"name"`
	LastActive string `json:"last_active_ts"`
	Unread     int    `json:"unread"`
}

// DayClaim is a claim that was made and holds still.
type DayClaim struct {
	Agent   string `json:"agent"`
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Expires string `json:"expires_ts"`
}

func (s *Server) today(ctx context.Context, ask *TodayAsk) (out Today, err error) {
	p, err := s.cfg.Store.ProjectNamed(ctx, ask.Project)
	if err != nil {
		return out, err
	}
	d, err := p.Today(ctx, ask.Since)
	if err != nil {
		return out, err
	}
	return shapeDay(p, d), nil
}

func shapeDay(p *maildir.Project, d *maildir.Day) Today {
	out := Today{
		Project:  p.Slug,
		Since:    tool.Stamp(d.Since),
		More:     d.More,
		Messages: []DayMessage{},
		Agents:   []DayAgent{},
		Claims:   []DayClaim{},
	}
	for _, m := range d.Messages {
		out.Messages = append(out.Messages, DayMessage{
			ID:       m.ID,
			ThreadID: m.ThreadID,
			From:     m.From,
			To:       tool.Listed(m.To),
			Subject:  m.Subject,
			Created:  tool.Stamp(m.Created),
		})
	}
	for _, a := range d.Agents {
		out.Agents = append(out.Agents, DayAgent{a.Name, tool.Stamp(a.LastActive), a.Unread})
	}
	for _, c := range d.Claims {
		out.Claims = append(out.Claims, DayClaim{c.Agent, c.Pattern, c.Reason, tool.Stamp(c.Expires)})
	}
	return out
}
