package maildir

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"mailtree/maildir/glob"
)

// Bounds of what ClaimFiles looks at: what is over them is a problem, and the rest counts.
const (
	maxClaimFiles = 100_000
	maxClaimDepth = 16 // folders below claims
)

// ClaimFiles reads the claims as they stand in the files, without the index: of every claims/**/*.json that has no
// .released file beside it those that want accepts (nil: all; it is called by several goroutines at once), in no order.
// Whether a claim has expired is Live's to say. A file that is no valid claim is in bad, and hides no other. Links are
// not followed, and nothing blocks. The error is ErrUnavailable: of the folder itself (one that is not there holds no
// claims), or a fault of the machine's (FaultOf), which says nothing about the file that it was met at.
//
// Of many claims it keeps what it has read in .mailtree and opens again only what has changed since, by inode, size,
// mtime and ctime. Spec: 2.2, 4.
func (t *Tree) ClaimFiles(want func(*ClaimRow) bool) (claims []ClaimRow, bad []Problem, err error) {
	return t.claimFiles(want, time.Now())
}

func (t *Tree) claimFiles(want func(*ClaimRow) bool, now time.Time) (claims []ClaimRow, bad []Problem, err error) {
	defer t.Hold()()
	s := claimScan{t: t, want: want, start: now}
	s.cache = t.readClaimCache()
	var odd *FormatError
	switch err := s.scan(claimsDir, 0); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.As(err, &odd):
		return nil, []Problem{{Path: claimsDir, Reason: odd.Reason}}, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, []Problem{{Path: claimsDir, Reason: "a file where a folder belongs"}}, nil
	default:
		return nil, nil, &Error{Kind: ErrUnavailable, Text: "the claims cannot be read: " + plainFault(err), Err: err}
	}
	s.keep()
	for i := range s.dirs {
		bad = append(bad, s.dirs[i].bad...)
	}
	slices.SortFunc(bad, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return s.found, bad, nil
}

// claimScan is one reading of the claims folder.
type claimScan struct {
	t     *Tree
	want  func(*ClaimRow) bool
	cache *claimCache
	start time.Time
	found []ClaimRow
	dirs  []claimFolder
	files int   // found so far
	news  int   // entries and folders that are known now, were not before, and can be kept
	fault error // a machine's, met while reading a file: the scan fails
}

// claimFolder is claims or a folder below it.
type claimFolder struct {
	path  string
	stat  FileStat // before it was listed
	files []claimEntry
	subs  []string // names of the folders in it
	bad   []Problem
}

// claimEntry is one .json file of a folder.
type claimEntry struct {
	name     string
	claim    string   // what the file says, as the cache has it; "" where it must be read
	stat     FileStat // when it was read; zero where it must be read again in any case
	released bool
	regular  bool // as the listing said just now
	problem  *FormatError
}

// scan reads the folder at p and those below it.
func (s *claimScan) scan(p string, depth int) error {
	d, stat, err := s.t.openFolder(p)
	if err != nil {
		return err
	}
	defer d.close()
	f := claimFolder{path: p, stat: stat}
	if old := s.cache.folder(p, stat); old != nil {
		f.files, f.subs = old.files, old.subs
		s.files += len(f.files)
	} else if err := s.list(d, &f); err != nil {
		return err
	}
	if s.readAll(d, &f); s.fault != nil {
		return s.fault
	}
	for _, e := range f.files {
		if e.problem != nil {
			f.bad = append(f.bad, Problem{Path: p + "/" + e.name, Reason: e.problem.Reason, Line: e.problem.Line})
		}
	}
	s.dirs = append(s.dirs, f)
	for _, sub := range f.subs {
		if depth == maxClaimDepth {
			s.report(p+"/"+sub, "lies too deep: claims in it do not count for the guard")
			continue
		}
		if err := s.scan(p+"/"+sub, depth+1); FaultOf(err) == FaultMachine {
			return err
		}
	}
	return nil
}

func (s *claimScan) report(p, reason string) {
	last := &s.dirs[len(s.dirs)-1]
	last.bad = append(last.bad, Problem{Path: p, Reason: reason})
}

