package guard

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/lazy"
)

// changed lists the paths that one author changed.
type changed struct {
	author string // author of the pushed commits; "" if the committer made the changes
	paths  []string
}

// diffIndex is the git command that lists the paths at which the Git index differs from a tree. Rename detection is
// off, so both names of a renamed file are listed. A file marked with `git add -N` is not listed, because it is not
// part of the commit.
var diffIndex = []string{
	"diff-index", "--cached", "--ita-invisible-in-index", "-z", "--name-only",
	"--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty",
}

// staged lists the paths that the next commit changes relative to all of its parents.
func (g *git) staged(ctx context.Context, merging []string) ([]string, error) {
	paths, err := g.names(ctx, nil, append(diffIndex, "HEAD", "--")...)
	if err != nil {
		tree, terr := g.emptyTree(ctx)
		if terr != nil {
			return nil, err
		}
		if paths, err = g.names(ctx, nil, append(diffIndex, tree, "--")...); err != nil {
			return nil, err
		}
	}
	for _, parent := range merging {
		if len(paths) == 0 {
			break
		}
		theirs, err := g.names(ctx, nil, append(diffIndex, parent, "--")...)
		if err != nil {
			return nil, err
		}
		differs := map[string]bool{}
		for _, p := range theirs {
			differs[p] = true
		}
		paths = slices.DeleteFunc(paths, func(p string) bool { return !differs[p] })
	}
	return paths, nil
}

// emptyTree returns the id of the empty tree, with which the first commit is compared. If HEAD already has a commit,
// emptyTree returns an error.
func (g *git) emptyTree(ctx context.Context) (string, error) {
	if _, err := g.run(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); !exited(err, 1) {
		return "", cmp.Or(err, errors.New("HEAD exists"))
	}
	if _, err := g.run(ctx, nil, "symbolic-ref", "--quiet", "HEAD"); err != nil {
		return "", err
	}
	return g.line(ctx, "hash-object", "-t", "tree", "--stdin")
}

var objectName = lazy.Regexp(`^[0-9a-f]{40,64}$`)

// mergeHeads returns the additional parents of the commit in progress. After a merge with conflicts, MERGE_HEAD lists
// them. In a merge without conflicts, pre-merge-commit runs before Git writes that file, but Git passes the parents in
// GITHEAD_<commit> variables.
func (g *git) mergeHeads(ctx context.Context, hook string) ([]string, error) {
	var heads []string
	if hook == PreMergeCommit {
		for _, e := range g.env {
			name, _, _ := strings.Cut(e, "=")
			if id, ok := strings.CutPrefix(name, "GITHEAD_"); ok && objectName().MatchString(id) {
				heads = append(heads, id)
			}
		}
		if heads != nil {
			return heads, nil
		}
	}
	dir, err := g.gitDir(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "MERGE_HEAD"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 64<<10))
	for lines.Scan() {
		if objectName().MatchString(lines.Text()) {
			heads = append(heads, lines.Text())
		}
	}
	return heads, lines.Err()
}

// gitDir returns the repository's .git folder. It runs git only if it cannot find the folder in the file system.
func (g *git) gitDir(ctx context.Context) (string, error) {
	for _, e := range g.env {
		if dir, ok := strings.CutPrefix(e, "GIT_DIR="); ok && dir != "" {
			return rooted(g.dir, dir), nil
		}
	}
	if dir := filepath.Join(g.dir, ".git"); isFolder(dir) {
		return dir, nil
	}
	return g.line(ctx, "rev-parse", "--absolute-git-dir")
}

func rooted(base, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(base, p)
}

func isFolder(p string) bool {
	fi, err := os.Lstat(p)
	return err == nil && fi.IsDir()
}

// pushed lists, by author, the paths changed by the commits that a push would add. stdin is the hook's standard
// input, which has one line for each ref. Commits that a remote already has are omitted, and deleted refs are
// ignored. As in staged, a merge changes only the paths that differ from all of its parents.
func (g *git) pushed(ctx context.Context, stdin io.Reader) ([]changed, error) {
	var revs strings.Builder // passed to git on stdin, because there may be too many for the command line
	seen := map[string]bool{}
	once := func(rev string) {
		if !seen[rev] {
			seen[rev] = true
			revs.WriteString(rev + "\n")
		}
	}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) != 4 || !objectName().MatchString(f[1]) || strings.Trim(f[1], "0") == "" {
			continue
		}
		once(f[1])
		if objectName().MatchString(f[3]) && strings.Trim(f[3], "0") != "" {
			once("^" + f[3])
		}
	}
	if err := lines.Err(); err != nil || len(seen) == 0 {
		return nil, err
	}
	// --not must come after --stdin. Otherwise, some versions of git would also negate the revisions read from stdin.
	out, err := g.run(ctx, strings.NewReader(revs.String()),
		"rev-list", "--no-commit-header", "--format=%H %an", "--ignore-missing", "--stdin", "--not", "--remotes")
	if err != nil {
		return nil, err
	}
	commits := map[string]*strings.Builder{}
	var authors []string
	for l := range strings.Lines(out) {
		id, author, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		if commits[author] == nil {
			commits[author] = &strings.Builder{}
			authors = append(authors, author)
		}
		commits[author].WriteString(id + "\n")
	}
	var all []changed
	for _, a := range authors {
		paths, err := g.names(ctx, strings.NewReader(commits[a].String()),
			"diff-tree", "--stdin", "-r", "-c", "--root", "-z", "--name-only", "--no-commit-id",
			"--no-renames", "--no-ext-diff", "--no-textconv")
		if err != nil {
			return nil, err
		}
		slices.Sort(paths)
		all = append(all, changed{a, slices.Compact(paths)})
	}
	return all, nil
}
