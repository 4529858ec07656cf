package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"mailtree/maildir/claimlist"
	"mailtree/maildir/claims"
	"mailtree/maildir/clock"
	"mailtree/maildir/core"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// SyncInterval is the default time between two polls of the shared repository.
const SyncInterval = 10 * time.Second

const (
	syncGather = time.Second // delay before a push, so that one push covers several commits
	syncTries  = 12          // maximum number of tries in one round; a try fails if another machine pushes or a file changes
	syncSlow   = time.Minute // how long a round may take before it is reported as a problem
)

// SyncState describes how a project is shared with other machines.
type SyncState struct {
	On       bool      `json:"on"`
	Remote   string    `json:"remote,omitempty"` // address of the shared repository, without a password
	Ahead    int       `json:"ahead"`            // number of commits that have not been pushed yet
	Behind   int       `json:"behind"`           // number of commits that have been fetched but not merged yet
	Skipped  int       `json:"stay,omitempty"`   // number of files that the last merge skipped: links, executables, invalid names
	SyncedAt time.Time `json:"level,omitzero"`   // when the mail was last up to date
	Problem  string    `json:"problem,omitempty"`
	Since    time.Time `json:"since,omitzero"` // when sync began to fail

	Claims string `json:"claims,omitempty"` // why claims are not shared although the mail is shared; empty if they are shared

	Rewritten time.Time `json:"rewritten,omitzero"` // when the server last found the shared branch rewritten
}

// String describes the problem in a sentence. It returns "" if there is none.
func (s SyncState) String() string {
	if s.Problem == "" {
		return s.Claims
	}
	return fmt.Sprintf("The mail has not been synchronized with other machines since %s (%d commits to push, %d to "+
		"merge): %s",
		s.Since.UTC().Format(time.RFC3339), s.Ahead, s.Behind, s.Problem)
}

// Sync shares a project's mail with other machines. It is safe for concurrent use.
type Sync struct {
	mail   *core.Mail
	claims *claims.Claims
	saved  func(path string) // notifies the outbox that a file was saved in it

	bell chan struct{} // receives a value when there may be something to push, or when sync was turned on
	turn chan struct{} // held during a round

	setting sync.Mutex // held while shared.json is written or read

	mu     sync.Mutex
	state  SyncState
	seen   map[string]*claimlist.Entry // entries of the shared list, by Git's hash of the content; never modified
	listed map[string]*claimlist.Entry // current entries of the shared list, by path; nil before the first round
	newer  error                       // why the shared branch must not be merged; see checkFormat
	began  time.Time                   // when the current round began, by the monotonic clock; zero between rounds
}

