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

// errnos lists the errors that are injected into calls. Some are faults of the machine, which say nothing about the
// file. Others are faults of the file itself.
var errnos = []syscall.Errno{
	syscall.EMFILE, syscall.EIO, syscall.EACCES, syscall.ENOMEM, syscall.ESTALE, syscall.ENXIO, syscall.EINTR,
	syscall.ENFILE, syscall.EPERM, syscall.ENAMETOOLONG, syscall.ENOSPC,
}

// TestFaultErrno checks that the server's responses are correct when a file call fails. It makes every file call below
// the tree fail in every kind of operation, once with each errno, and compares each response with the files. Everything
// that the server reported as done is on disk. A refusal assumes nothing about a file that could not be read. The
// responses list everything on disk, except for paths that health reports as waiting for a retry. An exclusive claim is
// never granted to a second agent. When no path is waiting, the index equals a rebuilt one, without a restart.
//
// In the short form, one call in three fails for most kinds of operations, and the test cycles through the errnos. In
// the long form, every call fails with every errno. Commits are an exception: they make thousands of calls, so the test
// cycles through the errnos there too.
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
			t.Logf("%s: %d calls at %d places, %d failed, %d refusals, %d answers wrong, %d waited, %d restored by a user", op.name,
				r.calls, r.places, r.fired, r.refused.Load(), r.wrong, r.waited, r.restored)
		})
	}
}

