package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mailtree/fixtures/guesttest"
	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
)

// TestMain makes the test binary act as the real program when a script runs `mailtree`.
func TestMain(m *testing.M) {
	waits.Tune()
	afterAnswer = func(time.Duration) <-chan time.Time { return nil } // so that even a slow script can cancel an answer
	testscript.Main(m, map[string]func(){"mailtree": main})
}

// TestScripts runs every script below fixtures/scripts with the real program. After each script, the live index must
// equal a rebuilt one, and every repository must pass git fsck and have no uncommitted changes.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts
	p.Dir = "../../fixtures/scripts"
	runScripts(t, p)
}

// runScripts runs scripts in memory if inmemory.Folder returns a folder.
func runScripts(t *testing.T, p testscript.Params) {
	t.Helper()
	if dir := inmemory.Folder(); dir != "" {
		if err := os.Setenv("GOTMPDIR", dir); err != nil { // testscript creates its folders there
			t.Fatal(err)
		}
	}
	testscript.Run(t, p)
}

// scripts contains the parameters for running scripts.
var scripts = testscript.Params{
	Setup: setupScript,
	Condition: func(cond string) (bool, error) {
		switch cond {
		case "root":
			return os.Geteuid() == 0, nil
		case "fuse": // a file system that does not respond can be mounted
			dir, err := os.MkdirTemp("", "mailtree-fuse-")
			if err != nil {
				return false, err
			}
			defer os.Remove(dir)
			return canMountFUSE(dir), nil
		case "client": // an agent's client runs the tests, so commands that only users may run are refused
			above, _ := seat.Ancestors()
			return underClient(above), nil
		case "sshd":
			return canSSHD(), nil
		case "sdks": // the MCP SDKs are installed beside the real clients
			return os.Getenv(clientsEnv) != "", nil
		}
		return false, fmt.Errorf("unknown condition %q", cond)
	},
	Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"serve":      cmdServe,
		"halt":       cmdHalt,
		"crash":      cmdCrash,
		"call":       cmdCall,
		"read":       cmdRead,
		"post":       cmdPost,
		"failed":     cmdFailed,
		"stopped":    cmdStopped,
		"eventually": cmdEventually,
		"capture":    cmdCapture,
		"tree":       cmdTree,
		"settled":    cmdSettled,
		"released":   cmdReleased,
		"unused":     cmdUnused,
		"bridges":    cmdBridges,
		"guest":      cmdGuest,
		"window":     cmdWindow,
		"typed":      cmdTyped,
		"tab":        cmdTab,
		"terminal":   cmdTerminal,
		"start":      cmdStart,
		"press":      cmdPress,
		"resize":     cmdResize,
		"dns":        cmdDNS,
		"sshd":       cmdSSHD,
	},
}

// canMountFUSE reports whether a FUSE file system can be mounted on a folder.
func canMountFUSE(dir string) bool {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	mount := exec.Command("mount", "-i", "-t", "fuse", "-o", "fd=3,rootmode=40000,user_id=0,group_id=0", "stuck", dir)
	mount.ExtraFiles = []*os.File{f}
	return mount.Run() == nil && exec.Command("umount", "-l", dir).Run() == nil
}

// server is the server that a script runs. It is stored in the script's environment.
type server struct {
	cmd *exec.Cmd
	url string
}

type serverKey struct{}

func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("MCP_MAIL_STORE", filepath.Join(home, ".mailtree"))
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
	if pauses := os.Getenv(waits.PausesEnv); pauses != "" {
		env.Setenv(waits.PausesEnv, pauses)
	}
	s := &server{}
	env.Values[serverKey{}] = s
	t := env.T().(testing.TB)
	env.Values[desktopKey{}] = &desktop{t: t, windows: map[string]*tmuxtest.Window{}}
	ssh := &sshd{}
	env.Values[sshdKey{}] = ssh
	env.Defer(ssh.stop)
	env.Defer(func() {
		if s.cmd != nil { // a `stop` in the script skips the rest, so the invariants were not checked
			t.Errorf("the script is over, but its server is still running: end it with halt")
		}
		s.end(t, syscall.SIGINT)
	})
	env.Setenv("IDLE", "1h") // applies to servers that commands start
	env.Defer(func() { endLeft(t, env.WorkDir) })
	return nil
}

// endLeft stops the background servers that commands have left running in the stores below dir.
func endLeft(t testing.TB, dir string) {
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if store := filepath.Dir(path); err == nil && filepath.Base(path) == "server.sock" && storedir.Held(store) {
			var said bytes.Buffer
			code := run(context.Background(), []string{"stop", "--store", store}, nil, stdio{out: &said, err: &said})
			if code != 0 && storedir.Held(store) {
				t.Errorf("a server left running could not be stopped: %s", &said)
			}
		}
		return nil
	})
}

