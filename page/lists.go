package page

import (
	"strconv"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// threadsSize is the number of threads in one view.
const threadsSize = 50

// threads lists the threads of the messages found by a search, or all threads if there is no search.
func (h *Page) threads(v *view) error { return v.showList("Threads") }

// layThreads adds a page of the project's threads to the list.
func (v *view) layThreads() error {
	d := v.Desk
	page, err := v.p.Threads(v.ctx(), maildir.ThreadsRequest{
		Text:   v.Query(),
		Agent:  v.Me,
		Limit:  threadsSize,
		Cursor: v.asked("cursor"),
	})
	if v.refusesQuery(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range page.Threads {
		t := &page.Threads[i]
		few := v.Few(t.People)
		r := v.row(maildir.WaitingThread{
			Thread:   t.Thread,
			Message:  t.ID,
			Subject:  index.WithoutRe(t.Title),
			People:   few.Names,
			Line:     t.Line,
			Messages: t.Messages,
			Files:    t.Files,
			At:       t.Created,
		}, "")
		if r.MorePeople, r.Waits = few.More, t.Unread > 0; t.Unread > 0 {
			r.Count = strconv.Itoa(t.Unread) + " unread"
		}
		d.Rows = append(d.Rows, r)
	}
	if page.Next != "" {
		d.Older = v.With("cursor", page.Next)
	}
	if page.Note != nil {
		d.Found.Note = v.page.cfg.Explain(page.Note)
	}
	return nil
}

// Query returns the search in the request's URL, or "" if there is none.
func (v *view) Query() string { return v.asked("q") }

// Few returns the first few names in a list and the number of remaining names.
func (v *view) Few(names []string) (few fewNames) {
	const most = 2
	n := min(len(names), most)
	return fewNames{names[:n], len(names) - n}
}

// fewNames contains the first few names in a list and the number of remaining names.
type fewNames struct {
	Names []string
	More  int
}

// SyncReason explains why the mail is not in sync with other machines. If it is in sync or the project is not shared,
// SyncReason returns "".
func (v *view) SyncReason() string { return v.p.Sync.State().String() }

// problemsMost is the maximum number of invalid files in one view.
const problemsMost = 500

// problemsView lists the invalid files, sorted by path.
func (h *Page) problemsView(v *view) error {
	if err := v.in("problems", "Problems"); err != nil {
		return err
	}
	all, err := h.cfg.Store.Problems(v.ctx(), v.p.Slug, problemsMost)
	if err != nil {
		return err
	}
	return v.show("problems", all)
}

// HistoryOf returns the URL of the history of the message that a file belongs to. If the file does not belong to a
// message, it returns "".
func (v *view) HistoryOf(path string) string {
	id := format.Locate(path).ID
	if id == "" {
		return ""
	}
	return v.at("message", id, "history")
}
