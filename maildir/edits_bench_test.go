package maildir_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// BenchmarkVisible measures the time from a user's save until the message is listed and can be found by its new words.
// The watcher must notice the save. The file is saved by renaming, as most editors do, or in place. Each case is
// measured both without other load and while agents send 500 messages per second. The best possible result is the
// watcher's settle time of three milliseconds.
func BenchmarkVisible(b *testing.B) {
	for _, rate := range []int{0, 500} {
		for _, save := range []struct {
			how  string
			file func(name string, data []byte) error
		}{{"rename", saveByRename}, {"in-place", saveInPlace}} {
			b.Run(fmt.Sprintf("%s/sends=%d", save.how, rate), func(b *testing.B) {
				p := project(b, kept(b), "Ann", "Bob")
				stop := sendAt(b, p, rate)
				defer stop()
				var each bulk.Times
				m := &format.Message{ID: "byhand", From: "Ann", Subject: "by hand", Created: time.Unix(1760000000, 0), Importance: format.Normal}
				name := filepath.Join(p.Dir(), "messages/by/hand", m.ID+".md")
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					b.Fatal(err)
				}
				for n := range b.N + 1 {
					word := fmt.Sprintf("saved%d", n)
					m.Body = benchBody + word
					data := format.FormatMessage(m)
					began := time.Now()
					if err := save.file(name, data); err != nil {
						b.Fatal(err)
					}
					seen(b, p, m.ID, word)
					if n > 0 { // the first save creates the folder
						each = append(each, time.Since(began))
					}
					waits.Pace(20 * time.Millisecond) // no user saves more often than this
				}
				b.StopTimer()
				each.Report(b, "")
			})
		}
	}
}

func saveByRename(name string, data []byte) error {
	tmp := filepath.Join(filepath.Dir(name), ".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

func saveInPlace(name string, data []byte) error { return os.WriteFile(name, data, 0o600) }

// seen waits until a message is listed and can be found by a word.
func seen(b *testing.B, p *maildir.Project, id, word string) {
	b.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		m, err := p.Message(b.Context(), id)
		if err == nil && strings.HasSuffix(m.Body, word) {
			found, err := p.Search(b.Context(), maildir.SearchRequest{Text: word})
			if err == nil && len(found.Hits) == 1 {
				return
			}
		}
		if time.Now().After(end) {
			b.Fatal(id, " is not visible: ", err)
		}
	}
}

// sendAt sends rate messages per second, until stop is called, without waiting for the results of earlier sends.
func sendAt(b *testing.B, p *maildir.Project, rate int) (stop func()) {
	if rate == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	sent, began := 0, time.Now()
	all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			for ; sent < int(time.Since(began).Seconds()*float64(rate)); sent++ { // a ticker would drop ticks
				all.Go(func() {
					if _, err := p.Box("Ann", format.Origin{}).Send(context.Background(), maildir.Draft{To: []string{"Bob"}, Subject: "load", Body: benchBody}); err != nil {
						b.Error(err)
					}
				})
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
		b.ReportMetric(float64(sent)/time.Since(began).Seconds(), "sends/s")
	}
}

// BenchmarkCheckout measures the time from the start of a git checkout that changes 10,000 files until the index of a
// watched store matches the tree. "git-ms" is the time that git itself takes, and "after-git-ms" is the additional
// time until the index matches.
func BenchmarkCheckout(b *testing.B) {
	files := 9_999
	if testing.Short() {
		files = 300
	}
	mail := bulk.Mail{Messages: files / 3, Name: "edited", Git: true}
	root := mail.Store(b)
	storetest.Rebuild(b, root)
	repo := bulk.Repo(root)
	prepareBranch(b, mail, repo)
	s := storetest.Open(b, storetest.Config{Root: root, NoCheck: true})
	p := s.Projects()[0]
	if err := p.Rescan(b.Context()); err != nil { // ensures that the watch is set up
		b.Fatal(err)
	}
	var took, git time.Duration
	for n := range b.N {
		branch, word := "other", "otherwise"
		if n%2 == 1 {
			branch, word = "same", ""
		}
		settle(b, p)
		began := time.Now()
		runGit(b, repo, "checkout", "-q", branch, "--", "messages", "agents")
		git += time.Since(began)
		changed(b, p, mail, word)
		took += time.Since(began)
	}
	if b.N%2 == 1 {
		runGit(b, repo, "checkout", "-q", "same", "--", "messages", "agents")
	}
	settle(b, p)
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/checkout")
	b.ReportMetric(float64(git.Milliseconds())/float64(b.N), "git-ms")
	b.ReportMetric(float64((took-git).Milliseconds())/float64(b.N), "after-git-ms")
	b.ReportMetric(float64(files), "files")
}

// prepareBranch creates a branch on which every message ends with "otherwise", and another branch on which every
// message is unchanged.
func prepareBranch(b *testing.B, mail bulk.Mail, repo string) {
	if exec.Command("git", "-C", repo, "rev-parse", "-q", "--verify", "other").Run() == nil {
		runGit(b, repo, "checkout", "-q", "same", "--", "messages", "agents") // cleans up after an interrupted run
		return
	}
	runGit(b, repo, "branch", "same")
	runGit(b, repo, "checkout", "-q", "-b", "other")
	for n := range mail.Messages {
		msg, paths := mail.Message(n)
		msg.Body += "otherwise"
		for _, path := range paths {
			if err := os.WriteFile(filepath.Join(repo, path), format.FormatMessage(msg), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	runGit(b, repo, "commit", "-q", "-a", "-m", "Every message says otherwise")
	runGit(b, repo, "checkout", "-q", "main")
}

func runGit(b *testing.B, repo string, args ...string) {
	b.Helper()
	c := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=bench", "-c", "user.email=bench@localhost"}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// settle waits until the index and the history have no work left.
func settle(b *testing.B, p *maildir.Project) {
	b.Helper()
	if err := p.Rescan(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := p.FlushHistory(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// changed waits until every message ends with "otherwise". If word is empty, it waits until no message ends with it.
func changed(b *testing.B, p *maildir.Project, mail bulk.Mail, word string) {
	b.Helper()
	end := time.Now().Add(2 * time.Minute)
	for n := 0; n < mail.Messages; waits.Pace(time.Millisecond) {
		msg, _ := mail.Message(n)
		now, err := p.Message(b.Context(), msg.ID)
		if err == nil && strings.HasSuffix(now.Body, "otherwise") == (word != "") {
			n++
			continue
		}
		if time.Now().After(end) {
			b.Fatal("the index does not match the tree: ", msg.ID, " ", err)
		}
	}
}
