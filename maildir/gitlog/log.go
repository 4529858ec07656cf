package gitlog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"mailtree/maildir/gitlog/embedded"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Config configures a Log. Dir is required.
type Config struct {
	Dir      string           // the work tree
	Log      *slog.Logger     // where to log; nil means that log output is discarded
	Now      func() time.Time // provides the times in commits; nil means time.Now
	Domain   string           // domain of agents' email addresses in commits; empty means mailtree.local
	External bool             // commit edits made by others (COMMIT_EXTERNAL); if false, users commit them
	Delay    time.Duration    // how long to collect operations; 0 means 250 ms, so that a commit is made within a second
	Quiet    time.Duration    // how long files edited by others must stay unchanged before they are committed; 0 means 2 s
	Longest  time.Duration    // maximum delay before edits by others are committed, even if files keep changing; 0 means 30 s

	// UnderWay reports whether an operation that has not been recorded yet writes to a path. The Log commits no edits
	// at such a path. UnderWay must return true until Record has returned, and must not block. If UnderWay is nil,
	// there are no such operations.
	UnderWay func(path string) bool

	// The Log repacks the repository if nothing has been committed for Idle and at least Piled loose objects have been
	// written since the last repack. A pack counts as 50 loose objects. If ten times as many have been written, Idle is
	// ignored. An Idle of 0 means 1 minute, and a negative Idle means never. A Piled of 0 means 1,000.
	Idle  time.Duration
	Piled int

	Share *Share // limits how many Logs work at once; nil means no limit

	Step func(name string) // for tests: called before each step of a commit, a fetch and a push; may be nil

	git func() (string, error) // for tests: finds the git program; nil means findGit
}

// Share limits how many Logs work at once. The limit is necessary because a working Log has about twenty files open,
// and because every Log compares its tree with the index when the server starts.
type Share struct{ commits, aside chan struct{} }

// NewShare returns a Share that lets up to n Logs commit at once. It also lets up to n others compare trees or repack
// at the same time, which may take minutes.
func NewShare(n int) *Share {
	return &Share{commits: make(chan struct{}, n), aside: make(chan struct{}, n)}
}