func (s *server) end(t testing.TB, sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(sig)
	err := s.cmd.Wait()
	s.cmd = nil
	if sig == syscall.SIGINT && err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

// of returns the script's server.
func of(ts *testscript.TestScript) *server { return ts.Value(serverKey{}).(*server) }

// cmdServe implements `serve [flags]`. It starts the server, waits until the server prints its address, and sets $URL
// to that address. If $FILES is set, it limits the server to that many descriptors. If $SERVER_PATH is set, it is the
// server's $PATH.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	exe, err := exec.LookPath("mailtree")
	ts.Check(err)
	line := append([]string{exe, "serve", "--port", "0"}, args...)
	if files := ts.Getenv("FILES"); files != "" {
		line = append([]string{"sh", "-c", `ulimit -n $0 && exec "$@"`, files}, line...)
	}
	s.cmd = exec.Command(line[0], line[1:]...)
	s.cmd.Dir, s.cmd.Env = ts.MkAbs("."), scriptEnv(ts)
	if path := ts.Getenv("SERVER_PATH"); path != "" {
		s.cmd.Env = append(s.cmd.Env, "PATH="+path)
	}
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	logs, err := os.OpenFile(ts.MkAbs("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer logs.Close()
	s.cmd.Stderr = logs
	ts.Check(s.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "  MCP      "); ok {
			s.url = strings.TrimSuffix(url, "/mcp")
			ts.Setenv("URL", s.url)
			go io.Copy(io.Discard, out)
			return
		}
	}
	s.cmd.Wait()
	s.cmd = nil
	ts.Fatalf("the server did not start: %s", ts.ReadFile("serve.log"))
}

// cmdHalt implements `halt`. It waits until the server has indexed all files, because the script may have just edited
// some. Then it interrupts the server, which must exit successfully. The store must then be sound.
func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	exe, err := exec.LookPath("mailtree")
	ts.Check(err)
	waits.Within(2*time.Minute, func() bool {
		verify := exec.Command(exe, "index", "verify")
		verify.Dir, verify.Env = ts.MkAbs("."), scriptEnv(ts)
		return verify.Run() == nil
	})
	cmdStopped(ts, neg, args)
	checkStore(ts)
}

// cmdCrash implements `crash`. It kills the server without giving it a chance to clean up.
func cmdCrash(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

// cmdStopped implements `stopped`. It interrupts the server, which must exit successfully. It does not check the
// store.
func cmdStopped(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	if s.cmd == nil {
		ts.Fatalf("no server is running")
	}
	s.cmd.Process.Signal(syscall.SIGINT)
	err := s.cmd.Wait()
	s.cmd = nil
	ts.Check(err)
}

// cmdFailed implements `failed`. It waits until the server exits on its own, and checks that the exit status is 1.
func cmdFailed(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		ts.Fatalf("the server ended with status %d", code)
	}
	s.cmd = nil
}

// checkStore checks invariants I2 and I6 on the store of a stopped server. It first commits any changes that the
// server had no time to commit and left to the next server.
func checkStore(ts *testscript.TestScript) {
	ts.Check(ts.Exec("mailtree", "index", "verify"))
	repos, err := filepath.Glob(filepath.Join(ts.Getenv("MCP_MAIL_STORE"), "projects", "*", "repo"))
	ts.Check(err)
	for _, r := range repos {
		ts.Check(ts.Exec("git", "-C", r, "fsck", "--strict", "--no-dangling"))
		if left(ts, r) == "" {
			continue
		}
		ts.Check(ts.Exec("mailtree", "stdio")) // starts a server, which commits the rest
		if !waits.Within(3*time.Minute, func() bool { return left(ts, r) == "" }) {
			ts.Fatalf("git status in %s is not clean:\n%s", r, left(ts, r))
		}
		ts.Check(ts.Exec("mailtree", "stop"))
	}
}

// left returns the output of git status for a repository. The output is empty if everything is committed.
func left(ts *testscript.TestScript, repo string) string {
	ts.Check(ts.Exec("git", "-C", repo, "status", "--porcelain"))
	return ts.ReadFile("stdout")
}

func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	names := []string{"HOME", "PATH", "MCP_MAIL_STORE", "GIT_CONFIG_NOSYSTEM", "TMPDIR", "AUTH", "LOG_LEVEL",
		"COMMIT_EXTERNAL", "MAX_MESSAGE_BYTES", "MAX_FANOUT_BYTES", "MAX_PROJECTS", "PROJECT_SCOPE", "MAILBOX_DEPTH", "ATTACHMENT_ROOTS",
		"SOCKET", "NUDGE", "SUMMARY_COMMAND", "NOTIFY_COMMAND", "WATCH", "IDLE", "GORACE", "MAIL_DOMAIN", formatEnv}
	for _, s := range gatewaySettings() {
		names = append(names, s.Name)
	}
	for _, k := range names {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// cmdEventually implements `eventually REGEXP call|read ARGS`. It repeats the call until the result matches. With !, it
// repeats the call until the result no longer matches.
func cmdEventually(ts *testscript.TestScript, neg bool, args []string) {
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	do := map[string]func(string, []string) (string, bool, error){"call": callTool, "read": readResource}[args[1]]
	var out string
	came := waits.Within(3*time.Minute, func() bool {
		out, _, err = do(of(ts).url, args[2:])
		ts.Check(err)
		return re.MatchString(out) != neg
	})
	if !came {
		ts.Fatalf("still:\n%s", out)
	}
	show(ts, out)
}

// cmdCapture implements `capture NAME REGEXP`. It sets the variable to the first group of the match in the last output.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match of %s in:\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[1])
}