// list fills f with what lies in the folder: claim files, whether they were released, and folders.
func (s *claimScan) list(d *folder, f *claimFolder) error {
	if settled(f.stat, s.start) {
		s.news += keepNews
	}
	entries, err := d.entries()
	if err != nil {
		return err
	}
	known := s.cache.finder(f.path)
	f.files = make([]claimEntry, 0, len(entries))
	released := map[string]bool{}
	for _, e := range entries {
		stem, mark := strings.CutSuffix(e.name, releasedExt)
		switch {
		case Ignored(e.name):
		case e.mode.IsDir():
			f.subs = append(f.subs, e.name)
		case mark:
			st, err := d.stat(e.name)
			if FaultOf(err) == FaultMachine {
				return err
			}
			released[stem] = err == nil && st.Mode.IsRegular() && st.Size <= MaxSmall
		case path.Ext(e.name) != ".json":
		case s.files == maxClaimFiles:
			f.bad = append(f.bad, Problem{Path: f.path, Reason: "more than 100000 claims: the others do not count for the guard"})
			s.files++
		case s.files < maxClaimFiles:
			s.files++
			c := claimEntry{name: e.name, regular: e.mode.IsRegular()}
			if old := known(e.name); old != nil {
				c = *old
				c.released = false
			}
			f.files = append(f.files, c)
		}
	}
	for i := range f.files {
		f.files[i].released = released[strings.TrimSuffix(f.files[i].name, ".json")]
	}
	return nil
}

// readAll makes every entry of the folder say what its file says now, and finds the wanted ones, several at a time.
func (s *claimScan) readAll(d *folder, f *claimFolder) {
	const share = 64
	var wg sync.WaitGroup
	var mu sync.Mutex // guards next, s.found, s.news, s.fault
	next := 0
	for range max(1, min(runtime.GOMAXPROCS(0), len(f.files)/share)) {
		wg.Go(func() {
			r := claimReader{s: s, dir: d, path: f.path, buf: make([]byte, MaxSmall+1)}
			for {
				mu.Lock()
				from := next
				next += share
				if from >= len(f.files) {
					s.found, s.news, s.fault = append(s.found, r.found...), s.news+r.news, cmp.Or(s.fault, r.fault)
					mu.Unlock()
					return
				}
				mu.Unlock()
				for i := from; i < min(from+share, len(f.files)); i++ {
					if e := &f.files[i]; !e.released {
						r.read(e)
					}
				}
			}
		})
	}
	wg.Wait()
}

// claimReader reads files of one folder.
type claimReader struct {
	s     *claimScan
	dir   *folder
	path  string // of the folder
	buf   []byte
	found []ClaimRow
	news  int
	fault error // a machine's
}

// read brings one entry level with its file.
func (r *claimReader) read(e *claimEntry) {
	var row ClaimRow
	if !e.regular {
		st, err := r.dir.stat(e.name)
		if err == nil && e.claim != "" && st == e.stat && readClaim(e.claim, &row.Claim) {
			r.take(e, &row)
			return
		}
		if err == nil && !st.Mode.IsRegular() {
			*e = claimEntry{name: e.name, problem: notRegular(st.Mode)}
			return
		}
	}
	data, st, err := r.dir.read(e.name, r.buf)
	*e = claimEntry{name: e.name}
	if err == nil {
		row.Claim, err = scanClaim(data)
	}
	switch {
	case err == nil:
	case FaultOf(err) == FaultMachine:
		r.fault = err
		return
	case errors.Is(err, fs.ErrNotExist): // gone meanwhile
		return
	case errors.As(err, &e.problem):
		return
	default:
		e.problem = &FormatError{0, plainFileError(err)}
		return
	}
	if settled(st, r.s.start) {
		e.claim, e.stat = writeClaim(&row.Claim), st
		r.news++
	}
	r.take(e, &row)
}

func (r *claimReader) take(e *claimEntry, row *ClaimRow) {
	if r.s.want == nil || r.s.want(row) {
		row.Path = r.path + "/" + e.name
		r.found = append(r.found, *row)
	}
}

// settled reports whether a later change of the file will show in its stat. A time stamp is as coarse as the kernel's
// tick: what was changed just now may change again within the same one (Git calls such an entry racy).
func settled(st FileStat, now time.Time) bool {
	return st.CTime < now.Add(-2*time.Second).UnixNano()
}

// scanClaim is ParseClaim, but quick where the file is as the server writes it: known keys once each, texts without
// escapes, a path without a glob. Where it is not sure it asks ParseClaim.
func scanClaim(data []byte) (Claim, error) {
	var c Claim
	if quickClaim(string(data), &c) {
		return c, nil
	}
	return ParseClaim(data)
}

