package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
)

var (
	sequenceSeed  = flag.Uint64("sequence", 0, "the seed of the one sequence that TestFaultSequences plays")
	sequenceCount = flag.Int("sequences", 3, "how many sequences TestFaultSequences plays; they mostly wait: -parallel 16")
)

// TestFaultSequences checks the store during random sequences of tool calls by two agents, file changes by a user,
// and kills of the server. At each quiet point, the index equals a rebuilt one, and sent messages whose files are
// untouched are complete. At the end, the history is sound and contains everything. A failed sequence prints its
// seed. -sequence SEED makes the same choices again, although the actors may interleave differently.
func TestFaultSequences(t *testing.T) {
	longer(t)
	t.Parallel()
	seeds := []uint64{*sequenceSeed}
	if *sequenceSeed == 0 {
		seeds = nil
		for range *sequenceCount {
			seeds = append(seeds, rand.Uint64N(1<<32)+1)
		}
	}
	var mu sync.Mutex
	steps, kills := 0, 0
	t.Run("all", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				s := playSequence(t, seed)
				mu.Lock()
				defer mu.Unlock()
				steps, kills = steps+s.steps, kills+s.kills
			})
		}
	})
	t.Logf("%d sequences, %d steps, %d kills", len(seeds), steps, kills)
}

// sequence is one random sequence on a store.
type sequence struct {
	*load
	seed         uint64
	steps, kills int

	mu      sync.Mutex
	touched map[string]bool // ids of messages whose files the user has touched; the id "" means all messages
}

func playSequence(t *testing.T, seed uint64) *sequence {
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	s := &sequence{load: newLoad(t, d), seed: seed, touched: map[string]bool{}}
	s.refusal = func(err error) {
		if strings.Contains(err.Error(), "internal error") {
			t.Errorf("sequence %d: %v", seed, err)
		}
	}
	s.meddled = s.isTouched
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range extent(2, 10) {
		kill := r.IntN(2) == 0
		if kill {
			s.ask("die", "at", fmt.Sprint(1+r.IntN(60)))
		}
		s.round(uint64(round), extent(12, 30))
		if kill {
			s.kills++
			d.kill() // the server may have already exited
			d.start()
		}
		s.quiet()
	}
	s.committed()
	d.interrupt()
	for _, p := range storetest.CheckEdited(t.Context(), d.store) {
		t.Errorf("sequence %d: %s", seed, p)
	}
	return s
}

// ask calls a verb, which must succeed.
func (s *sequence) ask(verb string, pairs ...string) {
	s.d.t.Helper()
	if _, err := s.d.verb(verb, pairs...); err != nil {
		s.d.t.Fatalf("sequence %d: %s: %v", s.seed, verb, err)
	}
}

// round makes each actor perform n actions.
func (s *sequence) round(round uint64, n int) {
	var all sync.WaitGroup
	for actor := range uint64(3) {
		r := rand.New(rand.NewPCG(s.seed, 1+3*round+actor))
		all.Go(func() {
			for range n {
				if actor == 2 {
					s.editSomething(r)
				} else if s.callSomething(r) != nil {
					return // the server has exited
				}
			}
		})
	}
	all.Wait()
	s.steps += 3 * n
}

// callSomething calls a tool as an agent.
func (s *sequence) callSomething(r *rand.Rand) error {
	agent := s.agents[r.IntN(len(s.agents))]
	switch r.IntN(6) {
	case 0, 1:
		return s.send(s.draft(agent))
	case 2:
		return s.acknowledge(agent)
	case 3:
		return s.pop(agent)
	case 4:
		return s.claim(agent, fmt.Sprintf("src/%d", r.IntN(4)))
	}
	return s.check(agent)
}

// quiet waits until the server has read and committed everything, and checks the store while the server is running. The
// server may still have to write some of its own files.
func (s *sequence) quiet() {
	s.d.t.Helper()
	s.ask("compare", "project", faultKey)
	s.ask("flush", "project", faultKey)
	var wrong []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		wrong = storetest.CheckIndex(s.d.t.Context(), s.d.store)
		if len(wrong) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if !s.touched[""] {
		whole := slices.DeleteFunc(s.ledger.Sends(), func(m storetest.Sent) bool { return s.touched[m.ID] })
		wrong = append(wrong, storetest.CheckAnswered(s.d.store, whole, nil, "")...)
	}
	for _, w := range wrong {
		s.d.t.Errorf("sequence %d: %s", s.seed, w)
	}
}

