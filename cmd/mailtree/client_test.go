package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
)

// The client tests run the programs that agents run in. The model follows a script (fixtures/model), and each test
// simulates a user's machine. The tests need the folder in which the clients are installed:
//
//	MAILTREE_CLIENTS=…/node_modules/.bin go test ./cmd/mailtree -run TestClient -v
//
// The script .ci/campaign installs the clients in that folder.

const clientsEnv = "MAILTREE_CLIENTS"

// clientWait is how long a client may take for any step. A client starts within 15 seconds on two busy cores. With ten
// programs competing for each core, it takes more than a minute.
const clientWait = 2 * time.Minute

// desk simulates a user's machine. It has a home folder, a code base with a project, a store and its server, a client,
// and the model that the client uses.
type desk struct {
	t         *testing.T
	name      string // the client's name, as in `mailtree setup NAME`
	home      string
	code      string // the code base; its path is also its project's key
	env       []string
	model     *model.Server
	modelURL  string
	server    *exec.Cmd
	serverURL string
	screens   *tmuxtest.Server
	prompts   int // number of prompts sent by promptUntilConnected
}

// newDesk creates the machine and starts its server. It skips the test if the client is not installed.
func newDesk(t *testing.T, client string) *desk {
	t.Helper()
	bin := clientsDir(t, client)
	home, err := os.MkdirTemp("", "desk") // short, because the path of a Unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, name: client, home: home, code: filepath.Join(home, "code")}
	d.model, d.modelURL = model.Start(t)
	d.env = []string{
		"HOME=" + home,
		"PATH=" + bin + ":" + os.Getenv("PATH"),
		"MCP_MAIL_STORE=" + filepath.Join(home, ".mailtree"),
		"GIT_CONFIG_NOSYSTEM=1",
		"TERM=xterm-256color",
		"LANG=C.UTF-8",
	}
	d.run("git", "init", "-q", d.code)
	d.serve("0")
	t.Cleanup(func() {
		d.server.Process.Signal(syscall.SIGINT)
		d.server.Wait()
		if t.Failed() {
			said, _ := os.ReadFile(filepath.Join(home, "serve.log"))
			t.Logf("the server said:\n%s", said)
		}
		os.RemoveAll(home)
	})
	d.call("create_agent", map[string]any{
		"project_key":      d.code,
		"name_hint":        "GreenCastle",
		"program":          "test",
		"model":            "none",
		"task_description": "The other side",
	})
	return d
}

// clientsDir returns the folder that contains the clients' programs. It skips the test if there is no such folder, or
// if the folder does not contain the client.
func clientsDir(t *testing.T, client string) string {
	t.Helper()
	bin := os.Getenv(clientsEnv)
	if bin == "" {
		t.Skip("needs real clients: set " + clientsEnv + " to the folder with their programs, as .ci/campaign does")
	}
	if _, err := os.Stat(filepath.Join(bin, client)); err != nil {
		t.Skipf("%s is not installed in %s=%s", client, clientsEnv, bin)
	}
	return bin
}

// beside adds another client, with its own model, to the same machine. Only d may restart the server.
func (d *desk) beside(client string) *desk {
	d.t.Helper()
	clientsDir(d.t, client)
	other := *d
	other.name = client
	other.env = slices.Clone(d.env)
	other.model, other.modelURL = model.Start(d.t)
	return &other
}

