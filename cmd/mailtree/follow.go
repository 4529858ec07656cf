package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"mailtree/clients/event"
	"mailtree/clients/sign"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

const (
	nextSign = 500 * time.Millisecond // the time between checks of the client's file
	nextSeat = 5 * time.Second        // the time between checks of the session's file
)

// signed converts the event's session to the type that package sign uses to find the session's files.
func (p *program) signed(e event.Event) sign.Session {
	pid, known := seat.ClientProcess().PID()
	if !known {
		pid = os.Getppid()
	}
	return sign.Session{
		Client:     e.Client,
		ID:         e.Session,
		PID:        pid,
		Transcript: e.Transcript,
		Home:       p.variable("HOME"),
		Env:        p.variable,
	}
}

// followSession watches a client's files until ctx ends, and reports each change in a turn's state to the server. If
// turn is 0, it reports changes for the current turn. While no server is running, followSession keeps the latest state
// for the next server. It calls ended after it has reported the end of a turn.
func (p *program) followSession(ctx context.Context, f *sign.Follower, dir string, turn int, ended func()) {
	look := time.NewTicker(nextSign)
	defer look.Stop()
	report := mcpserver.TurnReport{SessionKey: seat.Key{Client: f.Client, ID: f.ID}, Dir: dir, Turn: turn}
	for ctx.Err() == nil {
		if is := f.Next(); is != "" {
			report.Is = is
		}
		if report.Is != "" {
			var a struct{}
			if err := askServer(ctx, p.cfg, "turn", report, &a); !errors.Is(err, errNoServer) {
				if report.Is == seat.Idles {
					ended()
				}
				report.Is = ""
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// followed is the JSON input of `mailtree hook CLIENT --follow`.
type followed struct {
	sign.Follower
	Dir     string       `json:"dir"`
	Turn    int          `json:"turn"`
	Process seat.Process `json:"process"`
}

// followTurn starts a process that follows the turn that begins with the event. Some clients do not run a hook every
// time a turn ends. When no hook runs, only the client's files record the end of the turn.
func (p *program) followTurn(e event.Event, turn int) error {
	f, ok := sign.Follow(p.signed(e))
	if !ok {
		return nil
	}
	about, err := json.Marshal(followed{f, e.Root, turn, seat.ClientProcess()})
	if err != nil {
		return fmt.Errorf("cannot detect when the turn ends: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot detect when the turn ends: %w", err)
	}
	cmd := &exec.Cmd{
		Path:        exe,
		Args:        []string{"mailtree", "hook", e.Client, "--follow"},
		Dir:         "/",
		Env:         p.environment(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // a client may kill the process group of a hook
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = in.Write(about) // does not block, because about is smaller than a pipe's buffer
		err = errors.Join(err, in.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot detect when the turn ends: %w", err)
	}
	return nil
}

// hookFollow follows a turn until the turn or the client ends, or until the session counts as idle.
func (p *program) hookFollow(ctx context.Context) error {
	var of followed
	if err := json.NewDecoder(io.LimitReader(p.std.in, maxEvent)).Decode(&of); err != nil {
		return fmt.Errorf("hook --follow: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		look := time.NewTicker(nextSeat)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			if of.Process.Gone() || !p.turnGoesOn(of) {
				return
			}
		}
	}()
	p.followSession(ctx, &of.Follower, of.Dir, of.Turn, cancel)
	return nil
}

// turnGoesOn reports whether a turn is in progress in the session. It reads the session's file, which the server
// writes.
func (p *program) turnGoesOn(of followed) bool {
	t, _, err := storedir.OpenProject(p.cfg.Store, of.Dir, p.cfg.Scope)
	if err != nil {
		return false
	}
	defer t.Close()
	s, ok := seat.Read(t, seat.Key{Client: of.Client, ID: of.ID})
	return ok && s.Ended.IsZero() && !s.Idle(time.Now())
}
