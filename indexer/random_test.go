package indexer

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// world is a small tree to which a random sequence of changes is applied.
type world struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	tree   *tree.Tree
	log    []string
	hurt   map[string]bool // paths that were changed since the last ingest
	made   tree.Written    // the file written by the last step
	madeAt string          // the path of made; "" if the last step did not write a file
}

var (
	wAgents  = []string{"Ann", "Bob", "Cid", "con", "Ünn"}
	wIDs     = []string{"m1", "m2", "m3", "m4", "bad id"}
	wFolders = []string{"", "2025/01/02/", "2025/", "x~/", "deep/er/"}
	wTimes   = []string{"2025-10-23T15:22:14Z", "2025-10-23T15:22:15Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}
)

func pick[T any](w *world, l []T) T { return l[w.r.IntN(len(l))] }

// path returns a random path for a file of any kind.
func (w *world) path() string {
	a := "agents/" + pick(w, wAgents) + "/"
	d, id := pick(w, wFolders), pick(w, wIDs)
	switch w.r.IntN(16) {
	case 0, 1, 2:
		return "messages/" + d + id + ".md"
	case 3, 4, 5:
		return a + "inbox/" + d + id + ".md"
	case 6:
		return a + "inbox/" + d + id + ".read"
	case 7:
		return a + "inbox/" + d + id + pick(w, []string{".ack", ".archived", ".later"})
	case 8, 9:
		return a + "outbox/" + d + id + ".md"
	case 10:
		return a + "drafts/" + d + "note.md"
	case 11:
		return a + "profile.json"
	case 12:
		return a + "status"
	case 13:
		return "claims/" + d + id + pick(w, []string{".json", ".released"})
	case 14:
		return pick(w, []string{"README.md", "project.json", "attachments/aa/bb.png", "messages/" + d + ".#m1.md", "messages",
			"agents/Ann", "claims/\xff.json", "messages/x\xff/y.md"})
	}
	return a + d + "other.txt"
}

// content returns random content for a path. The content is sometimes invalid.
func (w *world) content(p string) []byte {
	if w.r.IntN(10) == 0 {
		return []byte(pick(w, []string{"", "---json\n{\n", "{", "\xff\xfe", "ready\n", "now\n2025-01-01T00:00:00Z\n"}))
	}
	base := filepath.Base(p)
	id := strings.TrimSuffix(base, filepath.Ext(base))
	switch {
	case strings.HasSuffix(p, ".read"), strings.HasSuffix(p, ".ack"), strings.HasSuffix(p, ".archived"), strings.HasSuffix(p, ".later"), strings.HasSuffix(p, ".released"):
		return []byte(pick(w, wTimes) + "\n")
	case strings.HasSuffix(p, "status"):
		return []byte(pick(w, []string{"ready", "work", "offline"}))
	case strings.HasSuffix(p, "profile.json"):
		return []byte(`{"program": "p` + fmt.Sprint(w.r.IntN(3)) + `", "inception": "2025-10-01T00:00:00Z"}`)
	case strings.HasSuffix(p, "project.json"):
		return []byte(`{"human_key": "/x"}`)
	case strings.HasSuffix(p, ".json"):
		return []byte(`{"path": "a/*.go", "agent": "` + pick(w, wAgents[:3]) + `", "created": "` + pick(w, wTimes) +
			`", "expires": "2026-01-01T00:00:00Z"}`)
	}
	bcc := ""
	if strings.Contains(p, "/outbox/") || strings.Contains(p, "/inbox/") {
		bcc = `, "bcc": ["` + pick(w, wAgents[:3]) + `"]`
	}
	thread := pick(w, []string{"", `, "thread_id": "m1"`, `, "thread_id": "T-1"`})
	return fmt.Appendf(nil, "---json\n{\"id\": %q, \"from\": %q, \"to\": [%q], \"created\": %q, \"importance\": %q, "+
		"\"key\": \"k\"%s%s}\n---\n\n# word%d text\n",
		id, pick(w, wAgents[:3]), pick(w, wAgents[:3]), pick(w, wTimes), pick(w, []string{"low", "urgent"}), bcc, thread, w.r.IntN(4))
}

// existing returns the path of a random existing file or folder, or "" if there is none.
func (w *world) existing(folders bool) string {
	var all []string
	filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != w.dir && d.IsDir() == folders {
			rel, _ := filepath.Rel(w.dir, p)
			all = append(all, rel)
		}
		return nil
	})
	if len(all) == 0 {
		return ""
	}
	return pick(w, all)
}