// await acquires a token. The caller must release it by calling done. If ctx ends first, await returns ctx's cause.
func await(ctx context.Context, tokens chan struct{}) (done func(), err error) {
	select {
	case tokens <- struct{}{}:
		return func() { <-tokens }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Log is the history of one tree. It implements history.Log and is safe for concurrent use. Open returns a Log, and
// Run makes its commits.
type Log struct {
	cfg       Config
	turn      chan struct{}          // held by the goroutine that commits
	wake      chan struct{}          // wakes Run when something has been recorded
	repackDue chan struct{}          // wakes keepHouse when a repack is due
	packing   chan struct{}          // held during a repack
	git       func() (string, error) // finds the git program
	embedded  bool                   // the git program was missing when the Log was opened (see choose)
	mem       *memory                // guarded by turn
	step      func(string)           // called before each step; never nil (see Config.Step)

	optimistic int // how many attempts to commit take index.lock late (see optimisticTries)

	mayImport, mayWork context.Context // mayImport ends when StopBy is called, and mayWork ends at StopBy's deadline
	endImport, endAll  context.CancelFunc

	mu sync.Mutex
	queue
	unpacked unpacked
	importing
	stopBy  time.Time // the deadline passed to StopBy; zero if there is none
	trouble error     // why the last attempt to commit failed; nil after a success
	last    time.Time
	lists   [2]history.Claims // the most recently read lists of claims
	known   hash              // the latest commit we know of, ours or not; operations recorded from now on come after it
}

var _ history.Log = (*Log)(nil)

// Open returns the Log of a tree. The Log commits nothing until Run is called. Open repairs the state that a run left
// behind if it was killed while it held Git's locks. It also records the branch of HEAD if no branch is recorded
// (.git/mailtree-branch). If the repository is missing, damaged or unreadable, Open returns no error. Instead, State
// reports the problem, and operations wait. An error means that the tree cannot be opened.
func Open(cfg Config) (*Log, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.UnderWay == nil {
		cfg.UnderWay = func(string) bool { return false }
	}
	cfg.Domain = cmp.Or(cfg.Domain, defaultDomain)
	cfg.Delay = cmp.Or(cfg.Delay, 250*time.Millisecond)
	cfg.Quiet = cmp.Or(cfg.Quiet, 2*time.Second)
	cfg.Longest = cmp.Or(cfg.Longest, 30*time.Second)
	cfg.Idle = cmp.Or(cfg.Idle, time.Minute)
	cfg.Piled = cmp.Or(cfg.Piled, 1000)
	cfg.Share = cmp.Or(cfg.Share, NewShare(1))
	l := &Log{cfg: cfg, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), repackDue: make(chan struct{}, 1),
		packing: make(chan struct{}, 1),
		mem:     newMemory(), step: func(string) {}, optimistic: optimisticTries}
	if cfg.Step != nil {
		l.step = cfg.Step
	}
	l.git = findGit
	if cfg.git != nil {
		l.git = cfg.git
	}
	l.choose()
	l.edits = map[string]struct{}{}
	l.mayImport, l.endImport = context.WithCancel(context.Background())
	l.mayWork, l.endAll = context.WithCancel(context.Background())
	files, err := tree.Open(cfg.Dir, 0)
	if err != nil {
		return l, err
	}
	files.Close()
	if err := l.open(); err != nil {
		_, reason := modeOf(err)
		cfg.Log.Warn("mail is not being committed", "reason", reason)
		l.trouble = err
	}
	return l, nil
}

func (l *Log) open() error {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	repo, err := l.openRepaired(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	for _, unfinished := range []string{embedded.Stage, "mailtree-new"} { // older versions used mailtree-new
		_ = os.RemoveAll(repo.path(unfinished))
	}
	at, err := l.branch(repo)
	if err != nil {
		return err
	}
	if !at.commit.IsZero() {
		l.known = at.commit
		if c, err := repo.commit(at.commit); err == nil {
			l.last = c.made
		}
	}
	index, err := repo.seeIndex()
	if err == nil && (len(l.mem.own) > 0 || l.isMisplaced(index, at.commit)) { // the index may need to be fixed
		err = l.heal(ctx)
	}
	return err
}

// choose selects the engine. It selects the git program if there is one, even if that program is too old, because
// users may run it in the same repository.
func (l *Log) choose() {
	if _, err := l.git(); errors.Is(err, exec.ErrNotFound) {
		l.embedded = true
		l.git = func() (string, error) { return "", noSync() }
	}
}

// withoutProgram says what does not work while the embedded engine commits.
const withoutProgram = "the git program was not found on the PATH, so the server commits the mail itself. It does not sync with " +
	"other machines, and it does not repack the repository, which therefore grows faster. Also, the guard does not " +
	"work. To fix this, install Git 2.34 or newer and restart the server"

// Look returns the Mode and Reason of a history.State for the work tree at dir. It changes nothing. If the mode is
// "committing", the reason is usually "". Without the git program, the reason says what does not work.
func Look(dir string) (mode, reason string) {
	l := &Log{cfg: Config{Dir: dir}, git: findGit}
	l.choose()
	if err := l.standing(); err != nil {
		return modeOf(err)
	}
	if l.embedded {
		return "committing", withoutProgram
	}
	return "committing", ""
}

// openRepaired opens the repository and repairs it. The caller must hold l.turn and close the repository.
func (l *Log) openRepaired(ctx context.Context) (*repository, error) {
	repo, err := l.openRepository(ctx, l.mem)
	if err != nil {
		return nil, err
	}
	if err = repo.repair(l.step); err != nil {
		repo.Close()
	}
	return repo, err
}

// branch returns HEAD if HEAD is on the recorded branch, and a *hold otherwise.
func (l *Log) branch(repo *repository) (head, error) {
	recorded, err := repo.recorded()
	if err != nil {
		return head{}, err
	}
	at, err := repo.onBranch(recorded)
	if err == nil && recorded == "" {
		err = repo.writeWhole(branchFile, []byte(at.branch+"\n"), 0o600)
	}
	return at, err
}

// Record implements history.Log. The function done is called in the goroutine that commits (in Run, Flush or
// Preserve), and must not call methods of the Log.
func (l *Log) Record(ops []writer.Op, done func()) {
	l.mu.Lock()
	first := len(l.records) == 0
	l.record(ops, done, l.known, time.Now())
	l.mu.Unlock()
	if first {
		l.ring()
	}
}

// RecordEdits implements history.Log. If Config.External is false, it does nothing.
func (l *Log) RecordEdits(paths []string) {
	if !l.cfg.External {
		return
	}
	l.mu.Lock()
	first := len(l.edits) == 0
	before := len(l.edits)
	l.edited(paths, time.Now())
	l.progress(0)
	full := before < mostEdits && len(l.edits) >= mostEdits
	l.mu.Unlock()
	if first || full {
		l.ring()
	}
}

func (l *Log) ring() { ringBell(l.wake) }

func ringBell(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// lastChance is how long Run continues after its context has ended. That is enough time to commit a few hundred MB.
const lastChance = 15 * time.Second

// Run implements history.Log. Until ctx ends, it makes the commits that are due, and sleeps if nothing is waiting.
// Then it commits everything that is left, except an import, and returns nil. The method chance limits how long this
// may take. If Config.External is set, Run begins by committing the edits made while the server was not running
// (catchUp). If there is a git program, Run repacks the repository when it is idle (keepHouse).
func (l *Log) Run(ctx context.Context) error {
	var aside sync.WaitGroup
	l.mu.Lock()
	before := l.recorded
	l.mu.Unlock()
	done := true
	if l.cfg.External {
		aside.Go(func() { done = l.catchUp(ctx, before) })
	}
	if !l.embedded {
		aside.Go(func() { l.keepHouse(ctx) })
	}
	l.whenDue(ctx, l.wake, l.due, l.commitDue)
	aside.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.chance())
	defer cancel()
	err := l.commitLast(end)
	if err == nil && !done { // catchUp did not finish; if this attempt fails too, the next start finds the edits
		if found, missed := l.missed(end, before); missed == nil {
			l.RecordEdits(found)
			err = l.commitLast(end)
		}
	}
	if err != nil {
		l.cfg.Log.Warn("failed to commit all changes before the server stopped", "pending", l.State().Pending, "error", err)
	}
	return nil
}

// commitLast commits everything that is left, except an unfinished import, which continues at the next start.
func (l *Log) commitLast(ctx context.Context) error {
	if !l.isImporting() {
		return l.Flush(ctx)
	}
	err := l.exclusive(ctx, func() error { return l.commitRecorded(ctx) })
	if err == nil {
		l.cfg.Log.Info("the import is not finished; it will continue at the next start", "left", l.State().Import.Left)
	}
	return unavailable(err)
}

// whenDue calls do at the times that due returns, until ctx ends. In between, it sleeps until the next of these
// times, or until bell receives a value. The function due is called with l.mu held.
func (l *Log) whenDue(ctx context.Context, bell <-chan struct{}, due func(Config) (at time.Time, ok bool), do func(context.Context)) {
	for ctx.Err() == nil {
		l.mu.Lock()
		at, ok := due(l.cfg)
		l.mu.Unlock()
		var alarm <-chan time.Time
		if ok {
			wait := time.Until(at)
			if wait <= 0 {
				do(ctx)
				continue
			}
			alarm = time.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-bell:
		case <-alarm:
		}
	}
}

// commitDue makes the commits that are due. Failures are recorded, and the commits are retried later.
func (l *Log) commitDue(ctx context.Context) {
	_ = l.exclusive(ctx, func() error {
		ctx, end := l.outlast(ctx)
		defer end()
		if err := l.commitOps(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		edits := l.editsDue(l.cfg, time.Now())
		l.mu.Unlock()
		if edits {
			if err := l.commitEdits(ctx); err != nil {
				return err
			}
		}
		return l.lookBack(ctx)
	})
}

// outlast returns a context that outlives ctx by the duration that chance returns, so that a round in progress can
// finish.
func (l *Log) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(l.chance(), end) })
	return longer, func() { stop(); end() }
}

