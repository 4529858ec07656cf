// Package desk implements the screen of `mailtree desk`, which shows a list of the items that are waiting for the user
// next to the open thread. The package decides only what the screen shows and what the keys do. A Source reads the mail
// and acts on it.
//
// A key acts only on what the user can see. Yes, No and Later need a message that is fully on the screen, and Done
// marks only messages whose end has been on the screen. After a message appears that the user did not open, these keys
// do nothing for one second. Yes and No are sent after a delay of five seconds, so that the user can cancel them.
package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/mcp/mail"
)

const (
	sendsAfter = 5 * time.Second        // time during which the user can cancel an answer
	settles    = time.Second            // time during which no key acts on a message that the user did not open
	repeats    = 150 * time.Millisecond // a key that repeats within this time is being held down
)

// Source reads the user's mail and acts on it. All strings that it returns, except message bodies, are single lines
// that are safe to print on a terminal. Errors are sentences that can be shown to the user. Only Watch is called
// concurrently with other methods.
type Source interface {
	// List returns the items that are waiting for the user.
	List(ctx context.Context) (*List, error)
	// Thread returns the messages of a row's thread, oldest first. It does not mark them as read.
	Thread(ctx context.Context, r Row) ([]Message, error)
	// Search returns one row for each thread that contains a matching message. It searches the given project or, if
	// project is "", the screen's project.
	Search(ctx context.Context, project, query string) ([]Row, error)
	// Do performs a key's action on a row. "y" and "n" answer the row's message with yes or no. "h" hides the row's
	// thread for a while. "e" marks the messages with the given ids as read, unless their thread asks the user for an
	// answer. "r" and "R" let the user write a reply to everyone or only to the sender. For that, they may use the
	// terminal.
	Do(ctx context.Context, key string, r Row, ids []string) (Done, error)
	// Undo reverts an action that Do performed.
	Undo(ctx context.Context, d Done) error
	// Watch calls changed after each change to the mail, until ctx ends. It returns an error if it cannot continue.
	Watch(ctx context.Context, changed func()) error
}

// List is a list of rows in groups.
type List struct {
	Title  string // the name of the project or projects, and the number of waiting items
	Me     string // the user's agent
	Groups []Group
	Quiet  []string // other things that may need the user's attention
	Agents string   // a summary of what the other agents are doing
}

// Group is a group of rows.
type Group struct {
	Title string
	Total int // number of rows, including rows that are not listed
	Rows  []Row
}

// Row is a thread. If Thread is "", the row is a different kind of waiting item, such as a permission prompt.
type Row struct {
	maildir.WaitingThread        // IDs, Why and Decides are empty if the thread is not waiting for the user
	Mark                  string // a word such as "urgent"; may be empty
	Who, About            string // the authors and the subject
	Shown                 string // sent together with an answer; see maildir.Decision.Shown
}

// Message is a message in a thread.
type Message struct {
	mail.Message
	Head  string // the author, the recipients, and a remark if the message is not verified
	Below string // text below the body, such as the names of files; may be empty
}

// Done describes an action that was performed and can be undone.
type Done struct {
	Text    string // a description of the action
	Project string
	IDs     []string // the affected messages
	Verb    string   // the action's name in the history

	row Row
}

// Desk is the state of the screen. It must be used by only one goroutine.
type Desk struct {
	source Source
	after  func(time.Duration) <-chan time.Time
	screen *cli.Screen // the terminal with its current size

	list   *List // the waiting items
	hits   *List // the results of a search, which are shown instead of list; nil if there is no search
	focus  int   // index of the row with the focus
	open   *opened
	query  *string // the search that the user is typing; nil if the user is not typing one
	notice string  // the result of the last action; may be empty

	pending  *pending
	done     []Done    // the actions that z can undo, newest last
	appeared time.Time // when an item last appeared that the user did not open

	last   string // the last key, and the time at which it was pressed
	lastAt time.Time
	over   bool // the user has quit
}

