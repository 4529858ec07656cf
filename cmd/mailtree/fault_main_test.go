package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

// The fault tests run the program as a process of its own and kill it, fill its disk, cut its power
// and get in its way. A few of them run with all tests, in their least form, all of them in the
// short form (200 kills) in .ci/run. In full: go test ./cmd/mailtree -run Fault -faults=long -timeout 1h

var faults = flag.String("faults", "least", "how much the fault tests do: least, short or long")

var keep = flag.String("keep", "", "where to move the store of a fault test that failed, to be looked at")

// extent is n in the short form, long in the long one, else least.
func extent(least, n, long int) int {
	switch *faults {
	case "short":
		return n
	case "long":
		return long
	}
	return least
}

// longer leaves a test to the short form, which .ci/run runs, because it uses too much of a machine
// for every `go test ./...`.
func longer(t *testing.T) {
	t.Helper()
	if *faults == "least" {
		t.Skip("runs with -faults=short and -faults=long only")
	}
}

// faultEnv makes the test binary the fault program.
const faultEnv = "MAILTREE_FAULT_PROGRAM"

// init is how the test binary becomes the fault program, whatever its name: see faultServe.
func init() {
	if os.Getenv(faultEnv) != "" {
		if err := faultServe(); err != nil {
			fmt.Fprintln(os.Stderr, "mailtree:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// faultServe is serve with the verbs that no tool of the wire has yet (pop, unread), and a writer
// that dies at a step.
//
//	POST /fault/pop?project=&agent=          the message's id, empty when there is none
//	POST /fault/unread?project=&agent=&id=
//	POST /fault/both?project=&agent=&id=     a pop and an acknowledgement of the same delivery, in one group
//	POST /fault/flush?project=               when it returns, everything is committed
//	POST /fault/compare?project=             the same, the whole tree was compared with the index
//	POST /fault/die?at=N                     the Nth step of the writer from now on is the last thing that the program does
//	POST /fault/hold?at=N                    the writer waits at that step until it is told to go on
//	POST /fault/held                         "true" when it waits
//	POST /fault/go
//	POST /fault/steps                        the steps since then, one a line
func faultServe() error {
	flags := pflag.NewFlagSet("fault", pflag.ContinueOnError)
	addSettingFlags(flags, "config")
	std := stdio{os.Stdin, os.Stdout, os.Stderr}
	cfg, err := loadConfig(flags, os.Environ(), "", os.UserHomeDir)
	if err != nil {
		return err
	}
	tuneMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f := &faultProgram{}
	cfg.step = f.step
	if f.app, err = openApp(ctx, cfg, cfg.logger(std), nil); err != nil {
		return err
	}
	ln, err := listen(ctx, cfg)
	if err != nil {
		return err
	}
	m := mcpserver.New(mcpserver.Config{Store: f.app.store, Version: version(),
		Health: func(ctx context.Context) any { return (&health{app: f.app, began: time.Now()}).report(ctx) }, Log: f.app.log})
	srv := m.HTTPServer("")
	srv.Handler = f.routes(srv.Handler)
	go srv.Serve(ln)
	welcome(&program{std: std, cfg: cfg}, f.app, serverURL(cfg, ln.Addr().(*net.TCPAddr).Port))
	watched := make(chan error, 1)
	go func() { watched <- f.app.watch(ctx) }()
	err = f.app.store.Run(ctx) // until it is killed or interrupted
	srv.Close()
	return errors.Join(err, <-watched, f.app.close())
}

type faultProgram struct {
	app *app

	mu    sync.Mutex
	left  int           // steps to go; 0: for ever
	hold  bool          // then wait, else die
	held  chan struct{} // closed to go on; nil while the writer does not wait
	steps []string
}

// step is called by the writer before each of its steps.
func (f *faultProgram) step(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, name)
	if f.left--; f.left == 0 {
		if !f.hold {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		wait := make(chan struct{})
		f.held = wait
		f.mu.Unlock()
		<-wait
		f.mu.Lock()
	}
}

func (f *faultProgram) routes(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("POST /fault/{verb}", func(w http.ResponseWriter, r *http.Request) {
		answer, err := f.do(r.Context(), r.PathValue("verb"), r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		io.WriteString(w, answer)
	})
	return mux
}

func (f *faultProgram) do(ctx context.Context, verb string, q url.Values) (string, error) {
	switch verb {
	case "die", "hold":
		n, err := strconv.Atoi(q.Get("at"))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left, f.hold, f.steps = n, verb == "hold", nil
		return "", err
	case "held":
		f.mu.Lock()
		defer f.mu.Unlock()
		return strconv.FormatBool(f.held != nil), nil
	case "go":
		f.mu.Lock()
		defer f.mu.Unlock()
		close(f.held)
		f.held = nil
		return "", nil
	case "steps":
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Join(f.steps, "\n"), nil
	}
	p, err := f.app.store.Project(ctx, q.Get("project"))
	if err != nil {
		return "", err
	}
	switch verb {
	case "pop":
		d, err := p.Pop(ctx, q.Get("agent"))
		if err != nil || d == nil {
			return "", err
		}
		return d.ID, nil
	case "read", "unread":
		_, err := p.SetRead(ctx, q.Get("agent"), q.Get("id"), verb == "read")
		return "", err
	case "delete":
		_, err := p.Delete(ctx, q.Get("agent"), q.Get("id"))
		return "", err
	case "undo":
		_, err := p.Undo(ctx, maildir.Undoing{Agent: q.Get("agent"), ID: q.Get("id")})
		return "", err
	case "amend":
		_, err := p.Amend(ctx, maildir.Amendment{Agent: q.Get("agent"), ID: q.Get("id"), Text: q.Get("text")})
		return "", err
	case "both":
		return "", f.both(p, q.Get("agent"), q.Get("id"))
	case "flush":
		return "", p.Flush(ctx)
	case "compare":
		return "", p.Rescan(ctx)
	}
	return "", fmt.Errorf("no verb %q", verb)
}

// both makes the writer wait in somebody else's operation, so that what comes meanwhile becomes one
// group.
func (f *faultProgram) both(p *maildir.Project, agent, id string) error {
	ctx := context.Background()
	f.mu.Lock() // the writer stops at its next step
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i, do := range []func() error{
		func() error { _, err := p.Register(ctx, maildir.Registration{Program: "p", Model: "m"}); return err },
		func() error { _, err := p.Pop(ctx, agent); return err },
		func() error { _, err := p.Acknowledge(ctx, agent, id); return err },
	} {
		all.Go(func() { errs[i] = do() })
		time.Sleep(5 * time.Millisecond) // nothing tells from outside that an operation has queued
	}
	f.mu.Unlock()
	all.Wait()
	return errors.Join(errs...)
}

// daemon is a server that a test starts and ends again and again on one store.
type daemon struct {
	t       testing.TB
	store   string
	real    bool                  // the shipped program, without the verbs of faultServe
	patient bool                  // a start may take as long as it takes
	env     string                // one more setting; "": none
	launch  func(*exec.Cmd) error // starts the program; nil: as it is
	cmd     *exec.Cmd
	url     string
	client  *http.Client
	starts  int
	slowest time.Duration // start
	busiest time.Duration // start, by the time of its processor
}

// newDaemon returns a daemon that is not started. No process of it outlives the test.
func newDaemon(t testing.TB, store string) *daemon {
	d := &daemon{t: t, store: store}
	t.Cleanup(func() {
		if d.cmd != nil {
			d.kill()
		}
		if t.Failed() {
			t.Logf("end of the server's log:\n%s", tail(d.logFile(), 6000))
			if *keep != "" {
				t.Logf("store kept: %v", exec.Command("cp", "-a", filepath.Dir(store),
					filepath.Join(*keep, strings.NewReplacer("/", "-", "#", "").Replace(t.Name()))).Run()) // it may lie on another disk
			}
		}
	})
	return d
}

func (d *daemon) logFile() string { return filepath.Join(filepath.Dir(d.store), "serve.log") }

func tail(file string, n int) string {
	data, _ := os.ReadFile(file)
	return string(data[max(0, len(data)-n):])
}

// startLimit is how long a server may work after a kill until it answers: two seconds of a
// processor, because on the clock the work of others counts too.
const startLimit = 2 * time.Second * slower

// start starts the server and returns when it listens, which must not take much work.
func (d *daemon) start() {
	d.t.Helper()
	if err := d.tryStart(); err != nil {
		d.t.Fatalf("start %d: %v\n%s", d.starts, err, tail(d.logFile(), 3000))
	}
}

func (d *daemon) tryStart() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	logs, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	began := time.Now()
	cmd := exec.Command(exe)
	cmd.Args = []string{"mailtree", "serve", "--port", "0"}
	cmd.Env = append(os.Environ(), "MCP_MAIL_STORE="+d.store, "PORT=0", "HOME="+filepath.Dir(d.store), "GIT_CONFIG_NOSYSTEM=1",
		"LOG_LEVEL=warn")
	if !d.real {
		cmd.Env = append(cmd.Env, faultEnv+"=1")
	}
	if d.env != "" {
		cmd.Env = append(cmd.Env, d.env)
	}
	cmd.Stderr = logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	launch := (*exec.Cmd).Start
	if d.launch != nil {
		launch = d.launch
	}
	if err := launch(cmd); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "  MCP      "); ok {
			took := time.Since(began)
			d.cmd, d.url, d.slowest = cmd, strings.TrimSuffix(url, "/mcp"), max(d.slowest, took)
			d.starts++
			go io.Copy(io.Discard, out)
			d.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			work := worked(cmd.Process.Pid)
			if d.busiest = max(d.busiest, work); work > startLimit && !d.patient {
				return fmt.Errorf("the server worked %s to start (%s on the clock)", work, took)
			}
			return nil
		}
	}
	return fmt.Errorf("the server did not start: %v", cmd.Wait())
}

// worked is the time that a process had a processor; 0 where the system does not tell.
func worked(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	if err != nil || !ok || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel counts in hundredths
}

// kill ends the server with no chance to clean up.
func (d *daemon) kill() {
	d.cmd.Process.Kill()
	d.cmd.Wait()
	d.gone()
}

// gone forgets a server that has ended.
func (d *daemon) gone() {
	d.client.CloseIdleConnections()
	d.cmd = nil
}

// stop ends a server properly, so that everything is committed and the checker can look at the
// store. It stops the shipped program; any other it kills first.
func (d *daemon) stop() {
	d.t.Helper()
	if !d.real {
		d.kill()
		d.real = true
		d.start()
		d.settled()
	}
	d.interrupt()
}

// interrupt has the server end by itself.
func (d *daemon) interrupt() {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGINT)
	err := d.cmd.Wait()
	d.gone()
	if err != nil {
		d.t.Errorf("serve ended with %v", err)
	}
}

// settled waits until the server has found and committed what persons saved just before a kill.
func (d *daemon) settled() {
	d.t.Helper()
	tree := d.tree()
	until(d.t, "what persons saved to be committed", 3*time.Minute, func() bool {
		out, err := exec.Command("git", "--no-optional-locks", "-C", tree, "status", "--porcelain").Output()
		return err == nil && len(out) == 0
	})
}

// check stops the server and checks the store against every invariant.
func (d *daemon) check(l *storetest.Ledger) {
	d.t.Helper()
	d.stop()
	for _, p := range storetest.Check(d.t.Context(), d.store, l) {
		d.t.Error(p)
	}
}

// toolError is a refusal.
type toolError struct {
	text string
	code string // of the refusal; "" where it was none of a tool
}

func (e *toolError) Error() string { return e.text }

// call calls a tool and decodes its structured answer. A *toolError: refused. Any other error:
// there was no answer, so the call may have done its work or not.
func (d *daemon) call(tool string, args, result any) error {
	return d.callAt("/mcp", tool, args, result)
}

// callAt is call at another toolset's address.
func (d *daemon) callAt(path, tool string, args, result any) error {
	params, err := json.Marshal(args)
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, params)
	data, err := d.post(path, "application/json", body)
	if err != nil {
		return err
	}
	var res struct {
		Result struct {
			Content    []struct{ Text string }
			Structured json.RawMessage `json:"structuredContent"`
			IsError    bool
		}
		Error json.RawMessage
	}
	if err := json.Unmarshal(data, &res); err != nil {
		return fmt.Errorf("%w: %s", err, data)
	}
	switch {
	case res.Error != nil:
		return &toolError{text: string(res.Error)}
	case res.Result.IsError && len(res.Result.Content) > 0:
		var refusal struct{ Code string }
		json.Unmarshal(res.Result.Structured, &refusal)
		return &toolError{text: res.Result.Content[0].Text, code: refusal.Code}
	case result == nil:
		return nil
	}
	return json.Unmarshal(res.Result.Structured, result)
}

// verb calls one of the verbs that faultServe adds.
func (d *daemon) verb(verb string, pairs ...string) (string, error) {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	data, err := d.post("/fault/"+verb+"?"+q.Encode(), "text/plain", nil)
	if err != nil {
		return "", err
	}
	return string(data), nil
}

func (d *daemon) post(path, kind string, body []byte) ([]byte, error) {
	resp, err := d.client.Post(d.url+path, kind, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = &toolError{text: resp.Status + ": " + string(data)}
	}
	return data, err
}

// tree is the work tree of the store's only project.
func (d *daemon) tree() string {
	d.t.Helper()
	repos, err := filepath.Glob(filepath.Join(d.store, "projects", "*", "repo"))
	if err != nil || len(repos) != 1 {
		d.t.Fatalf("%d projects, %v", len(repos), err)
	}
	return repos[0]
}

// until waits for a condition.
func until(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}