// committed waits until the history contains everything, including the changes that a server finds when it starts after
// a kill.
func (s *sequence) committed() {
	s.d.t.Helper()
	tree := s.d.tree()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s.ask("flush", "project", faultKey)
		out, err := exec.Command("git", "--no-optional-locks", "-C", tree, "status", "--porcelain").Output()
		switch {
		case err == nil && len(out) == 0:
			return
		case time.Now().After(deadline):
			s.d.t.Errorf("sequence %d: not committed: %v\n%s", s.seed, err, out)
			return
		}
	}
}

// editSomething changes a file or a folder in the tree, as a user would. It ignores failures, because the server and
// the user work on the same files.
func (s *sequence) editSomething(r *rand.Rand) {
	root := s.d.tree()
	files, folders := listTree(root)
	if len(files) == 0 {
		return
	}
	file := files[r.IntN(len(files))]
	beside := filepath.Join(filepath.Dir(file), fmt.Sprintf("n%d%s", r.IntN(5), filepath.Ext(file)))
	id := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	switch r.IntN(12) {
	case 0:
		s.touch(id)
		_ = os.Remove(file)
	case 1:
		s.touch(id)
		_ = os.MkdirAll(filepath.Join(filepath.Dir(file), "moved"), 0o700)
		_ = os.Rename(file, filepath.Join(filepath.Dir(file), "moved", filepath.Base(file)))
	case 2:
		s.touch(id)
		_ = os.Rename(file, beside)
	case 3: // a copy with another file's id
		copyBeside(file, beside)
	case 4:
		s.touch(id)
		saveInPlace(file, "\nedited in place\n")
	case 5:
		s.touch(id)
		if data, err := os.ReadFile(file); err == nil {
			tmp := file + "~"
			_ = os.WriteFile(tmp, append(data, "\nedited by rename\n"...), 0o600)
			_ = os.Rename(tmp, file)
		}
	case 6: // an invalid file
		s.touch(id)
		_ = os.WriteFile(file, []byte("---json\n{\n"), 0o600)
	case 7: // a mark created by hand
		_ = os.WriteFile(strings.TrimSuffix(file, ".md")+[]string{".read", ".ack", ".archived"}[r.IntN(3)], nil, 0o600)
	case 8, 9: // a message created by hand
		agent, name := s.agents[r.IntN(len(s.agents))], fmt.Sprintf("hand-%d", r.IntN(20))
		text := fmt.Sprintf("---json\n{\"id\": %q, \"from\": %q, \"to\": [%q], \"created\": \"2025-01-02T03:04:05Z\"}\n---\nby hand\n",
			name, agent, agent)
		for _, at := range []string{"messages/by/hand", "agents/" + agent + "/inbox/hand"} {
			_ = os.MkdirAll(filepath.Join(root, at), 0o700)
			_ = os.WriteFile(filepath.Join(root, at, name+".md"), []byte(text), 0o600)
		}
	case 10: // a renamed folder of an agent or a day
		s.touch("")
		folder := folders[r.IntN(len(folders))]
		_ = os.Rename(folder, filepath.Join(filepath.Dir(folder), fmt.Sprintf("Folder%d", r.IntN(3))))
	case 11: // foreign files
		at := filepath.Join(filepath.Dir(file), fmt.Sprintf("foreign%d", r.IntN(3)), "deep")
		_ = os.MkdirAll(at, 0o700)
		for i := range 20 {
			_ = os.WriteFile(filepath.Join(at, fmt.Sprintf("%d.md", i)), []byte("# no mail\n"), 0o600)
		}
	}
}

// touch records that the user has changed files of a message. If id is "", the user has changed files of all messages.
func (s *sequence) touch(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched[id] = true
}

// isTouched reports whether the user may have changed a message's files.
func (s *sequence) isTouched(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.touched[""] || s.touched[id]
}

// listTree lists the files of a tree, and the folders that users move: all folders below the tree's top.
func listTree(root string) (files, folders []string) {
	_ = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && p != root:
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && filepath.Dir(p) != root:
			files = append(files, p)
		case e.IsDir() && p != root && filepath.Dir(p) != root:
			folders = append(folders, p)
		}
		return nil
	})
	return files, folders
}

func copyBeside(from, to string) {
	if data, err := os.ReadFile(from); err == nil {
		_ = os.WriteFile(to, data, 0o600)
	}
}

func saveInPlace(file, more string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(more)
}
