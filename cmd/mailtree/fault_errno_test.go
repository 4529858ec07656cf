//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/trap"
	"mailtree/indexer"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// errnos are what calls fail with: of the machine's, which tell nothing about the file, and of the
// file's own.
var errnos = []syscall.Errno{
	syscall.EMFILE, syscall.EIO, syscall.EACCES, syscall.ENOMEM, syscall.ESTALE, syscall.ENXIO, syscall.EINTR,
	syscall.ENFILE, syscall.EPERM, syscall.ENAMETOOLONG, syscall.ENOSPC,
}

// TestFaultErrno fails every file call below the tree of every kind of operation, once with each
// errno, and compares each answer with the files: what was answered is there; a refusal is no word
// about what could not be read; what is on disk is listed, or its path is named in health as one
// that is tried again; a second agent is never granted an exclusive claim. When no path waits the
// index equals a rebuilt one, without a new start. In the short form one call in three of most kinds
// fails, with the next errno in turn; in the long form every call, with every errno.
func TestFaultErrno(t *testing.T) {
	longer(t)
	t.Parallel()
	for i, op := range perilous {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			r := newPeril(t, op)
			shots := r.shots(i)
			for _, s := range shots {
				if r.wrong >= extent(5, 200) {
					t.Errorf("%d of %d failures of calls led to wrong answers: the others are left out", r.wrong, r.fired)
					break
				}
				r.attempt(&s)
			}
			r.finish()
			t.Logf("%s: %d calls at %d places, %d failed, %d refusals, %d answers wrong, %d waited, %d mended by a person", op.name,
				r.calls, r.places, r.fired, r.refused.Load(), r.wrong, r.waited, r.mended)
		})
	}
}

// peril is the run of one kind of operation.
type peril struct {
	*load
	injector
	op operation

	calls, places                int // of one operation
	fired, wrong, waited, mended int
	failed                       bool     // the present attempt
	unreadable                   []string // paths of calls that failed with a fault of the file's own

	n       int    // of the attempt
	word    string // only in the text of its message
	id      string // of its message; "" before it is sent
	pattern string // of its claim
	before  bool   // message, claim and agent were there before the call that failed
	aimed   *shot
	hitPath string // of the call that was failed

	got  string // the id that was popped
	task string // of Dora's profile, as a person wrote it last
	away string // the file that a person took away
	copy []byte // what it held
}

