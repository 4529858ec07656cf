package gitlog

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/format"
	"mailtree/maildir/gitlog/object"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
)

const (
	// slack is how many commits older than the query's Since are looked at before the walk ends: a
	// clock may have been wrong for some of them.
	slack = 100

	progressEvery = 250 * time.Millisecond
)

// Walk implements history.Log. It takes the parents of a merge by their time, and shows of the
// merge what differs from all of them.
func (l *Log) Walk(ctx context.Context, q history.Query, each func(*history.Revision) error) error {
	repo := newRepository(l.cfg.Dir, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil && !errors.Is(err, refusal.ErrUnavailable) {
		return err
	}
	w, keys := &walk{repo: repo, q: q}, newKeySet(q.Keys)
	n := newNewestFirst(repo)
	n.since, n.progress = q.Since, q.Progress
	defer func() { l.fellBehind(n.apart) }()
	return n.eachCommit(ctx, tip, func(c *commit) error {
		if c.number >= 0 {
			if q.Keys != nil && !n.graph.touches(c.number, keys) {
				return nil
			}
			if c, err = repo.commit(c.name); err != nil {
				return err
			}
		}
		r, err := w.revision(c)
		if err != nil || r == nil {
			return err
		}
		return each(r)
	})
}

// newestFirst goes through a commit and those before it, newest first.
type newestFirst struct {
	repo     *repository
	graph    *graph
	since    time.Time                        // as of history.Query
	progress func(looked int, back time.Time) // the same
	apart    int                              // commits so far that the graph has not

	next   commits
	seen   []bool        // of the graph's
	others map[hash]bool // that were seen
}

func newNewestFirst(r *repository) *newestFirst {
	g := readGraph(r.path(graphFile))
	return &newestFirst{
		repo:   r,
		graph:  g,
		seen:   make([]bool, g.len()),
		others: map[hash]bool{},
	}
}

// eachCommit calls fn for the commits. Those that the graph has are not read yet.
func (n *newestFirst) eachCommit(ctx context.Context, tip hash, fn func(*commit) error) error {
	if err := n.push(tip); err != nil {
		return err
	}
	told, older := time.Now(), 0
	for looked := 1; len(n.next) > 0 && older < slack; looked++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := heap.Pop(&n.next).(*commit)
		if c.made.Before(n.since) {
			older++
		} else if err := fn(c); err != nil {
			return err
		}
		if c.number >= 0 {
			n.graph.parents(c.number, n.pushNumber)
		} else {
			for _, p := range c.parents {
				if err := n.push(p); err != nil {
					return err
				}
			}
		}
		if n.progress != nil && looked%256 == 0 && time.Since(told) > progressEvery {
			told = time.Now()
			n.progress(looked, c.made)
		}
	}
	return nil
}

// push adds a commit that is still to come, if there is one of that name.
func (n *newestFirst) push(name hash) error {
	if name.IsZero() || n.others[name] {
		return nil
	}
	if i := n.graph.number(name); i >= 0 {
		n.pushNumber(i)
		return nil
	}
	n.others[name] = true
	n.apart++
	c, err := n.repo.commit(name)
	if err == nil {
		heap.Push(&n.next, c)
	}
	return err
}

// pushNumber is push for a commit of the graph.
func (n *newestFirst) pushNumber(i int) {
	if n.seen[i] {
		return
	}
	n.seen[i] = true
	heap.Push(&n.next, &commit{name: n.graph.name(i), made: n.graph.made(i), number: i})
}

// commit is a commit object.
type commit struct {
	name   hash
	made   time.Time
	number int // of its record in the graph that it is known from; less than 0: it was read

	// Where it was read:
	parents []hash
	author  string // the name
	message string
}

// commits is a heap, the newest commit first.
type commits []*commit

