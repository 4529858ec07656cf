package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Another machine, for TestFaultSteps: a clone of a bare repository beside the store. The server reaches the
// bare repository only during syncStep, so that no round of its own merges before lookSynced has looked.

func (s *steps) bare() string  { return filepath.Join(filepath.Dir(s.d.store), "mail.git") }
func (s *steps) clone() string { return filepath.Join(filepath.Dir(s.d.store), "clone") }

// reach makes the bare repository one to Git, or takes that away.
func (s *steps) reach(now bool) {
	from, to := s.bare()+"/HEAD", s.bare()+"/away"
	if now {
		from, to = to, from
	}
	s.must(os.Rename(from, to))
}

func (s *steps) git(dir string, args ...string) {
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...).CombinedOutput()
	if err != nil {
		s.d.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// pushed has the other machine push a commit with three new files and one that it changes.
func pushed(s *steps) {
	if _, err := os.Stat(s.bare()); err != nil {
		s.git(".", "init", "-q", "--bare", "-b", "main", s.bare())
		s.git(s.d.tree(), "remote", "add", "origin", s.bare())
		_, err := s.d.verb("sync", "project", faultKey)
		s.must(err)
		s.git(".", "clone", "-q", s.bare(), s.clone())
		s.reach(false)
	}
	s.reach(true)
	s.git(s.clone(), "pull", "-q", "--no-rebase", "--no-edit")
	dir := filepath.Join(s.clone(), "from", strconv.Itoa(s.n))
	s.must(os.MkdirAll(dir, 0o700))
	for _, file := range []string{dir + "/a.txt", dir + "/b.txt", dir + "/c.txt", s.clone() + "/from/same.txt"} {
		s.must(os.WriteFile(file, fmt.Append(nil, s.n), 0o600))
	}
	s.git(s.clone(), "add", "from")
	s.git(s.clone(), "commit", "-qm", "from another machine")
	s.git(s.clone(), "push", "-q")
	s.reach(false)
}

func syncStep(s *steps) error {
	s.reach(true)
	defer s.reach(false)
	_, err := s.d.verb("sync", "project", faultKey)
	return err
}

// lookSynced counts the files of the present try.
func lookSynced(s *steps) int {
	n := len(s.files(fmt.Sprintf("from/%d/*.txt", s.n)))
	if data, err := os.ReadFile(filepath.Join(s.d.tree(), "from", "same.txt")); err == nil && string(data) == strconv.Itoa(s.n) {
		n++
	}
	return n
}
