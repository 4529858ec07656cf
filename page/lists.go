package page

import (
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// threadsSize is the number of threads in one view.
const threadsSize = 50

type threadsShown struct {
	Threads []maildir.ThreadListed
	Next    string
	Note    string
}

// threads lists the threads of the messages found by a search, or all threads if there is no search.
func (h *Page) threads(v *view) error {
	if err := v.in("threads", "Threads"); err != nil {
		return err
	}
	page, err := v.p.Threads(v.ctx(), maildir.ThreadsRequest{
		Text:   v.Query(),
		Agent:  v.Me,
		Limit:  threadsSize,
		Cursor: v.asked("cursor"),
	})
	if err != nil {
		return err
	}
	shown := threadsShown{Threads: page.Threads, Next: page.Next}
	if page.Note != nil {
		shown.Note = h.cfg.Explain(page.Note)
	}
	return v.show("threads", shown)
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

// SyncReason returns the reason why the mail is not in sync with other machines. If it is in sync or the project is not
// shared, SyncReason returns "".
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

// HistoryOf returns the address of the history of the message to which a file belongs. If the file does not belong to a
// message, it returns "".
func (v *view) HistoryOf(path string) string {
	id := format.Locate(path).ID
	if id == "" {
		return ""
	}
	return v.at("message", id, "history")
}
