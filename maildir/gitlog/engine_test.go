package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/history"
	"mailtree/maildir/writer"
)

// onBothEngines lists the tests of this package that also run without the git program. The other tests make no
// commits, or they test the Git index, concurrent git commands by a user, sync, repacking, the termination of a slow
// git program (TestImportStops), or the git program itself.
var onBothEngines = map[string]func(*testing.T){
	"Authored":                   TestAuthored,
	"CatchUp":                    TestCatchUp,
	"CatchUpAtTheEnd":            TestCatchUpAtTheEnd,
	"CatchUpAfterAMerge":         TestCatchUpAfterAMerge,
	"CatchUpBesideOperations":    TestCatchUpBesideOperations,
	"ChangesMeanwhile":           TestChangesMeanwhile,
	"Commit":                     TestCommit,
	"CrowdedSecond":              TestCrowdedSecond,
	"BusySecond":                 TestBusySecond,
	"EditBeforeAnOperation":      TestEditBeforeAnOperation,
	"EditWithItsTimeSetBack":     TestEditWithItsTimeSetBack,
	"Edits":                      TestEdits,
	"EditsLeavePathsOfOperation": TestEditsLeavePathsOfOperations,
	"ForeignLock":                TestForeignLock,
	"HostileNames":               TestHostileNames,
	"HostileRunFolder":           TestHostileRunFolder,
	"Import":                     TestImport,
	"ImportFillsCommit":          TestImportFillsCommit,
	"Longest":                    TestLongest,
	"MadeAgainAfterARemoval":     TestMadeAgainAfterARemoval,
	"Patch":                      TestPatch,
	"Preserve":                   TestPreserve,
	"PreserveAfterWritten":       TestPreserveAfterWritten,
	"Recovered":                  TestRecovered,
	"RecoveredAndEdited":         TestRecoveredAndEdited,
	"Removal":                    TestRemoval,
	"RemovedByHand":              TestRemovedByHand,
	"RemovedMeanwhile":           TestRemovedMeanwhile,
	"RunEnds":                    TestRunEnds,
	"RunFolderIsALink":           TestRunFolderIsALink,
	"Sha256":                     TestSha256,
	"SinglesAreBounded":          TestSinglesAreBounded,
	"SpecialFiles":               TestSpecialFiles,
	"StaleLock":                  TestStaleLock,
	"UnfinishedCommands":         TestUnfinishedCommands,
	"Walk":                       TestWalk,
	"WalkMerge":                  TestWalkMerge,
	"AsOf":                       TestAsOf,
	"WrittenAfterAPersonsCommit": TestWrittenAfterAPersonsCommit,
	"WrittenAfterARewrite":       TestWrittenAfterARewrite,
	"WrittenBetweenGroups":       TestWrittenBetweenGroups,
	"WrittenIsBounded":           TestWrittenIsBounded,
	"WrittenIsCommitted":         TestWrittenIsCommitted,
	"WrittenTwice":               TestWrittenTwice,
	"Kill":                       TestKill,
}

const withoutGit = "TestEmbeddedEngine"

// TestEmbeddedEngine runs the tests in onBothEngines without the git program. The tests still use the git program to
// check the repository.
func TestEmbeddedEngine(t *testing.T) {
	for name, test := range onBothEngines {
		t.Run(name, test)
	}
}

// isEmbedded reports whether the test is run by TestEmbeddedEngine.
func isEmbedded(t testing.TB) bool { return strings.HasPrefix(t.Name(), withoutGit+"/") }

// engineOf returns the value of Config.git for a test.
func engineOf(t testing.TB) func() (string, error) {
	if isEmbedded(t) {
		return noGit
	}
	return nil
}

// noGit is a value for Config.git that makes Open choose the embedded engine.
func noGit() (string, error) { return "", noProgram() }

// TestEngines checks that each engine continues a history that the other engine has written. It switches from the git
// program to the embedded engine and back, with an edit before each start. Half of the objects are in packs.
func TestEngines(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	want := []string{"project"}
	for i, git := range []func() (string, error){nil, noGit, noGit, nil, noGit, nil} {
		tr.write("hand", fmt.Sprint("by hand ", i, "\n"))
		if git == nil && i > 0 {
			tr.write("staged", fmt.Sprint(i))
		}
		tr.reopen(Config{External: true, git: git})
		if _, err := os.Lstat(tr.path(".git/index")); (err == nil) != (git == nil) {
			t.Errorf("start %d: index: %v", i, err)
		}
		tr.caughtUp()
		id := fmt.Sprint("m", i)
		tr.send(id, "messages/2026/"+id, "agents/A/inbox/"+id)
		tr.flush()
		want = append(want, "edit", "send")
		if git == nil {
			tr.sound()
			tr.git("repack", "-adq")
		}
		var verbs []string
		tr.check(tr.log.Walk(context.Background(), everything(), func(r *history.Revision) error {
			verb := "edit"
			if !r.Edit {
				verb = r.Ops[0].Verb
			}
			verbs = append([]string{verb}, verbs...)
			return nil
		}))
		tr.equal(fmt.Sprint("log after start ", i), strings.Join(verbs, " "), strings.Join(want, " "))
	}
	tr.equal("reflog", fmt.Sprint(strings.Count(tr.git("reflog"), "\n")+1), fmt.Sprint(len(want)))
}

