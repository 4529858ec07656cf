package gitlog

import (
	"maps"
	"slices"
	"time"
)

// state is an index and the commit that HEAD is at.
type state struct {
	index seen
	head  hash
}

func (s state) sameState(t state) bool { return s.head == t.head && s.index.sameIndex(t.index) }

// trace is what our commits did at a path.
type trace struct {
	path   string
	last   entry   // as the last of them made it
	before []entry // as it was before any of them
	added  bool    // the last one found nothing there
}

func (t *trace) older(e entry) bool { return e != t.last && slices.Contains(t.before, e) }

// maxTraced bounds the paths that are looked at, but for those of the newest commit.
const maxTraced = 100000

// traces follows the paths of commits, each in the list of the last one that touched it. A commit that cannot be read any
// more, as a person has rewritten the history, has none. An error is transient.
func (r *repository) traces(all []ownCommit) (of [][]*trace, err error) {
	of = make([][]*trace, len(all))
	known := map[string]*trace{}
	for i, c := range slices.Backward(all) {
		if len(known) > maxTraced {
			break
		}
		changes, err := r.changesOf(&mark{Old: c.old.String(), New: c.new.String()})
		if transient(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		for _, c := range changes {
			t := known[c.path]
			if t == nil {
				t = &trace{path: c.path, last: c.new, added: c.old.mode == 0}
				known[c.path], of[i] = t, append(of[i], t)
			}
			t.before = append(t.before, c.old, c.new)
		}
	}
	return of, nil
}

// misses reports that a commit is missing as a whole: of the paths that it has added, which no `git commit -a` brings
// back, none is as the commit made it; of all its paths where it has added none. What has some of them is not older than
// the commit: then somebody has taken the others out on purpose.
func misses(paths []*trace, has func(path string) entry) bool {
	adds := slices.ContainsFunc(paths, func(t *trace) bool { return t.added })
	older := false
	for _, t := range paths {
		if adds && !t.added {
			continue
		}
		e := has(t.path)
		if e == t.last {
			return false
		}
		older = older || t.older(e)
	}
	return older
}

// missing tells which of the commits are missing, and by somebody's race rather than on purpose. written is when the
// index was written.
func missing(all []ownCommit, of [][]*trace, written time.Time, has func(path string) entry) []bool {
	out := make([]bool, len(all))
	whole := false // an older one is there
	for i := 0; i < len(all); i++ {
		var row []int
		for ; i < len(all) && (len(of[i]) == 0 || misses(of[i], has)); i++ {
			if len(of[i]) > 0 { // else later ones have all its paths
				row = append(row, i)
			}
		}
		for _, j := range row {
			out[j] = !all[j].past || evident(all, row, written, whole)
		}
		whole = whole || i < len(all) && slices.ContainsFunc(of[i], func(t *trace) bool { return t.last.mode != 0 && has(t.path) == t.last })
	}
	return out
}

// evident reports that a row of commits, which all are missing, was not taken out by hand although they have stood
// before: the index is hardly younger than the last one of them; or there are several operations, mail among them, and
// what came before them is there. By hand one unstages files or folders, and not exactly what some operations have
// added. A single operation, or edits only, may be meant so.
func evident(all []ownCommit, row []int, written time.Time, whole bool) bool {
	if age := written.Sub(all[row[len(row)-1]].at); age >= 0 && age < 2*healTime {
		return true
	}
	ops, mail := 0, false
	for _, i := range row {
		ops, mail = ops+all[i].ops, mail || all[i].mail
	}
	return whole && mail && ops > 1
}

// astray is what became of our last commits.
type astray struct {
	seen   seen      // the index that was looked at
	behind []*change // the index is as before, the branch is not
	lost   []string  // the branch is as before, the file on disk is not
}

// astray sorts out what index and branch lack of our last commits.
func (r *repository) astray(at head, all []ownCommit) (found astray, err error) {
	index, err := r.openIndex()
	if err != nil {
		return found, err
	}
	tree, err := r.treeOf(at.commit)
	if err != nil {
		index.close()
		return found, err
	}
	now, err := newPlan(r, tree, index)
	if err != nil {
		index.close()
		return found, err
	}
	defer now.close()
	found.seen = index.seen
	of, err := r.traces(all)
	if err != nil {
		return found, err
	}
	for _, t := range slices.Concat(of...) {
		now.add(t.path, false)
	}
	if err := index.look(slices.Collect(maps.Keys(now.changes))); err != nil {
		return found, err
	}
	if err := now.root.resolve(r); err != nil {
		return found, err
	}
	staged := func(path string) (e entry) {
		if x, ok := index.at(path); ok {
			e = x.entry()
		}
		return e
	}
	committed := func(path string) entry { return now.changes[path].old }
	noIndex := missing(all, of, index.seen.stat.mtime, staged)
	noHead := missing(all, of, index.seen.stat.mtime, committed)
	for i, paths := range of {
		for _, t := range paths {
			if noIndex[i] || noHead[i] {
				if err := found.takeTrace(t, now, staged(t.path), noIndex[i], noHead[i]); err != nil {
					return found, err
				}
			}
		}
	}
	return found, nil
}

// takeTrace sorts out a path. Where the file on disk is as the index has it, or gone with it, that was done on purpose.
func (a *astray) takeTrace(t *trace, now *plan, staged entry, noIndex, noHead bool) error {
	c := now.changes[t.path]
	if !t.older(staged) && (staged != t.last || !noHead) {
		return nil
	}
	if err := now.loadOne(c, &objects{dry: true}); err != nil {
		return err
	}
	switch {
	case noHead && t.older(c.old):
		if c.new == t.last {
			a.lost = append(a.lost, t.path)
		}
	case noIndex && c.old == t.last && c.new != staged:
		b := &change{path: t.path, old: staged, new: t.last, stat: fileStat{uncertain: true}}
		if c.new == t.last && !c.gone && c.skipped == "" {
			b.stat = c.stat
		}
		a.behind = append(a.behind, b)
	}
	return nil
}
