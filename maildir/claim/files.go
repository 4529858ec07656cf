package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// maxClaimFiles is the maximum number of claim files that Files reads. If there are more, Files reports a problem and
// uses the first maxClaimFiles.
const maxClaimFiles = 100_000

// Files reads claims directly from the claim files, without the index. It returns the unreleased claims in
// claims/**/*.json that want accepts, sorted by path. A .released file next to a claim's file means that the claim was
// released. If want is nil, Files returns all unreleased claims. Several goroutines may call want at the same time. The
// result includes expired claims (see Row.Live).
//
// Files reports invalid claim files in bad and continues. It does not follow links and never blocks. It returns an
// error if it has no permission to list the folder or if there is a machine fault (tree.FaultOf), because it may then
// have missed some claims. See docs/reference/tree.md, "A claim" and "Problems".
func Files(t *tree.Tree, want func(*Row) bool) (claims []Row, bad []format.Problem, err error) {
	defer t.Hold()()
	paths, bad, err := listClaims(t)
	if err == nil {
		var unread []format.Problem
		claims, unread, err = readClaims(t, paths, want)
		bad = append(bad, unread...)
	}
	if err != nil {
		return nil, nil, &refusal.Error{What: refusal.Unavailable("The claims cannot be read: {why}."), Why: tree.PlainFault(err), Err: err}
	}
	slices.SortFunc(claims, func(a, b Row) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(bad, func(a, b format.Problem) int { return strings.Compare(a.Path, b.Path) })
	return claims, bad, nil
}

// listClaims lists the claim files whose claims have not been released. It returns an error if the folder cannot be
// listed.
func listClaims(t *tree.Tree) (paths []string, bad []format.Problem, err error) {
	st, err := t.Stat(format.ClaimsDir)
	switch fault := tree.FaultOf(err); {
	case fault != tree.NoFault && fault != tree.FaultGone:
		return nil, nil, err
	case err == nil && st.Mode.IsRegular():
		return nil, []format.Problem{{Path: format.ClaimsDir, Reason: "it is a file, but must be a folder"}}, nil
	case err == nil && !st.Mode.IsDir():
		return nil, []format.Problem{{Path: format.ClaimsDir, Reason: tree.NotRegular(st.Mode).Reason}}, nil
	}
	if err == nil {
		_, err = t.List(format.ClaimsDir)
	}
	if err != nil { // a missing folder contains no claims, but a folder that cannot be listed may contain some
		if tree.FaultOf(err) == tree.FaultGone {
			err = nil
		}
		return nil, nil, err
	}
	released := map[string]bool{}
	// The callers are hooks and commands. They have no context to pass, because they run until the process exits.
	err = t.Walk(context.Background(), format.ClaimsDir, func(p string, d fs.DirEntry) error {
		switch format.Locate(p).Kind {
		case format.KindReleased:
			st, err := t.Stat(p)
			if tree.FaultOf(err) == tree.FaultMachine {
				return err
			}
			released[format.ClaimOfMark(p)] = err == nil && st.Mode.IsRegular() && st.Size <= format.MaxSmall
		case format.KindClaim:
			paths = append(paths, p)
		}
		return nil
	})
	paths = slices.DeleteFunc(paths, func(p string) bool { return released[p] })
	if len(paths) > maxClaimFiles {
		reason := fmt.Sprintf("there are more than %d claims: the guard ignores the rest", maxClaimFiles)
		bad = []format.Problem{{Path: format.ClaimsDir, Reason: reason}}
		paths = paths[:maxClaimFiles]
	}
	return paths, bad, err
}

// readClaims reads the claim files at paths, several of them concurrently. It returns an error only for a machine
// fault.
func readClaims(t *tree.Tree, paths []string, want func(*Row) bool) (claims []Row, bad []format.Problem, err error) {
	var mu sync.Mutex // guards the results
	var all errgroup.Group
	shares := runtime.GOMAXPROCS(0)
	for share := range slices.Chunk(paths, max(64, (len(paths)+shares-1)/shares)) {
		all.Go(func() error {
			var found []Row
			var unread []format.Problem
			for _, p := range share {
				row, problem, err := readClaim(t, p)
				switch {
				case err != nil:
					return err
				case problem != nil:
					unread = append(unread, *problem)
				case row != nil && (want == nil || want(row)):
					found = append(found, *row)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			claims, bad = append(claims, found...), append(bad, unread...)
			return nil
		})
	}
	err = all.Wait()
	return claims, bad, err
}

// readClaim reads one claim file. It returns the claim or a problem with the file, or neither if the file was
// removed. It returns an error only for a machine fault.
func readClaim(t *tree.Tree, p string) (*Row, *format.Problem, error) {
	data, _, err := t.Read(p, format.MaxSmall)
	row := &Row{Path: p}
	if err == nil {
		row.Claim, err = format.ParseClaim(data)
	}
	var bad *tree.FormatError
	switch fault := tree.FaultOf(err); {
	case fault == tree.NoFault:
		return row, nil, nil
	case fault == tree.FaultGone:
		return nil, nil, nil
	case errors.As(err, &bad):
		return nil, &format.Problem{Path: p, Reason: bad.Reason, Line: bad.Line}, nil
	case fault == tree.FaultFile:
		return nil, &format.Problem{Path: p, Reason: tree.PlainFileError(err)}, nil
	}
	return nil, nil, err
}

// Intent is a change that an agent is about to make in the code repository.
type Intent struct {
	agent string
	paths []string
	fold  bool
	now   time.Time
	heads map[string]bool // every path and every folder above it; case-folded if fold is set
}

// NewIntent returns the intent of agent ("" if unknown) to change the files at paths. The paths are relative to the
// root of the code repository. If fold is set, case is ignored, as in a code repository with core.ignorecase.
func NewIntent(agent string, paths []string, fold bool, now time.Time) *Intent {
	c := &Intent{agent, paths, fold, now, make(map[string]bool, 2*len(paths))}
	for _, p := range paths {
		if fold {
			p = glob.Fold(p)
		}
		for ; p != "." && p != "/" && !c.heads[p]; p = path.Dir(p) {
			c.heads[p] = true
		}
	}
	return c
}

// Concerns is a quick check that rules out nearly all claims. It reports whether the claim is live and exclusive and
// may cover one of the paths. It is safe for concurrent use.
func (c *Intent) Concerns(r *Row) bool {
	if !r.Exclusive || !r.Live(c.now) {
		return false
	}
	head := r.Pattern
	for i := range len(head) {
		if c := head[i]; c == '*' || c == '?' || c == '[' || c == '{' || c == '\\' {
			head = head[:max(0, strings.LastIndexByte(head[:i], '/'))]
			break
		}
	}
	if head == "" || head[0] == '.' || head[len(head)-1] == '/' || strings.Contains(head, "//") || strings.Contains(head, "/.") {
		return true // the pattern might not be normalized, so it must be checked in full
	}
	if !c.fold {
		return c.heads[head]
	}
	var few [128]byte
	folded := few[:0]
	for i := range len(head) {
		b := head[i]
		if b >= utf8.RuneSelf {
			return c.heads[glob.Fold(head)]
		}
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		folded = append(folded, b)
	}
	return c.heads[string(folded)]
}

// Blocked is a claim that blocks a change.
type Blocked struct {
	Claim Row      `json:"claim"`
	Paths []string `json:"paths"` // the changed paths that the claim covers, as given to NewIntent
}

// Blocking returns the claims of other agents that block the change, earliest first. These are live exclusive claims
// that cover one of the change's paths. If the agent itself has an earlier live exclusive claim on a path, later claims
// do not block changes to that path. Only a user can have written such a later claim, because the server does not grant
// a claim that conflicts with an existing one. See docs/reference/tree.md, "A claim".
func (c *Intent) Blocking(claims []Row) []Blocked {
	var out, mine []Blocked
	for _, r := range claims {
		if !c.Concerns(&r) {
			continue
		}
		if b := (Blocked{r, c.covered(r.Pattern)}); r.Agent == c.agent {
			mine = append(mine, b)
		} else if len(b.Paths) > 0 {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Blocked) int { return byAge(&a.Claim, &b.Claim) })
	for i := range out {
		for _, m := range mine {
			if byAge(&m.Claim, &out[i].Claim) < 0 {
				out[i].Paths = slices.DeleteFunc(out[i].Paths, func(p string) bool { return slices.Contains(m.Paths, p) })
			}
		}
	}
	return slices.DeleteFunc(out, func(b Blocked) bool { return len(b.Paths) == 0 })
}

// byAge orders claims as the index does. Among overlapping claims, the earliest is the valid one. See
// docs/reference/tree.md, "A claim".
func byAge(a, b *Row) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Agent, b.Agent), strings.Compare(a.Path, b.Path))
}

// covered returns the paths that the pattern covers. It returns nil for an invalid pattern.
func (c *Intent) covered(pattern string) (out []string) {
	p, err := glob.Compile(pattern, c.fold)
	if err != nil {
		return nil
	}
	for _, f := range c.paths {
		if p.Covers(f) {
			out = append(out, f)
		}
	}
	return out
}