// lookBack calls heal if it is time to check our last commits.
func (l *Log) lookBack(ctx context.Context) error {
	l.mu.Lock()
	due := !l.look.IsZero() && !time.Now().Before(l.look)
	l.mu.Unlock()
	if !due {
		return nil
	}
	err := l.heal(ctx)
	if err != nil {
		l.mu.Lock()
		l.failed(time.Now())
		l.mu.Unlock()
	}
	return err
}

// exclusive runs fn while holding l.turn, so that nothing else is committed meanwhile.
func (l *Log) exclusive(ctx context.Context, fn func() error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	done, err := await(ctx, l.cfg.Share.commits)
	if err != nil {
		return err
	}
	defer done()
	return fn()
}

// Flush implements history.Log. Errors wrap refusal.ErrUnavailable.
func (l *Log) Flush(ctx context.Context) error {
	ctx, end := within(ctx, l.mayWork)
	defer end()
	return unavailable(l.exclusive(ctx, func() error {
		if err := l.commitRecorded(ctx); err != nil {
			return err
		}
		if err := l.commitAllEdits(ctx); err != nil {
			return err
		}
		if err := l.heal(ctx); err != nil && holdOf(err) == nil {
			return err
		}
		return l.commitAllEdits(ctx) // this also commits the edits that heal recorded
	}))
}

// commitRecorded commits all operations recorded so far. The caller must hold l.turn.
func (l *Log) commitRecorded(ctx context.Context) error {
	l.mu.Lock()
	target := l.recorded
	l.mu.Unlock()
	for l.isBehind(target) {
		if err := l.commitOps(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isBehind reports whether any of the first n records has not been committed yet.
func (l *Log) isBehind(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finished < n
}

// Preserve implements history.Log.
func (l *Log) Preserve(ctx context.Context, paths []string) error {
	ctx, end := within(ctx, l.mayWork)
	defer end()
	return unavailable(l.exclusive(ctx, func() error {
		unsaved, err := l.unsaved(ctx, paths)
		if err != nil || len(unsaved) == 0 {
			return err
		}
		if err := l.commitRecorded(ctx); err != nil {
			return err
		}
		if unsaved, err = l.unsaved(ctx, paths); err != nil || len(unsaved) == 0 {
			return err
		}
		if !l.cfg.External {
			why := &refusal.Error{What: refusal.EditUncommitted}
			return &hold{mode: "waiting", reason: why.Error(), cause: why}
		}
		if err := l.commitBatch(ctx, batch{edits: paths, force: true}); err != nil {
			return err
		}
		if unsaved, err = l.unsaved(ctx, paths); err != nil || len(unsaved) == 0 {
			return err
		}
		return waiting("The server did not change the file %s, because it cannot commit the file's current content: %s.",
			oneLine(unsaved[0].path, 200), cmp.Or(unsaved[0].skipped, "the file keeps changing"))
	}))
}

func (l *Log) pendingOps() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records) > 0
}