// cmdTree implements `tree`. It sets $TREE to the working tree of the only project, and $DAY to today's folder.
func cmdTree(ts *testscript.TestScript, neg bool, args []string) {
	repos, err := filepath.Glob(filepath.Join(ts.Getenv("MCP_MAIL_STORE"), "projects", "*", "repo"))
	ts.Check(err)
	if len(repos) != 1 {
		ts.Fatalf("%d projects", len(repos))
	}
	ts.Setenv("TREE", repos[0])
	err = filepath.WalkDir(filepath.Join(repos[0], "messages"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".md") {
			rel, _ := filepath.Rel(filepath.Join(repos[0], "messages"), filepath.Dir(p))
			ts.Setenv("DAY", rel)
		}
		return nil
	})
	ts.Check(err)
}

// cmdReleased implements `released`. It stops the server that a command has started, if it is still running. The
// store must then be sound.
func cmdReleased(ts *testscript.TestScript, neg bool, args []string) {
	if storedir.Held(ts.Getenv("MCP_MAIL_STORE")) {
		ts.Check(ts.Exec("mailtree", "stop"))
	}
	checkStore(ts)
}

// cmdUnused implements `unused`. It waits until a server that a command has started exits because no client uses it.
// The store must then be sound. The server must have been started with a short $IDLE, which must still be longer than
// a second. Otherwise, the server may exit between two connections of one command.
func cmdUnused(ts *testscript.TestScript, neg bool, args []string) {
	waits.Until(ts.Value(desktopKey{}).(*desktop).t, "no process has the store", func() bool { return !storedir.Held(ts.Getenv("MCP_MAIL_STORE")) })
	checkStore(ts)
}

// cmdBridges implements `bridges N FILE`. It runs N bridges concurrently, each with the file as its input, and prints
// their output.
func cmdBridges(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	exe, err := exec.LookPath("mailtree")
	ts.Check(err)
	outs, errs := make([]bytes.Buffer, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		cmd := exec.Command(exe, "stdio")
		cmd.Dir, cmd.Env = ts.MkAbs("."), scriptEnv(ts)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(ts.ReadFile(args[1])), &outs[i], &outs[i]
		wg.Go(func() { errs[i] = cmd.Run() })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			ts.Fatalf("bridge %d: %v: %s", i, err, &outs[i])
		}
		show(ts, outs[i].String())
	}
}

// cmdGuest implements `guest COMMAND ARGS`. It runs mailtree as another OS user, who can enter the script's folder but
// not the store. Standard input is empty. The command needs root.
func cmdGuest(ts *testscript.TestScript, neg bool, args []string) {
	const guest = 65533
	exe, err := exec.LookPath(args[0])
	ts.Check(err)
	for dir := ts.MkAbs("."); dir != cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()) && len(dir) > 1; dir = filepath.Dir(dir) {
		ts.Check(os.Chmod(dir, 0o755))
	}
	program := ts.MkAbs("mailtree-of-guest/mailtree")
	ts.Check(os.MkdirAll(filepath.Dir(program), 0o755))
	ts.Check(guesttest.Copy(exe, program))
	home := ts.MkAbs("guest-home")
	ts.Check(os.MkdirAll(home, 0o700))
	ts.Check(os.Chown(home, guest, guest))
	cmd := exec.Command(program, args[1:]...)
	cmd.Args[0], cmd.Dir = "mailtree", home
	cmd.Env = []string{"HOME=" + home, "SOCKET=" + ts.Getenv("SOCKET")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: guest, Gid: guest}}
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	if err := cmd.Run(); (err != nil) != neg {
		ts.Fatalf("as another user: %v", err)
	}
}

// cmdSettled implements `settled`. It waits until everything in $TREE is committed.
func cmdSettled(ts *testscript.TestScript, neg bool, args []string) {
	// The server delays its next commit after a slow one.
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		status := exec.Command("git", "--no-optional-locks", "-C", ts.Getenv("TREE"), "status", "--porcelain")
		if ts.Getenv("SERVER_PATH") != "" { // without git, the server keeps no Git index, and would remove one
			status.Env = append(os.Environ(), "GIT_INDEX_FILE="+ts.MkAbs("settled.index"))
			read := exec.Command("git", "-C", ts.Getenv("TREE"), "read-tree", "HEAD")
			read.Env = status.Env
			_ = read.Run() // fails before the first commit
		}
		out, err := status.Output()
		ts.Check(err)
		if len(out) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not committed:\n%s", out)
		}
	}
}
