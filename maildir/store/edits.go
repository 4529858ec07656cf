package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Edited notifies the Keeper that other programs may have changed files. The watcher calls Edited for each batch. Paths
// are relative to the tree, and the path of a folder stands for everything below the folder. If scan is set, events
// were lost and the whole tree must be compared. Edited returns immediately, and the paths are ingested between two
// groups. Edited is safe for concurrent use.
func (k *Keeper) Edited(paths []string, scan bool) {
	k.mu.Lock()
	k.askIngest(paths)
	k.mu.Unlock()
	if scan {
		k.askCompare()
	}
}

// askIngest schedules the paths to be ingested soon, together with all other waiting paths. The caller must hold k.mu.
func (k *Keeper) askIngest(paths []string) {
	for _, path := range paths {
		k.edited[path] = true
	}
	if !k.asked {
		k.asked = true
		k.Writer.Aside(k.ingestEdited)
	}
}

// Unindexed returns the number of reported paths that are not in the index yet. It is safe for concurrent use.
func (k *Keeper) Unindexed() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.edited) + len(k.backlog)
}

// askCompare makes compare run soon.
func (k *Keeper) askCompare() {
	select {
	case k.doubt <- struct{}{}:
	default:
	}
}

// compareLater makes compare run after retryTime.
func (k *Keeper) compareLater() { time.AfterFunc(retryTime, k.askCompare) }

// Rescan compares the whole tree with the index, and returns when the index is up to date. It returns ctx's error, or
// ErrUnavailable, for example if a machine fault prevented reading a file.
func (k *Keeper) Rescan(ctx context.Context) error {
	done := make(chan error, 1)
	k.mu.Lock()
	k.rescan = append(k.rescan, done)
	k.mu.Unlock()
	k.askCompare()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-k.Writer.Stopped():
		return writer.ErrStopped
	}
}

// ingestEdited ingests the reported edits, or some of them, between two groups. If that fails, it schedules a
// comparison of the whole tree.
func (k *Keeper) ingestEdited(ctx context.Context, c *tree.Changer) {
	e := k.takeEdits(c)
	err := k.ingestAlike(ctx, e.alike)
	if err == nil && len(e.paths) > 0 {
		_, err = k.ingest(ctx, e.paths)
	}
	if err != nil {
		k.alike = e.alike
		k.Log.Error("failed to index edits; the server will compare the whole tree later", "error", err)
		k.compareLater()
	}
	if err == nil && len(e.level) > 0 {
		err = k.Sure()
	}
	for _, done := range e.level {
		done <- refusal.Disk(err)
	}
}

// ingestAlike ingests files that have changed although their state looks the same. This happens if another program
// writes to a file just after the server has moved the file into place, and then resets the file's time. A file that
// cannot be read because of a machine fault is ingested later.
func (k *Keeper) ingestAlike(ctx context.Context, paths []string) error {
	written := map[string]tree.Written{}
	for _, path := range paths {
		data, st, err := k.Tree.Read(path, k.Tree.MaxFile())
		switch tree.FaultOf(err) {
		case tree.NoFault:
			st.MTime = st.CTime // the time that the other program has set proves nothing
			written[path] = tree.Written{Data: data, Stat: st}
		case tree.FaultMachine:
			k.alike = append(k.alike, path)
			k.compareLater()
		}
	}
	if len(written) == 0 {
		return nil
	}
	in, err := k.index.Ingest(ctx, k.Slug, slices.Collect(maps.Keys(written)), written)
	if err == nil {
		k.Mail.Noticed(in.Changes)
		k.noteEdits(in.Changes)
	}
	return err
}

// edits contains changes by other programs that are ingested together.
type edits struct {
	paths []string
	alike []string     // files written by the server that other programs may have changed, although their FileStat is the same
	level []chan error // callers of Rescan to notify once these edits are ingested
}

// mostEdits is the maximum number of edits to ingest at once, so that callers do not have to wait long.
const mostEdits = 256

// nextEdits returns the edits to ingest now: those reported since the last call, and some of the backlog. If there
// are many new edits, it adds them to the backlog instead. level contains the callers that wait for these edits.
func (k *Keeper) nextEdits() (paths []string, level []chan error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = false
	if k.scanned {
		k.scanned = false
		for path := range k.Writer.Own {
			k.edited[path] = true
		}
	}
	reported := slices.Collect(maps.Keys(k.edited))
	k.edited = map[string]bool{}
	if len(reported) > mostEdits {
		k.backlog, reported = mergeEdits(k.backlog, sortEdits(reported)), nil
	}
	paths, k.backlog = firstEdits(k.backlog, max(mostEdits-len(reported), mostEdits/4)) // always take some, so that the backlog shrinks
	paths = append(paths, reported...)
	if len(k.backlog) > 0 {
		k.askIngest(nil)
	} else {
		level, k.compared = k.compared, nil
	}
	return paths, level
}