func newPeril(t *testing.T, op operation) *peril {
	r := &peril{op: op}
	r.injector.first = map[string]int{}
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.launch = r.launch
	if err := d.tryStart(); errors.Is(err, trap.ErrRefused) {
		notHere(t, "%v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	r.load = newLoad(t, d)
	r.refusal = r.vet
	r.injector.mu.Lock()
	r.injector.tree = d.tree()
	r.injector.mu.Unlock()
	return r
}

// shots learns the calls of the operation and says which are to fail, and with what.
func (r *peril) shots(turn int) (shots []shot) {
	always, order := map[callSite]int{}, []callSite{}
	for round := range 3 { // the first makes folders
		r.begin(nil)
		err := r.op.do(r)
		sites, seen, _ := r.disarm()
		if err != nil {
			r.d.t.Fatalf("%s without a fault: %v", r.op.name, err)
		}
		r.op.after(r, nil)
		r.agree()
		for _, at := range seen {
			if round == 1 && (r.op.history || !strings.HasPrefix(at.path, ".git")) { // commits go on beside the others
				always[at], order = sites[at], append(order, at)
			}
		}
		if round == 2 {
			for at := range always {
				always[at] = min(always[at], sites[at])
			}
		}
	}
	order = slices.DeleteFunc(order, func(at callSite) bool { return always[at] == 0 })
	r.places = len(order)
	for _, at := range order {
		r.calls += always[at]
		for nth := range min(always[at], r.op.most()) {
			if turn++; turn%r.op.share() == 0 {
				shots = append(shots, r.op.fail(shot{callSite: at, nth: nth + 1}, turn)...)
			}
		}
	}
	return shots
}

// fail is a call with each errno, or but in the long form with the one whose turn it is. Only what
// changes something finds the disk full.
func (op *operation) fail(s shot, turn int) (shots []shot) {
	all := errnos
	if !s.changes {
		all = slices.DeleteFunc(slices.Clone(errnos), func(no syscall.Errno) bool { return no == syscall.ENOSPC })
	}
	if *faults != "long" {
		all = []syscall.Errno{all[turn/op.share()%len(all)]}
	}
	for _, no := range all {
		s.errno = no
		shots = append(shots, s)
	}
	return shots
}

// begin prepares a new attempt and arms the injector.
func (r *peril) begin(s *shot) {
	r.n++
	r.word, r.id, r.before = fmt.Sprintf("word%dx", r.n), "", false
	r.pattern = fmt.Sprintf("Ann/src/%d", r.n)
	r.aimed, r.hitPath = nil, ""
	r.op.prepare(r)
	r.failed, r.aimed = false, s
	r.arm(s, r.own(), r.op.every)
}

// own is what tells the paths of this attempt's that are there already.
func (r *peril) own() string {
	switch {
	case r.id != "":
		return r.id
	case r.exists("agents/" + r.newcomer()):
		return r.newcomer()
	}
	return claimHash(r.pattern)
}

// attempt does the operation once, the shot being fired in it, and compares.
func (r *peril) attempt(s *shot) {
	for range 3 { // the call is not made each time
		r.begin(s)
		err := r.op.do(r)
		_, _, hit := r.disarm()
		if hit != nil {
			r.hitPath = hit.Path
			r.fired++
			if !r.machine() {
				r.unreadable = append(r.unreadable, hit.Path)
			}
		}
		if hit != nil && r.op.beside && r.machine() {
			r.passed()
		}
		r.op.after(r, err)
		r.agree()
		if r.failed {
			r.wrong++
			r.heal()
		}
		if hit != nil {
			return
		}
	}
}

// bad fails the test for the present attempt.
func (r *peril) bad(format string, args ...any) {
	r.d.t.Helper()
	r.failed = true
	r.d.t.Errorf("%s, %v: %s", r.op.name, r.aimed, fmt.Sprintf(format, args...))
}

// machine reports whether the fault of the attempt is one of the machine, which tells nothing about
// the file.
func (r *peril) machine() bool {
	return r.aimed != nil && tree.FaultOf(r.aimed.errno) == tree.FaultMachine
}

// vet looks at a refusal: it says that something is not available now, or that a file cannot be
// read where that is so. Where agents may not be listed none is known: tree.Walk takes what lies in such a
// folder for gone.
func (r *peril) vet(err error) {
	var no *toolError
	errors.As(err, &no)
	unreadable := no.code == "conflict" && !r.machine() && strings.Contains(no.text, "cannot be read")
	unlisted := no.code == "not_found" && !r.machine() && (r.aimed.path == "agents" || r.aimed.path == "agents/NEW")
	if no.code != "unavailable" && !unreadable && !unlisted && !strings.HasPrefix(no.text, "409 ") {
		r.bad("refused as %s: %s", no.code, no.text)
	}
}

// differMost is how long answers may differ from the files, if health names nothing that waits, until a
// person fixes the file that a call failed at.
const differMost = 4 * time.Second

// agree waits until what the server answers is what lies in the files.
func (r *peril) agree() {
	r.d.t.Helper()
	began, waited, mended := time.Now(), false, false
	for ; ; time.Sleep(20 * time.Millisecond) {
		waiting := r.health().waiting // asked first: what waits now may be level a moment later
		diff := r.differing()
		lost := slices.IndexFunc(diff, func(d difference) bool { return d.lost })
		switch limit := time.Since(began); {
		case len(diff) == 0:
			return
		case lost >= 0 && r.machine():
			r.bad("%s (waiting: %s)", diff[lost].text, waiting)
			return
		case len(waiting) > 0 && limit < 10*differMost:
			if !waited {
				waited = true
				r.waited++
			}
		case limit > differMost && r.hitPath != "" && !mended && tree.FaultOf(r.aimed.errno) == tree.FaultFile:
			mended, began = true, time.Now()
			r.mended++
			r.mend(r.hitPath)
		case limit < time.Minute: // on a machine with other work it takes longer than on one without
		default:
			r.bad("%s (waiting: %s)", diff[0].text, waiting)
			return
		}
	}
}

// heal takes what one attempt broke out of the way of the next.
func (r *peril) heal() {
	until(r.d.t, "all is level again", time.Minute, func() bool {
		_, err := r.d.verb("compare", "project", faultKey)
		return err == nil && len(r.differing()) == 0
	})
}

// mend is a person who changes the mode of what could not be read.
func (r *peril) mend(name string) {
	for ; strings.HasPrefix(name, r.injector.tree+"/") && !strings.Contains(name[len(r.injector.tree):], "/."); name = filepath.Dir(name) {
		st, err := os.Stat(name)
		if err != nil {
			continue
		}
		if err := os.Chmod(name, st.Mode()^0o010); err != nil { // not back again: the watcher asks whether it differs
			r.d.t.Fatal(err)
		}
		return
	}
}

// state is of GET /health what the comparison asks for.
type state struct {
	waiting []string // paths that are tried again
	quiet   bool     // nothing waits, and everything that the watcher saw is in the index
}

func (r *peril) health() (s state) {
	resp, err := r.d.client.Get(r.d.url + "/health")
	if err != nil {
		r.d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var report struct {
		IndexLag float64 `json:"index_lag_seconds"`
		Detail   []struct{ Waiting []json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		r.d.t.Fatalf("health: %v", err)
	}
	for _, d := range report.Detail {
		for _, w := range d.Waiting {
			s.waiting = append(s.waiting, string(w))
		}
	}
	s.quiet = len(s.waiting) == 0 && report.IndexLag == 0
	return s
}

// finish compares the live index with a rebuilt one when no fault is left, and then the store with
// everything that was answered.
func (r *peril) finish() {
	r.d.t.Helper()
	if _, err := r.d.verb("flush", "project", faultKey); err != nil {
		r.d.t.Errorf("flush: %v", err)
	}
	for _, name := range r.unreadable { // a file that is a problem is looked at again when somebody changes it
		r.mend(name)
	}
	var diff []string
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		quiet := r.health().quiet
		if diff = r.verify(); quiet && len(diff) == 0 {
			break
		}
		if time.Since(began) > time.Minute {
			r.d.t.Errorf("the live index differs from a rebuilt one (quiet: %v):\n%s", quiet, strings.Join(diff, "\n"))
			break
		}
	}
	for _, line := range r.deletions() {
		r.d.t.Errorf("a commit removes what nobody removed: %s", line)
	}
	r.injector.mu.Lock()
	r.injector.tree = ""
	r.injector.mu.Unlock()
	r.d.launch = nil // the start that Check needs is without faults
	r.d.check(r.ledger)
	r.wait()
}

// verify compares the live index with a rebuilt one.
func (r *peril) verify() []string {
	trees, err := storedir.OpenTrees(r.d.store, 0)
	defer func() {
		for _, tree := range trees {
			tree.Close()
		}
	}()
	if err != nil {
		return []string{err.Error()}
	}
	ctx := r.d.t.Context()
	x, err := indexer.Open(ctx, indexer.Config{Path: storedir.IndexPath(r.d.store), Existing: true})
	if err != nil {
		return []string{err.Error()}
	}
	defer x.Close()
	report, err := indexer.Verify(ctx, x, trees)
	if err != nil {
		return []string{err.Error()}
	}
	return report.Differences
}

// deletions are the removals of the history that no operation and no person made.
func (r *peril) deletions() (lines []string) {
	out, err := exec.Command("git", "-C", r.d.tree(), "log", "--no-renames", "--diff-filter=D", "--name-only", "--format=").Output()
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !r.op.removes(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
