package gitlog

import (
	"errors"
	"os/exec"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/merge"
)

// findIncompleteMerge looks for files that a merge wrote but that are now missing from both the tree and HEAD. It also
// looks for commits that were on the branch when the merge began but have since been removed from it. If such a merge
// were committed, files would be removed from all machines, although perhaps no user has deleted them. For example,
// when a user aborts a rebase, Git removes the files that the rebase checked out. If findIncompleteMerge finds any
// such files or commits, it postpones the merge: the files are left out of the commit, the commit merges nothing, and
// the next sync merges again.
func (p *plan) findIncompleteMerge(ops []operation) error {
	for _, op := range ops {
		if op.Merges.Onto == "" || op.Merges.Onto == p.base.String() {
			continue
		}
		stands := false
		_, err := p.repo.read("commit", op.Merges.Onto)
		if err == nil {
			stands, err = p.repo.follows(p.base, plumbing.NewHash(op.Merges.Onto))
		}
		if err != nil && !errors.Is(err, errNoObject) {
			return err
		}
		if !stands {
			p.repo.mem.postponed = op.Merges.Commit
		}
	}
	merges := map[string]string{} // for each path, the commit that the last operation on the path merges
	for _, op := range ops {
		for _, path := range op.Paths {
			merges[named(path)] = op.Merges.Commit
		}
	}
	for path, commit := range merges {
		if c := p.changes[path]; commit != "" && c != nil && c.gone && !c.differs() {
			p.repo.mem.postponed = commit
		}
	}
	return nil
}

// merged returns the commits that operations merge. It omits commits that no longer exist. An operation from an
// earlier run may refer to such a commit.
func (p *plan) merged(ops []operation) (commits []string, err error) {
	for _, op := range ops {
		theirs := op.Merges.Commit
		if theirs == "" || op.Merges.More || theirs == p.repo.mem.postponed || slices.Contains(commits, theirs) {
			continue
		}
		switch _, err := p.repo.read("commit", theirs); {
		case err == nil:
			commits = append(commits, theirs)
		case !errors.Is(err, errNoObject):
			return nil, err
		}
	}
	return commits, nil
}

// forward returns the commit to which the branch can be fast-forwarded instead of creating a commit. This is the commit
// that the batch's only operation merges, if that commit is a descendant of HEAD and contains exactly the files of the
// plan. As a result, machines that have no new mail of their own end up at the same commit. Otherwise, forward returns
// HEAD. Without the git program, it always returns HEAD.
func (p *plan) forward(b batch) (hash, error) {
	if len(b.ops) != 1 || b.ops[0].Merges.Commit == "" || p.base.IsZero() || len(p.apart) > 0 || p.repo.embedded {
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

func (g *gitProgram) follows(commit, older hash) (bool, error) {
	_, err := g.run(nil, nil, "merge-base", "--is-ancestor", older.String(), commit.String())
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}