// peril is one kind of operation under test.
type peril struct {
	*load
	injector
	op operation

	calls, places                  int // number of calls and of call sites in one operation
	fired, wrong, waited, restored int
	failed                         bool     // the current attempt has failed
	unreadable                     []string // paths of calls that failed with a fault of the file, not of the machine

	n       int    // the attempt's number
	word    string // a word that appears only in the attempt's message
	id      string // the id of the attempt's message; empty until it is sent
	pattern string // the pattern of the attempt's claim
	before  bool   // the message, claim and agent existed before the failed call
	aimed   *shot
	hitPath string // path of the call that failed

	got  string // the id of the popped message
	task string // the task in Dora's profile, as last written by a user
	away string // the file that a user has removed
	copy []byte // the content of the removed file
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

// shots finds out which calls the operation makes, and selects the calls that should fail and the errno for each.
func (r *peril) shots(turn int) (shots []shot) {
	always, order := map[callSite]int{}, []callSite{}
	for round := range 3 { // the first round also creates folders
		r.begin(nil)
		err := r.op.do(r)
		sites, seen, _ := r.disarm()
		if err != nil {
			r.d.t.Fatalf("%s without a fault: %v", r.op.name, err)
		}
		r.op.after(r, nil)
		r.agree()
		for _, at := range seen {
			if round == 1 && (r.op.history || !strings.HasPrefix(at.path, ".git")) { // skip concurrent commits
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

// fail returns shots for a call. In the long form, there is one shot for each errno. Otherwise, and for commits, there
// is only one shot, and the test cycles through the errnos. Only calls that change something can fail because of a full
// disk.
func (op *operation) fail(s shot, turn int) (shots []shot) {
	all := errnos
	if !s.changes {
		all = slices.DeleteFunc(slices.Clone(errnos), func(no syscall.Errno) bool { return no == syscall.ENOSPC })
	}
	if *faults != "long" || op.history {
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

// own returns the text that identifies the attempt's message in paths. If there is no message yet, the text identifies
// the attempt's agent or, if there is none either, the attempt's claim. Calls for paths with this text are counted even
// if the path is older than the attempt. See injector.arm.
func (r *peril) own() string {
	switch {
	case r.id != "":
		return r.id
	case r.exists("agents/" + r.newcomer()):
		return r.newcomer()
	}
	return claimHash(r.pattern)
}

// attempt performs the operation once with the given shot, and compares the responses with the files.
func (r *peril) attempt(s *shot) {
	for range 3 { // try again, because the operation does not make the call every time
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

// bad marks the current attempt as failed and reports an error to the test.
func (r *peril) bad(format string, args ...any) {
	r.d.t.Helper()
	r.failed = true
	r.d.t.Errorf("%s, %v: %s", r.op.name, r.aimed, fmt.Sprintf(format, args...))
}

// machine reports whether the attempt's fault is a machine fault, which says nothing about the file.
func (r *peril) machine() bool {
	return r.aimed != nil && tree.FaultOf(r.aimed.errno) == tree.FaultMachine
}

// vet checks a refusal. The refusal must say that something is temporarily unavailable. If a file cannot be read, the
// refusal may say that instead. If the agents' folder cannot be listed, the refusal may say that an agent is unknown,
// because tree.Walk treats the content of such a folder as gone.
func (r *peril) vet(err error) {
	var no *toolError
	errors.As(err, &no)
	unreadable := no.code == "conflict" && !r.machine() && strings.Contains(no.text, "cannot be read")
	unlisted := no.code == "not_found" && !r.machine() && (r.aimed.path == "agents" || r.aimed.path == "agents/NEW")
	if no.code != "unavailable" && !unreadable && !unlisted && !strings.HasPrefix(no.text, "409 ") {
		r.bad("refused as %s: %s", no.code, no.text)
	}
}

// differMost is the longest time for which responses may differ from the files while health lists nothing as waiting.
// After that, a user fixes the file whose call failed.
const differMost = 4 * time.Second

// agree waits until the server's responses match the files.
func (r *peril) agree() {
	r.d.t.Helper()
	began, waited, restored := time.Now(), false, false
	for ; ; time.Sleep(20 * time.Millisecond) {
		waiting := r.health().waiting // read the waiting paths first, because they may become up to date at any time
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
		case limit > differMost && r.hitPath != "" && !restored && tree.FaultOf(r.aimed.errno) == tree.FaultFile:
			restored, began = true, time.Now()
			r.restored++
			r.restoreMode(r.hitPath)
		case limit < time.Minute: // on a busy machine, this takes longer
		default:
			r.bad("%s (waiting: %s)", diff[0].text, waiting)
			return
		}
	}
}

// heal makes the server compare the tree with the index until its responses match the files again.
func (r *peril) heal() {
	until(r.d.t, "everything is up to date again", time.Minute, func() bool {
		_, err := r.d.verb("compare", "project", faultKey)
		return err == nil && len(r.differing()) == 0
	})
}

// restoreMode changes the mode of a file that could not be read, as a user would.
func (r *peril) restoreMode(name string) {
	for ; strings.HasPrefix(name, r.injector.tree+"/") && !strings.Contains(name[len(r.injector.tree):], "/."); name = filepath.Dir(name) {
		st, err := os.Stat(name)
		if err != nil {
			continue
		}
		if err := os.Chmod(name, st.Mode()^0o010); err != nil { // change the mode, so that the watcher notices the file
			r.d.t.Fatal(err)
		}
		return
	}
}

// state is the part of GET /health that the comparison needs.
type state struct {
	waiting []string // paths that are retried
	quiet   bool     // nothing is waiting, and the index contains everything that the watcher saw
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

// finish compares the live index with a rebuilt one once all faults are over. It then checks that the store contains
// everything that the server reported as done.
func (r *peril) finish() {
	r.d.t.Helper()
	if _, err := r.d.verb("flush", "project", faultKey); err != nil {
		r.d.t.Errorf("flush: %v", err)
	}
	for _, name := range r.unreadable { // the server reads an invalid file again only when the file changes
		r.restoreMode(name)
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
		r.d.t.Errorf("a commit removes a file that nobody removed: %s", line)
	}
	r.injector.mu.Lock()
	r.injector.tree = ""
	r.injector.mu.Unlock()
	r.d.launch = nil // the server that Check starts has no faults
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

// deletions returns the deletions in the history that were made neither by an operation nor by a user.
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
