package mcp

import (
	"context"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// CompleteAsk is the body of POST /mailtree/complete. It contains the word that the user is typing.
type CompleteAsk struct {
	Person string `json:"person,omitempty"` // the user whose messages and claims are listed
	What   string `json:"what"`             // CompleteAgents or another of the constants below
	Begun  string `json:"begun"`
}

// The kinds of words that can be completed.
const (
	CompleteAgents   = "agents"
	CompleteMessages = "messages"
	CompleteThreads  = "threads"
	CompleteProjects = "projects"
	CompleteClaims   = "claims" // the user's claims
)

// Completions contains the words that begin with the typed text.
type Completions struct {
	Words []Completion `json:"words"`
}

// Completion is a word that completes the typed text, with a description.
type Completion struct {
	Word  string `json:"word"`
	About string `json:"about,omitempty"`
}

// maxCompletions is the maximum number of words in one response.
const maxCompletions = 50

func (s *Server) complete(ctx context.Context, p *maildir.Project, ask *CompleteAsk) (found Completions, err error) {
	kind, slug := format.KindProject, ""
	if ask.What != CompleteProjects {
		slug = p.Slug
		switch ask.What {
		case CompleteClaims:
			found.Words, err = claimedBy(ctx, p, ask)
			return found, err
		case CompleteAgents:
			kind = format.KindProfile
		case CompleteThreads:
			kind = format.KindOther
		case CompleteMessages:
			kind = format.KindCanonical
			found.Words = newestOf(ctx, p, ask)
		}
	}
	if len(found.Words) > 0 {
		return found, nil
	}
	for _, name := range s.cfg.Store.Complete(ctx, kind, slug, ask.Begun, maxCompletions) {
		found.Words = append(found.Words, Completion{Word: name})
	}
	return found, nil
}

// claimedBy returns the paths that the user has claimed and that begin with the typed text.
func claimedBy(ctx context.Context, p *maildir.Project, ask *CompleteAsk) (words []Completion, err error) {
	const all = false
	held, err := p.Claims.List(ctx, all)
	for _, c := range held {
		if c.Agent == maildir.PersonName(ask.Person) && strings.HasPrefix(c.Pattern, ask.Begun) && len(words) < maxCompletions {
			words = append(words, Completion{c.Pattern, c.Reason})
		}
	}
	return words, err
}

// newestOf returns the short ids of the user's newest messages. It includes only ids that begin with the typed text.
func newestOf(ctx context.Context, p *maildir.Project, ask *CompleteAsk) (words []Completion) {
	q := index.InboxQuery{Agent: ask.Person, Limit: maxCompletions, Peek: true}
	const markRead = false
	page, err := tool.Box(ctx, p, q.Agent).Inbox(ctx, q, markRead, maildir.Waiting{})
	if err != nil { // the user does not have an agent in the project yet
		return nil
	}
	for _, m := range page.Messages {
		word := format.ShortID(m.ID, time.Now())
		if !strings.HasPrefix(word, ask.Begun) {
			word = m.ID
		}
		if strings.HasPrefix(word, ask.Begun) {
			words = append(words, Completion{word, m.From + ": " + m.Subject})
		}
	}
	return words
}