// New returns a project's Sync. It calls saved with the path of each outbox file that it has moved and that still has
// to be sent.
func New(mail *core.Mail, claims *claims.Claims, saved func(path string)) *Sync {
	return &Sync{mail: mail, claims: claims, saved: saved, bell: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
}

// Changed notifies the Sync that files have changed and may need to be pushed.
func (s *Sync) Changed() {
	if s.mail.IsShared() {
		core.Ring(s.bell)
	}
}

// list records which claims the shared list contains.
func (s *Sync) list(is map[string]*claimlist.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = is
}

// seenClaims returns the entries of the shared list that this server has seen, by Git's hash of the content.
func (s *Sync) seenClaims() map[string]*claimlist.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// keepSeen stores a copy of seen for seenClaims to return.
func (s *Sync) keepSeen(seen map[string]*claimlist.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = maps.Clone(seen)
}

// IsListed reports whether the shared list contains, or may contain, the claim in the file at path.
func (s *Sync) IsListed(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mail.IsShared() && (s.listed == nil || s.listed[path] != nil)
}

// IsNamesakes reports whether, according to the shared list, the claim in the file at path belongs to a different agent
// with a's name.
func (s *Sync) IsNamesakes(path string, a *index.AgentRow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listed[path]
	return s.mail.IsShared() && l != nil && l.IsNamesakes(s.claimant(a))
}

// inTurn calls f while no other round is running. It returns ctx's error if ctx ends first.
func (s *Sync) inTurn(ctx context.Context, f func() error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note applies change to the state.
func (s *Sync) note(change func(*SyncState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// beganAt records when the current round began. The zero time means that no round is running.
func (s *Sync) beganAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = at
}

// State returns the state of the project's sync.
func (sy *Sync) State() SyncState {
	sy.mu.Lock()
	s, began := sy.state, sy.began
	s.On = sy.mail.IsShared()
	sy.mu.Unlock()
	if s.On {
		s.Remote = sy.mail.History.Origin()
	}
	if took := sy.mail.Store.Monotonic().Sub(began); s.On && s.Problem == "" && !began.IsZero() && took > syncSlow {
		s.Problem = "the sync is still running, because the shared repository is not responding or there " +
			"is a lot to fetch and merge"
		s.Since = sy.mail.Store.Now().Add(-took)
	}
	return s
}

// Set turns the project's sync on or off, and stores the setting durably. It returns ErrConflict if no origin is
// configured, any other error from Remote.Ready, or any error from writing the file.
func (sy *Sync) Set(on bool) error {
	if on {
		if err := sy.mail.History.Ready(); errors.Is(err, history.ErrNoRemote) {
			return &refusal.Error{
				What: refusal.Conflict("The mail folder {=other} has no Git remote called origin. First run `git " +
					"remote add origin URL` there, with the address of a repository that the other machines can reach."),
				Other: sy.mail.Tree.Dir(),
				Err:   err,
			}
		} else if err != nil {
			return err
		}
	}
	root := sy.mail.Store.Root
	sy.setting.Lock()
	defer sy.setting.Unlock()
	s, err := storedir.LoadShared(root, sy.mail.Slug)
	if s.On = on; !on && s.Key == sy.mail.OwnKey() {
		s.Key = "" // use the path in project.json again
	}
	if err == nil {
		err = storedir.SaveShared(filepath.Dir(storedir.Repo(root, sy.mail.Slug)), s)
	}
	if err == nil {
		_, err = sy.reread(on)
	}
	if err != nil {
		return err
	}
	sy.note(func(s *SyncState) {
		*s = SyncState{}
		sy.listed = nil
	})
	core.Ring(sy.bell)
	return nil
}

// Reread applies a user's edits to project.json and shared.json. See core.Mail.Reread. It returns any error from
// reading the files.
func (sy *Sync) Reread() (changed bool, err error) {
	sy.setting.Lock()
	defer sy.setting.Unlock()
	s, err := storedir.LoadShared(sy.mail.Store.Root, sy.mail.Slug)
	if err := tree.MachineFault(err); err != nil {
		return false, err
	}
	return sy.reread(s.On)
}

// reread is like Reread, but for a caller that holds setting. on says whether shared.json turns the sync on.
func (sy *Sync) reread(on bool) (changed bool, err error) {
	if on == sy.mail.IsShared() {
		return sy.mail.Reread()
	}
	// The list may change while sync is off, so forget which version of it the files match.
	if err := sy.mail.History.KeepClaims(context.Background(), ""); err != nil {
		return false, err
	}
	sy.note(func(s *SyncState) {
		changed, err = sy.mail.Reread()
		*s = SyncState{}
		sy.listed = nil
	})
	core.Ring(sy.bell)
	return changed, err
}

// Now runs a round immediately, and returns the state afterwards. It returns ErrConflict if sync is off, or any error
// from the round.
func (sy *Sync) Now(ctx context.Context) (SyncState, error) {
	if !sy.mail.IsShared() {
		return sy.State(), errSyncOff
	}
	err := sy.syncRound(ctx, func(ctx context.Context) error {
		if err := sy.mail.History.Flush(ctx); err != nil {
			return err
		}
		return sy.sync(ctx, true)
	})
	return sy.State(), err
}

var errSyncOff error = &refusal.Error{
	What: refusal.Conflict("This project is not shared with other machines because sync is off. {turn the sync " +
		"on}"),
}

// KeepShared runs rounds until ctx ends or the server must stop. After each interval, it runs a round that fetches.
// Soon after the mail has changed, it runs a round that pushes. While sync is off, KeepShared only waits.
func (sy *Sync) KeepShared(ctx context.Context) {
	interval := sy.mail.Store.SyncInterval
	if interval < 0 {
		return
	}
	due := time.Now()
	for {
		var timer <-chan time.Time
		if sy.mail.IsShared() {
			timer = time.After(time.Until(due))
		}
		fetch := false
		select {
		case <-ctx.Done():
			return
		case <-sy.mail.Store.Stopping.Done():
			return
		case <-timer:
			fetch = true
			due = time.Now().Add(interval - interval/8 + rand.N(interval/4+1)) // keeps machines from polling in step
		case <-sy.bell:
			if clock.Sleep(ctx, min(syncGather, interval)) != nil {
				return
			}
		}
		if s := sy.State(); !s.On || !fetch && s.Problem != "" {
			continue
		}
		err := sy.syncRound(ctx, func(ctx context.Context) error {
			// After a problem, fetch even if no poll is due: only a fetch shows that the repository can be reached
			// again.
			return sy.sync(ctx, fetch || sy.State().Problem != "")
		})
		if err == nil {
			if s := sy.mail.History.State(); s.Pending > 0 && s.Mode == "committing" {
				core.Ring(sy.bell)
			}
		}
	}
}

// lastPush is the maximum time for the last push. core.Store.TimeLeft may allow less. pushEnd is the part of that time
// that is reserved for stopping Git.
const (
	lastPush = 5 * time.Second
	pushEnd  = 500 * time.Millisecond
)

// PushLast pushes the changes since the last round, so that nothing is left unpushed when the machine is switched off.
// It merges nothing. If another machine has pushed first, the changes are pushed after the server's next start.
func (sy *Sync) PushLast(ctx context.Context) {
	if s := sy.State(); !s.On || s.Problem != "" || sy.mail.Refused() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(lastPush, sy.mail.Store.TimeLeft())-pushEnd)
	defer cancel()
	err := sy.inTurn(ctx, func() error {
		r, err := sy.planClaims(ctx, nil)
		if err == nil {
			err = r.push(ctx)
		}
		m, merr := sy.mail.History.Compare(ctx)
		if merr == nil && m.Own {
			merr = sy.mail.History.Push(ctx)
		}
		return cmp.Or(err, merr)
	})
	if err != nil {
		sy.mail.Keeper.Log.Warn("failed to push the last changes; the server will push them after its next start", "error", err)
	}
}

// syncRound runs do as one round, and records the result in the state. Only one round runs at a time. The round ends
// early if the server must stop.
func (sy *Sync) syncRound(ctx context.Context, do func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(sy.mail.Store.Stopping, end)()
	err := sy.inTurn(ctx, func() error {
		sy.beganAt(sy.mail.Store.Monotonic())
		defer sy.beganAt(time.Time{})
		if err := sy.mail.Refused(); err != nil {
			return err
		}
		if err := sy.publishMachine(ctx); err != nil {
			return err
		}
		return do(ctx)
	})
	if ctx.Err() != nil {
		return err
	}
	sy.note(func(s *SyncState) {
		if !sy.mail.IsShared() { // sync has been turned off since the round began
			return
		}
		was := s.Problem
		if err == nil {
			s.Ahead, s.Behind, s.SyncedAt, s.Problem, s.Since = 0, 0, sy.mail.Store.Now(), "", time.Time{}
		} else if s.Problem = err.Error(); s.Since.IsZero() {
			s.Since = sy.mail.Store.Now()
		}
		switch {
		case err == nil && was != "":
			sy.mail.Keeper.Log.Info("sync with other machines works again")
		case err != nil && was == "":
			sy.mail.Keeper.Log.Warn("cannot sync the mail with other machines; will retry", "error", err)
		}
	})
	return err
}

// sync merges and pushes the branch, and synchronizes the claims. If fetch is false, it fetches only if a push is
// rejected.
func (sy *Sync) sync(ctx context.Context, fetch bool) (err error) {
	var unclaimed error // mail is synchronized even if claims are not
	defer func() { err = cmp.Or(err, unclaimed) }()
	for try := range syncTries {
		if try > 0 {
			if err := clock.Sleep(ctx, rand.N(50*time.Millisecond<<min(try, 6))); err != nil {
				return err
			}
		}
		if fetch {
			rewritten, err := sy.mail.History.Fetch(ctx)
			if rewritten {
				sy.note(func(s *SyncState) { s.Rewritten = sy.mail.Store.Now() })
				sy.mail.Keeper.Log.Warn("the shared branch was rewritten; pushing the missing commits again")
			}
			if err != nil {
				_, _ = sy.compareBranches(ctx) // records how many commits are waiting
				return err
			}
		}
		m, merr := sy.compareBranches(ctx)
		if merr == nil {
			merr = sy.checkFormat(ctx, m)
		}
		if merr != nil {
			return merr
		}
		if try == 0 {
			if _, unclaimed = sy.runClaimRounds(ctx, nil); errors.Is(unclaimed, history.ErrDeclined) {
				unclaimed = nil // the state reports the problem
			}
		}
		if m.Behind > 0 {
			if err = sy.mergeRemote(ctx, m); errors.Is(err, errFilesMoved) {
				fetch = false
				if err := sy.mail.History.Flush(ctx); err != nil {
					return err
				}
				continue
			}
			if err == nil {
				m, err = sy.compareBranches(ctx)
			}
			if err != nil {
				return err
			}
		}
		if !m.Own {
			return nil
		}
		if err = sy.mail.History.Push(ctx); !errors.Is(err, history.ErrBehind) {
			return err
		}
		fetch = true
	}
	return err
}

// compareBranches calls History.Compare and records how far apart the branches are.
func (sy *Sync) compareBranches(ctx context.Context) (*history.MergeInput, error) {
	m, err := sy.mail.History.Compare(ctx)
	if m != nil {
		sy.note(func(s *SyncState) {
			if s.Ahead, s.Behind = m.Ahead, m.Behind; !m.Own {
				s.Ahead = 0
			}
		})
	}
	return m, err
}
