package maildir

import (
	"context"

	"mailtree/maildir/hook"
)

// SettleHooks resets hooks whose creation time is in the future, according to the clock or the feed. This happens if
// the clock was set back or the index was lost. Without the reset, such hooks would not run until that time.
// SettleHooks returns ErrUnavailable if the hooks cannot be read or written.
func (s *Store) SettleHooks(ctx context.Context) error {
	future, err := s.core.Hooks.Redate(func() (hook.Present, error) {
		last, err := s.LastChange(ctx)
		return hook.Present{Now: s.core.Clock.Time(), Opened: s.core.Opened, Change: last}, err
	})
	for i := range future {
		s.core.Log.Warn("a hook's creation time was in the future and was reset to the server's start time",
			"hook", future[i].Key(), "created", future[i].Created)
	}
	return err
}

// HooksFrom returns the position in the feed after which changes must be read for hooks. No hook needs earlier changes.
// If there is no hook, HooksFrom returns last, the position of the newest change. It returns ErrUnavailable if the
// hooks cannot be read.
func (s *Store) HooksFrom(last int64) (int64, error) { return s.core.Hooks.OldestMark(last) }

// OpenHookLog calls hook.OpenLog for the store. Only one log of a store may be open at a time.
func (s *Store) OpenHookLog() (*hook.Log, error) { return hook.OpenLog(s.core.Root, s.core.Now) }