// TestEnginesReadAlike checks that both engines return the same results for walks with and without a path, patches,
// old files, and prefixes of commit names.
func TestEnginesReadAlike(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	at := time.Unix(1760000000, 0)
	tr.log.cfg.Now = func() time.Time { at = at.Add(time.Second); return at }
	tr.send("m1", "messages/2026/m1", "agents/A/inbox/m1", "plain")
	tr.flush()
	tr.git("checkout", "-qb", "side")
	tr.write("plain", "one\n\ntwo\nthree\n")
	tr.write("x\ny/\"q", "odd")
	tr.git("add", "-A")
	tr.git("commit", "-qm", "on the side")
	tr.git("checkout", "-q", "-")
	tr.send("m2", "messages/2026/m2", "agents/A/inbox/m2")
	tr.flush()
	tr.git("merge", "-q", "-m", "merged", "side")
	tr.git("gc", "-q")
	tr.check(os.Remove(tr.path("agents/A/inbox/m1")))
	tr.check(os.Chmod(tr.path("messages/2026/m1"), 0o755))
	tr.write("plain", "one\n\n2\nthree, without an end of line")
	tr.write("binary", "\x00\x01")
	tr.write("empty", "")
	tr.log.RecordEdits([]string{"agents", "messages", "plain", "binary", "empty"})
	tr.flush()
	tips := strings.Fields(tr.git("log", "--format=%h"))
	read := func() string {
		var all strings.Builder
		for _, path := range []string{"", "agents/A/inbox/m1", "agents", "plain", "none", "x\ny"} {
			q := everything()
			if path != "" {
				q = history.OfPath(path)
			}
			fmt.Fprintf(&all, "-- %q\n", path)
			tr.check(tr.log.Walk(context.Background(), q, func(r *history.Revision) error {
				fmt.Fprintln(&all, r.Hash, r.At, r.Subject, r.Author, r.Edit, r.Ops)
				for _, f := range r.Files {
					data, err := f.Content()
					tr.check(err)
					patch, err := f.Patch()
					tr.check(err)
					if strings.ContainsAny(f.Path, "\n") { // in the patch, Git quotes the path
						patch = ""
					}
					fmt.Fprintf(&all, "%s %s %q\n%s", f.Op, f.Path, data, patch)
				}
				return nil
			}))
		}
		for i, tip := range tips {
			for _, m := range []history.Moment{{Commit: tip}, {At: time.Unix(1760000000+int64(i), 0)}, {Commit: "zzzz"}, {Commit: tip[:2]}} {
				err := tr.log.AsOf(context.Background(), m, "agents/A", func(c history.Commit, files []history.OldFile) error {
					fmt.Fprintln(&all, c.Hash, c.At, c.Subject)
					for _, f := range files {
						data, err := f.Content()
						tr.check(err)
						fmt.Fprintf(&all, "%s %q\n", f.Path, data)
					}
					return nil
				})
				fmt.Fprintln(&all, err)
			}
		}
		done, err := tr.log.LastDone(context.Background(), history.DoneQuery{Agent: "A", Wants: func(string) bool { return true }, Most: 5})
		tr.check(err)
		fmt.Fprintf(&all, "%+v\n", done)
		return all.String()
	}
	want := read()
	tr.reopen(Config{External: true, git: noGit})
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(read(), "\n")); d != "" {
		t.Errorf("the history without the git program (+) differs:\n%s", d)
	}
	if len(want) < 5000 {
		t.Errorf("only %d bytes of history", len(want))
	}
}

// TestEmbeddedWithoutSync checks that without the git program, a fetch fails with an error that says what is missing.
func TestEmbeddedWithoutSync(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.git("config", "remote.origin.url", t.TempDir())
	tr.reopen(Config{git: noGit})
	if _, err := tr.log.Fetch(context.Background()); err == nil || !strings.Contains(err.Error(), "the server needs the git program") {
		t.Errorf("fetch: %v", err)
	}
	tr.state("committing", "")
}

// TestEmbeddedReadsNoFIFO checks that a FIFO in place of one of Git's objects makes the commit fail, but does not
// block the server.
func TestEmbeddedReadsNoFIFO(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.reopen(Config{git: noGit})
	packs, err := filepath.Glob(tr.path(".git/objects/pack/pack-*.idx"))
	tr.check(err)
	for _, pack := range packs {
		tr.check(os.Remove(pack))
		tr.check(syscall.Mkfifo(pack, 0o600))
	}
	if len(packs) == 0 {
		t.Fatal("no pack")
	}
	tr.log.Record([]writer.Op{op("send", "A", "m1", "m1")}, nil)
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("the operation was committed")
	}
	tr.state("waiting", "a named pipe")
}
