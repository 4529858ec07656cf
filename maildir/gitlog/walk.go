package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/format"
	"mailtree/maildir/gitlog/embedded"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
)

const (
	// slack is the number of commits older than the query's Since that a walk reads before it stops. It is not 0,
	// because the clock may have been wrong when a commit was made.
	slack = 100

	progressEvery = 250 * time.Millisecond
)

// commit is a commit object.
type commit struct {
	name    hash
	parents []hash
	made    time.Time
	author  string // "Name <mail>"
	message string
}

// logFormat is the format that eachCommit parses: NUL-separated fields, with another NUL after each commit.
const logFormat = "--format=tformat:%H%x00%P%x00%ct%x00%an <%ae>%x00%B"

func (g *gitProgram) eachCommit(tip hash, which commits, fn func(*commit) error) error {
	if tip.IsZero() {
		return nil
	}
	var f []string
	args := []string{"log", "-z", logFormat, "--no-color", "--no-show-signature", "--encoding=UTF-8", tip.String()}
	if which.most > 0 {
		args = append(args, "-n", strconv.Itoa(which.most))
	}
	if !which.until.IsZero() {
		args = append(args, fmt.Sprintf("--before=@%d +0000", max(which.until.Unix(), 0)))
	}
	if which.roots {
		args = append(args, "--max-parents=0")
	}
	if which.path != "" {
		args = append(args, "--full-history", "--", which.path)
	}
	return g.stream(func(field []byte) error {
		f = append(f, string(field))
		if len(f) < 5 {
			return nil
		}
		c := &commit{name: plumbing.NewHash(f[0]), made: unixTime(f[2]), author: f[3], message: f[4]}
		for p := range strings.FieldsSeq(f[1]) {
			c.parents = append(c.parents, plumbing.NewHash(p))
		}
		f = f[:0]
		return fn(c)
	}, args...)
}

// commit reads the commit with the given name.
func (r *repository) commit(name hash) (found *commit, err error) {
	err = r.eachCommit(name, commits{most: 1}, func(c *commit) error { found = c; return nil })
	if err == nil && found == nil {
		err = errNoObject
	}
	return found, err
}

// Walk implements history.Log. For a merge commit, it shows the files that differ from all parents.
func (l *Log) Walk(ctx context.Context, q history.Query, each func(*history.Revision) error) error {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil && !errors.Is(err, refusal.ErrUnavailable) {
		return err
	}
	w := &walk{repo: repo, q: q}
	looked, older, told := 0, 0, time.Now()
	err = repo.eachCommit(tip, commits{path: q.Path}, func(c *commit) error {
		if looked++; q.Progress != nil && time.Since(told) > progressEvery {
			told = time.Now()
			q.Progress(looked, c.made)
		}
		if c.made.Before(q.Since) {
			if older++; older == slack {
				return fs.SkipAll
			}
			return nil
		}
		r, err := w.revision(c)
		if err != nil || r == nil {
			return err
		}
		return each(r)
	})
	return err
}

// walk is a query in progress.
type walk struct {
	repo *repository
	q    history.Query
}

