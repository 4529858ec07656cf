package agentmail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/tmuxtest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
	"mailtree/mcp/tool/tooltest"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestDeclared(t *testing.T) {
	var got []string
	tools := newToolset(tool.Config{}).tools()
	for _, tl := range tools {
		got = append(got, tl.Name)
		if tl.Hints.ReadOnlyHint {
			t.Errorf("%s is marked as read-only, but registers its caller", tl.Name)
		}
		for _, p := range tl.In {
			got = append(got, p.Name)
		}
	}
	if diff := cmp.Diff([]string{"send", "recipient", "message", "receive", "status", "status", "list-recipients", "offset"}, got); diff != "" {
		t.Error(diff)
	}
	tooltest.Declared(t, tools...)
	tooltest.Fits(t, tools[0], sentShape{"m"})
	tooltest.Fits(t, tools[1], receivedShape{mailShape: &mailShape{"a", "m", "token", ""}}, noMail())
	tooltest.Fits(t, tools[2], statusShape{"ok"})
	tooltest.Fits(t, tools[3], shapeRecipients([]string{"a", "b"}, nil, "a", map[string]time.Time{"b": time.Unix(1, 0)}), shapeRecipients(nil, nil, "a", nil))
}

func TestWords(t *testing.T) { tooltest.Words(t, &words, newToolset(tool.Config{}).tools()...) }

// world is a store with the toolset under test.
type world struct {
	t     *testing.T
	store *storetest.Store
	ts    *toolset
	set   *tool.Set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := storetest.Open(t, storetest.Config{})
	cfg := tool.Config{Store: s.Store}
	return &world{
		t:     t,
		store: s,
		ts:    newToolset(cfg),
		set:   New(cfg),
	}
}

// lastRead matches the field that contains the time when an agent last read its mail. Only TestLastRead checks this
// field.
var lastRead = regexp.MustCompile(`,"last_read_at":[0-9]+`)

var messageID = regexp.MustCompile(`msg_[0-9a-f_]+`)

// call calls a tool and returns its response. If the tool refuses the call, call returns the refusal's text and code.
// In both cases, each message id is replaced with ID.
func (w *world) call(c tool.Caller, name, args string) string {
	out := w.answer(c, name, args)
	return messageID.ReplaceAllString(lastRead.ReplaceAllString(out, ""), "ID")
}

func (w *world) answer(c tool.Caller, name, args string) string {
	w.t.Helper()
	tools := w.ts.tools()
	i := slices.IndexFunc(tools, func(tl tool.Tool) bool { return tl.Name == name })
	c.Auth = "uid:7"
	out, err := tools[i].Run(tool.WithCaller(w.t.Context(), c), json.RawMessage(args))
	if err == nil {
		tooltest.Fits(w.t, tools[i], out)
		return string(tool.Encode(out))
	}
	r := w.set.Explain(name, err)
	return r.Error + " [" + r.Code + "]"
}

// calls makes the given calls in order and checks the responses. Each step consists of the caller, the tool, the
// arguments and the expected response.
func (w *world) calls(callers map[string]tool.Caller, steps [][4]string) {
	w.t.Helper()
	for i, s := range steps {
		if got := w.call(callers[s[0]], s[1], s[2]); got != s[3] {
			w.t.Errorf("%d: %s calls %s %.80s\n got %s\nwant %s", i, s[0], s[1], s[2], got, s[3])
		}
	}
}