// quickClaim fills c and reports true, or false where it does not understand the text.
func quickClaim(s string, c *Claim) bool {
	if !utf8.ValidString(s) {
		return false
	}
	q := quick{s: s}
	if !q.take('{') {
		return false
	}
	var created, expires string
	seen := 0
	c.Exclusive = true
	for more := true; more; more = q.take(',') {
		key, ok := q.text()
		if !ok || !q.take(':') {
			return false
		}
		i := slices.Index(quickKeys, key)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		if key == "exclusive" {
			c.Exclusive, ok = q.flag()
		} else {
			to := []*string{&c.Pattern, &c.Agent, &c.Reason, &created, &expires}[i]
			*to, ok = q.text()
		}
		if !ok {
			return false
		}
	}
	if !q.take('}') || q.rest() != "" || checkName(c.Agent) != "" || !plainPattern(c.Pattern) {
		return false
	}
	var errC, errE error
	c.Created, errC = ParseTime(created)
	c.Expires, errE = ParseTime(expires)
	return errC == nil && errE == nil && !c.Created.IsZero() && !c.Expires.IsZero()
}

// quickKeys are the keys of a claim; the texts first.
var quickKeys = []string{"path", "agent", "reason", "created", "expires", "exclusive"}

// plainPattern reports whether p is a path, or a glob of whole stars only, in the form that glob.Compile takes as it is.
func plainPattern(p string) bool {
	if p == "" || len(p) > glob.MaxLen || p[0] == '/' || len(p) > 1 && p[1] == ':' || strings.Contains(p, "..") {
		return false
	}
	for i := range len(p) {
		switch c := p[i]; {
		case c < ' ', c == 0x7f, c == '{', c == '[', c == '\\':
			return false
		}
	}
	return true
}

// quick reads the JSON of a claim file from left to right.
type quick struct {
	s string
	i int
}

func (q *quick) space() {
	for q.i < len(q.s) && (q.s[q.i] == ' ' || q.s[q.i] == '\n' || q.s[q.i] == '\t' || q.s[q.i] == '\r') {
		q.i++
	}
}

func (q *quick) rest() string { q.space(); return q.s[q.i:] }

func (q *quick) take(c byte) bool {
	q.space()
	if q.i == len(q.s) || q.s[q.i] != c {
		return false
	}
	q.i++
	return true
}

// text reads a string without escapes.
func (q *quick) text() (string, bool) {
	if !q.take('"') {
		return "", false
	}
	for start := q.i; q.i < len(q.s); q.i++ {
		switch c := q.s[q.i]; {
		case c == '"':
			q.i++
			return q.s[start : q.i-1], true
		case c == '\\' || c < ' ':
			return "", false
		}
	}
	return "", false
}

func (q *quick) flag() (v, ok bool) {
	for _, word := range []string{"true", "false"} {
		if rest := q.rest(); strings.HasPrefix(rest, word) {
			q.i += len(word)
			return word == "true", true
		}
	}
	return false, false
}

// Intent is what somebody is about to change in the code repository.
type Intent struct {
	agent string
	paths []string
	fold  bool
	now   time.Time
	heads map[string]bool // every path and every folder above one; folded where fold is
}

// NewIntent is the intent to change the files at paths, relative to the code repository's root, by agent ("" for nobody known).
// fold ignores case, as the code repository's core.ignorecase asks.
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

// Concerns reports whether the claim holds now and may cover one of the paths: nearly none of a store's does. It may be
// called by several goroutines at once.
func (c *Intent) Concerns(r *ClaimRow) bool {
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
		return true // perhaps not clean: the whole pattern decides
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

// Blocked is a claim that stands in the way of a change.
type Blocked struct {
	Claim ClaimRow
	Paths []string // the changed paths that it covers, as they were given
}

// Blocking says which claims of others stand in the way of the change: live exclusive ones that cover one of its paths,
// the earliest first. Where the agent holds an earlier live exclusive one on the same path, its own holds (both were made
// by hand then: the server grants no second). Spec: 2.2, 3 Claim.
func (c *Intent) Blocking(claims []ClaimRow) []Blocked {
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

// byAge orders claims as the index does: the first of those that overlap holds. Spec: 2.2.
func byAge(a, b *ClaimRow) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Agent, b.Agent), strings.Compare(a.Path, b.Path))
}

// covered returns those of the paths that the pattern covers; nil for none, and for a pattern that is not valid.
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