// plain reports whether a file at p can be written without blocking, which means that p is a regular file or does not
// exist.
func (w *world) plain(p string) bool {
	fi, err := os.Lstat(filepath.Join(w.dir, p))
	return err != nil || fi.Mode().IsRegular()
}

// step makes one random change to the tree. It does nothing if the change is impossible, for example because a file
// exists where a folder is needed.
func (w *world) step() {
	at := func(p string) string { return filepath.Join(w.dir, p) }
	note := func(op string, paths ...string) {
		w.log = append(w.log, op+" "+strings.Join(paths, " -> "))
		for _, p := range paths {
			w.hurt[p] = true
			// If the path leads through a link, the watcher reports the path in the real folder.
			if dir, err := filepath.EvalSymlinks(filepath.Dir(at(p))); err == nil {
				if rel, err := filepath.Rel(w.dir, filepath.Join(dir, filepath.Base(p))); err == nil {
					w.hurt[rel] = true
				}
			}
		}
	}
	w.madeAt = ""
	switch n := w.r.IntN(24); {
	case n < 10:
		p := w.path()
		data := w.content(p)
		os.MkdirAll(filepath.Dir(at(p)), 0o777)
		if w.plain(p) && os.WriteFile(at(p), data, 0o666) == nil {
			w.made, w.madeAt = tree.Written{Data: data}, p
			note("write", p)
		}
	case n < 13: // copy a file, as a delivery does
		if from := w.existing(false); from != "" && w.plain(from) {
			data, err := os.ReadFile(at(from))
			to := w.path()
			os.MkdirAll(filepath.Dir(at(to)), 0o777)
			if err == nil && w.plain(to) && os.WriteFile(at(to), data, 0o666) == nil {
				note("copy", to)
			}
		}
	case n < 16:
		if p := w.existing(false); p != "" && os.Remove(at(p)) == nil {
			note("remove", p)
		}
	case n < 18:
		from, to := w.existing(false), w.path()
		os.MkdirAll(filepath.Dir(at(to)), 0o777)
		if from != "" && os.Rename(at(from), at(to)) == nil {
			note("move", from, to)
		}
	case n < 20:
		from := w.existing(true)
		to := pick(w, []string{"agents/Bob", "agents/Dan", "agents/Ann/inbox/moved", "messages/2025", "messages/moved", ".hidden", "spare"})
		os.MkdirAll(filepath.Dir(at(to)), 0o777)
		if from != "" && os.Rename(at(from), at(to)) == nil {
			note("move folder", from, to)
		}
	case n < 21:
		if p := w.existing(true); p != "" && os.RemoveAll(at(p)) == nil {
			note("remove folder", p)
		}
	case n < 23:
		p := w.path()
		os.MkdirAll(filepath.Dir(at(p)), 0o777)
		var err error
		if w.r.IntN(2) == 0 {
			err = os.Symlink(pick(w, []string{"/etc/passwd", w.dir, w.dir + "/messages", "nowhere"}), at(p))
		} else {
			err = syscall.Mkfifo(at(p), 0o666)
		}
		if err == nil {
			note("special", p)
		}
	default:
		if p := w.existing(true); p != "" && os.Rename(at(p), at("spare2")) == nil {
			if os.Symlink(at("spare2"), at(p)) == nil {
				note("folder to link", p, "spare2")
			}
		}
	}
}

