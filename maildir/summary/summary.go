package summary

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"mailtree/maildir/markdown"
)

// Message is one message of a thread, without its body.
type Message struct {
	ID, From  string
	To        []string // cc too
	InReplyTo string
	Subject   string
	Created   time.Time
}

// Summary of a thread; every item carries the id of the message it comes from. Lists are never nil.
type Summary struct {
	Subject      string
	Participants []string // senders in order of appearance, then recipients
	Messages     int
	First, Last  time.Time
	KeyPoints    []Item
	Decisions    []Item
	OpenActions  []Item
	DoneActions  []Item
	Questions    []Item // without an answer
	Code         []Item // files, functions, issues and commits, each where it was first named
	Examples     []Item // with examples: an excerpt of each of the newest three messages
	Truncated    bool   // the thread or a body was over a limit

	Text   string // made by a command of the user's own; "": there is none, or it failed
	Thread string // its id, where Project.Summarize fills it in
	Note   error  // why Text failed, and which thread it is where a message of it was named
}

// Item is one line of a summary.
type Item struct {
	Text, MessageID, From string
	Owner                 string // of an action, "" when nobody is named
}

// Bounds of a summary: the newest messages are read, and each list keeps its newest lines. A line
// has at most 300 characters.
const (
	MaxMessages = 1000            // read
	maxItems    = 50              // lines a list
	maxExamples = 3               // messages with an excerpt
	longBodies  = 2 * time.Second // for reading them
)

// MaxBody is how many bytes of a body are read; one more tells that it has more.
const MaxBody = markdown.Limit + 1

// Of summarizes a thread: messages, oldest first, at least one. body reads one of them, for several
// callers at once; all together may be too large to hold. Errors: those of body.
func Of(ctx context.Context, messages []Message, body func(id string) (string, error), examples bool) (*Summary, error) {
	s := &Summary{
		Subject:      messages[0].Subject,
		Participants: participants(messages),
		Messages:     len(messages),
		First:        messages[0].Created,
		Last:         messages[len(messages)-1].Created,
	}
	if len(messages) > MaxMessages {
		messages, s.Truncated = messages[len(messages)-MaxMessages:], true
	}
	t, err := read(ctx, messages, body, s, examples)
	if err != nil {
		return nil, err
	}
	t.condense(s)
	for _, l := range s.lists() {
		if len(*l) > maxItems {
			*l, s.Truncated = (*l)[len(*l)-maxItems:], true
		}
		if *l == nil {
			*l = []Item{}
		}
	}
	return s, nil
}

func (s *Summary) lists() []*[]Item {
	return []*[]Item{&s.KeyPoints, &s.Decisions, &s.OpenActions, &s.DoneActions, &s.Questions, &s.Code, &s.Examples}
}

// thread is the messages with the outlines of their bodies.
type thread struct {
	messages []Message
	outlines []markdown.Outline
	names    []string // of the participants
}

// read takes the outlines, and the excerpts of the newest messages. Every processor reads the next
// newest message: where the time is short, the newest are read.
func read(ctx context.Context, messages []Message, body func(id string) (string, error), s *Summary, examples bool) (*thread, error) {
	limited, cancel := context.WithTimeout(ctx, longBodies)
	defer cancel()
	t := &thread{messages: messages, outlines: make([]markdown.Outline, len(messages)), names: s.Participants}
	excerpts := make([][]Item, len(messages))
	var readers errgroup.Group
	var taken atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() error {
			parser := markdown.NewParser()
			for i := len(messages) - int(taken.Add(1)); i >= 0; i = len(messages) - int(taken.Add(1)) {
				text, err := body(messages[i].ID)
				if err != nil {
					return err
				}
				reading := limited
				if len(text) <= markdown.Short { // read whole however long the machine takes
					reading = ctx
				}
				t.outlines[i] = newest(parser.Parse(reading, text))
				if examples && i >= len(messages)-maxExamples {
					excerpts[i] = t.items(i, []string{markdown.PlainText(text)})
				}
			}
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	s.Truncated = s.Truncated || slices.ContainsFunc(t.outlines, func(o markdown.Outline) bool { return o.Truncated })
	s.Examples = slices.Concat(excerpts...)
	return t, nil
}

// newest leaves out what no list of the summary would keep, so that a thread of long lists takes
// little memory.
func newest(o markdown.Outline) markdown.Outline {
	for _, l := range []*[]string{&o.Points, &o.Decisions, &o.Questions, &o.Quoted, &o.Code} {
		*l = slices.Clone((*l)[max(0, len(*l)-maxItems):])
	}
	o.Actions = slices.Clone(o.Actions[max(0, len(o.Actions)-maxItems):])
	return o
}

func (t *thread) condense(s *Summary) {
	for i, o := range t.outlines {
		s.KeyPoints = append(s.KeyPoints, t.items(i, o.Points)...)
		s.Decisions = append(s.Decisions, t.items(i, o.Decisions)...)
		s.Code = append(s.Code, t.items(i, o.Code)...)
	}
	s.KeyPoints, s.Decisions, s.Code = once(s.KeyPoints), once(s.Decisions), once(s.Code)
	s.Questions = t.questions()
	s.OpenActions, s.DoneActions = t.actions()
}

func (t *thread) items(i int, texts []string) (all []Item) {
	for _, text := range texts {
		all = append(all, Item{Text: text, MessageID: t.messages[i].ID, From: t.messages[i].From})
	}
	return all
}

// once keeps the first of items with the same text.
func once(all []Item) []Item {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(x Item) bool {
		k := fold(x.Text)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// fold makes texts equal that differ in case and blanks alone.
func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

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
