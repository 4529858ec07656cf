package page

import (
	"errors"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// historyMost is the maximum number of entries that a history shows. The newest entries are shown. patchMost is the
// maximum number of bytes of changes that a history shows line by line.
const (
	historyMost = 100
	patchMost   = 100_000
)

type historyShown struct {
	ID      string
	Subject string // "" if the message is gone
	Link    string // URL of the message if it still exists
	Mine    bool   // the user can undo an operation on the message
	Entries []entryShown
}

// entryShown is one operation on a message or one edit of its files.
type entryShown struct {
	history.Entry
	What  string
	Lines []fileShown
}

// fileShown is a changed file as shown in the history.
type fileShown struct {
	Path, Change string
	Lines        []diffLine // the lines that differ; nil if they are not shown
}

// diffLine is a line in a patch.
type diffLine struct {
	Kind string // add, del or hunk; "" if the line is unchanged
	Text string
}

// history shows the operations on a message from the Git history, newest first. Without a session, it omits
// everything that would reveal bcc recipients.
func (h *Page) history(v *view) error {
	shown := historyShown{ID: v.r.PathValue("id")}
	m, err := v.p.MessageHead(v.ctx(), shown.ID)
	switch {
	case err == nil:
		shown.Subject, shown.Link = m.Subject, v.linkTo(m)
	case !errors.Is(err, maildir.ErrNotFound):
		return err
	}
	undoable, room := 0, patchMost
	q := maildir.LogQuery{Of: shown.ID, Limit: historyMost, Open: !v.Signed}
	err = v.p.Log(v.ctx(), q, func(e *history.Entry) error {
		one := entryShown{Entry: *e, What: didTo(e.Verb)}
		answers := e.ID != "" && !strings.HasPrefix(e.ID, shown.ID)
		if answers {
			one.What = didTo(strings.TrimSuffix(strings.TrimSuffix(e.Verb, "reply"), "send") + "answer")
		}
		for i := range e.Files {
			f, err := v.showFile(&e.Files[i], &room)
			if err != nil {
				return err
			}
			one.Lines = append(one.Lines, f)
		}
		if e.Who == v.Me && e.IsOperation() && !answers {
			if strings.HasPrefix(e.Verb, history.UndoPrefix) {
				undoable--
			} else {
				undoable++
			}
		}
		shown.Entries = append(shown.Entries, one)
		return nil
	})
	if err != nil {
		return err
	}
	shown.Mine = undoable > 0
	if err := v.in("threads", "History"); err != nil {
		return err
	}
	v.Live = false // the view's content comes from Git
	return v.show("history", shown)
}

// showFile shows a changed file and, if there is room, its changed lines. It does not show the lines of a mark, because
// the mark's path and time describe it fully. It does not show the lines of a new copy either, because the copy equals
// the canonical file. Without a session, it never shows lines of copies, because a sender's copy contains the bcc
// recipients.
func (v *view) showFile(f *history.FileChange, room *int) (fileShown, error) {
	shown := fileShown{Path: f.Path, Change: f.Op}
	switch at := format.Locate(f.Path).Kind; {
	case at == format.KindRead, at == format.KindAck, at == format.KindArchived, *room <= 0:
		return shown, nil
	case at != format.KindCanonical && (f.Op != history.Changed || !v.Signed):
		return shown, nil
	}
	patch, err := f.Patch()
	if err != nil {
		return shown, err
	}
	if *room -= len(patch); *room < 0 {
		return shown, nil
	}
	_, hunks, found := strings.Cut(patch, "\n@@")
	if !found {
		return shown, nil
	}
	for line := range strings.Lines("@@" + hunks) {
		d := diffLine{Text: strings.TrimRight(line, "\n")}
		switch line[0] {
		case '+':
			d.Kind = "add"
		case '-':
			d.Kind = "del"
		case '@', '\\':
			d.Kind = "hunk"
		}
		shown.Lines = append(shown.Lines, d)
	}
	return shown, nil
}

// verbs maps the history's names for operations on a message to phrases.
var verbs = map[string]string{
	"send":              "sent it",
	"receive":           "received it from another domain",
	"deliver":           "delivered it from another project",
	"reply":             "sent it as a reply",
	"answer":            "answered it", // for a reply, in the history of the message being answered
	"read":              "read it",
	"pop":               "read it",
	"acknowledge":       "acknowledged it",
	"archive":           "archived it",
	"later":             "hid it for a while",
	"unread":            "marked it unread",
	history.VerbRelease: "released the claim and sent this notice",
	history.VerbHold:    "held the agent and sent this notice",
	history.VerbGo:      "ended the hold and sent this notice",
	"delete":            "deleted it for everyone",
	"stamp":             "wrote the time into an empty mark file",
	"withdraw":          "marked this notice as read, because its file was sent or deleted",
	maildir.VerbAmend:   "changed its text",
	history.VerbEdit:    "edited its files",
	history.VerbRemove:  "removed its files",
	history.VerbCommit:  "committed its files",
}

func didTo(verb string) string {
	of, undoes := strings.CutPrefix(verb, history.UndoPrefix)
	of, redoes := strings.CutPrefix(of, history.RedoPrefix)
	switch what := verbs[of]; {
	case what == "":
		return verb
	case undoes:
		return "undid: " + what
	case redoes:
		return "redid: " + what
	default:
		return what
	}
}
