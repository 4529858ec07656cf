package gitlog

import (
	"errors"
	"os/exec"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/merge"
)

// merged returns the commits that operations merge. It leaves out what an earlier run began and cannot be ended: the
// commit is gone, or files that it brought are. The next round merges again.
func (p *plan) merged(ops []operation) (commits []string, err error) {
	lacks := func(path string) bool {
		c := p.changes[named(path)]
		return c != nil && c.gone && !c.differs()
	}
	for _, op := range ops {
		if op.Merges == "" || slices.Contains(commits, op.Merges) || op.Recovered && slices.ContainsFunc(op.Paths, lacks) {
			continue
		}
		switch _, err := p.repo.read("commit", op.Merges); {
		case err == nil:
			commits = append(commits, op.Merges)
		case !errors.Is(err, errNoObject):
			return nil, err
		}
	}
	return commits, nil
}

// forward returns the commit to which the branch moves without a commit of ours: the one that the only
// operation of the batch merges, if it follows HEAD and has what the plan makes of HEAD. Machines that have
// nothing new of their own thus come to the same commit. Otherwise it returns HEAD.
func (p *plan) forward(b batch) (hash, error) {
	if len(b.ops) != 1 || b.ops[0].Merges == "" || p.base.IsZero() || len(p.apart) > 0 {
		return p.base, nil
	}
	commits, err := p.merged(b.ops)
	if err != nil || len(commits) == 0 {
		return p.base, err
	}
	if follows, err := p.repo.follows(plumbing.NewHash(commits[0]), p.base); err != nil || !follows {
		return p.base, err
	}
	same, n := true, 0
	err = p.repo.crossed(p.base.String(), commits[0], func(f merge.File) error {
		made := p.changes[f.Path]
		same = same && made != nil && f.Theirs == crossing(made.new)
		n++
		return nil
	})
	if err != nil || !same || n != len(p.differing()) {
		return p.base, err
	}
	return plumbing.NewHash(commits[0]), nil
}

// follows reports whether a commit has an older one among its ancestors, or is that commit.
func (r *repository) follows(commit, older hash) (bool, error) {
	_, err := r.run(nil, nil, "merge-base", "--is-ancestor", older.String(), commit.String())
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}