// opened is the open thread.
type opened struct {
	row      Row
	messages []Message
	top      int                  // index of the first line on the screen; -1 if not chosen yet
	page     int                  // number of lines on the screen
	whole    map[string]bool      // messages that are fully on the screen
	long     map[string]bool      // messages that are too long for the screen
	seen     map[string]bool      // messages whose end has been on the screen
	drawn    map[string]drawnText // each message's text, broken into lines
}

// pending is an answer that has not been sent yet.
type pending struct {
	key   string // y or n
	row   Row
	asker string // the author of the question, who gets the answer
	due   <-chan time.Time
}

// answers maps each key to the answer that it gives.
var answers = map[string]string{"y": "Yes", "n": "No"}

// New returns a desk. after is time.After except in tests.
func New(source Source, after func(time.Duration) <-chan time.Time) *Desk {
	return &Desk{source: source, after: after, list: &List{}}
}

func (l *List) rows() (all []Row) {
	for _, g := range l.Groups {
		all = append(all, g.Rows...)
	}
	return all
}

// indexOf returns the index of the row that shows the same item as r, or -1 if there is none.
func (l *List) indexOf(r *Row) int {
	return slices.IndexFunc(l.rows(), func(o Row) bool {
		same := r.Thread != "" || r.Who == o.Who && r.About == o.About && r.At.Equal(o.At)
		return same && r.Project == o.Project && r.Thread == o.Thread
	})
}

func (d *Desk) shown() *List { return cmp.Or(d.hits, d.list) }

// focused returns the row with the focus, or an empty row if there are no rows.
func (d *Desk) focused() (r Row) {
	if rows := d.shown().rows(); d.focus < len(rows) {
		r = rows[d.focus]
	}
	return r
}

// current returns the row that a key acts on. This is the open thread's row or, if no thread is open, the row with the
// focus. If the row is not in the list of waiting items, its IDs, Why and Decides are empty.
func (d *Desk) current() Row {
	r := d.focused()
	if d.open != nil {
		r = d.open.row
	}
	if i := d.list.indexOf(&r); i >= 0 {
		return d.list.rows()[i]
	}
	r.IDs, r.Why, r.Decides = nil, "", false
	return r
}

// refresh reloads the list and the open thread. live means that another agent or user may have caused the change. The
// focus stays on its row. If that row is gone, the focus moves to the row that takes its place.
func (d *Desk) refresh(ctx context.Context, live bool) {
	list, err := d.source.List(ctx)
	if err != nil {
		d.notice = err.Error()
		return
	}
	before := d.focused()
	d.list = list
	if p := d.pending; p != nil && !slices.ContainsFunc(list.rows(), func(r Row) bool { return r.Message == p.row.Message && r.Decides }) {
		d.pending, d.notice = nil, answers[p.key]+" to "+p.asker+" was not sent, because the question is no longer open."
	}
	if i := d.shown().indexOf(&before); i >= 0 {
		d.focus = i
	}
	d.focus = max(0, min(d.focus, len(d.shown().rows())-1))
	now := d.focused()
	news := now.Message != before.Message || !slices.Equal(now.IDs, before.IDs)
	if d.open != nil {
		shown := d.open.messages
		if d.loadThread(ctx) != nil { // the thread was removed
			d.open.messages = shown
		}
		news = len(d.open.messages) > len(shown)
	}
	if live && news {
		d.appeared = d.screen.Now()
	}
}

