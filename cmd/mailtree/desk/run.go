package desk

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mailtree/cmd/mailtree/cli"
)

const (
	together = 200 * time.Millisecond // how long changes are collected before the screen shows them
	interval = time.Minute            // time between checks for changes that cause no event, such as the end of a delay
)

// Run shows the screen until the user quits or ctx ends. Before Run returns, it sends a pending answer and restores the
// terminal. It returns an error if the terminal cannot be used, if Watch fails, or if the pending answer cannot be
// sent. screen returns the terminal with its current size.
func (d *Desk) Run(ctx context.Context, t *cli.Terminal, screen func() *cli.Screen) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // so that a pending answer is sent even if the terminal closes
	defer stop()
	news, failed := make(chan os.Signal, 1), make(chan error, 1) // news: the terminal's size or the mail has changed
	signal.Notify(news, syscall.SIGWINCH)
	defer signal.Stop(news)
	if err := t.TakeOver(); err != nil {
		return err
	}
	defer t.Restore()
	d.screen = screen()
	d.refresh(ctx, false)
	want, input := make(chan struct{}, 1), make(chan []string)
	defer close(want)
	go readKeys(t, want, input)
	want <- struct{}{}
	go func() {
		failed <- d.source.Watch(ctx, func() {
			select {
			case news <- nil:
			default: // news is already pending
			}
		})
	}()
	var err error
	soon, look := false, time.NewTimer(interval)
	for resized := true; !d.over; {
		t.Paint(d.draw(), resized)
		resized = false
		var due <-chan time.Time
		if d.pending != nil {
			due = d.pending.due
		}
		select {
		case keys, ok := <-input:
			d.over = !ok
			for _, key := range keys {
				d.typedAt(ctx, t, key)
				t.Paint(d.draw(), resized) // draw also records what is on the screen
			}
			if !d.over {
				want <- struct{}{}
			}
		case <-news:
			if !soon {
				soon = true
				look.Reset(together)
			}
		case <-look.C:
			soon = false
			look.Reset(interval)
			before := d.screen
			d.screen = screen()
			resized = d.screen.Width != before.Width || d.screen.Height != before.Height
			d.refresh(ctx, true)
		case <-due:
			_ = d.flush(ctx) // the screen shows the error
		case err = <-failed:
			d.over = true
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendsAfter)
	defer cancel()
	return errors.Join(d.flush(last), err)
}

// typedAt is like press, but gives the terminal to the user's editor while the user is writing a reply.
func (d *Desk) typedAt(ctx context.Context, t *cli.Terminal, key string) {
	if d.query != nil || key != "r" && key != "R" {
		d.press(ctx, key)
		return
	}
	t.Restore()
	d.press(ctx, key)
	if err := t.TakeOver(); err != nil {
		d.notice = err.Error()
	}
}

// readKeys reads from the terminal once for each value that it receives from want. Because the program asks for a key
// only after it has handled all earlier keys, keys that are meant for an editor reach the editor. If the terminal is
// gone, readKeys closes input.
func readKeys(t *cli.Terminal, want <-chan struct{}, input chan<- []string) {
	for range want {
		keys, err := t.ReadKeys()
		if err != nil {
			close(input)
			return
		}
		input <- keys
	}
}
