package hook

import (
	"context"
	"time"

	"mailtree/maildir/hook"
)

// serverGone is the outcome of a command that was still running when its server was killed. Its exit status is
// unknown.
const serverGone = "the server that started the hook stopped before the hook finished"

// adopt takes over a command that is still running after its server was killed. It ends the command at the command's
// timeout or when this server stops, like any other command. adopt then logs the outcome.
func (r *Runner) adopt(ctx context.Context, a hook.Abandoned) {
	log := r.cfg.Log.With("hook", a.Hook, "message", a.Message)
	all := time.Duration(a.Timeout) * r.cfg.Second
	timeout := time.NewTimer(min(all, all-time.Since(a.Begun))) // the clock may have been set back
	defer timeout.Stop()
	look := time.NewTicker(r.cfg.Second / 4)
	defer look.Stop()
	why, patience := serverGone, time.Duration(killAfter)
	for a.PID > 1 && a.Process != "" {
		is, err := identity(a.PID)
		if err == nil && is != a.Process {
			break
		}
		due := timeout.C
		if err != nil {
			due = nil // the pid may belong to another process by now
		}
		select {
		case <-look.C:
			continue
		case <-due:
			why = timedOut
		case <-ctx.Done():
			if err != nil {
				return // the next server checks again
			}
			why, patience = serverStopped, stopAfter
		}
		ended := make(chan error)
		close(ended) // the command is not a child of this process, so it cannot be waited on
		_, _ = r.stop(a.PID, ended, patience)
		break
	}
	log.Info("a hook started by an earlier server has finished", "end", why)
	if err := r.log.EndAbandoned(&a, why); err != nil {
		log.Warn("cannot record a hook's result", "error", err)
	}
}