func (w *world) project(key string) *maildir.Project {
	w.t.Helper()
	p, err := w.store.EnsureProject(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func message(n int) string { return `{"recipient":"bob","message":"` + strings.Repeat("m", n) + `"}` }

// TestCalls checks the contract outside tmux: the results, their text, and the order of the tool's checks.
func TestCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	as := func(name string) tool.Caller { return tool.Caller{Agent: name, Project: "/abs/shop"} }
	callers := map[string]tool.Caller{"alice": as("alice"), "bob": as("bob"), "carol": as("carol"), "Bob": as("Bob"), "..": as("../x"), "nobody": {Project: "/abs/shop"}, "postmaster": as("Postmaster")}
	w.calls(callers, [][4]string{
		{"alice", "list-recipients", `{}`, `{"recipients":[{"name":"alice","is_current":true}]}`},
		{"alice", "receive", `{}`, `{"status":"No unread messages"}`},
		{"alice", "send", message(2), "recipient not found [not_found]"},
		{"bob", "status", `{"status":"ready"}`, `{"status":"ok"}`},
		{"alice", "list-recipients", ``, `{"recipients":[{"name":"alice","is_current":true},{"name":"bob","is_current":false}]}`},
		{"alice", "send", message(2), `{"message_id":"ID"}`},
		{"alice", "send", message(65536), `{"message_id":"ID"}`},
		{"alice", "send", message(65537), "message exceeds maximum size of 64KB [too_large]"},
		{"alice", "send", `{"recipient":"bob","message":"` + strings.Repeat("ü", 32769) + `"}`, "message exceeds maximum size of 64KB [too_large]"},
		{"bob", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"mm"}`},
		{"bob", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"` + strings.Repeat("m", 65536) + `"}`},
		{"bob", "receive", `{}`, `{"status":"No unread messages"}`},

		{"alice", "send", `{"recipient":"alice","message":"m"}`, "cannot send message to self [invalid]"},
		{"alice", "send", `{"recipient":"bob","message":""}`, "no message provided [invalid]"},
		{"alice", "send", `{"recipient":"bob"}`, "no message provided [invalid]"},
		{"alice", "send", `{"recipient":"bob","message":7}`, `message is 7, but must be a string, such as "the build is green". [invalid]`},
		{"alice", "send", `{"message":"m"}`, `The argument recipient is missing: name of the recipient, such as "BlueLake". [invalid]`},
		{"alice", "send", `{"recipient":null,"message":"m"}`, `The argument recipient is missing: name of the recipient, such as "BlueLake". [invalid]`},
		{"alice", "send", `{}`, "no message provided [invalid]"}, // the tool checks the message before the recipient
		{"alice", "send", ``, "no message provided [invalid]"},
		{"alice", "send", `{"recipient":null,"message":null}`, "no message provided [invalid]"},
		{"alice", "send", `{"message":""}`, "no message provided [invalid]"},
		{"alice", "send", `{"message":"` + strings.Repeat("m", 65537) + `"}`, "message exceeds maximum size of 64KB [too_large]"},
		{"alice", "send", `{"message":7}`, `message is 7, but must be a string, such as "the build is green". [invalid]`},
		{"alice", "send", `{"to":"bob"}`, "Unknown argument \"to\" of send. Did you mean recipient? It takes recipient, message. [invalid]"},
		{"alice", "send", `{"recipient":"","message":"m"}`, "recipient not found [not_found]"},
		{"alice", "send", `{"recipient":"BOB","message":"m"}`, "recipient not found [not_found]"},
		{"alice", "send", `{"recipient":"../bob","message":"m"}`, "recipient not found [not_found]"},
		// The tool checks the message before the caller's identity.
		{"nobody", "send", `{"recipient":"alice","message":""}`, "no message provided [invalid]"},
		{"nobody", "send", message(65537), "message exceeds maximum size of 64KB [too_large]"},
		// The tool checks the caller's identity before the recipient.
		{"nobody", "send", `{"recipient":"carol","message":"m"}`, "The server does not know your agent name: start the bridge with --as NAME, set AGENT_NAME, or run the bridge inside tmux. [invalid]"},
		{"nobody", "receive", `{}`, "The server does not know your agent name: start the bridge with --as NAME, set AGENT_NAME, or run the bridge inside tmux. [invalid]"},
		{"..", "receive", `{}`, `The name "../x" is not a valid agent name: use at most 64 letters, digits, '.', '_' and '-', beginning with a letter or digit. [invalid]`},
		{"Bob", "receive", `{}`, `The agent name "Bob" differs from "bob" only in case: use "bob", or a different name. [conflict]`},
		{"postmaster", "receive", `{}`, `The agent name "Postmaster" cannot be used: it is reserved. [invalid]`},

		{"carol", "list-recipients", `{}`, `{"recipients":[{"name":"alice","is_current":false},{"name":"bob","is_current":false},{"name":"carol","is_current":true}]}`},
		// The previous call registered carol.
		{"alice", "send", `{"recipient":"carol","message":"m"}`, `{"message_id":"ID"}`},
		{"Bob", "list-recipients", `{}`, `The agent name "Bob" differs from "bob" only in case: use "bob", or a different name. [conflict]`},

		{"bob", "status", `{"status":"Ready"}`, "Invalid status: Ready. Valid: ready, work, offline [invalid]"},
		{"bob", "status", `{"status":""}`, "Invalid status: . Valid: ready, work, offline [invalid]"},
		{"bob", "status", `{"status":"ready "}`, "Invalid status: ready . Valid: ready, work, offline [invalid]"},
		{"nobody", "status", `{"status":"busy"}`, "Invalid status: busy. Valid: ready, work, offline [invalid]"},
		{"bob", "status", `{"status":"work"}`, `{"status":"ok"}`},
		{"bob", "status", `{"status":"offline"}`, `{"status":"ok"}`},
		{"bob", "status", `{"status":"offline"}`, `{"status":"ok"}`},
	})
	data, err := os.ReadFile(filepath.Join(w.project("/abs/shop").Dir(), "agents/bob/status"))
	if err != nil || string(data) != "offline\n" {
		t.Errorf("status file: %q %v", data, err)
	}
}

