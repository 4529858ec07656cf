package sign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/maildir/seat"
)

// TestSigns checks that each file in fixtures/signs shows the expected state, and shows it only once. The README.md
// file there explains the form of a case.
func TestSigns(t *testing.T) {
	t.Parallel()
	for name, c := range clients {
		cases, err := txtar.ParseFile(filepath.Join("../../fixtures/signs", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range cases.Files {
			what, want, _ := strings.Cut(f.Name, ": ")
			file := filepath.Join(t.TempDir(), "file")
			follow := Follower{Client: name, ID: "s1", File: file}
			if c.status == nil {
				put(t, file, "")
			}
			if err := os.WriteFile(file, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			if is := cmp.Or(follow.Next(), "none"); string(is) != want {
				t.Errorf("%s, %s: %s, want %s", name, what, is, want)
			}
			if is := follow.Next(); is != "" {
				t.Errorf("%s, %s: %s is reported again", name, what, is)
			}
		}
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

// TestEnded checks that a turn of Gemini CLI is treated as ended if no prompt follows the line that reports the end.
// Neither a tool's result nor a line that quotes the report must be treated as a prompt or an end.
func TestEnded(t *testing.T) {
	t.Parallel()
	const (
		prompt    = `{"type":"user","content":[{"text":"Go on."}]}` + "\n"
		result    = `{"type":"user","content":[{"functionResponse":{"response":{"error":"[Operation Cancelled]"}}}]}` + "\n"
		cancelled = `{"type":"info","content":"Request cancelled."}` + "\n"
		quotes    = `{"type":"gemini","content":"{\"type\":\"info\",\"content\":\"Request cancelled.\"}"}` + "\n"
	)
	long := `{"type":"gemini","content":"` + strings.Repeat("x", maxLine) + `"}` + "\n"
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"a new session":            {"", false},
		"a turn":                   {prompt + result, false},
		"Esc":                      {prompt + cancelled, true},
		"the result after Esc":     {prompt + cancelled + result, true},
		"the next turn":            {prompt + cancelled + result + prompt, false},
		"quoted":                   {prompt + quotes, false},
		"after a long line":        {long + prompt + cancelled, true},
		"before a long line":       {prompt + cancelled + long, false},
		"a line that is not whole": {prompt + cancelled[:20], false},
	} {
		file := filepath.Join(t.TempDir(), "file")
		put(t, file, tt.text)
		if got := Ended(Session{Client: "gemini", Transcript: file}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if Ended(Session{Client: "codex", Transcript: file}) {
			t.Errorf("%s: a turn of another client has ended", name)
		}
	}
}

const aborted = `{"type":"event_msg","payload":{"type":"turn_aborted"}}` + "\n"

// TestFollow checks that a follower considers only lines written after Follow. It must read each line exactly once, and
// only after the line is complete. If a file has become shorter or has been rewritten, reading must continue from its
// end.
func TestFollow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rollout.jsonl")
	put(t, file, aborted)
	f, ok := Follow(Session{Client: "codex", ID: "s1", Transcript: file})
	if !ok {
		t.Fatal("a session with a transcript cannot be followed")
	}
	next := func(what string, want seat.State) {
		t.Helper()
		saved, err := json.Marshal(f) // continue with a saved copy, as another process does
		if err != nil {
			t.Fatal(err)
		}
		f = Follower{}
		if err := json.Unmarshal(saved, &f); err != nil {
			t.Fatal(err)
		}
		if is := f.Next(); is != want {
			t.Errorf("%s: %q, want %q", what, is, want)
		}
	}
	next("lines from before Follow", "")
	put(t, file, aborted[:20])
	next("half a line", "")
	put(t, file, aborted[20:])
	next("the rest of it", seat.Idles)
	put(t, file, strings.Repeat("x", maxLine+10))
	next("a line without an end", "")
	put(t, file, aborted)
	next("an end of a turn within a line that is too long", "")
	put(t, file, aborted)
	next("a line after it", seat.Idles)
	put(t, file, strings.Repeat(strings.Repeat("y", 999)+"\n", maxLook/1000+1)+aborted)
	next("more lines than one read covers", seat.Idles)
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	next("an empty file", "")
	put(t, file, aborted)
	next("a rewritten file", seat.Idles)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	next("no file", "")
}

// TestHostileFiles checks that reading a file that is not a regular file of this OS user returns no state and never
// blocks.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, link, pipe, folder, others := dir+"/own", dir+"/link", dir+"/pipe", dir+"/folder", dir+"/others"
	put(t, own, aborted)
	put(t, others, aborted)
	if err := cmp.Or(os.Symlink(own, link), syscall.Mkfifo(pipe, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		others = "/etc/passwd"
	} else if err := os.Chown(others, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{link, pipe, folder, others, "/dev/zero", dir + "/none", dir + "/a\x00b"} {
		f := Follower{Client: "codex", ID: "s1", File: file}
		if is := f.Next(); is != "" {
			t.Errorf("%s: %q", file, is)
		}
		if got, err := open(file); err == nil {
			got.Close()
			t.Errorf("%s was opened", file)
		}
	}
	f := Follower{Client: "codex", ID: "s1", File: own}
	if is := f.Next(); is != seat.Idles {
		t.Errorf("the same text in a file of this user: %q", is)
	}
}

// TestStatus checks that a session's status is reported whenever it changes, and that a status file that is too long
// shows no state.
func TestStatus(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	file := home + "/.claude/sessions/42.json"
	f, ok := Follow(Session{Client: "claude", ID: "s1", PID: 42, Home: home, Env: func(string) string { return "" }})
	if !ok || f.File != file {
		t.Fatalf("%+v, %v", f, ok)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		status string
		since  int
		pad    int
		want   seat.State
	}{
		{"idle", 1, 0, seat.Idles}, {"idle", 1, 0, ""}, {"idle", 2, 0, seat.Idles}, // a turn ended between two reads
		{"busy", 3, 0, seat.Works}, {"waiting", 4, 0, seat.Asks}, {"idle", 5, maxStatus, ""}, {"idle", 5, 0, seat.Idles},
	} {
		data := fmt.Appendf(nil, `{"sessionId":"s1","status":%q,"statusUpdatedAt":%d,"pad":"%s"}`, step.status, step.since, bytes.Repeat([]byte("x"), step.pad))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if is := f.Next(); is != step.want {
			t.Errorf("%d: %q, want %q", i, is, step.want)
		}
	}
}

// TestPlaces checks which file is read for a session. No file is read if the client reports a relative path, or no
// path. The path of Copilot CLI's file contains the session's id, which must not lead to another folder.
func TestPlaces(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	for _, c := range []struct {
		s    Session
		want string
	}{
		{Session{Client: "claude", ID: "s1", Home: "/h"}, ""},
		{Session{Client: "codex", ID: "s1", Transcript: "/h/r.jsonl"}, "/h/r.jsonl"},
		{Session{Client: "codex", ID: "s1", Transcript: "r.jsonl"}, ""},
		{Session{Client: "gemini", ID: "s1"}, ""},
		{Session{Client: "copilot", ID: "s1", Home: "/h"}, "/h/.copilot/session-state/s1/events.jsonl"},
		{Session{Client: "copilot", ID: "../s1", Home: "/h"}, ""},
		{Session{Client: "copilot", ID: "..", Home: "/h"}, ""},
		{Session{Client: "copilot", ID: "s1"}, ""},
		{Session{Client: "cursor", ID: "s1", Transcript: "/h/r.jsonl"}, ""},
	} {
		c.s.Env = func(name string) string { return env[name] }
		if f, ok := Follow(c.s); f.File != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c.s, f.File, ok)
		}
	}
}
