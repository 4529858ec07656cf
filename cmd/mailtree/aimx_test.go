package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/guesttest"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// office is a server for OS users who connect through `mailtree stdio --toolset aimx`. It has its own copy of the
// program and its own store.
type office struct {
	t                *testing.T
	dir, exe, socket string
	env              []string // additional environment variables
	server           *exec.Cmd
}

// newOffice starts a server whose socket is open to every OS user.
func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t}
	o.prepare()
	o.start()
	t.Cleanup(func() { o.end(syscall.SIGINT) })
	return o
}

// prepare creates the server's folder and its copy of the program.
func (o *office) prepare() {
	o.t.Helper()
	o.dir = guesttest.Dir(o.t)
	o.exe, o.socket = guesttest.Program(o.t, o.dir), filepath.Join(o.dir, "open.sock")
}

func (o *office) command(args ...string) *exec.Cmd {
	cmd := exec.Command(o.exe, args...)
	cmd.Args[0], cmd.Dir = "mailtree", "/"
	cmd.Env = []string{"HOME=" + o.dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "SOCKET=" + o.socket,
		"MCP_MAIL_STORE=" + filepath.Join(o.dir, "store")}
	cmd.Env = append(cmd.Env, o.env...)
	return cmd
}

// start starts the server and waits until it listens.
func (o *office) start() {
	o.t.Helper()
	o.server = o.command("serve", "--port", "0")
	log := &bytes.Buffer{}
	o.server.Stderr = log
	out, err := o.server.StdoutPipe()
	if err == nil {
		err = o.server.Start()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "  MCP ") {
			go func() {
				for lines.Scan() { //nolint:revive // other output does not matter
				}
			}()
			return
		}
	}
	o.t.Fatalf("the server did not start: %v %s", o.server.Wait(), log)
}

func (o *office) end(sig syscall.Signal) {
	o.t.Helper()
	if o.server.ProcessState != nil {
		return
	}
	o.server.Process.Signal(sig)
	if err := o.server.Wait(); err != nil && sig == syscall.SIGINT {
		o.t.Errorf("serve ended with %v", err)
	}
}

// call makes tool calls as the given OS user of this machine, one after another. Each call consists of a tool and its
// arguments. It returns the text of each result. If a call is refused, the text begins with "!".
func (o *office) call(uid int, calls ...[2]string) (texts []string) {
	o.t.Helper()
	o.bridge(uid, func(in io.Writer, out *bufio.Reader) error {
		for _, c := range calls {
			text, err := ask(in, out, c)
			if err != nil { // send one call at a time, because the bridge waits only two seconds for a response
				return err
			}
			texts = append(texts, text)
		}
		return nil
	})
	return texts
}

