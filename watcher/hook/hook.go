// Package hook runs hook commands when deliveries appear. maildir/hook decides which hook runs for which copy. This
// package follows the feed of changes, so mail that a user saves or that arrives through `git pull` also fires hooks.
// It runs commands in a limited pool of workers, as follows:
//
//   - directly, never through a shell; no part of the message is passed as an argument;
//   - with the copy's file on standard input, unchanged; a command need not read it;
//   - with the environment variables MAILTREE_X and AIMX_X for each X of HOOK_NAME, EVENT, MAILBOX, FROM, TO,
//     SUBJECT, FILEPATH, MESSAGE_ID, ID, DATE and ATTACHMENTS;
//   - with HOME, USER and LOGNAME, and with the server's PATH, LANG, LC_ALL and TZ, but no other variable of the
//     server;
//   - in a separate process group, which gets TERM at the timeout and KILL five seconds later;
//   - as the owner of the mailbox, if the server is root.
//
// Deliveries and replies never wait for hooks, because this package reads changes that the index has already recorded.
// It writes a run's mark before the run begins, so that no crash or restart repeats the run. If runs have not begun
// when this server ends, the next server begins them. On Linux, if a killed server left commands running, the next
// server ends them at their timeouts.
package hook

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/hook"
)

// Config configures a Runner. Store is required. The zero value of any other field selects its default.
type Config struct {
	Store   *maildir.Store
	Log     *slog.Logger  // if nil, log lines are discarded
	Workers int           // maximum number of commands that run at the same time; 0 means 8
	Second  time.Duration // actual length of a second in timeouts, for tests; 0 means one second
}

// Runner runs hooks.
type Runner struct {
	cfg   Config
	log   *hook.Log
	queue *queue

	adopted atomic.Int32 // commands of an earlier server that are still running

	mu   sync.Mutex
	mark int64 // every change up to this position has been queued or needs no hook
}

const (
	defaultWorkers = 8
	pageSize       = 256  // number of changes read at a time
	saveEvery      = 4096 // number of changes between two saves of the mark
	retryTime      = 2 * time.Second
)

// New returns a runner. It does nothing until Run is called.
func New(cfg Config) *Runner {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Workers == 0 {
		cfg.Workers = defaultWorkers
	}
	if cfg.Second == 0 {
		cfg.Second = time.Second
	}
	return &Runner{cfg: cfg, queue: newQueue(cfg.Workers)}
}

// Run follows the feed until ctx is done. It then ends the running commands as it would at a timeout, and returns. If
// the marks cannot be read, Run keeps trying, and runs no hooks until it can read them.
func (r *Runner) Run(ctx context.Context) {
	var log *hook.Log
	r.insist(ctx, "cannot run hooks", func() (err error) {
		log, err = r.cfg.Store.OpenHookLog()
		return err
	})
	if log == nil {
		return
	}

	r.log, r.mark = log, log.Mark()
	var all sync.WaitGroup
	for _, a := range log.Abandoned() {
		r.adopted.Add(1)
		all.Go(func() {
			defer r.adopted.Add(-1)
			r.adopt(ctx, a)
		})
	}
	for range r.cfg.Workers {
		all.Go(func() { r.work(ctx) })
	}
	r.resume(ctx)
	for ctx.Err() == nil {
		r.follow(ctx)
	}
	r.queue.close()
	all.Wait()
	r.save(0)
}

// Idle reports whether no command is running or waiting.
func (r *Runner) Idle() bool { return r.queue.idle() && r.adopted.Load() == 0 }

// resume determines the position from which to follow the feed. Normally, this is the position at which the last Run
// ended. If no position was saved, or the feed no longer contains the changes that follow it, resume queues the missed
// firings. Run then follows the feed from the position that Store.HooksFrom returns.
func (r *Runner) resume(ctx context.Context) {
	r.insist(ctx, "cannot resume hooks", func() error {
		if err := r.cfg.Store.SettleHooks(ctx); err != nil {
			return err
		}
		last, err := r.cfg.Store.LastChange(ctx)
		if err != nil || last == r.mark && last > 0 {
			return err
		}
		next, err := r.cfg.Store.Changes(ctx, r.mark, 1)
		if err != nil || r.mark > 0 && len(next) > 0 && next[0].Seq == r.mark+1 {
			return err
		}
		from, err := r.cfg.Store.HooksFrom(last)
		if err != nil {
			return err
		}
		return r.catchUp(ctx, from)
	})
}

