package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/projectformat"
	mcpserver "mailtree/mcp"
)

// The fault tests run the program in its own process. They kill it, fill its disk, cut its power and interfere with
// its files. See docs/explanation/faults.md, "Running the fault tests".

var faults = flag.String("faults", "least", "how much the fault tests do: least (some tests, small counts), short (all tests, small counts) or long (full counts)")

var keep = flag.String("keep", "", "where to move the store of a failed fault test, for inspection")

// extent returns full in the long form, and small in the other forms.
func extent(small, full int) int {
	if *faults == "long" {
		return full
	}
	return small
}

// longer skips a test unless the short or the long form is running, because the test uses too many of the machine's
// resources to run with every `go test ./...`.
func longer(t *testing.T) {
	t.Helper()
	if *faults == "least" {
		t.Skip("runs with -faults=short and -faults=long only")
	}
}

// faultEnv is the environment variable that makes the test binary act as the fault program.
const faultEnv = "MAILTREE_FAULT_PROGRAM"

// formatEnv is the environment variable that sets the highest project format that the program supports. If it is not
// set, the program supports the same formats as the released program.
const formatEnv = "MAILTREE_TEST_FORMAT"

// faultClockEnv is the environment variable that sets how far the fault program's clock is off, as a duration.
const faultClockEnv = "MAILTREE_FAULT_CLOCK"

