package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
)

// daemon is a server that a test repeatedly starts and stops on the same store.
type daemon struct {
	t       testing.TB
	store   string
	real    bool                  // run the released program, without the verbs of faultServe
	program string                // another program to run; empty means the tested program
	env     []string              // additional settings
	launch  func(*exec.Cmd) error // starts the program; nil means start it normally
	cmd     *exec.Cmd
	url     string
	client  *http.Client
	starts  int
	slowest time.Duration // the duration of the slowest start
	busiest time.Duration // the most processor time that a start has used
}

// newDaemon returns a daemon that is not running yet. The test's cleanup kills any server that is still running.
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
					filepath.Join(*keep, strings.NewReplacer("/", "-", "#", "").Replace(t.Name()))).Run()) // works across file systems
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

// startLimit is the maximum processor time that a server may use to start after a kill. Wall-clock time would include
// the work of other programs.
const startLimit = 2 * time.Second * slower

// start starts the server and returns when it listens.
func (d *daemon) start() {
	d.t.Helper()
	if err := d.tryStart(); err != nil {
		d.t.Fatalf("start %d: %v\n%s", d.starts, err, tail(d.logFile(), 3000))
	}
}

func (d *daemon) tryStart() error {
	exe, err := os.Executable()
	if d.program != "" {
		exe = d.program
	}
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
	cmd.Env = append(cmd.Env, d.env...)
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
			d.cmd, d.url, d.slowest = cmd, strings.TrimSuffix(url, "/mcp"), max(d.slowest, time.Since(began))
			d.starts++
			go io.Copy(io.Discard, out)
			d.client = &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			d.busiest = max(d.busiest, worked(cmd.Process.Pid))
			return nil
		}
	}
	return fmt.Errorf("the server did not start: %v", cmd.Wait())
}

// worked returns the processor time that a process has used, or 0 if the system does not report it.
func worked(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	if err != nil || !ok || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel counts in hundredths of a second
}

// kill kills the server without giving it a chance to clean up.
func (d *daemon) kill() {
	d.cmd.Process.Kill()
	d.cmd.Wait()
	d.gone()
}

// gone cleans up after a server that has exited.
func (d *daemon) gone() {
	d.client.CloseIdleConnections()
	d.cmd = nil
}

// stop stops the server cleanly, so that everything is committed and the store can be checked. If the server is not the
// released program, stop first kills it and starts the released program in its place.
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

// interrupt asks the server to stop, and waits until it has exited.
func (d *daemon) interrupt() {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGINT)
	err := d.cmd.Wait()
	d.gone()
	if err != nil {
		d.t.Errorf("serve ended with %v", err)
	}
}

// settled waits until the server has found and committed everything that users saved just before a kill.
func (d *daemon) settled() {
	d.t.Helper()
	tree := d.tree()
	until(d.t, "what users saved to be committed", 3*time.Minute, func() bool {
		out, err := exec.Command("git", "--no-optional-locks", "-C", tree, "status", "--porcelain").Output()
		return err == nil && len(out) == 0
	})
}

// check stops the server, and checks the store against all invariants.
func (d *daemon) check(l *storetest.Ledger) {
	d.t.Helper()
	d.stop()
	for _, p := range storetest.Check(d.t.Context(), d.store, l) {
		d.t.Error(p)
	}
}

// toolError is a refusal by the server.
type toolError struct {
	text string
	code string // the refusal's code; empty if the refusal did not come from a tool
}

func (e *toolError) Error() string { return e.text }

// call calls a tool and decodes its structured result. For a refusal, it returns a *toolError. Any other error means
// that there was no response, so the call may or may not have taken effect.
func (d *daemon) call(tool string, args, result any) error {
	return d.callAt("/mcp", tool, args, result)
}

// callAt is like call, but at the address of another toolset.
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

// mailtree runs the released program on the daemon's store, and returns its output.
func (d *daemon) mailtree(args ...string) string {
	d.t.Helper()
	out, err := d.command(args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("mailtree %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// command returns a command that runs the released program on the daemon's store.
func (d *daemon) command(args ...string) *exec.Cmd {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"mailtree"}, args...)
	cmd.Env = append(os.Environ(), "MCP_MAIL_STORE="+d.store, "HOME="+filepath.Dir(d.store), "GIT_CONFIG_NOSYSTEM=1")
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
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

// tree returns the working tree of the store's only project.
func (d *daemon) tree() string {
	d.t.Helper()
	repos, err := filepath.Glob(filepath.Join(d.store, "projects", "*", "repo"))
	if err != nil || len(repos) != 1 {
		d.t.Fatalf("%d projects, %v", len(repos), err)
	}
	return repos[0]
}
