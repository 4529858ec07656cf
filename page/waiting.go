package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// desk is the list of the user's mail: what is waiting, followed by mail that was read earlier. In wide windows, the
// list is shown next to a thread.
type desk struct {
	Groups []group
	Rest   []rowShown // threads in which nothing is waiting, newest first
	Older  string     // cursor for mail older than Rest; "" at the end
	All    bool       // whether this is the view of all mail, which has no Groups
	Open   string     // the thread next to the list; "" if there is none
	Next   string     // the thread to show after Open; "" if there is none
	Looked time.Time  // when the user last looked; zero if unknown
	News   *maildir.News
}

// group is a part of the list.
type group struct {
	ID, Title string
	Prompts   []maildir.Prompt
	Rows      []rowShown
}

// Count returns the number of threads that are waiting. A thread that is being read stays in the group but is not
// counted.
func (g group) Count() int {
	n := len(g.Prompts)
	for _, r := range g.Rows {
		n += min(r.Waiting, 1)
	}
	return n
}

// rowShown is one thread in the list.
type rowShown struct {
	maildir.WaitingThread
	Link   string
	Waits  bool // whether the user can mark the thread as done
	Unread bool // in the view of all mail: whether one of the thread's listed messages is unread
}

// waiting shows what is waiting for the user and what has happened since the user last looked.
func (h *Page) waiting(v *view) error {
	if err := v.in("waiting", "Waiting for you"); err != nil {
		return err
	}
	if err := v.lay(nil); err != nil {
		return err
	}
	v.Desk.Looked = v.lastLooked()
	if !v.Desk.Looked.IsZero() {
		var err error
		if v.Desk.News, err = v.p.Since(v.ctx(), v.Desk.Looked); err != nil {
			return err
		}
	}
	return v.show("waiting", nil)
}

// restMost is the maximum number of previously read messages in the list. It is also the page size of the view of all
// mail.
const restMost = 30

// all shows all mail in the user's inbox. Archived mail is included only on request.
func (h *Page) all(v *view) error {
	if err := v.in("waiting", "All mail"); err != nil {
		return err
	}
	v.Desk = &desk{All: true}
	if err := v.layRest(index.InboxQuery{Archived: v.asked("archived") != ""}); err != nil {
		return err
	}
	return v.show("waiting", nil)
}

// lay builds the list. If the thread next to the list was new when it was opened, it keeps its place in the list while
// it is being read.
func (v *view) lay(open *threadShown) error {
	d, w := &desk{}, v.Menu.Waits
	v.Desk = d
	fresh := w.New
	if open != nil {
		d.Open = open.ID
		is := func(t maildir.WaitingThread) bool { return t.Thread == open.ID }
		if v.asked(isNew) != "" && !slices.ContainsFunc(w.Mail(), is) {
			at := slices.IndexFunc(fresh, func(t maildir.WaitingThread) bool { return !urgent(t.Importance) && t.At.Before(open.at()) })
			if at < 0 {
				at = len(fresh)
			}
			fresh = slices.Insert(slices.Clone(fresh), at, open.row())
		}
	}
	for _, g := range w.Groups() {
		if g.ID == "new" {
			g.Threads = fresh
		}
		if len(g.Threads)+len(g.Prompts) > 0 {
			d.Groups = append(d.Groups, group{g.ID, g.Title, g.Prompts, v.rows(g.Threads, g.ID)})
		}
	}
	d.Next = nextOf(slices.Concat(w.Blocked, w.Questions, fresh), d.Open)
	return v.layRest(index.InboxQuery{})
}

// isNew is the URL parameter that keeps a thread among the new mail.
const isNew = "new"

func urgent(importance string) bool { return importance == format.Urgent || importance == format.High }

// row returns a thread's row in a group of the list.
func (v *view) row(t maildir.WaitingThread, group string) rowShown {
	link := v.at("thread", t.Thread)
	if group == "new" {
		link += "?" + isNew + "=1"
	}
	return rowShown{WaitingThread: t, Link: link + "#" + t.Message, Waits: t.Waiting > 0 && group != "owed"}
}

func (v *view) rows(threads []maildir.WaitingThread, group string) (all []rowShown) {
	for _, t := range threads {
		all = append(all, v.row(t, group))
	}
	return all
}

// layRest adds a page of the inbox, grouped by thread, without the threads that are already in the list.
func (v *view) layRest(q index.InboxQuery) error {
	d, has := v.Desk, map[string]bool{}
	for _, g := range d.Groups {
		for _, r := range g.Rows {
			has[r.Thread] = true
		}
	}
	q.Before, _ = strconv.ParseInt(v.asked("before"), 10, 64)
	q.Limit = restMost
	page, err := v.myInbox(q)
	if err != nil {
		return err
	}
	for i := range page.Messages {
		m := &page.Messages[i]
		t := maildir.WaitingThread{
			Thread:     cmp.Or(m.ThreadID, m.ID),
			Message:    m.ID,
			Subject:    m.Subject,
			People:     []string{m.From},
			Importance: m.Importance,
			Files:      len(m.Attachments),
			At:         m.Created,
		}
		if !has[t.Thread] && (m.Read || d.All) {
			d.Rest = append(d.Rest, v.row(t, ""))
		}
		if at := slices.IndexFunc(d.Rest, func(r rowShown) bool { return r.Thread == t.Thread }); at >= 0 && !m.Read {
			d.Rest[at].Unread = true
		}
		has[t.Thread] = true
	}
	if page.Next != 0 {
		d.Older = strconv.FormatInt(page.Next, 10)
	}
	return nil
}

