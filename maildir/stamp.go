package maildir

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// mostStamped is the maximum number of marks into which one operation writes a time. This limits how long concurrent
// sends have to wait.
const mostStamped = 128

// stamping collects the empty marks that are waiting for a time.
type stamping struct {
	mail *core.Mail

	mu    sync.Mutex
	marks map[string]bool // by path
	asked bool            // whether the writer has an operation that has not called take yet
}

// Untimed schedules the operation that writes the time into marks created with touch. See store.Mail.
func (o mail) Untimed(paths []string) {
	s := &o.stamps
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks == nil {
		s.marks = map[string]bool{}
	}
	for _, path := range paths {
		s.marks[path] = true
	}
	s.ask()
}

// ask queues an operation for the writer if marks are waiting and no such operation is queued yet. The caller must
// hold s.mu.
func (s *stamping) ask() {
	if len(s.marks) > 0 && !s.asked {
		s.asked = true
		s.mail.Writer.Later(s.operation())
	}
}

// waiting counts the marks that are waiting for a time.
func (s *stamping) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.marks)
}

// take returns up to mostStamped marks for the next operation. If the server is stopping, take returns nil; the next
// start finds the remaining marks.
func (s *stamping) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = false
	if s.mail.Store.IsStopping() {
		return nil
	}
	some := slices.Sorted(maps.Keys(s.marks))
	some = some[:min(len(some), mostStamped)]
	for _, path := range some {
		delete(s.marks, path)
	}
	s.ask()
	return some
}

// operation returns an operation that writes the time into some or all of the waiting marks. In the history, the
// server is the operation's author, because no agent performs it. See docs/reference/tree.md, "Marks".
func (s *stamping) operation() *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "stamp"}}
	var marks []string
	tx.Plan = func(g *writer.Group) error {
		if marks == nil {
			marks = s.take()
		}
		for _, path := range marks {
			st, err := s.mail.Tree.Stat(path)
			if err != nil || st.Size > 0 || !st.Mode.IsRegular() {
				continue
			}
			at := g.Now
			if format.Locate(path).Kind == format.KindLater {
				at = at.Add(format.LaterFor)
			}
			switch err := g.Replace(tx, path, format.FormatMark(at)); tree.FaultOf(err) {
			case tree.NoFault, tree.FaultGone, tree.FaultFile:
			case tree.FaultMachine:
				return fmt.Errorf("cannot write the time to the mark %s: %w", format.Printable(path), err)
			}
		}
		for _, f := range tx.Writes {
			f.There = true // do not recreate the mark if it is removed meanwhile
		}
		switch len(tx.Writes) {
		case 0:
		case 1:
			tx.ID, tx.Summary = format.Locate(tx.Writes[0].Path).ID, tx.Writes[0].Path
		default:
			tx.ID, tx.Summary = "", fmt.Sprintf("%d marks", len(tx.Writes))
		}
		return nil
	}
	return tx
}

// Import is the progress of importing a large number of edits by other programs.
type Import struct {
	history.Import
	Unindexed int `json:"unindexed"` // reported paths that have not been indexed yet
	Untimed   int `json:"untimed"`   // empty marks that are waiting for a time
}

// Importing returns the progress of importing a large number of edits, or nil if no such import is in progress. The
// argument part is the part of the progress that the history reports.
func (p *Project) Importing(part history.Import) *Import {
	im := Import{part, p.mail.Unindexed(), p.stamps.waiting()}
	if im.Import == (history.Import{}) && im.Unindexed < history.ImportFrom && im.Untimed < history.ImportFrom {
		return nil
	}
	return &im
}