// revision returns the parts of a commit that the query selects, or nil if it selects none.
func (w *walk) revision(c *commit) (*history.Revision, error) {
	author, _, _ := strings.Cut(c.author, " <")
	r := &history.Revision{
		Commit: c.told(),
		Author: oneLine(author, 128),
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
	if r.Files, err = w.changed(c, len(all) > 0); err != nil {
		return nil, err
	}
	if len(r.Files) == 0 && (len(all) == 0 || w.q.Op == nil) {
		return nil, nil
	}
	return r, nil
}

// changed returns the files changed by a commit that the query selects. For a merge commit, these are files that
// differ from all parents.
func (w *walk) changed(c *commit, operations bool) (all []history.FileChange, err error) {
	changes, err := w.repo.changedIn(c)
	for _, change := range changes {
		if w.q.File(change.path, operations) {
			all = append(all, w.change(c, change))
		}
	}
	return all, err
}

func (g *gitProgram) changedIn(c *commit) (all []*change, err error) {
	if g.diffs.cmd == nil {
		cmd, err := g.command(g.ctx, "diff-tree", "--stdin", "--root", "-c", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
		if err == nil {
			g.diffs, err = startProcess(cmd)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(g.diffs.stdin, c.name.String()+"\n=\n"); err != nil { // git repeats "=" at the end
		return nil, err
	}
	for meta := ""; ; {
		if next, err := g.diffs.stdout.Peek(1); err != nil {
			return nil, err
		} else if next[0] == '=' && meta == "" {
			_, err = g.diffs.stdout.ReadString('\n')
			return all, err
		}
		field, err := g.diffs.stdout.ReadString(0)
		if err != nil {
			return nil, err
		}
		switch field = strings.TrimSuffix(field, "\x00"); {
		case meta == "" && field[0] == ':':
			meta = field
		case meta != "":
			change, err := readChange(meta, field)
			if err != nil {
				return nil, err
			}
			if meta = ""; change != nil {
				all = append(all, change)
			}
		}
	}
}

func (w *walk) change(c *commit, at *change) history.FileChange {
	f := history.FileChange{Path: at.path, Op: history.Changed}
	shown := at.new
	switch {
	case at.old.Mode == 0:
		f.Op = history.Added
	case at.new.Mode == 0:
		f.Op, shown = history.Removed, at.old
	}
	f.Content = func() ([]byte, error) { return w.repo.read("blob", shown.Hash.String()) }
	f.Patch = func() (string, error) {
		from, to := c.sides()
		return w.repo.patch(from, to, at.path)
	}
	return f
}

func (g *gitProgram) patch(from, to, path string) (string, error) {
	text, err := g.run(nil, nil, "diff-tree", "-p", "--full-index", "--no-renames", from, to, "--", path)
	return string(text), err
}

// sides returns the names of the two trees whose comparison shows the changes of a commit. The first one is the
// commit's first parent, or the empty tree if there is no parent. The second one is the commit itself.
func (c *commit) sides() (from, to string) {
	if len(c.parents) > 0 {
		return c.parents[0].String(), c.name.String()
	}
	return emptyTree.String(), c.name.String()
}

// editTrailer is the last line of the commit message when edits are committed.
const editTrailer = "\n\nMail-Op: edit\n"

// recordedOps returns the operations in the trailers of one of our commits, with the summaries above them. It returns
// nil for a commit of edits, and for a commit by another program.
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
		case key == "Mail-Marks":
			ops[len(ops)-1].Marks = value
		case key == "Agent":
			ops[len(ops)-1].Agent = value
		case key == "Mail-Door":
			ops[len(ops)-1].Door = value
		case key == "Mail-Step":
			ops[len(ops)-1].Step = value
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
	_ = l.commitWaiting(ctx) // if the waiting operations cannot be committed, read the history without them
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	c, err := repo.commitAt(at)
	if err != nil {
		return err
	}
	var all []history.OldFile
	err = repo.filesBelow(c.name, folder, func(path, blob string) {
		all = append(all, history.OldFile{Path: path, Content: func() ([]byte, error) { return repo.read("blob", blob) }})
	})
	if err != nil {
		return err
	}
	return show(c.told(), all)
}

func (g *gitProgram) filesBelow(commit hash, folder string, each func(path, blob string)) error {
	return g.stream(func(record []byte) error {
		meta, path, _ := strings.Cut(string(record), "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[1] == "blob" && strings.HasPrefix(path+"/", folder+"/") {
			each(path, f[2])
		}
		return nil
	}, "ls-tree", "-r", "-z", commit.String(), folder)
}

// told converts the commit to the form that package history uses.
func (c *commit) told() history.Commit {
	subject, _, _ := strings.Cut(c.message, "\n")
	return history.Commit{Hash: c.name.String(), At: c.made, Subject: oneLine(subject, subjectBytes)}
}

// commitAt returns the commit that a moment refers to.
func (r *repository) commitAt(at history.Moment) (found *commit, err error) {
	if at.Commit != "" {
		return r.commitNamed(at.Commit)
	}
	head, err := r.head()
	if err != nil {
		return nil, err
	}
	keep := func(c *commit) error { found = c; return nil }
	err = r.eachCommit(head.commit, commits{most: 1, until: at.At}, keep)
	if err != nil || found != nil {
		return found, err
	}
	if err = r.eachCommit(head.commit, commits{roots: true}, keep); err != nil {
		return nil, err
	}
	var first time.Time
	if found != nil {
		first = found.made
	}
	return nil, &refusal.Error{
		What: refusal.NotFound("{field} is {=name}, but the history begins at {=other}: use that time or a later " +
			"one."),
		Field: refusal.Moment,
		Name:  format.FormatTime(at.At),
		Other: format.FormatTime(first),
	}
}

// commitNamed returns the commit whose name begins with a prefix.
func (r *repository) commitNamed(name string) (*commit, error) {
	found, err := r.resolve(name)
	if err == nil {
		return r.commit(found)
	}
	what := refusal.NotFound("The history has no commit {name} {arg}: use a commit hash from the history, or a time.")
	switch {
	case errors.Is(err, embedded.ErrAmbiguous):
		what = refusal.Invalid("Several commits match {name} {arg}: use more characters of the hash.")
	case !errors.Is(err, errNoObject):
		return nil, err
	}
	return nil, &refusal.Error{What: what, Field: refusal.Moment, Name: name}
}

func (g *gitProgram) resolve(name string) (hash, error) {
	sum, err := g.run(nil, nil, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if failed := (*gitError)(nil); errors.As(err, &failed) {
		err = errNoObject
		if strings.Contains(failed.said, "ambiguous") {
			err = embedded.ErrAmbiguous
		}
	}
	return plumbing.NewHash(strings.TrimSpace(string(sum))), err
}