// TestRandomHistories checks that the live index equals an index built from scratch, regardless of how the tree was
// changed and how the changes were batched. Invariant I2.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	seeds := 16
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playHistory(t, uint64(seed), 300)
		})
	}
}

func playHistory(t *testing.T, seed uint64, steps int) {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), hurt: map[string]bool{}}
	tr, err := tree.Open(w.dir, 4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	w.tree = tr
	x := openIndex(t)
	attach(t, x, "p", tr)
	for step := 1; step <= steps; step++ {
		w.step()
		if w.madeAt != "" && w.r.IntN(3) == 0 {
			w.ingestMade(x)
		}
		switch w.r.IntN(8) {
		case 0, 1, 2:
			paths := make([]string, 0, len(w.hurt))
			for p := range w.hurt {
				paths = append(paths, p)
			}
			slices.Sort(paths)
			w.r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
			cut := w.r.IntN(len(paths) + 1)
			ingest(t, x, "p", paths[:cut]...)
			ingest(t, x, "p", paths[cut:]...)
			clear(w.hurt)
		case 3:
			if w.r.IntN(4) == 0 {
				if _, err := x.Reconcile(t.Context(), "p", nil); err != nil {
					t.Fatal(err)
				}
				clear(w.hurt)
			}
		}
		if step%20 == 0 {
			ingest(t, x, "p", slices.Collect(func(yield func(string) bool) {
				for p := range w.hurt {
					if !yield(p) {
						return
					}
				}
			})...)
			clear(w.hurt)
			verify(t, x, map[string]*tree.Tree{"p": tr})
			if t.Failed() {
				t.Fatalf("step %d:\n%s", step, strings.Join(w.log[max(0, len(w.log)-30):], "\n"))
			}
		}
	}
}

// ingestMade passes the bytes of the last write to the index. Sometimes it passes different bytes, as if another
// program had written to the file in between. In that case, a later observation must correct the rows.
func (w *world) ingestMade(x *Index) {
	w.t.Helper()
	f := w.made
	var err error
	if f.Stat, err = w.tree.Stat(w.madeAt); err != nil || !f.Stat.Mode.IsRegular() {
		return // the server cannot have written this file
	}
	if w.r.IntN(3) == 0 {
		f.Data = w.content(w.madeAt)
	} else {
		delete(w.hurt, w.madeAt)
	}
	if _, err := x.Ingest(w.t.Context(), "p", []string{w.madeAt, w.madeAt}, map[string]tree.Written{w.madeAt: f}); err != nil {
		w.t.Fatal(err)
	}
}

func openIndex(t testing.TB) *Index {
	t.Helper()
	x, err := Open(context.Background(), Config{Path: filepath.Join(t.TempDir(), "index.sqlite3")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func openTree(t testing.TB, dir string) *tree.Tree {
	t.Helper()
	tr, err := tree.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func attach(t testing.TB, x *Index, slug string, tree *tree.Tree) {
	t.Helper()
	if err := x.Attach(t.Context(), slug, tree); err != nil {
		t.Fatal(err)
	}
}

func ingest(t testing.TB, x *Index, slug string, paths ...string) []index.Change {
	t.Helper()
	in, err := x.Ingest(t.Context(), slug, paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	return in.Changes
}

// verify fails the test if the live index differs from a rebuilt index.
func verify(t testing.TB, x *Index, trees map[string]*tree.Tree) {
	t.Helper()
	r, err := Verify(t.Context(), x, trees)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Differences) > 0 {
		t.Errorf("live (-) and rebuilt (+) index differ:\n%s", strings.Join(r.Differences, "\n"))
	}
}

func dump(t testing.TB, x *Index) string {
	t.Helper()
	var b bytes.Buffer
	if err := x.Dump(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
