package editing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMeetings checks which edits cause a Meeting, and between which agents. The line "AGENT FILE" is an edit, one
// minute after the previous line. "AGENT?" gets the agent's Meetings. "+N" advances the clock by N minutes.
func TestMeetings(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		lines []string
		want  []string
	}{
		"both are told once": {
			[]string{"Ann a", "Bob a", "Ann?", "Bob?", "Ann?", "Bob a", "Ann a", "Ann?", "Bob?"},
			[]string{"Ann: Bob a 03:02", "Bob: Ann a 03:01"},
		},
		"alone, or another file": {[]string{"Ann a", "Ann a", "Bob b", "Ann?", "Bob?"}, nil},
		"ten minutes apart":      {[]string{"Ann a", "+9", "Bob a", "Ann?"}, []string{"Ann: Bob a 03:11"}},
		"later than that":        {[]string{"Ann a", "+10", "Bob a", "Ann?", "Bob?"}, nil},
		"a later meeting is a new one": {
			[]string{"Ann a", "Bob a", "Ann?", "Bob?", "+30", "Ann a", "Bob a", "Bob?"},
			[]string{"Ann: Bob a 03:02", "Bob: Ann a 03:01", "Bob: Ann a 03:33"},
		},
		"three agents": {
			[]string{"Ann a", "Bob a", "Cat a", "Ann?"},
			[]string{"Ann: Bob a 03:02", "Ann: Cat a 03:03"},
		},
		"another working tree": {[]string{"Ann /one:a", "Bob /two:a", "Ann?", "Bob?"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			e := New(func() time.Time { return now }, func() {})
			var got []string
			for _, line := range tt.lines {
				var agent, file, tree string
				var minutes int
				switch n, _ := fmt.Sscanf(line, "+%d", &minutes); {
				case n == 1:
					now = now.Add(time.Duration(minutes) * time.Minute)
					continue
				case line[len(line)-1] == '?':
					agent = line[:len(line)-1]
					for _, m := range e.Meetings(agent) {
						got = append(got, fmt.Sprintf("%s: %s %s %s", agent, m.Other, m.Path, m.At.Format("15:04")))
					}
					continue
				}
				fmt.Sscan(line, &agent, &file)
				if n := len(file); n > 1 {
					tree, file = file[:n-2], file[n-1:]
				}
				now = now.Add(time.Minute)
				e.Edited(agent, File{tree + "/" + file, file})
				if last, ok := e.Last(agent); !ok || last != (Edit{file, now}) {
					t.Errorf("%s edited %+v last", agent, last)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestBounded checks that an Edits remembers at most maxFiles files, and at most maxMeetings Meetings for each agent.
func TestBounded(t *testing.T) {
	now := time.Now()
	e := New(func() time.Time { return now }, func() {})
	e.Edited("Ann", File{"/first", "first"})
	for n := range maxFiles + 10 {
		now = now.Add(time.Millisecond)
		e.Edited("Ann", File{fmt.Sprint("/", n), "x"})
		e.Edited("Bob", File{fmt.Sprint("/", n), "x"})
	}
	if n := len(e.files); n > maxFiles {
		t.Errorf("%d files", n)
	}
	if n := len(e.Meetings("Ann")); n != maxMeetings {
		t.Errorf("%d meetings", n)
	}
	e.Edited("Cat", File{"/first", "first"})
	if e.Meetings("Cat") != nil {
		t.Error("the oldest file was not forgotten")
	}
}

// TestRecent checks that Recent lists only edits of the last ten minutes, and lists each pair of agent and path only
// once. It also checks that changed is called when an agent begins to edit a different file, but not for further edits
// of the same file.
func TestRecent(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	now, changes := start, 0
	e := New(func() time.Time { return now }, func() { changes++ })
	for _, step := range []struct {
		agent, disk, path string
		changes           int
	}{
		{"Ann", "/one/old", "old", 1},
		{"Ann", "/one/a", "a", 2},
		{"Ann", "/one/a", "a", 2},
		{"Ann", "/two/a", "a", 2},
		{"Bob", "/two/a", "a", 3},
		{"Cat", "/one/b", "b", 4},
	} {
		if e.Edited(step.agent, File{step.disk, step.path}); changes != step.changes {
			t.Errorf("%d changes after %+v", changes, step)
		}
		now = now.Add(2 * time.Minute)
	}
	var got []string
	for _, a := range e.Recent() {
		got = append(got, fmt.Sprint(a.Agent, " ", a.Path, " ", now.Sub(a.At)))
	}
	if d := cmp.Diff([]string{"Cat b 2m0s", "Bob a 4m0s", "Ann a 6m0s"}, got); d != "" {
		t.Error(d)
	}
	now = now.Add(Together)
	if all := e.Recent(); len(all) != 0 {
		t.Errorf("ten minutes later: %v", all)
	}
	if e.Edited("Cat", File{"/one/b", "b"}); changes != 5 {
		t.Error("an edit after a break is no change")
	}
}