// This init sets up the test binary. If pauses are turned on, the binary pauses at random steps. It supports the
// formats in formatEnv, and waits for Git as long as necessary. If faultEnv is set, the init also turns the test binary
// into the fault program, regardless of the binary's name: see faultServe.
func init() {
	folders.Patience, folders.NotePatience = time.Hour, time.Hour
	testStep = waits.Pauses() // also pauses the programs that scripts and other tests start
	if n, err := strconv.Atoi(os.Getenv(formatEnv)); err == nil {
		projectformat.Highest = n
	}
	if os.Getenv(faultEnv) != "" {
		if err := faultServe(); err != nil {
			fmt.Fprintln(os.Stderr, "mailtree:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// faultServe is like serve, but adds verbs for the tests, and its writer can die at a step.
//
//	POST /fault/pop?project=&agent=          the message's id, or nothing if there is no message
//	POST /fault/read?project=&agent=&id=
//	POST /fault/unread?project=&agent=&id=
//	POST /fault/delete?project=&agent=&id=
//	POST /fault/undo?project=&agent=&id=
//	POST /fault/redo?project=&agent=&id=
//	POST /fault/amend?project=&agent=&id=&text=
//	POST /fault/both?project=&agent=&id=     a pop and an acknowledgment of the same delivery, in one group
//	POST /fault/flush?project=               when it returns, everything is committed
//	POST /fault/compare?project=             when it returns, the whole tree has been compared with the index
//	POST /fault/die?at=N                     the program kills itself at the writer's Nth step from now; 0 means never
//	POST /fault/hold?at=N                    the writer waits at its Nth step from now until /fault/go; 0 means never
//	POST /fault/held                         "true" while the writer waits
//	POST /fault/go                           lets the writer continue
//	POST /fault/join?project=&url=
//	POST /fault/sync?project=                when it returns, sync is on and one sync has been done
//	POST /fault/unsynced?project=            why the last sync failed, or nothing if it succeeded
//	POST /fault/steps                        the steps since the last /fault/die or /fault/hold, one per line
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
	if off := os.Getenv(faultClockEnv); off != "" {
		d, err := time.ParseDuration(off)
		if err != nil {
			return err
		}
		cfg.now = func() time.Time { return time.Now().Add(d) }
	}
	if f.app, err = openApp(ctx, cfg, cfg.logger(std), nil); err != nil {
		return err
	}
	w := &web{cfg: cfg}
	if err := w.openPort(ctx); err != nil {
		return err
	}
	m := mcpserver.New(mcpserver.Config{Store: f.app.store, Version: version(),
		Health: (&health{app: f.app, web: w, began: time.Now()}).verdict, Log: f.app.log})
	srv := m.HTTPServer("")
	srv.Handler = f.routes(srv.Handler)
	w.use(func(l net.Listener) { go srv.Serve(l) }, nil)
	welcome(ctx, &program{std: std, cfg: cfg}, f.app, w)
	watched := make(chan error, 1)
	go func() { watched <- f.app.watch(ctx) }()
	err = f.app.store.Run(ctx) // returns when the program is interrupted
	srv.Close()
	return errors.Join(err, <-watched, f.app.close())
}

type faultProgram struct {
	app *app

	mu    sync.Mutex
	left  int           // remaining steps; 0 means no limit
	hold  bool          // after these steps, wait instead of dying
	held  chan struct{} // closing it lets the writer continue; nil unless the writer is waiting
	steps []string
}

// step is called by the writer before each of its steps.
func (f *faultProgram) step(name string) {
	if testStep != nil {
		testStep(name)
	}
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
	case "join":
		_, err := f.app.store.Join(ctx, q.Get("url"), q.Get("project"))
		return "", err
	}
	p, err := f.app.store.Project(ctx, q.Get("project"))
	if err != nil {
		return "", err
	}
	switch verb {
	case "pop":
		d, err := p.Box(q.Get("agent"), format.Origin{}).Pop(ctx)
		if err != nil || d == nil {
			return "", err
		}
		return d.ID, nil
	case "read", "unread":
		_, err := p.Box(q.Get("agent"), format.Origin{}).SetRead(ctx, q.Get("id"), verb == "read")
		return "", err
	case "delete":
		_, err := p.Box(q.Get("agent"), format.Origin{}).Delete(ctx, q.Get("id"))
		return "", err
	case "undo":
		_, err := p.Box(q.Get("agent"), format.Origin{}).Undo(ctx, maildir.Undoing{ID: q.Get("id")})
		return "", err
	case "redo":
		_, err := p.Box(q.Get("agent"), format.Origin{}).Redo(ctx, maildir.Undoing{ID: q.Get("id")})
		return "", err
	case "amend":
		_, err := p.Box(q.Get("agent"), format.Origin{}).Amend(ctx, maildir.Amendment{ID: q.Get("id"), Text: q.Get("text")})
		return "", err
	case "both":
		return "", f.both(p, q.Get("agent"), q.Get("id"))
	case "sync":
		if err := p.Sync.Set(true); err != nil {
			return "", err
		}
		_, err := p.Sync.Now(ctx)
		return "", err
	case "unsynced":
		return p.Sync.State().Problem, nil
	case "flush":
		return "", p.FlushHistory(ctx)
	case "compare":
		return "", p.Rescan(ctx)
	}
	return "", fmt.Errorf("no verb %q", verb)
}

// queued matches the name of the function in which an operation waits for the writer.
const queued = `writer\.\(\*Writer\)\.do$`

// both makes the writer wait in another operation, so that the operations that arrive meanwhile form one group.
func (f *faultProgram) both(p *maildir.Project, agent, id string) error {
	ctx := context.Background()
	f.mu.Lock() // makes the writer stop at its next step
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i, do := range []func() error{
		func() error {
			_, err := p.Agents.Register(ctx, maildir.Registration{Program: "p", Model: "m"})
			return err
		},
		func() error { _, err := p.Box(agent, format.Origin{}).Pop(ctx); return err },
		func() error { _, err := p.Box(agent, format.Origin{}).Acknowledge(ctx, id); return err },
	} {
		all.Add(1)
		if err := waits.Go(queued, func() { defer all.Done(); errs[i] = do() }); err != nil {
			errs = append(errs, err)
		}
	}
	f.mu.Unlock()
	all.Wait()
	return errors.Join(errs...)
}

// until waits until a condition is true.
func until(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	if !waits.Within(limit, ok) {
		t.Fatalf("still not: %s", what)
	}
}