// press performs a key's action.
func (d *Desk) press(ctx context.Context, key string) {
	now := d.screen.Now()
	held := key == d.last && now.Sub(d.lastAt) < repeats
	d.last, d.lastAt = key, now
	acts := slices.Contains([]string{"y", "n", "h", "e"}, key)
	switch {
	case d.query != nil:
		d.typed(ctx, key)
		return
	case acts && held:
		return
	case acts && now.Sub(d.appeared) < settles:
		d.notice = "This row or thread has just changed, so the key was ignored. Press it again."
		return
	}
	d.notice = ""
	switch key {
	case "j", "down":
		d.step(ctx, 1)
	case "k", "up":
		d.step(ctx, -1)
	case "o", "enter":
		d.openRow(ctx)
	case " ", "pgdown":
		d.scroll(1)
	case "b", "pgup":
		d.scroll(-1)
	case "y", "n", "h":
		d.decide(ctx, key)
	case "e":
		d.finish(ctx)
	case "r", "R":
		if r := d.current(); r.Thread != "" && d.flush(ctx) == nil {
			_ = d.perform(ctx, key, r, nil) // the screen shows the error
		}
	case "z":
		d.undo(ctx)
	case "/":
		d.query = new(string)
	case "?":
		d.notice = keyHelp
	case "u", "esc":
		if d.open == nil {
			d.hits, d.focus = nil, 0
		}
		d.open = nil
	case "q", "ctrl+c":
		d.over = true
	}
}

// step moves the focus up or down. If a thread is open, step opens the thread of the row that then has the focus.
func (d *Desk) step(ctx context.Context, by int) {
	to := d.focus + by
	if d.open != nil && by > 0 && d.shown().indexOf(&d.open.row) != d.focus { // the open thread's row is gone or has moved
		to = d.focus
	}
	if to < 0 || to >= len(d.shown().rows()) {
		return
	}
	d.focus = to
	if d.open != nil {
		d.openRow(ctx)
	}
}

// openRow opens the thread in the row with the focus.
func (d *Desk) openRow(ctx context.Context) {
	d.open, d.appeared, d.notice = &opened{row: d.focused(), top: -1, seen: map[string]bool{}, drawn: map[string]drawnText{}}, time.Time{}, ""
	switch err := d.loadThread(ctx); {
	case err != nil:
		d.open, d.notice = nil, err.Error()
	case len(d.shown().rows()) == 0:
		d.open = nil
	case d.open.row.Thread == "":
		d.notice = d.open.row.About
	}
}

// loadThread reads the messages of the open thread.
func (d *Desk) loadThread(ctx context.Context) (err error) {
	if d.open.row.Thread != "" {
		d.open.messages, err = d.source.Thread(ctx, d.open.row)
	}
	return err
}

// scroll scrolls the open thread by the given number of pages. A negative number scrolls up.
func (d *Desk) scroll(by int) {
	if d.open != nil {
		d.open.top = max(0, d.open.top+by*max(1, d.open.page-1))
	}
}

// answerable returns the row that Yes, No and Later act on. If these keys cannot act on the row, why says why not.
func (d *Desk) answerable() (r Row, why string) {
	r = d.current()
	switch {
	case d.open == nil:
		why = "Open the message first, with o."
	case !r.Decides:
		why = "Yes, No and Later work only for verified messages from this store that ask you a question. To reply, press r."
	case d.open.long[r.Message]:
		why = "The question is longer than the screen. To write a reply, press r."
	case !d.open.whole[r.Message]:
		why = "Part of the question is not on the screen. Scroll with Space and b, or press r."
	}
	return r, why
}

// decide hides the open thread for a while, or prepares an answer to the thread's message. It then opens the next row.
func (d *Desk) decide(ctx context.Context, key string) {
	r, why := d.answerable()
	if why != "" {
		d.notice = why
		return
	}
	if d.pending != nil && d.pending.row.Message == r.Message { // the user has changed the answer
		d.pending = nil
	}
	if d.flush(ctx) != nil || key == "h" && d.perform(ctx, key, r, nil) != nil {
		return
	}
	if key != "h" {
		asker := r.Who
		for i := range d.open.messages {
			if m := &d.open.messages[i]; m.ID == r.Message && m.Body != nil {
				r.Shown, asker = maildir.TextSum(m.Subject, *m.Body), cli.Line(m.From)
			}
		}
		d.pending = &pending{key, r, asker, d.after(sendsAfter)}
		d.focus = max(0, min(d.shown().indexOf(&r)+1, len(d.shown().rows())-1))
	}
	notice := d.notice
	d.openRow(ctx)
	d.appeared, d.notice = d.screen.Now(), notice
}