// myInbox returns a page of the user's inbox. If the user has not written anything yet, the page is empty, because the
// user is not an agent of the project until then.
func (v *view) myInbox(q index.InboxQuery) (*maildir.InboxPage, error) {
	const leaveUnread = false
	q.Agent, q.Peek = v.Me, true
	page, err := v.p.Box(q.Agent, v.origin()).Inbox(v.ctx(), q, leaveUnread, maildir.Waiting{})
	if v.Me == "" || errors.Is(err, maildir.ErrNotFound) {
		return &maildir.InboxPage{}, nil
	}
	return page, err
}

// nextOf returns the thread after the given thread in a list, or the first thread if there is none after it. If there
// is no other thread, nextOf returns "".
func nextOf(list []maildir.WaitingThread, thread string) string {
	at := slices.IndexFunc(list, func(t maildir.WaitingThread) bool { return t.Thread == thread })
	for _, t := range slices.Concat(list[at+1:], list) {
		if t.Thread != thread {
			return t.Thread
		}
	}
	return ""
}

// nextAfter returns the address of the thread to show after some threads have been dealt with. That is the thread named
// in the form if it is still waiting, or else the first waiting thread. If no thread is waiting, nextAfter returns the
// argument otherwise.
func (v *view) nextAfter(threads []string, otherwise string) (string, error) {
	w, err := v.box().Waits(v.ctx(), maildir.WaitsQuery{Open: !v.Signed})
	if err != nil {
		return "", err
	}
	all := slices.DeleteFunc(slices.Concat(v.rows(w.Blocked, ""), v.rows(w.Questions, ""), v.rows(w.New, "new")), func(r rowShown) bool {
		return slices.Contains(threads, r.Thread)
	})
	if len(all) == 0 {
		return otherwise, nil
	}
	at := slices.IndexFunc(all, func(r rowShown) bool { return r.Thread == v.r.PostForm.Get("next") })
	return all[max(at, 0)].Link, nil
}

// done marks threads as done for the user. See maildir.Box.Finish.
func (h *Page) done(v *view) (to string, err error) {
	form := v.r.PostForm
	var ids []string
	did := ""
	for _, thread := range form["thread"] {
		finished, err := v.box().Finish(v.ctx(), thread)
		if err != nil {
			return "", err
		}
		for _, f := range finished {
			ids = append(ids, f.ID)
			if did == "" || did == f.As {
				did = f.As
			} else {
				did = "settled"
			}
		}
	}
	to = v.back()
	if at := form.Get("at"); at != "" && slices.Contains(form["thread"], at) {
		if to, err = v.nextAfter(form["thread"], v.at()); err != nil {
			return "", err
		}
	}
	if len(ids) == 0 {
		return to, nil
	}
	return v.saying(to, did, joined(ids), nil), nil
}

// back returns the address of the view that contained the form, or of the list if that is unknown.
func (v *view) back() string {
	from, err := url.Parse(v.r.Referer())
	if err != nil || from.Host != v.r.Host || len(from.Path) < len(v.at()) || from.Path[:len(v.at())] != v.at() {
		return v.at()
	}
	q := from.Query()
	for _, name := range dones {
		q.Del(name)
	}
	return (&url.URL{Path: from.Path, RawPath: from.RawPath, RawQuery: q.Encode()}).String()
}

// awayAfter is how long a user must be inactive to be considered away.
const awayAfter = 10 * time.Minute

// lastLooked returns the time when the user last looked at the project before being away, or the zero time if that is
// unknown. The browser stores this time in a cookie for the project, so each browser has its own.
func (v *view) lastLooked() (looked time.Time) {
	name := "looked-" + cookieName(v.r)
	var before, last int64 // times of the last two visits, in seconds
	if c, err := v.r.Cookie(name); err == nil {
		_, _ = fmt.Sscanf(c.Value, "%d.%d", &before, &last) // a damaged cookie is treated like a missing one
	}
	now := v.Now.Unix()
	if now-last > int64(awayAfter/time.Second) {
		before = last
	}
	if v.r.Header.Get(fragmentHeader) == "" { // reloading part of an open view is not a visit
		http.SetCookie(v.w, &http.Cookie{
			Name:     name,
			Value:    fmt.Sprintf("%d.%d", before, now),
			Path:     v.at(),
			MaxAge:   int(sessionLasts / time.Second),
			HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
		})
	}
	if before <= 0 || before > now {
		return looked
	}
	return time.Unix(before, 0)
}

// counted returns a number of things as text, such as "2 messages".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