// serve starts the server on the given port.
func (d *desk) serve(port string) {
	d.t.Helper()
	logs, err := os.OpenFile(filepath.Join(d.home, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer logs.Close()
	d.server = d.command(context.Background(), "mailtree", "serve", "--port", port)
	d.server.Stderr = logs
	out, err := d.server.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.server.Start(); err != nil {
		d.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, at, ok := strings.Cut(lines.Text(), "  MCP      "); ok {
			d.serverURL = strings.TrimSuffix(at, "/mcp")
			go io.Copy(io.Discard, out)
			return
		}
	}
	d.t.Fatal("the server did not start")
}

// restart kills the server and starts another one on the same port.
func (d *desk) restart() {
	d.t.Helper()
	d.server.Process.Kill()
	d.server.Wait()
	d.serve(d.port())
}

func (d *desk) port() string {
	at, err := url.Parse(d.serverURL)
	if err != nil {
		d.t.Fatal(err)
	}
	return at.Port()
}

func (d *desk) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := name
	if found, err := exec.LookPath(name); err == nil {
		path = found
	}
	if name == d.name {
		path = filepath.Join(os.Getenv(clientsEnv), name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = d.home, d.env
	if _, err := os.Stat(d.code); err == nil {
		cmd.Dir = d.code
	}
	return cmd
}

// run runs a program in the code base until it ends, and returns its output. The program must succeed.
func (d *desk) run(name string, args ...string) string {
	d.t.Helper()
	out, err := d.try(name, args...)
	if err != nil {
		d.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

func (d *desk) try(name string, args ...string) (string, error) { return d.tryWith("", name, args...) }

// tryWith runs a program with the given standard input.
func (d *desk) tryWith(stdin, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), clientWait)
	defer cancel()
	cmd := d.command(ctx, name, args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	cmd.WaitDelay = time.Second // processes that a client leaves behind keep the output open
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// setUp runs `mailtree setup` for the client, over "stdio" or "http", with the given flags.
func (d *desk) setUp(transport string, flags ...string) {
	d.t.Helper()
	d.env = append(d.env, "PORT="+d.port())
	if transport == "http" {
		flags = append(flags, "--http")
	}
	d.t.Logf("%s", d.run("mailtree", append([]string{"setup", d.name}, flags...)...))
}

// call calls a tool in the mail toolset.
func (d *desk) call(tool string, arguments map[string]any) string {
	d.t.Helper()
	out, err := d.tryCall(tool, arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

func (d *desk) tryCall(tool string, arguments map[string]any) (string, error) {
	out, isError, err := callTool(d.serverURL, []string{tool, object(arguments)})
	if isError {
		err = fmt.Errorf("%s: %s", tool, out)
	}
	return out, err
}

// send sends a message with the given subject from GreenCastle.
func (d *desk) send(to, subject string) {
	d.t.Helper()
	if err := d.trySend(to, subject); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) trySend(to, subject string) error {
	_, err := d.tryCall("send_message", map[string]any{
		"project_key": d.code,
		"from_agent":  "GreenCastle",
		"to":          []string{to},
		"subject":     subject,
		"body_md":     "The body stays in the mail.",
	})
	return err
}

// claim claims a path for GreenCastle.
func (d *desk) claim(path string) {
	d.t.Helper()
	d.call("claim_paths", map[string]any{
		"project_key": d.code,
		"agent_name":  "GreenCastle",
		"paths":       []string{path},
		"reason":      "being rewritten",
	})
}

// agent returns the name of the only agent other than GreenCastle: the client's agent.
func (d *desk) agent() string {
	d.t.Helper()
	var list struct{ Agents []struct{ Name string } }
	if err := json.Unmarshal([]byte(d.call("list_agents", map[string]any{"project_key": d.code})), &list); err != nil {
		d.t.Fatal(err)
	}
	var others []string
	for _, a := range list.Agents {
		if a.Name != "GreenCastle" {
			others = append(others, a.Name)
		}
	}
	if len(others) != 1 {
		d.t.Fatalf("the client's hook created the agents %v, want one", others)
	}
	return others[0]
}

// write writes a file below the home folder.
func (d *desk) write(path, content string) {
	d.t.Helper()
	path = filepath.Join(d.home, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// replace replaces text in a file below the home folder.
func (d *desk) replace(path, old, text string) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.home, path))
	if err != nil || !strings.Contains(string(data), old) {
		d.t.Fatalf("%s does not contain %q, %v", path, old, err)
	}
	d.write(path, strings.ReplaceAll(string(data), old, text))
}

// turnsWith returns the requests that offer tools and whose new text contains the given text. See model.Turn.Last.
func (d *desk) turnsWith(text string) []model.Request {
	return d.model.Requests(func(t *model.Turn) bool { return len(t.Tools) > 0 && strings.Contains(t.Last(), text) })
}

// times returns how often the given text occurs in the new text of all turns.
func (d *desk) times(text string) (n int) {
	for _, r := range d.turnsWith(text) {
		n += strings.Count(r.Turn.Last(), text)
	}
	return n
}

func object(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// open starts a program in a terminal, in the code base.
func (d *desk) open(program string) *tmuxtest.Screen {
	d.t.Helper()
	if d.screens == nil {
		d.screens = tmuxtest.Start(d.t)
	}
	return d.screens.Open(d.code, d.env, program)
}

// awaitTurn waits for a turn whose new text contains the given text, and returns the turn's request.
func (d *desk) awaitTurn(text string) model.Request {
	d.t.Helper()
	return d.model.Await(d.t, clientWait, fmt.Sprintf("a turn with %q", text), func(t *model.Turn) bool {
		return len(t.Tools) > 0 && strings.Contains(t.Last(), text)
	})
}

// say returns a tool call for a script.
func say(tool string, input any) []model.Call {
	return []model.Call{{Tool: tool, Input: json.RawMessage(object(input))}}
}
