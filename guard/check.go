package guard

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// The hooks that the guard supports.
const (
	PreCommit      = "pre-commit"
	PreMergeCommit = "pre-merge-commit"
	PrePush        = "pre-push"
)

var hookNames = []string{PreCommit, PreMergeCommit, PrePush}

// The exit statuses of a check.
const (
	Pass    = 0
	Stop    = 1 // another agent's claim or a hold stops the change
	Trouble = 2 // wrong usage, or the check failed
)

// Question specifies what to check. Only Store, Env and Err are required.
type Question struct {
	Store   string         // absolute path
	Scope   storedir.Scope // must be the same as the server's
	Project string         // slug or absolute path; "" means the guard's project if ByHand, otherwise the project of Dir's repository
	Hook    string         // PreCommit (also ""), PreMergeCommit, PrePush
	Fixed   bool           // whether the caller specified Store; if so, a guard installed for another store is ignored
	ByHand  bool           // whether a user, not a hook, runs the check; if so, a failure has the status Trouble in any GUARD_MODE
	Paths   []string       // files to check instead of the staged files, relative to the repository's root

	Dir     string    // the folder in which git runs; "" means the working directory
	Env     []string  // the environment, including Git's variables, AGENT_NAME and GUARD_*
	Stdin   io.Reader // standard input of a pre-push hook
	Now     time.Time // zero means the current time
	Program string    // path of mailtree to use in suggested commands; "" if mailtree is on the PATH
	Usual   string    // the store that mailtree uses without --store; for any other store, suggested commands include --store

	// Person returns the name of the agent that belongs to the user at the terminal, or "" if no user is there. If
	// Person is nil, the check is not run by a user. Check calls Person only if nothing else identifies the committer.
	Person func() string

	Words refusal.Words // the wording of refusals
}

// Verdict is the result of a check.
type Verdict struct {
	Agent   string           // the agent that makes the change; "" if unknown
	Held    *Held            // the hold that stops the change; nil if no hold stops it
	Blocked []Blocked        // claims that stop the change; not determined if Held is set
	Damaged []format.Problem // claim and hold files that cannot be read and are therefore ignored
	Code    int              // exit status
}

// Blocked is a claim that blocks a change.
type Blocked struct {
	claim.Blocked        // its Paths are relative to the top of the working tree
	File          string // the claim's file
	Project       string // the human key of the claim's project, or its slug if it has no human key
}

// Check performs the check, prints an explanation to w, and returns the verdict, which includes the exit status. If
// claims block the change, Check also records this in the store. If the agent is on hold, Check does not check any
// claims.
func Check(ctx context.Context, q Question, w io.Writer) Verdict {
	pol, err := readPolicy(q.Env, "GUARD_MODE")
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
	c := &check{q: q, policy: pol, git: &git{dir: q.Dir, env: q.Env}}
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
	switch {
	case v.Held != nil:
		r.held(v.Held, !pol.stops(who))
		if pol.stops(who) {
			v.Code = Stop
		}
	case len(v.Blocked) > 0:
		r.blocked(v.Blocked, !pol.stops(who))
		if pol.stops(who) {
			v.Code = Stop
		}
	}
	return v
}

// check is a check in progress.
type check struct {
	q      Question
	policy policy
	git    *git
}

// run compares the changes with the holds and claims of the question's project and of every other project whose
// folder is in the working tree.
func (c *check) run(ctx context.Context) (v Verdict, who identity, err error) {
	all, err := c.projects(ctx)
	defer func() {
		for _, p := range all {
			p.tree.Close()
		}
	}()
	if err != nil {
		return v, who, err
	}
	changes, err := c.changes(ctx)
	if err != nil {
		return v, who, err
	}
	for i, p := range all {
		found, asks, err := c.lookUp(ctx, p, changes)
		v.Damaged = append(v.Damaged, found.Damaged...)
		if err != nil {
			return v, who, err
		}
		if found.Held != nil {
			v.Agent, v.Held = found.Agent, found.Held
			return v, asks, nil
		}
		if i == 0 || len(v.Blocked) == 0 && len(found.Blocked) > 0 {
			v.Agent, who = found.Agent, asks
		}
		v.Blocked = merge(v.Blocked, found.Blocked)
	}
	return v, who, nil
}

