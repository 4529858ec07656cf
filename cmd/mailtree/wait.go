package main

import (
	"context"
	"errors"
	"os"
	"time"

	"mailtree/clients/event"
	"mailtree/clients/sign"
	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

const (
	nextServer = time.Second     // time between checks for a server
	nextParent = 2 * time.Second // time between checks of the client
)

// hookWait waits until the session of an event should be woken, and then responds in the client's format. When a server
// exits, hookWait waits for the next server, but does not start one. It returns when the session or the client ends.
func (p *program) hookWait(ctx context.Context, client string, plugin bool) error {
	if !event.CanWait(client, p.variable) {
		return nil
	}
	above := parents{os.Getppid(), seat.ClientProcess()}
	reading, stop := context.WithTimeout(ctx, hookPatience)
	e, err := p.readEvent(reading, client)
	stop()
	if err != nil || e.Kind == "" || e.Subagent || !storedir.IsStore(p.cfg.Store) || plugin && p.isSetUp(e) {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	defer func() { cancel(); <-watched }()
	go func() { defer close(watched); above.endWith(ctx, cancel) }()
	if f, ok := sign.Follow(p.signed(e)); ok {
		followed := make(chan struct{})
		defer func() { cancel(); <-followed }()
		go func() { defer close(followed); p.followSession(ctx, &f, e.Root, 0, func() {}) }()
	}
	text := p.awaitWake(ctx, maildir.SessionEvent{SessionKey: seat.Key{Client: client, ID: e.Session}, Dir: e.Root})
	if text == "" || ctx.Err() != nil {
		return nil
	}
	stdout, stderr, exit := event.FormatWake(client, text)
	_, err = p.std.out.Write(stdout)
	_, _ = p.std.err.Write(stderr)
	if exit != 0 && err == nil {
		return &exitError{code: exit}
	}
	return err
}

// parents identifies the client, and the process that started this process. That process may be a shell.
type parents struct {
	pid    int
	client seat.Process
}

// endWith calls end when either of the two processes has ended.
func (p parents) endWith(ctx context.Context, end func()) {
	look := time.NewTicker(nextParent)
	defer look.Stop()
	for os.Getppid() == p.pid && !p.client.Gone() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
	end()
}

// awaitWake waits until the session should be woken, and returns the text for the session. When a server exits,
// awaitWake asks the next server. It returns "" if the session no longer needs to be woken.
func (p *program) awaitWake(ctx context.Context, v maildir.SessionEvent) string {
	noted, begins := false, time.Now().Add(maildir.BeginPatience)
	for ctx.Err() == nil {
		var a mcpserver.WaitAnswer
		err := askForLong(ctx, p.cfg, "wait", v, &a)
		if err == nil && (a.Over || a.Tell != "") {
			return a.Tell
		}
		alone := errors.Is(err, errNoServer)
		waits := alone && p.waitsAlone(v, noted)
		if alone && !waits && (noted || time.Now().After(begins)) {
			return ""
		}
		noted = waits
		select {
		case <-time.After(nextServer):
		case <-ctx.Done():
		}
	}
	return ""
}

// waitsAlone reports whether this process is still the process that waits for the session. Callers use waitsAlone while
// no server is running. If noted is false, waitsAlone first records this process instead of the previously recorded
// process.
func (p *program) waitsAlone(v maildir.SessionEvent, noted bool) bool {
	t, _, err := storedir.OpenProject(p.cfg.Store, v.Dir, p.cfg.Scope)
	if err != nil {
		return errors.Is(err, refusal.ErrUnavailable)
	}
	defer t.Close()
	if s, ok := seat.Read(t, v.SessionKey); !ok || !s.Ended.IsZero() {
		return false
	}
	if noted {
		return seat.Waits(t, v.SessionKey, os.Getpid())
	}
	return seat.NoteWaiter(t, v.SessionKey, os.Getpid()) == nil
}