func (c commits) Len() int           { return len(c) }
func (c commits) Less(i, j int) bool { return c[i].made.After(c[j].made) }
func (c commits) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *commits) Push(x any)        { *c = append(*c, x.(*commit)) }
func (c *commits) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (r *repository) commit(name hash) (*commit, error) {
	data, err := r.Read(object.KindCommit, name)
	if err != nil {
		return nil, err
	}
	head, message, _ := bytes.Cut(data, []byte("\n\n"))
	c := &commit{name: name, number: -1, message: string(message)}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			r.mem.KeepCommit(name, plumbing.NewHash(value))
		case "parent":
			c.parents = append(c.parents, plumbing.NewHash(value))
		case "author":
			c.author, _, _ = strings.Cut(value, " <")
		case "committer":
			c.made = stamp(value)
		}
	}
	return c, nil
}

// stamp reads the time at the end of an identity; zero where there is none.
func stamp(who string) time.Time {
	f := strings.Fields(who)
	if len(f) < 2 {
		return time.Time{}
	}
	n, err := strconv.ParseInt(f[len(f)-2], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// walk finds in commits what a query asks for.
type walk struct {
	repo *repository
	q    history.Query
}

// revision is what the query asks for of a commit; nil where that is nothing.
func (w *walk) revision(c *commit) (*history.Revision, error) {
	r := &history.Revision{
		Commit: c.told(),
		Author: oneLine(c.author, 128),
		Edit:   strings.HasSuffix(c.message, editTrailer),
	}
	all := recordedOps(c.message)
	for _, op := range all {
		if w.q.Op == nil || w.q.Op(op) {
			r.Ops = append(r.Ops, op)
		}
	}
	if len(all) > 0 && len(r.Ops) == 0 {
		return nil, nil
	}
	var err error
	if r.Files, err = w.files(c, len(all) > 0); err != nil {
		return nil, err
	}
	if len(r.Files) == 0 && (len(all) == 0 || w.q.Op == nil) {
		return nil, nil
	}
	return r, nil
}

// sides are the tree of a commit's first parent, and its own.
func (r *repository) sides(c *commit) (sides [2]entry, err error) {
	var first hash
	if len(c.parents) > 0 {
		first = c.parents[0]
	}
	for i, h := range []hash{first, c.name} {
		tree, err := r.TreeOf(h)
		if err != nil {
			return sides, err
		}
		if !tree.IsZero() {
			sides[i] = entry{Mode: object.ModeTree, Hash: tree}
		}
	}
	return sides, nil
}

// files are the files of the query that a commit changed.
func (w *walk) files(c *commit, operations bool) (all []history.FileChange, err error) {
	sides, err := w.repo.sides(c)
	if err != nil {
		return nil, err
	}
	var failed error
	err = w.repo.DiffIn(sides[0], sides[1], "", w.q.Folder, func(path string, old, now entry) {
		if failed != nil || !w.q.File(path, operations) {
			return
		}
		for _, p := range c.parents[min(1, len(c.parents)):] {
			theirs, err := w.repo.At(p, path)
			if failed = err; err != nil || theirs == now {
				return // the merge took it from there
			}
		}
		all = append(all, w.change(path, old, now))
	})
	if err == nil {
		err = failed
	}
	return all, err
}

func (w *walk) change(path string, old, now entry) history.FileChange {
	f := history.FileChange{Path: path, Op: history.Changed}
	shown := now
	switch {
	case old.Mode == 0:
		f.Op = history.Added
	case now.Mode == 0:
		f.Op, shown = history.Removed, old
	}
	f.Content = func() ([]byte, error) { return w.repo.Read(object.KindBlob, shown.Hash) }
	f.Patch = func() (string, error) { return w.repo.patch(path, old, now) }
	return f
}

// editTrailer ends the message of a commit of edits.
const editTrailer = "\n\nMail-Op: edit\n"

// recordedOps reads what the trailers of a commit of ours tell, and the summaries above them; none
// of a commit of edits, or of somebody else's.
func recordedOps(message string) []history.RecordedOp {
	text := strings.TrimSuffix(message, "\n")
	at := strings.LastIndex(text, "\n\n")
	if at < 0 || strings.HasSuffix(message, editTrailer) || !strings.HasPrefix(text[at:], "\n\nMail-Op: ") {
		return nil
	}
	var ops []history.RecordedOp
	for line := range strings.SplitSeq(text[at+2:], "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case key == "Mail-Op":
			ops = append(ops, history.RecordedOp{Verb: value})
		case key == "Mail-Id":
			ops[len(ops)-1].ID = value
		case key == "Agent":
			ops[len(ops)-1].Agent = value
		case key == "Mail-Door":
			ops[len(ops)-1].Door = value
		}
	}
	subject, list, _ := strings.Cut(text[:at], "\n\n")
	if len(ops) == 1 {
		_, ops[0].Summary, _ = strings.Cut(subject, ": ")
		return ops
	}
	for i, line := range strings.Split(list, "\n") {
		if f := strings.SplitN(line, " ", 4); i < len(ops) && len(f) == 4 {
			ops[i].Summary = f[3]
		}
	}
	return ops
}

// AsOf implements history.Log.
func (l *Log) AsOf(ctx context.Context, at history.Moment, folder string, show func(history.Commit, []history.OldFile) error) error {
	_ = l.commitWaiting(ctx) // the history is read in any case
	repo := newRepository(l.cfg.Dir, newMemory())
	defer repo.Close()
	c, err := repo.commitAt(ctx, at)
	if err != nil {
		return err
	}
	below, err := repo.At(c.name, folder)
	if err != nil {
		return err
	}
	var all []history.OldFile
	if below.IsTree() {
		err = repo.Walk(below.Hash, folder, func(path string, e entry) {
			all = append(all, history.OldFile{
				Path:    path,
				Content: func() ([]byte, error) { return repo.Read(object.KindBlob, e.Hash) },
			})
		})
	}
	if err != nil {
		return err
	}
	return show(c.told(), all)
}

// told is the commit as the domain knows it.
func (c *commit) told() history.Commit {
	subject, _, _ := strings.Cut(c.message, "\n")
	return history.Commit{Hash: c.name.String(), At: c.made, Subject: oneLine(subject, subjectBytes)}
}

// errFound ends a walk early.
var errFound = errors.New("found")

// commitAt finds the commit of a moment.
func (r *repository) commitAt(ctx context.Context, at history.Moment) (found *commit, err error) {
	if raw, err := hex.DecodeString(at.Commit); err == nil && len(raw) == len(hash{}) {
		if c, err := r.commit(hash(raw)); err == nil {
			return c, nil
		}
		return nil, &refusal.Error{What: refusal.UnknownCommit, Field: refusal.Moment, Name: at.Commit}
	}
	several := false
	var first time.Time // of all commits
	head, err := r.head()
	if err != nil {
		return nil, err
	}
	err = newNewestFirst(r).eachCommit(ctx, head.commit, func(c *commit) error {
		first = c.made
		switch {
		case at.Commit == "" && !c.made.After(at.At):
			found = c
			return errFound
		case at.Commit == "" || !strings.HasPrefix(c.name.String(), strings.ToLower(at.Commit)):
			return nil
		case found != nil:
			several = true
			return errFound
		}
		found = c
		return nil
	})
	switch {
	case several:
		return nil, &refusal.Error{What: refusal.ManyCommits, Field: refusal.Moment, Name: at.Commit}
	case err != nil && found == nil:
		return nil, err
	case found != nil && found.number >= 0:
		return r.commit(found.name)
	case found != nil:
		return found, nil
	case at.Commit != "":
		return nil, &refusal.Error{What: refusal.UnknownCommit, Field: refusal.Moment, Name: at.Commit}
	}
	return nil, &refusal.Error{
		What:  refusal.NoCommitThen,
		Field: refusal.Moment,
		Name:  format.FormatTime(at.At),
		Other: format.FormatTime(first),
	}
}
