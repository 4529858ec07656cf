package summary

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/markdown"
)

// Message is a message in a thread, without its body.
type Message struct {
	ID, From  string
	To        []string // includes cc
	InReplyTo string
	Subject   string
	Created   time.Time
}

// Summary summarizes a thread. Each item contains the id of its message. Lists are never nil.
type Summary struct {
	Thread       string       `json:"thread_id"` // set by Project.Summarize
	Subject      string       `json:"subject"`
	Participants []string     `json:"participants"` // senders in order of first appearance, followed by recipients
	Messages     int          `json:"messages"`
	First        format.Stamp `json:"first_ts,omitzero"`
	Last         format.Stamp `json:"last_ts,omitzero"`
	KeyPoints    []Item       `json:"key_points"`
	Decisions    []Item       `json:"decisions"`
	OpenActions  []Item       `json:"open_actions"`
	DoneActions  []Item       `json:"done_actions"`
	Questions    []Item       `json:"questions"` // unanswered questions
	Code         []string     `json:"code_refs"` // code spans, in order of first appearance
	Examples     []Item       `json:"examples"`  // only on request: an excerpt from each of the three newest messages

	Text      string `json:"text,omitempty"` // written by the user's own command; empty if no command is set or the command failed
	Note      error  `json:"-"`              // notes that name the thread of the given message, or say why Text is missing
	Truncated bool   `json:"-"`              // the thread or a body exceeded a limit

	code []Item
}

// Item is one line of a summary.
type Item struct {
	Text      string `json:"text"`
	MessageID string `json:"message_id"`
	From      string `json:"from"`
	Owner     string `json:"owner,omitempty"` // owner of an action; empty if the text does not name one
}

// Part is one of the lists of a summary that commands and the page show.
type Part struct {
	Title string
	Items []Item
}

// Parts returns the unanswered questions, the decisions and the open actions.
func (s *Summary) Parts() []Part {
	return []Part{{"Asked", s.Questions}, {"Decided", s.Decisions}, {"Open", s.OpenActions}}
}

// These are limits for a summary. Only the newest messages are read, and each list keeps its newest lines. A line has
// at most 300 characters.
const (
	MaxMessages = 1000      // maximum number of messages to read
	maxItems    = 50        // maximum number of lines in a list
	maxExamples = 3         // number of messages with an excerpt
	maxBody     = 256 << 10 // maximum number of bytes to read from a body
)

// MaxBody is the number of bytes of a body to read. The last byte is read only to detect a body that is too long.
const MaxBody = maxBody + 1

// Of summarizes a thread. messages contains at least one message, oldest first. body returns a message's body. Of does
// not keep all bodies in memory, because together they may be too large. It returns any error from body or ctx.
func Of(ctx context.Context, messages []Message, body func(id string) (string, error), examples bool) (*Summary, error) {
	s := &Summary{
		Subject:      messages[0].Subject,
		Participants: participants(messages),
		Messages:     len(messages),
		First:        format.At(messages[0].Created),
		Last:         format.At(messages[len(messages)-1].Created),
	}
	if len(messages) > MaxMessages {
		messages, s.Truncated = messages[len(messages)-MaxMessages:], true
	}
	if err := read(ctx, messages, body, s, examples); err != nil {
		return nil, err
	}
	for _, l := range s.lists() {
		if len(*l) > maxItems {
			*l, s.Truncated = (*l)[len(*l)-maxItems:], true
		}
		if *l == nil {
			*l = []Item{}
		}
	}
	s.Code = make([]string, len(s.code))
	for i, c := range s.code {
		s.Code[i] = c.Text
	}
	return s, nil
}

func (s *Summary) lists() []*[]Item {
	return []*[]Item{&s.KeyPoints, &s.Decisions, &s.OpenActions, &s.DoneActions, &s.Questions, &s.code, &s.Examples}
}

// read adds the statements in the bodies, and excerpts from the newest messages.
func read(ctx context.Context, messages []Message, body func(id string) (string, error), s *Summary, examples bool) error {
	all := make([]*said, len(messages))
	for i, m := range messages {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := body(m.ID)
		if err != nil {
			return err
		}
		s.Truncated = s.Truncated || len(text) > maxBody
		all[i] = reading(text[:min(len(text), maxBody)])
		if examples && i >= len(messages)-maxExamples {
			s.Examples = append(s.Examples, items(m, []string{markdown.PlainText(text)})...)
		}
	}
	for i, m := range messages {
		s.KeyPoints = append(s.KeyPoints, items(m, all[i].points)...)
		s.Decisions = append(s.Decisions, items(m, all[i].decisions)...)
		s.code = append(s.code, items(m, all[i].code)...)
		if len(all[i].questions) > 0 && !answered(messages[i:]) {
			s.Questions = append(s.Questions, items(m, all[i].questions)...)
		}
	}
	s.OpenActions, s.DoneActions = actions(messages, all)
	for _, l := range []*[]Item{&s.KeyPoints, &s.Decisions, &s.Questions, &s.code} {
		*l = once(*l)
	}
	return nil
}

// answered reports whether another sender has written after messages[0] in reply to that message, or whether a recipient
// of that message has written in reply to no message. An address outside the project counts as a recipient, because
// replies may come from another address.
func answered(messages []Message) bool {
	asked := messages[0]
	return slices.ContainsFunc(messages[1:], func(m Message) bool {
		recipient := slices.Contains(asked.To, m.From) || strings.Contains(m.From, "@")
		return m.From != asked.From && (m.InReplyTo == asked.ID || m.InReplyTo == "" && recipient)
	})
}

// actions lists each action once. The latest message that contains an action's words decides whether the action is
// done.
func actions(messages []Message, all []*said) (open, done []Item) {
	latest := map[string]int{} // index of the last message with each action
	for i, s := range all {
		for _, a := range s.actions {
			latest[Fold(a.text)] = i
		}
	}
	for i, m := range messages {
		for _, a := range all[i].actions {
			key := Fold(a.text)
			if at, listed := latest[key]; !listed || at != i {
				continue
			}
			delete(latest, key)
			one := Item{Text: a.text, MessageID: m.ID, From: m.From, Owner: a.owner}
			if a.done {
				done = append(done, one)
			} else {
				open = append(open, one)
			}
		}
	}
	return open, done
}

func items(m Message, texts []string) (all []Item) {
	for _, text := range texts {
		all = append(all, Item{Text: text, MessageID: m.ID, From: m.From})
	}
	return all
}

// once removes items whose text repeats an earlier item.
func once(all []Item) []Item {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(x Item) bool {
		k := Fold(x.Text)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// Fold returns the same result for strings that differ only in case and white space.
func Fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

func participants(messages []Message) []string {
	var names []string
	seen := map[string]bool{}
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	for _, m := range messages {
		add(m.From)
	}
	for _, m := range messages {
		for _, n := range m.To {
			add(n)
		}
	}
	return names
}