// takeEdits returns the edits to ingest now. It omits the server's own files if they are still in the state in which
// they were ingested.
func (k *Keeper) takeEdits(c *tree.Changer) (e edits) {
	var all []string
	all, e.level = k.nextEdits()
	e.alike, k.alike = k.alike, nil
	for _, path := range all {
		st, err := c.Stat(path)
		sum := ""
		if err == nil {
			sum = k.Writer.OwnSum(path, st)
		}
		if sum == "" {
			e.paths = append(e.paths, path)
		} else if same, _ := k.Tree.HasSHA256(path, sum); same {
			k.noteUnreadable([]string{path}, nil)
		} else {
			e.paths, e.alike = append(e.paths, path), append(e.alike, path)
		}
	}
	slices.Sort(e.paths)
	return e
}

// edit is a path in the backlog, which is sorted by message and path.
type edit struct{ id, path string } // id is the message's id, or "" for other files

func (e edit) compare(f edit) int {
	return cmp.Or(cmp.Compare(e.id, f.id), cmp.Compare(e.path, f.path))
}

func sortEdits(paths []string) []edit {
	all := make([]edit, len(paths))
	for i, p := range paths {
		all[i] = edit{format.Locate(p).ID, p}
	}
	slices.SortFunc(all, edit.compare)
	return all
}

// mergeEdits merges sorted edits. A path that is in both lists appears only once in the result.
func mergeEdits(a, b []edit) []edit {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	all := make([]edit, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			all, a = append(all, a[0]), a[1:]
		case c == 0:
			a = a[1:]
		default:
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// firstEdits splits sorted edits into the paths to ingest now and the edits to ingest later. The argument most is the
// approximate number of paths to return, because the files of a message are not split.
func firstEdits(all []edit, most int) (now []string, later []edit) {
	n := min(len(all), most)
	for n < len(all) && n > 0 && all[n].id != "" && all[n].id == all[n-1].id {
		n++
	}
	for _, e := range all[:n] {
		now = append(now, e.path)
	}
	return now, all[n:]
}

const retryTime = 2 * time.Second

// compare runs concurrently with the writer. Every hour, and on request, it looks for differences between the tree and
// the index, reports them as edits, and calls Mail.Compared. It also calls Mail.Hourly every hour.
func (k *Keeper) compare(ctx context.Context) {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-k.doubt:
		case <-hourly.C:
			k.Mail.Hourly()
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		waiting := k.rescan
		k.rescan = nil
		k.mu.Unlock()
		paths, err := k.differing(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			k.Log.Error("failed to compare the tree with the index; will retry", "error", err)
			k.compareLater()
			for _, done := range waiting {
				done <- refusal.Disk(err)
			}
			continue
		}
		for _, u := range k.Unreadable() {
			paths = append(paths, u.Path)
		}
		k.mu.Lock()
		k.compared, k.scanned = append(k.compared, waiting...), true
		k.askIngest(paths)
		k.mu.Unlock()
		if err := k.Mail.Compared(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("failed to notify the holders of invalid claims", "error", err)
		}
	}
}

// differing returns the paths at which the tree and the index differ.
func (k *Keeper) differing(ctx context.Context) ([]string, error) {
	select {
	case k.Limits.comparing <- struct{}{}:
		defer func() { <-k.Limits.comparing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := k.index.Attach(ctx, k.Slug, k.Tree); err != nil { // the first Attach may have failed
		return nil, err
	}
	return k.index.Differing(ctx, k.Slug)
}

// atOnce is the maximum number of projects that are compared at the same time. It is also the maximum number of
// projects in which edits are ingested at the same time. The limit matters because a server start, or a user's
// script, may affect all projects. Each project uses its own file handles, and a higher limit would not help without
// more processors.
const atOnce = 4

// ingest brings the index up to date at paths that other programs may have changed. It returns the files that could
// not be read.
func (k *Keeper) ingest(ctx context.Context, paths []string) ([]tree.Unreadable, error) {
	k.Limits.looking <- struct{}{}
	defer func() { <-k.Limits.looking }()
	defer k.Tree.Hold()()
	in, err := k.index.Ingest(ctx, k.Slug, paths, nil)
	if err != nil {
		return nil, err
	}
	k.noteUnreadable(paths, in.Unreadable)
	k.Mail.Noticed(in.Changes)
	k.noteEdits(in.Changes)
	for _, own := range []string{format.GitIgnore, format.GitAttributes} { // the history tracks these files, but the index does not
		if slices.Contains(paths, own) {
			k.History.RecordEdits([]string{own})
		}
	}
	k.Mail.Saved(paths, in.Changes)
	return in.Unreadable, nil
}

// noteEdits passes the changes to the history.
func (k *Keeper) noteEdits(changes []index.Change) {
	if len(changes) == 0 {
		return
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	k.History.RecordEdits(paths)
}
