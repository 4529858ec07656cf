package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// The hooks that the guard knows.
const (
	PreCommit      = "pre-commit"
	PreMergeCommit = "pre-merge-commit"
	PrePush        = "pre-push"
)

// Exit statuses of a check.
const (
	Pass    = 0
	Stop    = 1 // claims of others stand in the way
	Trouble = 2 // wrong call, or it could not be checked
)

// Question says what to check. The zero value of every field but Store, Env and Err is the default.
type Question struct {
	Store   string         // absolute
	Scope   storedir.Scope // of the store's server
	Project string         // slug or absolute path; "": the code repository that dir lies in
	Hook    string         // PreCommit (also ""), PreMergeCommit, PrePush
	ByHand  bool           // a person asks: a check that cannot be done is then an error
	Paths   []string       // files to check instead of what is staged, relative to the repository's root

	Dir     string    // where git runs; "": the working directory
	Env     []string  // the environment: git's own variables, AGENT_NAME, GUARD_*
	Stdin   io.Reader // of a pre-push hook
	Now     time.Time // zero: now
	Program string    // path of mailtree, for the command that asks the holder; "": as on the PATH

	Words refusal.Words // in which w tells of what the mail refuses
}

// Verdict is the answer to a Question.
type Verdict struct {
	Agent   string // the agent that asks; "" for nobody known
	Blocked []claim.Blocked
	Damaged []format.Problem // claim files that cannot be read: they block nothing
	Code    int              // exit status
}

// Check answers the question, explains the answer to a person on w, and returns the verdict with
// its exit status. It writes nothing but to w.
func Check(ctx context.Context, q Question, w io.Writer) Verdict {
	pol, err := readPolicy(q.Env)
	if err != nil {
		fmt.Fprintln(w, "mailtree guard:", err)
		return Verdict{Code: Trouble}
	}
	if pol.mode == "off" || pol.bypass {
		return Verdict{}
	}
	if q.Hook == "" {
		q.Hook = PreCommit
	}
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	c := &check{q: q, git: &git{dir: q.Dir, env: q.Env}}
	v, who, err := c.run(ctx)
	r := report{w: w, q: &q, who: who}
	if err != nil {
		r.unchecked(err, q.ByHand || pol.sure && pol.mode == "block")
		if q.ByHand || pol.sure && pol.mode == "block" {
			v.Code = Trouble
		}
		return v
	}
	r.damaged(v.Damaged)
	if len(v.Blocked) > 0 {
		warn := pol.mode == "warn" || who.name == "" && pol.unknown == "warn"
		r.blocked(v.Blocked, c.human, warn)
		if !warn {
			v.Code = Stop
		}
	}
	return v
}

// check is one check under way.
type check struct {
	q     Question
	git   *git
	human string // what the project is called in a tool call
}

func (c *check) run(ctx context.Context) (v Verdict, who identity, err error) {
	if c.q.Project == "" {
		if c.q.Project, err = c.git.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
			return v, who, err
		}
	}
	tree, slug, err := storedir.OpenProject(c.q.Store, c.q.Project, c.q.Scope)
	if err != nil {
		return v, who, err
	}
	defer tree.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := sync.OnceValues(func() ([]changed, error) { return c.changes(ctx) })
	go changes() // while this goroutine reads the claims
	// Until a claim comes close, compare without regard to case; only then ask Git.
	intent := sync.OnceValue(func() *claim.Intent {
		all, _ := changes()
		var paths []string
		for _, ch := range all {
			paths = append(paths, ch.paths...)
		}
		const fold = true
		return claim.NewIntent("", paths, fold, c.q.Now)
	})
	claims, damaged, err := claim.Files(tree, func(r *claim.Row) bool { return intent().Concerns(r) })
	v.Damaged = damaged
	all, gitErr := changes()
	if err = errors.Join(err, gitErr); err != nil {
		return v, who, err
	}
	if len(claims) == 0 {
		if c.q.ByHand { // a person is told who asks; a commit need not wait for that
			who, err = identify(ctx, c.git, tree)
			v.Agent = who.name
		}
		return v, identity{}, err
	}
	dir, err := filepath.Abs(c.q.Dir)
	if err != nil {
		return v, who, err
	}
	fold, err := new(repo.Codebase).IgnoresCase(dir)
	if err != nil {
		return v, who, err
	}
	if c.human = storedir.HumanKeyOf(tree); c.human == "" {
		c.human = slug
	}
	if who, err = identify(ctx, c.git, tree); err != nil {
		return v, who, err
	}
	v.Agent = who.name
	for _, ch := range all {
		agent, err := c.author(tree, ch, who)
		if err != nil {
			return v, who, err
		}
		v.Blocked = merge(v.Blocked, claim.NewIntent(agent, ch.paths, fold, c.q.Now).Blocking(claims))
	}
	return v, who, nil
}

// changes lists the files that the question is about.
func (c *check) changes(ctx context.Context) ([]changed, error) {
	switch {
	case len(c.q.Paths) > 0:
		return []changed{{paths: c.q.Paths}}, nil
	case c.q.Hook == PrePush:
		return c.git.pushed(ctx, c.q.Stdin)
	}
	heads, err := c.git.mergeHeads(ctx, c.q.Hook)
	if err != nil {
		return nil, err
	}
	paths, err := c.git.staged(ctx, heads)
	return []changed{{paths: paths}}, err
}

// author returns the agent that a change belongs to: an agent's commit stays its own, whoever
// pushes it.
func (c *check) author(t *tree.Tree, ch changed, who identity) (string, error) {
	if agent, _, err := storedir.AgentNamed(t, ch.author); err != nil || agent != "" {
		return agent, err
	}
	return who.name, nil
}

// merge merges the claims of b into those of a, the earliest first, each once.
func merge(a, b []claim.Blocked) []claim.Blocked {
	for _, x := range b {
		i := slices.IndexFunc(a, func(y claim.Blocked) bool { return y.Claim.Path == x.Claim.Path })
		if i < 0 {
			a = append(a, x)
			continue
		}
		paths := append(a[i].Paths, x.Paths...)
		slices.Sort(paths)
		a[i].Paths = slices.Compact(paths)
	}
	slices.SortStableFunc(a, func(x, y claim.Blocked) int { return x.Claim.Created.Compare(y.Claim.Created) })
	return a
}

// FromRoot turns paths that a person names in dir into paths from the root of the code repository
// that dir lies in. Errors: ErrInvalid for a path outside it and for a folder, and the errors of
// git.
func FromRoot(ctx context.Context, dir string, env []string, paths []string) ([]string, error) {
	g := &git{dir: dir, env: env}
	top, err := g.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		rel, err := filepath.Rel(top, rooted(dir, p))
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return nil, invalid("%s lies outside the repository %s: name files of the repository.", safe(p), safe(top))
		}
		if fi, err := os.Stat(rooted(dir, p)); err == nil && fi.IsDir() {
			return nil, invalid("%s is a folder: name the files below it.", safe(p))
		}
		out[i] = filepath.ToSlash(rel)
	}
	return out, nil
}
