package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/storedir"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// The code in this file finds, starts and replaces a store's server through the store's socket.

// patience is how long a command waits if another process holds the store's lock but is not listening on the socket.
// See docs/reference/clients.md, "Over stdio".
const patience = 2 * time.Second

// dialServer connects to the store's server, but never starts one. If no server is running, the error wraps
// fs.ErrNotExist or ECONNREFUSED.
func (c *config) dialServer(ctx context.Context) (net.Conn, error) {
	return socket.Dial(ctx, storedir.SocketPath(c.Store))
}

// dial connects to the store's server. If no server is running, dial starts one in the background. Concurrent callers
// reach the same server. Errors tell the user what to do.
func (p *program) dial(ctx context.Context) (net.Conn, error) {
	const start = true
	return p.awaitServer(ctx, start)
}

// isNoServer reports whether a connection failed because no server is listening.
func isNoServer(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// dialOpen connects to the server that listens on SOCKET. It does not start a server, because the socket may belong
// to another OS user. Errors tell the user what to do.
func (p *program) dialOpen(ctx context.Context) (net.Conn, error) {
	path := p.cfg.Socket
	c, err := socket.Dial(ctx, path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("you do not have access to the socket %s. Set SOCKET to the same value as in the server's settings", path)
	case isNoServer(err):
		return nil, fmt.Errorf("no server is listening on the socket %s. Start `mailtree serve` with SOCKET set to this path, or unset "+
			"SOCKET to use your own store", path)
	}
	return c, err
}

func (p *program) notServed() error {
	return fmt.Errorf("the store %s is in use by process %s, which is not responding: try again after that process has exited",
		p.cfg.Store, storedir.Holder(p.cfg.Store))
}

// startTries is the maximum number of times that awaitServer starts a server. One start may not be enough, because
// the server that holds the store's lock may be about to exit.
const startTries = 3

// awaitServer connects to the store's server. If another process has just acquired the lock, awaitServer waits for that
// process to listen on the socket. If the lock is free and start is set, awaitServer starts a server. It then waits for
// the socket of that server, or of another server that started first.
func (p *program) awaitServer(ctx context.Context, start bool) (net.Conn, error) {
	var said *bytes.Buffer
	var ended chan struct{} // nil if no server is starting
	var deadline <-chan time.Time
	for tries := 0; ; {
		if c, err := p.cfg.dialServer(ctx); !isNoServer(err) {
			return c, err
		}
		switch held := storedir.Held(p.cfg.Store); {
		case ended != nil:
		case held && deadline == nil:
			deadline = time.After(patience)
		case held:
		case !start:
			return nil, fmt.Errorf("no server is running for the store %s: start `mailtree serve`, or omit --no-start", p.cfg.Store)
		case tries == startTries:
			return nil, fmt.Errorf("the server could not be started: %s",
				cmp.Or(lastLine(said.String()), "it exited without an error message. To see why, run `mailtree serve`"))
		default:
			var err error
			said, deadline = &bytes.Buffer{}, nil
			if ended, err = p.spawn(said); err != nil {
				return nil, err
			}
			tries++
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ended: // the new server has exited, perhaps because another server already has the store open
			ended = nil
		case <-deadline:
			return nil, p.notServed()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// spawn starts `mailtree serve --background` in its own session, with this program's settings instead of those in the
// folder's .env. Once the server has opened the store or exited, spawn closes the returned channel, and said contains
// the server's output.
func (p *program) spawn(said *bytes.Buffer) (ended chan struct{}, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, cannotRun(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd := &exec.Cmd{
		Path:        exe,
		Args:        []string{"mailtree", "serve", "--background"},
		Dir:         "/",
		Env:         p.environment(),
		Stderr:      w,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, cannotRun(err)
	}
	ended = make(chan struct{})
	go func() { // read until the server closes the pipe, which it does once it has opened the store
		defer close(ended)
		said.ReadFrom(r)
		r.Close()
		cmd.Wait()
	}()
	return ended, nil
}

// cannotRun returns the error to report if this program cannot start a copy of itself as a server.
func cannotRun(err error) error {
	return fmt.Errorf("the server could not be started: %w. If mailtree was moved or replaced while it was running, run "+
		"the command again", err)
}

// environment returns the environment of a background server. It contains every setting of this program, with absolute
// paths, except SOCKET, where the server of another OS user may be listening.
func (p *program) environment() []string {
	env := slices.DeleteFunc(slices.Clone(p.env), func(v string) bool { return strings.HasPrefix(v, "SOCKET=") })
	for _, s := range p.cfg.settings {
		switch {
		case s.Name == "MCP_MAIL_STORE":
			env = append(env, s.Name+"="+p.cfg.Store)
		case s.Name == "ATTACHMENT_ROOTS" && s.Value != "":
			env = append(env, s.Name+"="+strings.Join(p.cfg.Attachments.Roots, ":"))
		case s.Source == "flag":
			env = append(env, s.Name+"="+s.Value)
		}
	}
	return env
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "mailtree: ")
}

// maxLog is the size, in bytes, above which detach renames the store's log and starts a new one.
const maxLog = 4 << 20

// detach redirects the output of a background server to the log in the store. Until then, the output goes to the
// process that started the server.
func detach(store string) error {
	name := storedir.LogPath(store)
	if fi, err := os.Stat(name); err == nil && fi.Size() > maxLog {
		if err := os.Rename(name, name+".1"); err != nil {
			return err
		}
	}
	f, err := storedir.OpenLog(store)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, fd := range []int{1, 2} {
		if err := dup(int(f.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}

// errNoServer means that no server is listening on the store's socket.
var errNoServer = errors.New("no server is running")

// askServer asks the store's server to run one of its /mailtree verbs, and waits up to grace for the response. It
// returns the same errors as askForLong.
func askServer(ctx context.Context, cfg *config, verb string, ask, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return askForLong(ctx, cfg, verb, ask, answer)
}

// askForLong asks the store's server to run one of its /mailtree verbs, without a time limit. It returns errNoServer if
// no server is listening, and otherwise the same errors as cli.Client.Ask.
func askForLong(ctx context.Context, cfg *config, verb string, ask, answer any) error {
	c := cli.NewClient(cfg.dialServer, tool.Caller{})
	err := c.Ask(ctx, verb, ask, answer)
	if isNoServer(err) {
		return errNoServer
	}
	return err
}

// askToYield asks the server that holds the store's lock to exit, so that another server can start. yields reports
// whether the server agreed, and stays reports whether it refused. Both are false if no server responded, for example
// because the server has just exited.
func askToYield(ctx context.Context, cfg *config) (yields, stays bool) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	c := cli.NewClient(cfg.dialServer, tool.Caller{})
	err := c.Yield(ctx)
	refused := (*cli.Refusal)(nil)
	return err == nil, errors.As(err, &refused)
}

// taking calls take to acquire the store's lock, and retries while another process holds the lock. If that process is a
// background server, taking asks it to exit, unless this program is itself a background server. If that process is
// another command, or a server that does not respond yet, taking retries for up to patience. It returns the last error
// from take.
func (p *program) taking(ctx context.Context, take func() error) error {
	end := time.Now().Add(patience)
	err := take()
	for ; errors.Is(err, maildir.ErrConflict) && time.Now().Before(end) && ctx.Err() == nil; err = take() {
		if serves(ctx, p.cfg) {
			if p.background {
				break
			}
			yields, stays := askToYield(ctx, p.cfg)
			if stays {
				break
			}
			if yields {
				end = time.Now().Add(2 * grace)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
