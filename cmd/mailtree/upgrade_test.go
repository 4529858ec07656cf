package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mailtree/fixtures/inmemory"
)

// olderEnv is the environment variable with the path to an old binary, which .ci/campaign builds.
const olderEnv = "MAILTREE_OLDER"

// TestUpgrade checks that this version keeps everything that an older version had reported as done. The older version
// was killed while it was writing to the store.
func TestUpgrade(t *testing.T) {
	u := newUpgrade(t)
	u.d.program = u.older
	u.work(3)
	u.d.program = ""
	u.work(2)
	u.d.start()
	u.d.check(u.ledger)
	t.Log(u.load)
}

// TestUpgradeBack checks a downgrade: an older version either refuses to start on a store that this version has
// written, or keeps everything that was reported as done. When this version runs again, nothing may be missing.
func TestUpgradeBack(t *testing.T) {
	u := newUpgrade(t)
	u.work(1)
	u.d.program = u.older
	if err := u.d.tryStart(); err != nil {
		t.Logf("the older program refuses the store: %v", err)
	} else {
		u.d.kill()
		u.work(2)
	}
	u.d.program = ""
	u.work(1)
	u.d.start()
	u.d.check(u.ledger)
	t.Log(u.load)
}

// TestUpgradeScripts runs the scripts in fixtures/upgrades. In them, $OLDER is the path to the old binary.
func TestUpgradeScripts(t *testing.T) {
	older := os.Getenv(olderEnv)
	if older == "" {
		t.Skip(needsOlder)
	}
	p := scripts
	p.Dir = "../../fixtures/upgrades"
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("OLDER", older)
		return setupScript(env)
	}
	runScripts(t, p)
}

// needsOlder is the reason for skipping the tests that need an old binary.
const needsOlder = "needs an older commit's program: set " + olderEnv + " to its path, as .ci/campaign does"

// upgrade is a store that two versions of the program write to.
type upgrade struct {
	*load
	older         string // path to the binary built from an older commit
	sends         map[string]bool
	popped, acked int
}

// newUpgrade prepares a store, which the first call of work creates. It skips the test if olderEnv is not set.
func newUpgrade(t *testing.T) *upgrade {
	u := &upgrade{older: os.Getenv(olderEnv), sends: map[string]bool{}}
	if u.older == "" {
		t.Skip(needsOlder)
	}
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true // the old binary lacks the verbs of the fault program
	u.load = &load{d: d}
	return u
}

// work does the following n times: it starts the program, kills it under load, and checks everything that was reported
// as done.
func (u *upgrade) work(n int) {
	u.d.t.Helper()
	for k := range n {
		u.d.start()
		if u.ledger == nil {
			u.load = newLoad(u.d.t, u.d)
			u.claims = true
		}
		u.fresh(u.sends, &u.popped, &u.acked)
		ctx, cancel := context.WithCancel(u.d.t.Context())
		clients := u.clients(ctx, 4)
		u.live(9 * k) // sometimes long enough that a commit is in progress
		u.d.kill()
		clients.Wait()
		cancel()
	}
}