// catchUp queues the missed firings. The argument mark is the position in the feed at which to continue.
func (r *Runner) catchUp(ctx context.Context, mark int64) error {
	missed, err := r.cfg.Store.MissedFirings(ctx, r.log)
	if err == nil {
		r.putFirings(ctx, missed, mark)
	}
	return err
}

// follow waits for changes and queues their firings.
func (r *Runner) follow(ctx context.Context) {
	r.insist(ctx, "cannot read the changes that trigger hooks", func() error {
		changes, err := r.cfg.Store.WaitChanges(ctx, r.mark, pageSize)
		if err != nil {
			return err
		}
		last := changes[len(changes)-1].Seq
		if changes[0].Seq != r.mark+1 { // the changes in between are no longer in the feed
			if err := r.catchUp(ctx, r.mark); err != nil {
				return err
			}
		}
		firings, err := r.cfg.Store.Firings(ctx, changes)
		if err == nil {
			r.putFirings(ctx, firings, last)
		}
		return err
	})
}

// putFirings queues firings, waiting for room if necessary, and then advances the mark.
func (r *Runner) putFirings(ctx context.Context, all []hook.Firing, mark int64) {
	for _, f := range all {
		if !r.queue.enqueue(ctx, f) {
			return
		}
	}
	r.mu.Lock()
	r.mark = mark
	r.mu.Unlock()
	r.save(saveEvery)
}

// save writes the mark to the log if no firing is queued and the mark has advanced by more than atLeast.
func (r *Runner) save(atLeast int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue.empty() && r.mark-r.log.Mark() > atLeast {
		if err := r.log.SetMark(r.mark); err != nil {
			r.cfg.Log.Warn("cannot save the progress of hooks", "error", err)
		}
	}
}

// insist calls f until f succeeds or ctx is done. It logs only the first failure.
func (r *Runner) insist(ctx context.Context, what string, f func() error) {
	for said := false; ; said = true {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		if !said {
			r.cfg.Log.Error(what+"; will retry", "error", err)
		}
		select {
		case <-time.After(retryTime):
		case <-ctx.Done():
		}
	}
}

// work runs firings until the queue is closed.
func (r *Runner) work(ctx context.Context) {
	for {
		f, ok := r.queue.dequeue()
		if !ok {
			return
		}
		run, decided := r.beginFiring(ctx, f)
		if decided { // otherwise, the saved mark stays before the firing, so the next server decides
			r.queue.begun()
		}
		if run != nil {
			r.run(ctx, run)
		}
		r.queue.done(f.Owner)
		r.save(saveEvery)
	}
}

// beginFiring decides whether to run a firing. It returns a nil run if there is nothing to run, or if ctx was done
// before the decision.
func (r *Runner) beginFiring(ctx context.Context, f hook.Firing) (run *hook.Run, decided bool) {
	r.insist(ctx, "cannot start a hook", func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		made, why, err := r.cfg.Store.Fire(ctx, f, r.log)
		if why != "" {
			r.cfg.Log.Debug("hook skipped", "hook", f.Hook.Name, "mailbox", f.Hook.Mailbox, "message", f.ID, "reason", why)
		}
		run, decided = made, err == nil
		return err
	})
	return run, decided
}

// run executes a command and logs its outcome.
func (r *Runner) run(ctx context.Context, run *hook.Run) {
	log := r.cfg.Log.With("hook", run.Hook.Name, "mailbox", run.Hook.Mailbox, "message", run.ID)
	end := r.execute(ctx, run)
	log.Info("hook finished", "exit", end.Exit, "end", end.Why, "took", end.Took.Round(time.Millisecond))
	if err := r.log.End(run, end); err != nil {
		log.Warn("cannot record a hook's result", "error", err)
	}
}
