package summary

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the summaries of fixtures/summaries")

// TestSummaries checks the summaries of the threads in fixtures/summaries. Each file in an archive is a message whose
// name contains "ID SENDER", "to NAME,NAME" and "re ID". The last file is the expected summary of all messages.
func TestSummaries(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../fixtures/summaries/*.txtar")
	if err != nil || len(paths) < 12 {
		t.Fatalf("%d threads, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			messages, bodies := threadOf(archive.Files[:last])
			s, err := Of(t.Context(), messages, bodies, false)
			if err != nil {
				t.Fatal(err)
			}
			got := show(s)
			if *update {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func threadOf(files []txtar.File) (messages []Message, bodies func(id string) (string, error)) {
	texts := map[string]string{}
	for i, f := range files {
		words := strings.Fields(f.Name)
		m := Message{ID: words[0], From: words[1], Subject: "s", Created: time.Unix(int64(i), 0)}
		for k := 2; k+1 < len(words); k += 2 {
			switch words[k] {
			case "to":
				m.To = strings.Split(words[k+1], ",")
			case "re":
				m.InReplyTo = words[k+1]
			}
		}
		messages = append(messages, m)
		texts[m.ID] = string(f.Data)
	}
	return messages, func(id string) (string, error) { return texts[id], nil }
}

// show formats a summary as in the fixtures. Each line contains the message, its sender, the text, and the owner.
func show(s *Summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "participants: %s\n", strings.Join(s.Participants, ", "))
	for _, l := range []struct {
		name  string
		items []Item
	}{
		{"key points", s.KeyPoints}, {"decisions", s.Decisions}, {"open", s.OpenActions}, {"done", s.DoneActions},
		{"questions", s.Questions}, {"code", s.code},
	} {
		if len(l.items) > 0 {
			b.WriteString(l.name + ":\n")
		}
		for _, x := range l.items {
			fmt.Fprintf(&b, "  %s %s: %s", x.MessageID, x.From, x.Text)
			if x.Owner != "" {
				fmt.Fprintf(&b, " [%s]", x.Owner)
			}
			b.WriteString("\n")
		}
	}
	if s.Truncated {
		b.WriteString("truncated\n")
	}
	return b.String()
}

// TestBounds checks that the summary of a thread with long lists and too many messages has a bounded size and is marked
// as truncated. It also checks that a body that cannot be read results in an error.
func TestBounds(t *testing.T) {
	t.Parallel()
	var messages []Message
	for i := range MaxMessages + 5 {
		messages = append(messages, Message{ID: fmt.Sprint(i), From: "Ann"})
	}
	body := func(id string) (string, error) {
		switch id {
		case "4":
			return "", errors.New("an old message is read")
		case "1004":
		default:
			return "short", nil
		}
		var b strings.Builder
		for n := range 100 {
			fmt.Fprintf(&b, "- point %s %d `code%s%d` %s\n- [ ] do %s %d\n- Why %s %d?\n\nDecision: %s %d\n\n", id, n, id, n, strings.Repeat("x", 400),
				id, n, id, n, id, n)
		}
		return b.String(), nil
	}
	s, err := Of(t.Context(), messages, body, true)
	if err != nil || !s.Truncated || s.Messages != MaxMessages+5 {
		t.Fatalf("%+v %v", s, err)
	}
	for i, l := range s.lists()[:6] {
		if i != 3 && len(*l) != maxItems {
			t.Errorf("list %d has %d lines", i, len(*l))
		}
		for _, x := range *l {
			if len(x.Text) > 310 || x.MessageID != "1004" {
				t.Errorf("list %d: %+v", i, x)
			}
		}
	}
	failed := errors.New("cannot be read")
	if _, err := Of(t.Context(), messages, func(string) (string, error) { return "", failed }, false); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

// BenchmarkThread measures the summary of a thread of a thousand messages from the fixtures.
func BenchmarkThread(b *testing.B) {
	paths, err := filepath.Glob("../../fixtures/summaries/*.txtar")
	if err != nil {
		b.Fatal(err)
	}
	var messages []Message
	texts := map[string]string{}
	for len(messages) < 1000 {
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				b.Fatal(err)
			}
			some, body := threadOf(archive.Files[:len(archive.Files)-1])
			for _, m := range some {
				text, _ := body(m.ID)
				m.ID = fmt.Sprint(len(messages), "/", m.ID)
				texts[m.ID] = text
				messages = append(messages, m)
			}
		}
	}
	messages = messages[:1000]
	for b.Loop() {
		if _, err := Of(b.Context(), messages, func(id string) (string, error) { return texts[id], nil }, true); err != nil {
			b.Fatal(err)
		}
	}
}
