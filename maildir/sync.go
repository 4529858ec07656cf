package maildir

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/clock"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/writer"
)

// Machines share the mail of a project through a branch of a Git repository that all of them reach. Each
// server fetches the branch, merges it into its own, and pushes the result without force. A merge reaches
// the tree through the writer, as an operation. See docs/sync.md.

// SyncInterval is the default time between two looks at the shared repository.
const SyncInterval = 10 * time.Second

const (
	syncGather = time.Second // how long commits gather before they are pushed
	syncTries  = 12          // of one round, while others push or files change
	syncSlow   = time.Minute // how long a round may take before it is a problem
)

// SyncState is how a project is shared with other machines.
type SyncState struct {
	On      bool      `json:"on"`
	Remote  string    `json:"remote,omitempty"` // address of the shared repository, without a password
	Ahead   int       `json:"ahead"`            // commits that are not there yet,
	Behind  int       `json:"behind"`           // and that were fetched and are not merged yet
	Stay    int       `json:"stay,omitempty"`   // changed files of the last merge that did not cross: links, programs, odd names
	Level   time.Time `json:"level,omitzero"`   // when nothing was left to do last
	Problem string    `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of Problem

	Claims string `json:"claims,omitempty"` // why claims are not shared, though the mail is; "" if they are

	Rewritten time.Time `json:"rewritten,omitzero"` // when the shared branch was seen last to lack commits that it had
}

// String describes what is wrong in a sentence; "" if nothing is.
func (s SyncState) String() string {
	if s.Problem == "" {
		return s.Claims
	}
	return fmt.Sprintf("The mail has not met that of other machines since %s (%d commits to push, %d to merge): %s",
		s.Since.UTC().Format(time.RFC3339), s.Ahead, s.Behind, s.Problem)
}

// sharing is the state of a project's sync.
type sharing struct {
	bell chan struct{} // rings when there may be something to push, or sync was turned on
	turn chan struct{} // held during a round

	leases map[string]*lease // of the machines' list of claims, by Git's name of the content; used by who has the turn

	mu     sync.Mutex
	state  SyncState
	listed map[string]*lease // the machines' list of claims, by path; nil: no round has been made yet
	began  time.Time         // when the round under way began, by the monotonic clock; zero between rounds
}

func newSharing(on bool) sharing {
	return sharing{bell: make(chan struct{}, 1), turn: make(chan struct{}, 1), state: SyncState{On: on}}
}

func (s *sharing) isOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.On
}

// list notes which claims the machines' list has.
func (s *sharing) list(is map[string]*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = is
}

// isListed reports whether the machines' list has, or may have, the claim of a file.
func (s *sharing) isListed(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.On && (s.listed == nil || s.listed[path] != nil)
}

// isNamesakes reports whether the machines' list has the claim of a file as that of another agent of a's name.
func (s *sharing) isNamesakes(path string, a *index.AgentRow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listed[path]
	return s.state.On && l != nil && l.isNamesakes(a)
}

// inTurn calls f when no other round runs. It returns ctx's error if ctx ends before.
func (s *sharing) inTurn(ctx context.Context, f func() error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note changes the state.
func (s *sharing) note(change func(*SyncState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// beganAt says when the round under way began; zero: it has ended.
func (s *sharing) beganAt(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = at
}

// SyncState returns how the project is shared.
func (p *Project) SyncState() SyncState {
	p.shared.mu.Lock()
	s, began := p.shared.state, p.shared.began
	p.shared.mu.Unlock()
	if s.On {
		s.Remote = p.History.Origin()
	}
	if took := p.store.cfg.Monotonic().Sub(began); s.On && s.Problem == "" && !began.IsZero() && took > syncSlow {
		s.Problem = "the round that began then has not ended: the shared repository does not answer, or there is much to fetch and merge"
		s.Since = p.store.cfg.Now().Add(-took)
	}
	return s
}

// SetSync turns the sync of the project on or off, durably. It returns ErrConflict if no origin is configured, and errors of
// writing the file.
func (p *Project) SetSync(on bool) error {
	if on && p.History.Origin() == "" {
		return &Error{
			What: refusal.Conflict("Git knows no repository called origin in the mail's folder {=other}. Run `git remote add origin URL` " +
				"there first, with the address of a repository that the other machines reach."),
			Other: p.Tree.Dir(),
			Err:   history.ErrNoRemote,
		}
	}
	root := p.store.cfg.Root
	s, err := storedir.LoadShared(root, p.Slug)
	if s.On = on; err == nil {
		err = storedir.SaveShared(filepath.Dir(storedir.Repo(root, p.Slug)), s)
	}
	if err != nil {
		return err
	}
	if on != p.shared.isOn() { // what others have made of the list meanwhile says nothing of claims here
		if err := p.History.KeepClaims(context.Background(), ""); err != nil {
			return err
		}
	}
	p.shared.note(func(s *SyncState) { *s = SyncState{On: on} })
	ring(p.shared.bell)
	return nil
}

// SyncNow makes a round at once and returns the state after it. Its error is that of the round.
func (p *Project) SyncNow(ctx context.Context) (SyncState, error) {
	if !p.shared.isOn() {
		return p.SyncState(), errSyncOff
	}
	err := p.syncRound(ctx, func(ctx context.Context) error {
		if err := p.History.Flush(ctx); err != nil {
			return err
		}
		return p.sync(ctx, true)
	})
	return p.SyncState(), err
}

var errSyncOff error = &Error{What: refusal.Conflict("This project is not shared with other machines: its sync is off. {turn the sync on}")}

// keepShared makes rounds until ctx ends or the server is told to stop: one that fetches after each interval,
// and one that pushes soon after the mail has changed. While the sync is off it only waits.
func (p *Project) keepShared(ctx context.Context) {
	interval := p.store.cfg.SyncInterval
	if interval < 0 {
		return
	}
	due := time.Now()
	for {
		var timer <-chan time.Time
		if p.shared.isOn() {
			timer = time.After(time.Until(due))
		}
		fetch := false
		select {
		case <-ctx.Done():
			return
		case <-p.store.stopping.Done():
			return
		case <-timer:
			fetch = true
			due = time.Now().Add(interval - interval/8 + rand.N(interval/4+1)) // machines that start together do not stay so
		case <-p.shared.bell:
			if clock.Sleep(ctx, min(syncGather, interval)) != nil {
				return
			}
		}
		if s := p.SyncState(); !s.On || !fetch && s.Problem != "" {
			continue
		}
		err := p.syncRound(ctx, func(ctx context.Context) error {
			// After a problem it fetches: a round that reaches nobody does not show that the repository is back.
			return p.sync(ctx, fetch || p.SyncState().Problem != "")
		})
		if err == nil {
			if s := p.History.State(); s.Pending > 0 && s.Mode == "committing" {
				ring(p.shared.bell)
			}
		}
	}
}

// lastPush is how long a server that ends waits for the shared repository, if StopBy leaves so much. pushEnd of
// that is for a Git that has to be ended.
const (
	lastPush = 5 * time.Second
	pushEnd  = 500 * time.Millisecond
)

// pushLast pushes what has changed since the last round, so that a machine that is turned off now keeps nothing
// back. It merges nothing: where another machine was first it waits for the next start.
func (p *Project) pushLast(ctx context.Context) {
	if s := p.SyncState(); !s.On || s.Problem != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(lastPush, p.store.timeLeft())-pushEnd)
	defer cancel()
	err := p.shared.inTurn(ctx, func() error {
		r, err := p.planClaimRound(ctx, nil)
		if err == nil {
			err = r.push(ctx)
		}
		m, merr := p.History.Meet(ctx)
		if merr == nil && m.Own {
			merr = p.History.Push(ctx)
		}
		return cmp.Or(err, merr)
	})
	if err != nil {
		p.Keeper.Log.Warn("the last changes are not pushed; the next start does that", "error", err)
	}
}

// syncRound calls do for a round, one at a time, and notes the result in the state. The round ends early if the
// server is told to stop.
func (p *Project) syncRound(ctx context.Context, do func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(p.store.stopping, end)()
	err := p.shared.inTurn(ctx, func() error {
		p.shared.beganAt(p.store.cfg.Monotonic())
		defer p.shared.beganAt(time.Time{})
		if err := p.publishKey(ctx); err != nil {
			return err
		}
		return do(ctx)
	})
	if ctx.Err() != nil {
		return err
	}
	p.shared.note(func(s *SyncState) {
		if !s.On { // it was turned off meanwhile
			return
		}
		was := s.Problem
		if err == nil {
			s.Ahead, s.Behind, s.Level, s.Problem, s.Since = 0, 0, p.store.cfg.Now(), "", time.Time{}
		} else if s.Problem = err.Error(); s.Since.IsZero() {
			s.Since = p.store.cfg.Now()
		}
		switch {
		case err == nil && was != "":
			p.Keeper.Log.Info("the mail meets that of other machines again")
		case err != nil && was == "":
			p.Keeper.Log.Warn("the mail does not meet that of other machines; that is tried again", "error", err)
		}
	})
	return err
}

// publishKey writes this machine's public key into the tree, if it is not there. Its name is the host's, with a
// part of the id if another machine has that name. Other machines believe the key once a person there trusts it. It
// returns the errors of the writer.
func (p *Project) publishKey(ctx context.Context) error {
	id := p.store.machine()
	path := format.MachinePath(id)
	if there, err := p.Tree.Exists(path); there || err != nil {
		return err
	}
	others, err := keys.Published(p.Tree)
	if err != nil {
		return err
	}
	k := keys.Key{Public: p.store.key.Public().(ed25519.PublicKey)}
	if k.Name, err = os.Hostname(); err == nil {
		_, err = keys.Parse(k.String())
	}
	if err != nil {
		k.Name = "machine"
	}
	if slices.ContainsFunc(others, func(o keys.Key) bool { return o.Name == k.Name }) {
		k.Name += "-" + id[:6]
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "sync", Summary: "the public key of this machine, " + k.Name}}
	tx.Plan = func(*writer.Group) error {
		tx.Create(path, []byte(k.String()+"\n"))
		return nil
	}
	return p.Writer.Do(ctx, tx)
}

// sync brings the branch and the shared one together, and the claims. Without fetch it looks at the shared ones
// only if others have pushed.
func (p *Project) sync(ctx context.Context, fetch bool) (err error) {
	var unclaimed error // mail goes on without claims
	defer func() { err = cmp.Or(err, unclaimed) }()
	for try := range syncTries {
		if try > 0 {
			if err := clock.Sleep(ctx, rand.N(50*time.Millisecond<<min(try, 6))); err != nil {
				return err
			}
		}
		if fetch {
			rewritten, err := p.History.Fetch(ctx)
			if rewritten {
				p.shared.note(func(s *SyncState) { s.Rewritten = p.store.cfg.Now() })
				p.Keeper.Log.Warn("somebody has rewritten the shared branch; what it lacks and is here is pushed again")
			}
			if err != nil {
				_, _ = p.meet(ctx) // which notes what waits
				return err
			}
		}
		m, merr := p.meet(ctx)
		if merr != nil {
			return merr
		}
		if try == 0 {
			if unclaimed = p.syncClaims(ctx, nil); errors.Is(unclaimed, history.ErrDeclined) {
				unclaimed = nil // the state says so
			}
		}
		if m.Behind > 0 {
			if err = p.mergeTheirs(ctx, m); errors.Is(err, errFilesMoved) {
				fetch = false
				if err := p.History.Flush(ctx); err != nil {
					return err
				}
				continue
			}
			if err == nil {
				m, err = p.meet(ctx)
			}
			if err != nil {
				return err
			}
		}
		if !m.Own {
			return nil
		}
		if err = p.History.Push(ctx); !errors.Is(err, history.ErrBehind) {
			return err
		}
		fetch = true
	}
	return err
}

// meet is History.Meet, and notes how far the branches are apart.
func (p *Project) meet(ctx context.Context) (*history.Meeting, error) {
	m, err := p.History.Meet(ctx)
	if m != nil {
		p.shared.note(func(s *SyncState) {
			if s.Ahead, s.Behind = m.Ahead, m.Behind; !m.Own {
				s.Ahead = 0
			}
		})
	}
	return m, err
}
