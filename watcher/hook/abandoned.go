package hook

import (
	"context"
	"time"

	"mailtree/maildir"
)

// serverGone is how a command ended whose server had ended before it: nobody could ask.
const serverGone = "its server ended before it"

// adopt looks after a command that an earlier server started and did not see end, because it was
// killed: it is ended as any other, at its timeout or with this server, and how it ended is noted.
func (r *Runner) adopt(ctx context.Context, a maildir.Abandoned) {
	log := r.cfg.Log.With("hook", a.Hook, "message", a.Message)
	all := time.Duration(a.Timeout) * r.cfg.Second
	timeout := time.NewTimer(min(all, all-time.Since(a.Begun))) // the clock may have been set back
	defer timeout.Stop()
	look := time.NewTicker(r.cfg.Second / 4)
	defer look.Stop()
	why := serverGone
	for a.PID > 1 && a.Process != "" {
		is, err := identity(a.PID)
		if err == nil && is != a.Process {
			break
		}
		due := timeout.C
		if err != nil {
			due = nil // it may be another process by now
		}
		select {
		case <-look.C:
			continue
		case <-due:
			why = timedOut
		case <-ctx.Done():
			if err != nil {
				return // the next server looks again
			}
			why = serverStopped
		}
		ended := make(chan error)
		close(ended) // it is not our child
		_, _ = r.stop(a.PID, ended)
		break
	}
	log.Info("hook of an earlier server ended", "end", why)
	if err := r.log.EndAbandoned(&a, why); err != nil {
		log.Warn("hooks.log cannot be written", "error", err)
	}
}