// lookUp compares the changes with the agent's hold and with the claims in one project.
func (c *check) lookUp(ctx context.Context, p project, changes []changed) (v Verdict, who identity, err error) {
	var paths []string
	for _, ch := range changes {
		paths = append(paths, p.below(ch.paths)...)
	}
	if len(paths) == 0 && p.folder != "" { // the change does not affect the project's folder
		return v, who, nil
	}
	if who, err = c.identify(ctx, p.tree); err != nil {
		return v, who, err
	}
	v.Agent = who.name
	if v.Held, v.Damaged, err = p.held(who.name, c.q.Now); err != nil || v.Held != nil {
		return v, who, err
	}
	const fold = true // ignore case at first; if a claim might match, ask Git whether case matters
	claims, damaged, err := claim.Files(p.tree, claim.NewIntent("", paths, fold, c.q.Now).Concerns)
	v.Damaged = append(v.Damaged, damaged...)
	if err != nil || len(claims) == 0 {
		return v, who, err
	}
	dir, err := filepath.Abs(c.q.Dir)
	if err != nil {
		return v, who, err
	}
	folds, err := new(repo.Codebase).IgnoresCase(dir)
	if err != nil {
		return v, who, err
	}
	for _, ch := range changes {
		agent, err := c.author(p.tree, ch, who)
		if err != nil {
			return v, who, err
		}
		v.Blocked = merge(v.Blocked, p.blocked(claim.NewIntent(agent, p.below(ch.paths), folds, c.q.Now).Blocking(claims)))
	}
	if c.policy.stops(who) && !c.q.ByHand {
		p.note(c.q.Now, who, c.q.doing(), v.Blocked)
	}
	return v, who, nil
}

// changes lists the files to check.
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

// author returns the agent that made a change. A commit is attributed to the agent that is its author, even if another
// agent pushes it.
func (c *check) author(t *tree.Tree, ch changed, who identity) (string, error) {
	if agent, _, err := storedir.AgentNamed(t, ch.author); err != nil || agent != "" {
		return agent, err
	}
	return who.name, nil
}

// merge adds b's claims to a, without duplicates, and sorts all claims by creation time.
func merge(a, b []Blocked) []Blocked {
	for _, x := range b {
		i := slices.IndexFunc(a, func(y Blocked) bool { return y.File == x.File })
		if i < 0 {
			a = append(a, x)
			continue
		}
		paths := append(a[i].Paths, x.Paths...)
		slices.Sort(paths)
		a[i].Paths = slices.Compact(paths)
	}
	slices.SortStableFunc(a, func(x, y Blocked) int { return x.Claim.Created.Compare(y.Claim.Created) })
	return a
}

// FromRoot converts paths relative to dir into paths relative to the root of the code repository that contains dir. A
// path in a linked working tree or another clone is treated as the corresponding path in the repository. FromRoot
// returns ErrInvalid for a folder or for a path outside the repository. It also returns any error from git.
func (q *Question) FromRoot(ctx context.Context, dir string, paths []string) ([]string, error) {
	g := &git{dir: dir, env: q.Env}
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
	in, err := q.placeOf(top)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		rel, ok, err := in.relative(top, rooted(dir, p))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, invalid("%s is outside the repository %s: specify files inside the repository.", safe(p), safe(top))
		}
		if fi, err := os.Stat(rooted(dir, p)); err == nil && fi.IsDir() {
			return nil, invalid("%s is a folder: specify the files in it.", safe(p))
		}
		out[i] = rel
	}
	return out, nil
}
