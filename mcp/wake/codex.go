package wake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"mailtree/maildir/seat"
)

// The command `codex queue` stores a prompt for a thread. If a process has loaded the thread, Codex runs the prompt
// immediately. Otherwise it runs the prompt when the thread is resumed. The server itself runs the command, because
// none of the client's processes could do so: Codex has no hooks that keep running after their turn. The server does
// not queue a prompt for a thread that no process has loaded. It also does not queue one for a thread of `codex exec`,
// which drops the queue (https://github.com/openai/codex/issues/41060). The process that has loaded a thread locks
// $CODEX_HOME/thread-writer-locks/ID.lock. The server runs the executable of that process, so Codex need not be on the
// server's PATH.

const queueTime = 20 * time.Second // the command usually takes 0.4 s

var errNoThread = errors.New("no running Codex has the session's thread loaded")

// queueCodex queues the text as a prompt for a session's thread. If it fails, the error gives the reason.
func queueCodex(ctx context.Context, s *seat.Seat, text string) error {
	pid, ok := s.Process.PID()
	if !ok {
		return errNoThread
	}
	home, err := codexHome(pid)
	if err != nil {
		return err
	}
	if filepath.Base(s.ID) != s.ID {
		return errNoThread
	}
	holder, err := lockHolder(filepath.Join(home, "thread-writer-locks", s.ID+".lock"))
	if err != nil {
		return err
	}
	program, err := os.Readlink(proc(holder, "exe"))
	if err != nil {
		return errNoThread
	}
	if args, err := os.ReadFile(proc(holder, "cmdline")); err != nil || isExec(args) {
		return errNoThread
	}
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "queue", "--thread", s.ID, "--message", text)
	cmd.Dir, cmd.WaitDelay = s.Dir, time.Second
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		last := out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:]
		return fmt.Errorf("codex queue: %w (%.200q)", err, last)
	}
	return startQueue(ctx, home, s.ID)
}

// startQueue makes Codex's background server run a thread's queue. After the user has interrupted a turn, Codex does
// not run the queue until the next prompt. If the thread does not belong to a background server, startQueue does
// nothing, and the notice stays queued until that prompt. If Codex has already emptied the queue, the background server
// refuses the request, and startQueue ignores the refusal.
func startQueue(ctx context.Context, home, thread string) error {
	socket, err := filepath.EvalSymlinks(filepath.Join(home, "app-server-control", "app-server-control.sock"))
	if err != nil {
		return nil // there is no background server
	}
	dial := ws.Dialer{NetDial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	conn, early, _, err := dial.Dial(ctx, "ws://localhost/")
	if err != nil {
		return nil // the background server has exited
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	if early != nil {
		ws.PutReader(early) // the server sends nothing before it gets a request
	}
	if err := askStart(conn, thread); err != nil {
		return fmt.Errorf("codex: cannot start the queue command: %w", err)
	}
	return nil
}

// askStart asks Codex's background server to run a thread's queue, and waits for the response.
func askStart(conn net.Conn, thread string) error {
	const hello = `{"id":0,"method":"initialize","params":{"clientInfo":{"name":"mailtree","version":"1"},` +
		`"capabilities":{"experimentalApi":true}}}`
	name, err := json.Marshal(thread)
	if err != nil {
		return err
	}
	start := `{"id":1,"method":"thread/queue/start","params":{"threadId":` + string(name) + `}}`
	said := struct {
		io.Reader
		io.Writer
	}{io.LimitReader(conn, maxSaid), conn}
	if err := wsutil.WriteClientText(conn, []byte(hello)); err != nil {
		return err
	}
	if err := answered(said, 0); err != nil {
		return err
	}
	for _, ask := range []string{`{"method":"initialized"}`, start} {
		if err := wsutil.WriteClientText(conn, []byte(ask)); err != nil {
			return err
		}
	}
	return answered(said, 1)
}

// maxSaid is the maximum number of bytes that Codex's background server may send before it answers.
const maxSaid = 16 << 20

// answered reads messages from Codex's background server until it has answered the request with the given id.
func answered(conn io.ReadWriter, id int) error {
	for {
		said, err := wsutil.ReadServerText(conn)
		if err != nil {
			return err
		}
		var answer struct {
			ID *int `json:"id"`
		}
		if json.Unmarshal(said, &answer) == nil && answer.ID != nil && *answer.ID == id {
			return nil
		}
	}
}

func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// codexHome returns the value of CODEX_HOME for a process.
func codexHome(pid int) (string, error) {
	env, err := os.ReadFile(proc(pid, "environ"))
	if err != nil {
		return "", err
	}
	var user string
	for v := range bytes.SplitSeq(env, []byte{0}) {
		name, value, _ := strings.Cut(string(v), "=")
		switch name {
		case "CODEX_HOME":
			return value, nil
		case "HOME":
			user = value
		}
	}
	return filepath.Join(user, ".codex"), nil
}

// isExec reports whether a Codex process was started as `codex exec`.
func isExec(cmdline []byte) bool {
	args := strings.Split(string(cmdline), "\x00")
	return slices.ContainsFunc(args[1:], func(arg string) bool { return arg == "exec" || arg == "e" })
}

// lockHolder returns the pid of the process that holds a flock on the file, or errNoThread if there is none.
func lockHolder(file string) (pid int, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, errNoThread
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errNoThread
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for range 3 { // reading the file can miss a lock if other locks change at the same time
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			return 0, errNoThread
		}
		if pid := holderIn(string(locks), inode); pid > 0 {
			return pid, nil
		}
	}
	return 0, errNoThread
}

// holderIn returns the pid of the process that has a flock on the inode, or 0 if there is none. The parameter locks is
// the content of /proc/locks.
func holderIn(locks, inode string) (pid int) {
	for l := range strings.Lines(locks) {
		f := strings.Fields(l) // such as: 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
