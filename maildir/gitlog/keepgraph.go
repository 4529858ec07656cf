package gitlog

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"path"
	"path/filepath"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/gitlog/object"
	"mailtree/maildir/history"
)

const (
	// fewCommits is how many commits are looked at for the end of the graph before the whole graph is
	// read: more than come in the time in which it is brought level once.
	fewCommits = 200

	graphBatch = 1 << 20 // bytes of records that are written at once, so that a kill loses little
)

// keepGraph brings the graph level with the recorded branch: at once, and whenever that has moved.
func (l *Log) keepGraph(ctx context.Context) {
	file := filepath.Join(l.cfg.Dir, ".git", graphFile)
	known := func() graphEnd { g := readGraph(file); return g.endAfter(g.len()) }
	for end := known(); ctx.Err() == nil; {
		if err := l.extendGraph(ctx, &end); err != nil && ctx.Err() == nil {
			l.cfg.Log.Debug("searches of the history are slow meanwhile", "error", err)
			end = known()
		}
		select {
		case <-ctx.Done():
		case <-l.moved:
		}
	}
}

// fellBehind rings keepGraph where a search met so many commits that the graph has not: somebody
// else has made them, or pulled.
func (l *Log) fellBehind(apart int) {
	if apart > fewCommits {
		ringBell(l.moved)
	}
}

// extendGraph appends to the graph the commits that the recorded branch has and the graph has not. What
// the branch does not lead to any more, as somebody has rewritten the history, is cut off: all that
// comes after the newest record that the branch still leads to.
func (l *Log) extendGraph(ctx context.Context, end *graphEnd) error {
	repo, err := openRepository(l.cfg.Dir, newMemory())
	if err != nil {
		return err
	}
	defer repo.Close()
	recorded, err := repo.recorded()
	if err != nil {
		return err
	}
	at, err := repo.onBranch(recorded)
	if err != nil || at.commit.IsZero() || at.commit == end.name {
		return err
	}
	find := func(h hash) int {
		if h == end.name {
			return end.records - 1
		}
		return -1
	}
	fresh, newest, err := repo.unknownCommits(ctx, at.commit, find, fewCommits)
	if errors.Is(err, errMany) || err == nil && (newest != end.records-1 || newest >= 0 && !endsThere(fresh)) {
		done, waitErr := await(ctx, l.cfg.Share.aside)
		if waitErr != nil {
			return waitErr
		}
		defer done()
		g := readGraph(repo.path(graphFile))
		find = g.number
		fresh, newest, err = repo.unknownCommits(ctx, at.commit, find, math.MaxInt)
		*end = g.endAfter(newest + 1)
	}
	if err != nil {
		return err
	}
	return repo.appendGraph(ctx, end, fresh, find)
}

// endsThere reports whether all ways back through the commits, which were searched for the end of the
// graph, have led there: else one came to the root of the history.
func endsThere(fresh []*commit) bool {
	return !slices.ContainsFunc(fresh, func(c *commit) bool { return len(c.parents) == 0 })
}

// errMany: there are more commits than should be read.
var errMany = errors.New("many commits")

// unknownCommits are the commits at and before name that find does not find: parents before
// children, else by time. newest is the highest number that is found beside them, less than 0 where
// there is none. Errors: errMany where there are more than most.
func (r *repository) unknownCommits(ctx context.Context, name hash, find func(hash) int, most int) (all []*commit, newest int, err error) {
	unknown, children := map[hash]*commit{}, map[hash]int{}
	newest = -1
	for todo := []hash{name}; len(todo) > 0; {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if unknown[h] != nil {
			continue
		}
		if i := find(h); i >= 0 {
			newest = max(newest, i)
			continue
		}
		switch {
		case len(unknown) == most:
			return nil, 0, errMany
		case ctx.Err() != nil:
			return nil, 0, context.Cause(ctx)
		}
		c, err := r.commit(h)
		if err != nil {
			return nil, 0, err
		}
		c.message, c.author = "", "" // they may be very many
		unknown[h] = c
		for _, p := range c.parents {
			children[p]++
			todo = append(todo, p)
		}
	}
	var next commits
	if c := unknown[name]; c != nil {
		next = commits{c}
	}
	for len(next) > 0 {
		c := heap.Pop(&next).(*commit)
		all = append(all, c)
		for _, p := range c.parents {
			if children[p]--; children[p] == 0 && unknown[p] != nil {
				heap.Push(&next, unknown[p])
			}
		}
	}
	slices.Reverse(all)
	return all, newest, nil
}

// appendGraph appends the records of commits, whose parents are among them or found.
func (r *repository) appendGraph(ctx context.Context, end *graphEnd, fresh []*commit, find func(hash) int) error {
	first, numbers := end.records, map[hash]int{}
	next, data := *end, []byte(nil)
	for i, c := range fresh {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		keys, err := r.keysOf(c)
		if err != nil {
			return err
		}
		var parents []int
		for _, p := range c.parents {
			n, ok := numbers[p]
			if !ok {
				n = find(p)
			}
			parents = append(parents, n)
		}
		numbers[c.name] = first + i
		if data = next.append(data, c, parents, keys); len(data) >= graphBatch {
			if err := end.write(r.path(graphFile), data); err != nil {
				return err
			}
			*end, data = next, data[:0]
		}
	}
	err := end.write(r.path(graphFile), data)
	if err == nil {
		*end = next
	}
	return err
}

// keysOf are the keys of a commit, as of history.Query: of what it changed since its first
// parent, and of the operations that it tells.
func (r *repository) keysOf(c *commit) (keys map[uint32]bool, err error) {
	if c, err = r.commit(c.name); err != nil {
		return nil, err
	}
	keys = map[uint32]bool{}
	for _, op := range recordedOps(c.message) {
		keys[hashKey(op.Agent)], keys[hashKey(op.ID)] = true, true
	}
	add := func(at format.Place, file string) {
		keys[hashKey(at.Agent)] = true
		if at.ID != "" {
			keys[hashKey(at.ID)] = true
		} else {
			keys[hashKey(file)] = true
		}
		for dir := path.Dir(file); dir != "." && !keys[hashKey(dir)]; dir = path.Dir(dir) {
			keys[hashKey(dir)] = true
		}
	}
	sides, err := r.sides(c)
	if err != nil {
		return nil, err
	}
	err = r.Diff(sides[0], sides[1], "", func(file string, old, now entry) {
		at := format.Locate(file)
		add(at, file)
		if at.Kind == format.KindCanonical && now.Mode == 0 {
			if data, err := r.Read(object.KindBlob, old.Hash); err == nil {
				if m, err := format.ParseMessage(at.ID, data); err == nil {
					keys[hashKey(history.RemovedFrom(m.ThreadID))] = true
				}
			}
		}
	})
	return keys, err
}