// flush sends the pending answer, if there is one. It returns an error if that fails.
func (d *Desk) flush(ctx context.Context) error {
	p := d.pending
	if p == nil {
		return nil
	}
	d.pending = nil
	err := d.perform(ctx, p.key, p.row, nil)
	if err != nil {
		err = fmt.Errorf("%s to %s failed: %w", answers[p.key], p.asker, err)
		d.notice = err.Error()
	}
	return err
}

// perform performs a key's action on a row. It then shows the result and the updated list.
func (d *Desk) perform(ctx context.Context, key string, r Row, ids []string) error {
	done, err := d.source.Do(ctx, key, r, ids)
	if err != nil {
		d.notice = err.Error()
	} else {
		done.row = r
		d.done = append(d.done, done)
		d.notice = done.Text + " (z: undo)"
	}
	d.refresh(ctx, false)
	return err
}

// finish marks the current row's messages as read. If a thread is open, it marks only messages whose end has been on
// the screen.
func (d *Desk) finish(ctx context.Context) {
	r := d.current()
	ids := r.IDs
	if d.open != nil {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !d.open.seen[id] })
	}
	if len(ids) == 0 {
		d.notice = "Nothing was marked as read: no unread message has been shown to its end."
		return
	}
	_ = d.perform(ctx, "e", r, ids) // the screen shows the error
}

// undo cancels the pending answer. If there is no pending answer, undo undoes the last action.
func (d *Desk) undo(ctx context.Context) {
	if p := d.pending; p != nil {
		d.pending = nil
		d.goTo(ctx, &p.row, answers[p.key]+" was not sent.")
		return
	}
	n := len(d.done)
	if n == 0 {
		d.notice = "There is nothing to undo: z undoes only actions that you took on this screen."
		return
	}
	last, text := d.done[n-1], "Undone: "+d.done[n-1].Text
	d.done = d.done[:n-1]
	if err := d.source.Undo(ctx, last); err != nil {
		text = err.Error()
	}
	d.refresh(ctx, false)
	d.goTo(ctx, &last.row, text)
}

// goTo moves the focus to a row if the row is in the list. If a thread is open, goTo also opens the row's thread. It
// always shows the notice.
func (d *Desk) goTo(ctx context.Context, r *Row, notice string) {
	if i := d.shown().indexOf(r); i >= 0 {
		d.focus = i
		if d.open != nil {
			d.openRow(ctx)
		}
	}
	d.notice = notice
}

// typed handles a key while the user is typing a search.
func (d *Desk) typed(ctx context.Context, key string) {
	text := *d.query
	switch {
	case key == "esc" || key == "ctrl+c":
		d.query = nil
	case key == "enter":
		d.query = nil
		d.search(ctx, strings.TrimSpace(text))
	case key == "backspace":
		_, n := utf8.DecodeLastRuneInString(text)
		*d.query = text[:len(text)-n]
	case utf8.RuneCountInString(key) == 1:
		*d.query += key
	}
}

// search replaces the list with the threads that match a query.
func (d *Desk) search(ctx context.Context, text string) {
	switch rows, err := d.source.Search(ctx, d.current().Project, text); {
	case err != nil:
		d.notice = err.Error()
	case len(rows) == 0:
		d.notice = "No message matches " + text + "."
	default:
		d.hits = &List{Groups: []Group{{Title: "Search: " + text, Total: len(rows), Rows: rows}}}
		d.focus, d.open = 0, nil
	}
}