// bridge runs a bridge as the given OS user of this machine, and calls speak, which exchanges messages with the bridge.
func (o *office) bridge(uid int, speak func(in io.Writer, out *bufio.Reader) error) {
	o.t.Helper()
	cmd := o.command("stdio", "--toolset", "aimx", "--no-start", "--project", "/abs/path/shop")
	if uid != os.Geteuid() {
		cmd.Env = []string{"HOME=/", "SOCKET=" + o.socket}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	said := &bytes.Buffer{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	err = speak(in, bufio.NewReader(out))
	in.Close()
	if err = errors.Join(err, cmd.Wait()); err != nil {
		o.t.Fatalf("as %d: %v\n%s", uid, err, said)
	}
}

// resource reads a part of a resource as the given OS user of this machine. next is the offset of the next part, or 0
// if there is none.
func (o *office) resource(uid int, uri string) (data []byte, next int64, refusal string) {
	o.t.Helper()
	o.bridge(uid, func(in io.Writer, out *bufio.Reader) error {
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`+"\n", uri); err != nil {
			return err
		}
		line, err := out.ReadBytes('\n')
		if err != nil {
			return err
		}
		var a struct {
			Result struct {
				Contents []struct {
					Text string
					Blob []byte
					Meta struct {
						Next int64 `json:"next_offset"`
					} `json:"_meta"`
				}
			}
			Error struct{ Message string }
		}
		if err := json.Unmarshal(line, &a); err != nil || len(a.Result.Contents) == 0 && a.Error.Message == "" {
			return fmt.Errorf("the answer %s: %v", line, err)
		}
		if refusal = a.Error.Message; refusal == "" {
			c := a.Result.Contents[0]
			data, next = append(c.Blob, c.Text...), c.Meta.Next
		}
		return nil
	})
	return data, next, refusal
}

// ask makes one call over a bridge, and returns the first text of the result.
func ask(in io.Writer, out *bufio.Reader, call [2]string) (text string, err error) {
	if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n",
		call[0], call[1]); err != nil {
		return "", err
	}
	line, err := out.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var a struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(line, &a); err != nil || len(a.Result.Content) == 0 {
		return "", fmt.Errorf("the answer %s: %v", line, err)
	}
	if a.Result.IsError {
		return "! " + a.Result.Content[0].Text, nil
	}
	return a.Result.Content[0].Text, nil
}

// one is like call, but makes a single tool call.
func (o *office) one(uid int, name, args string) string {
	o.t.Helper()
	return o.call(uid, [2]string{name, args})[0]
}

// TestTwoUsers checks that two OS users on the machine can share one server. Each user can use only their own
// mailboxes and hooks, mail passes between the users, and a hook runs as the OS user who owns it.
func TestTwoUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not done here: needs root to become other users")
	}
	const ann, bob = 65532, 65533
	o := newOffice(t)
	const denied = "! EACCES not authorized"
	if got := o.one(ann, "mailbox_create", `{"name":"ann"}`); !strings.Contains(got, "Only the user who runs the server can create projects") {
		t.Errorf("a guest created a project: %s", got)
	}
	o.one(os.Geteuid(), "mailbox_create", `{"name":"cid"}`)
	o.one(os.Geteuid(), "mailbox_delete", `{"name":"cid"}`) // this deletes the mailbox, but not the project
	for i, tt := range []struct {
		uid              int
		tool, args, want string
	}{
		{ann, "mailbox_create", `{"name":"ann"}`, "ann@mailtree.local"},
		{bob, "mailbox_create", `{"name":"bob"}`, "bob@mailtree.local"},
		{bob, "mailbox_create", `{"name":"ann"}`, denied},
		{bob, "email_list", `{"mailbox":"ann"}`, denied},
		{bob, "email_send", `{"from_mailbox":"ann","to":"bob","subject":"s","body":"b"}`, denied},
		{bob, "mailbox_delete", `{"name":"ann","force":true}`, denied},
		{bob, "hook_create", `{"mailbox":"ann","event":"on_receive","cmd":["/usr/bin/id"]}`, denied},
		{bob, "hook_create", `{"mailbox":"bob","event":"on_receive","cmd":["/usr/bin/id"],"name":"who"}`, `{"effective_name":"who"}`},
		{ann, "hook_list", `{}`, `[]`},
		{ann, "hook_delete", `{"name":"who"}`, "! Hook 'who' not found"},
		{bob, "hook_list", `{}`,
			`[{"name":"who","mailbox":"bob","event":"on_receive","cmd":["/usr/bin/id"],"timeout_secs":60,"fire_on_untrusted":false}]`},
	} {
		if got := o.one(tt.uid, tt.tool, tt.args); got != tt.want {
			t.Errorf("%d: %d %s %s: %s, want %s", i, tt.uid, tt.tool, tt.args, got, tt.want)
		}
	}
	sent := o.one(ann, "email_send", `{"from_mailbox":"ann","to":"bob@mailtree.local","subject":"Plan","body":"b"}`)
	id := strings.TrimSuffix(strings.TrimPrefix(sent, "Email sent to bob@mailtree.local. Message-ID: <"), "@mailtree.local>")
	read := `{"mailbox":"bob","id":"` + id + `"}`
	if got := o.one(bob, "email_read", read); !strings.Contains(got, `"auth": "uid:65532"`) || !strings.Contains(got, `"subject": "Plan"`) {
		t.Errorf("%s, then: %s", sent, got)
	}
	if got := o.one(ann, "email_read", read); got != denied {
		t.Errorf("the other's mail: %s", got)
	}
	if diff := cmp.Diff([]string{"Email '" + id + "' marked as read.", `uid=65533`},
		[]string{o.one(bob, "email_mark_read", read), o.output(1)[0]}); diff != "" {
		t.Error(diff)
	}
	for uid, want := range map[int]int{ann: 1, bob: 1, 0: 2} {
		if got := strings.Count(o.one(uid, "mailbox_list", `{}`), `"name":`); got != want {
			t.Errorf("%d sees %d mailboxes, want %d", uid, got, want)
		}
	}
}

// TestGuestAttachment checks that an OS user who does not run the server can read the attachments of the emails in
// their mailbox. A hook receives the list of attachments, and the OS user reads an attachment in parts. No other OS
// user can read those attachments.
func TestGuestAttachment(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not done here: needs root to become other users")
	}
	const ann, bob = 65532, 65533
	o := &office{t: t}
	o.prepare()
	o.env = []string{"ATTACHMENT_ROOTS=" + o.dir}
	o.start()
	t.Cleanup(func() { o.end(syscall.SIGINT) })
	want := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{1}).Read(want)
	if err := os.WriteFile(filepath.Join(o.dir, "plan.bin"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	o.one(0, "mailbox_create", `{"name":"cid"}`)
	o.one(ann, "mailbox_create", `{"name":"ann"}`)
	o.call(bob, [2]string{"mailbox_create", `{"name":"bob"}`},
		[2]string{"hook_create", `{"mailbox":"bob","event":"on_receive","cmd":["/usr/bin/printenv","MAILTREE_ATTACHMENTS"]}`})
	o.one(0, "email_send", `{"from_mailbox":"cid","to":"bob","subject":"s","body":"b","attachments":["`+o.dir+`/plan.bin"]}`)
	var listed []struct {
		Name, Path, URI string
		Bytes           int64
	}
	if err := json.Unmarshal([]byte(o.output(1)[0]), &listed); err != nil || len(listed) != 1 || listed[0].Name != "plan.bin" ||
		listed[0].Bytes != int64(len(want)) || !filepath.IsAbs(listed[0].Path) {
		t.Fatalf("the hook got %s: %v", o.output(1), err)
	}
	uri := listed[0].URI
	var got []byte
	for next, pieces := int64(0), 0; next > 0 || pieces == 0; pieces++ {
		piece, more, refused := o.resource(bob, fmt.Sprintf("%s&offset=%d", uri, next))
		if refused != "" || len(piece) == 0 {
			t.Fatalf("piece %d: %s", pieces, refused)
		}
		got, next = append(got, piece...), more
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, which differ from the file's %d bytes", len(got), len(want))
	}
	if _, _, refused := o.resource(ann, uri); !strings.Contains(refused, "No attachment") {
		t.Errorf("another user: %q", refused)
	}
	if data, _, refused := o.resource(0, uri); refused != "" || len(data) == 0 {
		t.Errorf("root: %s", refused)
	}
}

// output waits until n hook runs have ended, and returns the first word that each run printed.
func (o *office) output(n int) (words []string) {
	o.t.Helper()
	o.until("hooks ran", func() bool {
		words = nil
		for _, l := range o.hookLog() {
			if l.Ended != "" {
				word, _, _ := strings.Cut(l.Output, "(")
				word, _, _ = strings.Cut(word, " ")
				words = append(words, word)
			}
		}
		return len(words) >= n
	})
	return words
}

type hookLogLine struct {
	Message, Begun, Ended, End, Output string
	PID                                int
}

// hookEnds returns how each finished hook run ended, by message id.
func (o *office) hookEnds() map[string]string {
	ends := map[string]string{}
	for _, l := range o.hookLog() {
		if l.Ended != "" {
			ends[l.Message] = l.End
		}
	}
	return ends
}

func (o *office) hookLog() (all []hookLogLine) {
	o.t.Helper()
	for line := range strings.Lines(storetest.HookMarks(o.t, filepath.Join(o.dir, "store"))) {
		var l hookLogLine
		if json.Unmarshal([]byte(line), &l) == nil {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b hookLogLine) int { return strings.Compare(a.Begun+a.Ended, b.Begun+b.Ended) })
	return all
}

func (o *office) until(what string, ok func() bool) {
	o.t.Helper()
	if !waits.Within(3*time.Minute, ok) {
		o.t.Fatalf("never: %s; log: %+v", what, o.hookLog())
	}
}

// TestHookKilled kills the server while some hooks are running and others are waiting. After the restart, hooks that
// had already started do not start again, but the server records that they have ended. Hooks that had not started yet
// now run, and so do hooks for new mail.
func TestHookKilled(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	me := os.Geteuid()
	script := filepath.Join(o.dir, "hook")
	text := "#!/bin/sh\necho $AIMX_ID >> " + o.dir + "/began\nwhile [ ! -e " + o.dir + "/go ]; do sleep 0.01; done\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600) })
	calls := [][2]string{{"mailbox_create", `{"name":"ann"}`},
		{"hook_create", `{"mailbox":"ann","event":"on_receive","cmd":["` + script + `"]}`}}
	send := [2]string{"email_send", `{"from_mailbox":"ann","to":"ann","subject":"s","body":"b"}`}
	const before = 12 // more hooks than can run at the same time
	for range before {
		calls = append(calls, send)
	}
	o.call(me, calls...)
	began := func() []string {
		data, err := os.ReadFile(filepath.Join(o.dir, "began"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Fields(string(data))
	}
	o.until("some hooks have begun", func() bool { return len(began()) >= 3 })
	o.end(syscall.SIGKILL)
	logged := map[string]bool{}
	for _, l := range o.hookLog() {
		if l.Begun != "" {
			logged[l.Message] = true
		}
	}
	if len(logged) >= before {
		t.Fatalf("all %d began", len(logged))
	}
	o.start()
	o.call(me, send)
	if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.until("all hooks have ended", func() bool { return len(o.hookEnds()) == before+1 })
	for id, end := range o.hookEnds() {
		if (end == "the server that started the hook stopped before the hook finished") != logged[id] {
			t.Errorf("%s, begun before the kill: %t, ended: %q", id, logged[id], end)
		}
	}
	times := map[string]int{}
	for _, id := range began() {
		if times[id]++; times[id] > 1 {
			t.Errorf("%s began %d times", id, times[id])
		}
	}
	if unstarted := before + 1 - len(times); unstarted > len(logged) { // a recorded hook may not have started yet
		t.Errorf("%d of %d hooks ran, %d had been recorded when the server was killed", len(times), before+1, len(logged))
	}
}

// TestHookOutlivesServer checks that if a hook's command keeps running after its server has been killed, the next
// server terminates the command at the hook's timeout.
func TestHookOutlivesServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to recognize a process")
	}
	t.Parallel()
	o := newOffice(t)
	o.call(os.Geteuid(), [2]string{"mailbox_create", `{"name":"ann"}`},
		[2]string{"hook_create",
			`{"mailbox":"ann","event":"on_receive","timeout_secs":10,"cmd":["/bin/sh","-c","trap '' TERM; sleep 1000 & sleep 1000"]}`},
		[2]string{"email_send", `{"from_mailbox":"ann","to":"ann","subject":"s","body":"b"}`})
	group := 0
	o.until("the command is running", func() bool {
		for _, l := range o.hookLog() {
			group = max(group, l.PID)
		}
		return group > 1 && len(members(t, group)) == 3 // the shell and its two children
	})
	o.end(syscall.SIGKILL)
	if got := members(t, group); len(got) != 3 {
		t.Fatalf("everything ended together with the server, except %v", got)
	}
	o.start()
	o.until("the end of the command is recorded", func() bool { return len(o.hookEnds()) == 1 })
	for _, end := range o.hookEnds() {
		if end != "timeout" {
			t.Errorf("it ended because of %q", end)
		}
	}
	o.until("none of its processes is left", func() bool { return len(members(t, group)) == 0 })
}

// members returns the processes of a group that are still running.
func members(t *testing.T, group int) (pids []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		stat, _ := os.ReadFile(file) // the process may be gone
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[0] != "Z" && f[2] == strconv.Itoa(group) {
			pids = append(pids, file)
		}
	}
	return pids
}