// TestBody checks that a message is received exactly as it was sent, with the sender that the server has identified.
func TestBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := tool.Caller{Agent: "ann"}, tool.Caller{Agent: "bob"} // in the default project
	w.call(bob, "receive", `{}`)
	for _, body := range []string{"one", "  two\r\n\n---\n", "\n\n# three\n", "---json\n{}\n---\n", "日本 <b>&", "   "} {
		args, _ := json.Marshal(map[string]string{"recipient": "bob", "message": body})
		w.call(ann, "send", string(args))
		var got mailShape
		if err := json.Unmarshal([]byte(w.answer(bob, "receive", `{}`)), &got); err != nil || got.Message != body || got.From != "ann" {
			t.Errorf("%q arrived as %q from %s (%v)", body, got.Message, got.From, err)
		}
		d, err := w.project(maildir.DefaultProject).Box("bob", format.Origin{}).Delivery(t.Context(), got.ID)
		if err != nil || d.Auth != "uid:7" || d.Seal == "" || !d.Read {
			t.Errorf("%+v %v", d, err)
		}
	}
}

// TestOnce checks that each of 200 messages to an agent is delivered exactly once, while 2 agents send and 4 callers
// receive at the same time. A file in the mailbox that is not a message must not hide any of them.
func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const total, senders, receivers = 200, 2, 4
	bob := tool.Caller{Agent: "bob", Project: "/abs/shop"}
	w.call(bob, "status", `{"status":"ready"}`)
	dir := filepath.Join(w.project("/abs/shop").Dir(), "agents/bob/inbox")
	if err := os.MkdirAll(filepath.Join(dir, "bad"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"bad/a.md": "{\"id\": \"a\"", "bad/b.md": "---json\n{\"id\":\"b\",\"from\":7}\n---\n", "c.md": "", "bad/d.read": "yesterday\n", "lines.jsonl": "{\n[\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			for i := range total / senders {
				if got := w.call(tool.Caller{Agent: fmt.Sprintf("s%d", n), Project: "/abs/shop"}, "send", fmt.Sprintf(`{"recipient":"bob","message":"%d"}`, i)); got != `{"message_id":"ID"}` {
					t.Error(got)
				}
			}
		})
	}
	var mu sync.Mutex
	got := map[string]int{}
	for range receivers {
		all.Go(func() {
			for last := ""; ; {
				mu.Lock()
				done := len(got) == total || t.Failed()
				mu.Unlock()
				if done {
					return
				}
				var m mailShape
				if err := json.Unmarshal([]byte(w.answer(bob, "receive", `{}`)), &m); err != nil {
					t.Error(err)
				}
				if m.ID == "" {
					continue
				}
				if m.ID <= last {
					t.Errorf("%s after %s", m.ID, last)
				}
				last = m.ID
				mu.Lock()
				got[m.From+" "+m.Message]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for m, n := range got {
		if n != 1 {
			t.Errorf("%s arrived %d times", m, n)
		}
	}
	if last := w.call(bob, "receive", `{}`); last != `{"status":"No unread messages"}` || len(got) != total {
		t.Errorf("%d of %d, then %s", len(got), total, last)
	}
	var bad []string
	for deadline := time.Now().Add(60 * time.Second); len(bad) < 4 && time.Now().Before(deadline); {
		problems, err := w.store.Problems(t.Context(), "", 100)
		if err != nil {
			t.Fatal(err)
		}
		bad = nil
		for _, p := range problems {
			bad = append(bad, filepath.Base(p.Path))
		}
	}
	if diff := cmp.Diff([]string{"a.md", "b.md", "d.read", "c.md"}, bad); diff != "" {
		t.Errorf("problems: %s", diff)
	}
}

// TestToolsetsShare checks that agents of different toolsets can write to each other, and that a message arrives with
// its attachments and its other fields.
func TestToolsetsShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.project("/abs/shop")
	made, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "codex-cli", Model: "m", NameHint: "GreenCastle"})
	if err != nil {
		t.Fatal(err)
	}
	blue := tool.Caller{Agent: "BlueLake", Project: p.Slug}
	w.calls(map[string]tool.Caller{"BlueLake": blue, "GreenCastle": {Agent: made.Name, WorkTree: "/abs/shop"}}, [][4]string{
		{"BlueLake", "list-recipients", `{}`, `{"recipients":[{"name":"BlueLake","is_current":true},{"name":"GreenCastle","is_current":false}]}`},
		{"BlueLake", "send", `{"recipient":"GreenCastle","message":"# Plan\n\nthe plan"}`, `{"message_id":"ID"}`},
		{"GreenCastle", "receive", `{}`, `{"from":"BlueLake","id":"ID","auth":"uid 7 (program)","message":"# Plan\n\nthe plan"}`},
	})
	box, err := p.Box("GreenCastle", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
	if err != nil || len(box.Messages) != 1 || box.Messages[0].Subject != "Plan" || !box.Messages[0].Read {
		t.Errorf("inbox: %+v %v", box, err)
	}
	if _, err := p.Box("GreenCastle", format.Origin{}).Reply(t.Context(), box.Messages[0].ID, maildir.Draft{Body: "yes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Box("GreenCastle", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"BlueLake"}, Subject: "Deploy now"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir(), "a.txt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent, err := p.Box("GreenCastle", format.Origin{}).Send(t.Context(), maildir.Draft{
		To:          []string{"BlueLake"},
		Subject:     "Log",
		Body:        "see there",
		Attachments: []string{"a.txt"},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.Dir(), sent.Message.Attachments[0].Path)
	info, err := p.Agents.Whois(t.Context(), "BlueLake")
	if err != nil || info.Program != "agentmail" || !info.HasProfile {
		t.Errorf("%+v %v", info, err)
	}
	w.calls(map[string]tool.Caller{"BlueLake": blue}, [][4]string{
		{"BlueLake", "receive", `{}`, `{"from":"GreenCastle","id":"ID","auth":"self-asserted","message":"Re: Plan\n\nyes"}`},
		{"BlueLake", "receive", `{}`, `{"from":"GreenCastle","id":"ID","auth":"self-asserted","message":"Deploy now"}`},
		{"BlueLake", "receive", `{}`, `{"from":"GreenCastle","id":"ID","auth":"self-asserted","message":"Log\n\nsee there\n\nAttachments:\n- a.txt: ` + file + `"}`},
	})
}

// repository creates a Git repository with a linked working tree.
func repository(t *testing.T) (repo, linked string) {
	t.Helper()
	top := t.TempDir()
	repo, linked = filepath.Join(top, "repo"), filepath.Join(top, "linked")
	cmd := exec.Command("sh", "-c", "git init -q repo && "+
		"git -C repo -c user.name=a -c user.email=a@b commit -q --allow-empty -m c && git -C repo worktree add -q ../linked")
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return repo, linked
}

// TestWorkTrees checks that agents in two working trees of the same repository can send each other messages.
func TestWorkTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, linked := repository(t)
	w.calls(map[string]tool.Caller{"ann": {Agent: "ann", WorkTree: repo}, "bob": {Agent: "bob", WorkTree: linked}, "carol": {Agent: "carol", WorkTree: filepath.Dir(repo)}}, [][4]string{
		{"ann", "receive", `{}`, `{"status":"No unread messages"}`},
		{"bob", "send", `{"recipient":"ann","message":"from the other work tree"}`, `{"message_id":"ID"}`},
		{"ann", "receive", `{}`, `{"from":"bob","id":"ID","auth":"uid 7 (program)","message":"from the other work tree"}`},
		{"ann", "send", `{"recipient":"bob","message":"and back"}`, `{"message_id":"ID"}`},
		{"bob", "receive", `{}`, `{"from":"ann","id":"ID","auth":"uid 7 (program)","message":"and back"}`},
		// carol is in another repository.
		{"carol", "send", `{"recipient":"bob","message":"m"}`, "recipient not found [not_found]"},
	})
}

// TestIgnore checks that a name is not accepted as a recipient if it is in the ignore file of the repository or of the
// sender's working tree. An ignore file that is too large or not a regular file must be skipped without blocking.
func TestIgnore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	repo, linked := repository(t)
	list := func(names ...string) string {
		s := shapeRecipients(append(names, "me"), nil, "me", nil)
		slices.SortFunc(s.Recipients, func(a, b recipientShape) int { return strings.Compare(a.Name, b.Name) })
		return string(tool.Encode(s))
	}
	me := map[string]tool.Caller{"me": {Agent: "me", WorkTree: linked}, "ann": {Agent: "ann", WorkTree: repo}}
	for _, n := range []string{"ann", "bob", "carol", "me"} {
		w.call(tool.Caller{Agent: n, WorkTree: repo}, "receive", `{}`)
	}
	main, own := filepath.Join(repo, ignoreFile), filepath.Join(linked, ignoreFile)
	write := func(file, text string) func() error {
		return func() error { return os.WriteFile(file, []byte(text), 0o600) }
	}
	for i, tt := range []struct {
		make func() error
		want string
	}{
		{func() error { return nil }, list("ann", "bob", "carol")},
		{write(main, "bob\n\n# no agent\nghost\n"), list("ann", "carol")},
		{write(own, "  carol \r\nme"), list("ann")},
		{write(own, "\ufeffcarol\r\nme"), list("ann")},
		{func() error { return os.Remove(main) }, list("ann", "bob")},
		{func() error { return errors.Join(os.Remove(own), os.Symlink(filepath.Join(repo, ".git", "HEAD"), own)) }, list("ann", "bob", "carol")},
		{func() error { return errors.Join(os.Remove(own), syscall.Mkfifo(own, 0o600)) }, list("ann", "bob", "carol")},
		{func() error { return errors.Join(os.Remove(own), os.Mkdir(own, 0o700)) }, list("ann", "bob", "carol")},
		{func() error {
			return errors.Join(os.Remove(own), os.WriteFile(own, []byte(strings.Repeat("bob\n", 20_000)), 0o600))
		}, list("ann", "bob", "carol")},
		{write(own, "bob\ncarol\n"), list("ann")},
	} {
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		if got := w.call(me["me"], "list-recipients", `{}`); got != tt.want {
			t.Errorf("%d:\n got %s\nwant %s", i, got, tt.want)
		}
	}
	w.calls(me, [][4]string{
		{"me", "send", `{"recipient":"bob","message":"m"}`, "recipient not found [not_found]"},
		{"ann", "send", `{"recipient":"bob","message":"m"}`, `{"message_id":"ID"}`}, // ann's ignore file does not list bob
		{"ann", "send", `{"recipient":"me","message":"m"}`, `{"message_id":"ID"}`},
	})
	if err := os.WriteFile(main, []byte("me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.calls(me, [][4]string{
		// The tool checks whether the recipient is the caller before it checks whether the recipient is ignored.
		{"me", "send", `{"recipient":"me","message":"m"}`, "cannot send message to self [invalid]"},
		{"me", "send", `{"recipient":"ann","message":"m"}`, `{"message_id":"ID"}`}, // an ignored agent can still send
		{"me", "list-recipients", `{}`, list("ann")},
	})
}

// TestTmux checks that, inside tmux, the recipients are the windows of the session, and that the caller is named after
// its window.
func TestTmux(t *testing.T) {
	t.Parallel()
	srv := tmuxtest.Start(t)
	w := newWorld(t)
	repo, linked := repository(t)
	in := func(session, window, tree string) tool.Caller {
		at := srv.Window(session, window, tree)
		return tool.Caller{
			Tmux:     at.Tmux,
			Pane:     at.Pane,
			WorkTree: tree,
			Project:  repo,
		}
	}
	callers := map[string]tool.Caller{
		"alice": in("work", "alice", repo), "bob": in("work", "bob", linked), "odd": in("work", "my/window", repo), "zed": in("other", "zed", repo),
	}
	in("work", "bob", repo) // a second window with the same name does not add another agent
	split := callers["alice"]
	split.Pane = srv.Run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", split.Pane, "exec cat")
	named := callers["alice"]
	named.Agent = "dave"
	gone, forged := callers["alice"], callers["alice"]
	gone.Pane, forged.Tmux = "%99", "/nowhere,1,0; kill-server"
	callers["frank"] = in("third", "my/window", repo)
	alone := callers["frank"]
	alone.Agent = "frank"
	callers["frank"] = alone
	callers["split"], callers["dave"], callers["gone"], callers["forged"], callers["outside"] = split, named, gone, forged, tool.Caller{Agent: "eve", Project: repo}
	const sent, windows = `{"message_id":"ID"}`, `{"recipients":[{"name":"alice","is_current":%t},{"name":"bob","is_current":%t}%s]}`
	w.calls(callers, [][4]string{
		{"alice", "list-recipients", `{}`, fmt.Sprintf(windows, true, false, "")},
		{"split", "list-recipients", `{}`, fmt.Sprintf(windows, true, false, "")},
		{"bob", "list-recipients", `{}`, fmt.Sprintf(windows, false, true, "")},
		{"dave", "list-recipients", `{}`, fmt.Sprintf(windows, false, false, `,{"name":"dave","is_current":true}`)},
		{"zed", "list-recipients", `{}`, `{"recipients":[{"name":"zed","is_current":true}]}`},
		{"alice", "send", `{"recipient":"bob","message":"hello"}`, sent}, // bob has not made a call yet
		{"bob", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"hello"}`},
		{"bob", "send", `{"recipient":"bob","message":"m"}`, "cannot send message to self [invalid]"},
		{"bob", "send", `{"recipient":"zed","message":"m"}`, "recipient not found [not_found]"},
		{"zed", "send", `{"recipient":"bob","message":"m"}`, "recipient not found [not_found]"},
		{"dave", "send", `{"recipient":"alice","message":"by name"}`, sent},
		{"split", "receive", `{}`, `{"from":"dave","id":"ID","auth":"uid 7 (program)","message":"by name"}`},
		{"odd", "receive", `{}`, `Your tmux window is called "my/window", which is not a valid agent name: rename it (tmux rename-window NAME), or set AGENT_NAME. [invalid]`},
		{"gone", "receive", `{}`, `The server cannot inspect your tmux session (tmux says: can't find pane: %99). Restart the bridge in a running session, or unset TMUX and set AGENT_NAME. [unavailable]`},
		{"forged", "receive", `{}`, `The server cannot inspect your tmux session (TMUX has an unexpected value (expected socket,pid,session)). Restart the bridge in a running session, or unset TMUX and set AGENT_NAME. [unavailable]`},
		{"gone", "send", `{"recipient":"bob","message":""}`, "no message provided [invalid]"},
		{"outside", "list-recipients", `{}`, fmt.Sprintf(windows, false, false, `,{"name":"dave","is_current":false},{"name":"eve","is_current":true},{"name":"zed","is_current":false}`)},
	})
	w.calls(callers, [][4]string{
		{"frank", "list-recipients", `{}`, `{"recipients":[{"name":"frank","is_current":true}]}`}, // no window has a valid name
	})
	srv.Run("rename-window", "-t", callers["bob"].Pane, "carol")
	w.calls(callers, [][4]string{
		{"bob", "send", `{"recipient":"alice","message":"renamed"}`, sent},
		{"alice", "receive", `{}`, `{"from":"carol","id":"ID","auth":"uid 7 (program)","message":"renamed"}`},
	})
}

// TestTmuxBlanks checks that a window belongs to the agent whose name is the window's name without spaces. Letter case
// must not matter.
func TestTmuxBlanks(t *testing.T) {
	t.Parallel()
	srv := tmuxtest.Start(t)
	w := newWorld(t)
	repo, _ := repository(t)
	callers := map[string]tool.Caller{"carol": {Agent: "BlueLake", Project: repo}}
	for who, window := range map[string]string{"alice": "alice", "blue": "blue lake", "again": " Blue  Lake", "fresh": "the reviewer"} {
		at := srv.Window("work", window, repo)
		callers[who] = tool.Caller{Tmux: at.Tmux, Pane: at.Pane, WorkTree: repo, Project: repo}
	}
	const sent = `{"message_id":"ID"}`
	w.calls(callers, [][4]string{
		{"carol", "receive", `{}`, `{"status":"No unread messages"}`}, // this call makes BlueLake an agent
		{"alice", "list-recipients", `{}`,
			`{"recipients":[{"name":"BlueLake","is_current":false},{"name":"alice","is_current":true},{"name":"thereviewer","is_current":false}]}`},
		{"alice", "send", `{"recipient":"BlueLake","message":"one"}`, sent},
		{"blue", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"one"}`},
		{"alice", "send", `{"recipient":"blue lake","message":"two"}`, sent}, // the name as tmux shows it
		{"again", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"two"}`},
		{"blue", "send", `{"recipient":"Blue Lake","message":"m"}`, "cannot send message to self [invalid]"},
		{"alice", "send", `{"recipient":"The Reviewer","message":"three"}`, sent},
		{"fresh", "receive", `{}`, `{"from":"alice","id":"ID","auth":"uid 7 (program)","message":"three"}`},
		{"alice", "send", `{"recipient":"blue sea","message":"m"}`, "recipient not found [not_found]"},
	})
}

// TestCancelled checks that the server does not report a fault if the caller of a tool has disconnected.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(tool.WithCaller(t.Context(), tool.Caller{Tmux: "/nowhere,1,0", Pane: "%1"}))
	cancel()
	if _, err := caller(ctx); refusal.Code(err) != "unavailable" {
		t.Errorf("%v", err)
	}
}

// TestLastRead checks that list-recipients returns the time when each agent last read its mail.
func TestLastRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := tool.Caller{Agent: "Ann", Project: "/p"}, tool.Caller{Agent: "Bob", Project: "/p"}
	w.call(bob, "status", `{"status":"ready"}`)
	w.call(ann, "send", `{"recipient":"Bob","message":"hello"}`)
	before := time.Now().UnixMilli()
	w.call(bob, "receive", `{}`)
	var all struct{ Recipients []recipientShape }
	if err := json.Unmarshal([]byte(w.answer(ann, "list-recipients", `{}`)), &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Recipients {
		if read := r.LastRead >= before; read != (r.Name == "Bob") {
			t.Errorf("%+v, but only Bob has read, at %d or later", r, before)
		}
	}
	if len(all.Recipients) != 2 {
		t.Errorf("%+v", all)
	}
}
