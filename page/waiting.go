package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// desk is a list of threads. In a wide window, the list is also shown next to a thread that was opened from it.
type desk struct {
	In     string // the list, as a value of inList; empty for the list of waiting items
	Title  string
	Groups []group     // the waiting items
	Rows   []rowShown  // the rows of a list other than the list of waiting items
	Found  searchShown // details of a search
	Older  string      // the URL parameters of the next page of Rows; "" at the end
	Open   string      // the thread next to the list; "" if there is none
	Next   *rowShown   // the row after Open; nil if there is none
	Past   *pastShown  // what happened while the user was away; nil next to a thread and in part of a view
}

// inList is the URL parameter that specifies the list from which the user opened a thread. Its value is one of the
// constants below. If it is missing, the thread was opened from the list of waiting items. The list's own parameters
// follow it.
const (
	inList    = "in"
	inInbox   = "inbox"
	inThreads = "threads"
	inSearch  = "search"
	inAll     = "all"
)

// listParams are the parameters of the lists' URLs.
var listParams = []string{inList, "q", "cursor", "before", "archived"}

// list returns the list that the view shows.
func (v *view) list() string {
	if v.Reads() {
		return v.asked(inList)
	}
	if v.Project == nil {
		return inAll
	}
	return map[string]string{v.at(inInbox): inInbox, v.at(inThreads): inThreads, v.at(inSearch): inSearch}[v.Path]
}

// With returns the query of a URL that contains the parameters of the view's list and the given parameters.
func (v *view) With(pairs ...string) string {
	q := url.Values{}
	for _, name := range listParams {
		if value := v.asked(name); value != "" {
			q.Set(name, value)
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}

// ListPath returns the URL of the list without its parameters.
func (v *view) ListPath() string { return v.at(v.list()) }

// ListLink returns the URL of the list from which the thread was opened.
func (v *view) ListLink() string {
	in := v.list()
	if in == inAll {
		return "/"
	}
	if in == "" {
		return v.at()
	}
	q, _ := url.ParseQuery(strings.TrimPrefix(v.With(), "?"))
	q.Del(inList)
	return strings.TrimSuffix(v.at(in)+"?"+q.Encode(), "?")
}

// group is a part of the list.
type group struct {
	ID, Title string
	Prompts   []maildir.Prompt
	Rows      []rowShown
	Count     int // total number of prompts and threads, not counting a thread that is listed only because it is open
}

// rowShown is one thread in the list.
type rowShown struct {
	maildir.WaitingThread
	Outside    bool       // whether someone in the thread is at another domain
	MorePeople int        // number of people that are not in People
	Hits       []hitShown // the messages that a search has found
	Count      string     // a count such as "2 unread"; empty if the list does not show counts
	Link       string
	In         string // the name of the thread's project, in a list of all projects
	Open       bool   // whether the thread is shown next to the list
	Waits      bool   // whether something in the thread is waiting for the user
	Asks       bool   // whether the thread is waiting for the user's answer or acknowledgment
	fresh      bool   // whether the thread is new mail
	Unread     string // ids of the unread messages, joined with commas; "" if the thread asks the user for something
}

// IsDesk reports whether the list shows waiting items, of the project or of all projects.
func (d *desk) IsDesk() bool { return d.In == "" || d.In == inAll }

// waiting shows the items that are waiting for the user, and the events since the user's last visit.
func (h *Page) waiting(v *view) error {
	if err := v.in("waiting", "Needs you"); err != nil {
		return err
	}
	if err := v.lay(nil); err != nil {
		return err
	}
	if err := v.catchUp(); err != nil {
		return err
	}
	return v.show("waiting", nil)
}

// restMost is the number of messages on one page of the view of all mail.
const restMost = 30

// inbox shows all mail in the user's inbox. Archived mail is included only on request.
func (h *Page) inbox(v *view) error { return v.showList("All mail") }

// showList shows any list except the list of waiting items.
func (v *view) showList(title string) error {
	if err := v.in(v.list(), title); err != nil {
		return err
	}
	if err := v.lay(nil); err != nil {
		return err
	}
	if err := v.catchUp(); err != nil {
		return err
	}
	return v.showAs(cmp.Or(v.Desk.Found.Status, http.StatusOK), "waiting", nil)
}

// lay builds the list that the view shows. open is the thread next to the list, or nil.
func (v *view) lay(open *threadShown) (err error) {
	d := &desk{In: v.list()}
	v.Desk = d
	if open != nil {
		d.Open = open.ID
	}
	switch d.In {
	case inInbox:
		d.Title = "All mail"
		err = v.layInbox()
	case inThreads:
		d.Title = "Threads"
		err = v.layThreads()
	case inSearch:
		d.Title = "Search"
		err = v.laySearch()
	case inAll:
		d.Title = allTitle
		var w *maildir.Waits
		if w, err = v.everywhere(); err == nil {
			v.layWaiting(w, open)
		}
	default:
		d.In, d.Title = "", "Needs you"
		v.layWaiting(v.Menu.Waits, open)
	}
	all := slices.Clone(d.Rows)
	for _, g := range d.Groups {
		all = append(all, g.Rows...)
	}
	d.Next = nextOf(all)
	return err
}

// layWaiting adds the items that are waiting for the user. If the thread next to the list was new when the user opened
// it, the thread keeps its place in the list while the user is reading it.
func (v *view) layWaiting(w *maildir.Waits, open *threadShown) {
	d, fresh := v.Desk, w.New
	if open != nil {
		row := open.row()
		if d.In == inAll {
			row.Project = v.Slug()
		}
		is := func(t maildir.WaitingThread) bool { return t.Thread == row.Thread && t.Project == row.Project }
		if v.asked(isNew) != "" && !slices.ContainsFunc(w.Mail(), is) {
			at := slices.IndexFunc(fresh, func(t maildir.WaitingThread) bool { return !urgent(t.Importance) && t.At.Before(open.at()) })
			if at < 0 {
				at = len(fresh)
			}
			fresh = slices.Insert(slices.Clone(fresh), at, row)
		}
	}
	for _, g := range w.Groups() {
		if g.ID == "new" {
			g.Threads = fresh
		}
		if len(g.Threads)+len(g.Prompts) > 0 {
			d.Groups = append(d.Groups, group{g.ID, g.Title, g.Prompts, v.rows(g.Threads, g.ID), len(g.Prompts) + g.Total})
		}
	}
}

// isNew is the URL parameter that keeps an opened thread in the group of new mail.
const isNew = "new"

func urgent(importance string) bool { return importance == format.Urgent || importance == format.High }

// opening returns the URL that opens the row's thread next to the list.
func (v *view) opening(r *rowShown) string {
	q := url.Values{}
	if v.Desk.In != "" {
		q, _ = url.ParseQuery(strings.TrimPrefix(v.With(inList, v.Desk.In), "?"))
	}
	if r.fresh {
		q.Set(isNew, "1")
	}
	at := inProject(cmp.Or(r.Project, v.Slug()), "thread", r.Thread)
	return strings.TrimSuffix(at+"?"+q.Encode(), "?") + "#" + r.Message
}

// row returns the row for a thread in a group of the list.
func (v *view) row(t maildir.WaitingThread, group string) rowShown {
	r := rowShown{WaitingThread: t, Waits: t.Waiting > 0 && group != "owed", fresh: group == "new"}
	r.Link, r.Outside = v.opening(&r), slices.ContainsFunc(t.People, v.Outside)
	r.Open = t.Thread == v.Desk.Open && cmp.Or(t.Project, v.Slug()) == v.Slug()
	if t.Project != "" {
		r.In = v.NameOf(t.Project)
	}
	if r.Asks = r.Waits && t.Why != ""; r.Waits && !r.Asks {
		r.Unread = joined(idsIn(t.Project, t.IDs))
	}
	return r
}

func (v *view) rows(threads []maildir.WaitingThread, group string) (all []rowShown) {
	for _, t := range threads {
		all = append(all, v.row(t, group))
	}
	return all
}

// layInbox adds a page of the inbox, grouped by thread.
func (v *view) layInbox() error {
	d, has := v.Desk, map[string]bool{}
	q := index.InboxQuery{Archived: v.WithArchived()}
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
			Subject:    index.WithoutRe(m.Subject),
			People:     []string{m.From},
			Importance: m.Importance,
			Files:      len(m.Attachments),
			At:         m.Created,
		}
		if !has[t.Thread] {
			d.Rows = append(d.Rows, v.row(t, ""))
		}
		if !m.Read {
			r := &d.Rows[slices.IndexFunc(d.Rows, func(r rowShown) bool { return r.Thread == t.Thread })]
			r.Waits, r.Asks = true, r.Asks || m.AckRequired && !m.Acked || m.Kind == "to" && m.Question && !format.ServerName(m.From)
			r.IDs = append(r.IDs, m.ID)
			if r.Unread = joined(r.IDs); r.Asks {
				r.Unread = ""
			}
		}
		has[t.Thread] = true
	}
	if page.Next != 0 {
		d.Older = v.With("before", strconv.FormatInt(page.Next, 10))
	}
	return nil
}

// myInbox returns a page of the user's inbox. If the user has not written anything yet, the user is not an agent of the
// project, and the page is empty.
func (v *view) myInbox(q index.InboxQuery) (*maildir.InboxPage, error) {
	const leaveUnread = false
	q.Agent, q.Peek = v.Me, true
	page, err := v.p.Box(q.Agent, v.origin()).Inbox(v.ctx(), q, leaveUnread, maildir.Waiting{})
	if v.Me == "" || errors.Is(err, maildir.ErrNotFound) {
		return &maildir.InboxPage{}, nil
	}
	return page, err
}

// nextOf returns the row after the open thread in the list. If that thread is the last one or is not in the list,
// nextOf returns nil.
func nextOf(list []rowShown) *rowShown {
	at := slices.IndexFunc(list, func(r rowShown) bool { return r.Open })
	if at < 0 || at+1 == len(list) {
		return nil
	}
	return &list[at+1]
}

// nextLink returns the URL in the form's "next" field if it is the URL of an existing thread, possibly in another
// project. Otherwise, it returns "".
func (v *view) nextLink() string {
	to, err := url.Parse(v.r.PostForm.Get("next"))
	if err != nil || to.IsAbs() || to.Host != "" {
		return ""
	}
	parts := strings.Split(to.EscapedPath(), "/") // "", "p", slug, "thread", id
	if len(parts) != 5 || parts[0] != "" || parts[1] != "p" || parts[3] != "thread" {
		return ""
	}
	slug, slugErr := url.PathUnescape(parts[2])
	id, err := url.PathUnescape(parts[4])
	if slugErr != nil || err != nil {
		return ""
	}
	p, err := v.page.cfg.Store.Project(v.ctx(), slug)
	if err != nil {
		return ""
	}
	if _, err := p.ThreadPage(v.ctx(), index.ThreadQuery{Thread: fromSegment(id), Limit: 1}); err != nil {
		return ""
	}
	return to.String()
}

// dismiss hides the currently listed diagnostics.
func (h *Page) dismiss(v *view) (to string, err error) {
	for _, p := range v.listed() {
		in := v.of(p)
		w, err := in.waitsIn(p)
		if err != nil {
			return "", err
		}
		if len(w.Stopped)+len(w.Asleep)+len(w.Broken) == 0 {
			continue
		}
		if err := in.becomeAgent(); err != nil {
			return "", err
		}
		if _, err := in.box().Dismiss(v.ctx()); err != nil {
			return "", err
		}
	}
	return v.saidAt(v.at(), "Dismissed. A diagnostic appears again if the problem happens again."), nil
}

// These errors mean that a thread asks the user for something, so the user cannot mark it as done. If the error is
// errAsksThere, other threads may already have been marked as read.
var (
	errAsks      = errors.New("the thread is waiting for the user's answer")
	errAsksThere = errors.New("a thread in one of the projects is waiting for the user's answer")
)

// done marks messages as read: the rows that the user selected, or the messages of the thread that the user is
// reading. See maildir.Box.Finish.
func (h *Page) done(v *view) (to string, err error) {
	each, err := v.byProject(names(strings.Join(v.r.PostForm["message"], ",")))
	if err != nil {
		return "", err
	}
	var read []string
	for _, in := range each {
		if err := in.becomeAgent(); err != nil {
			return "", err
		}
		ids, err := in.box().Finish(v.ctx(), in.ids)
		if errors.Is(err, maildir.ErrConflict) {
			return "", map[bool]error{true: errAsks, false: errAsksThere}[len(each) == 1]
		}
		if err != nil {
			return "", err
		}
		if v.p == nil {
			ids = idsIn(in.Slug(), ids)
		}
		read = append(read, ids...)
	}
	if len(read) == 0 {
		return v.back(), nil
	}
	return v.saying(v.back(), "read", joined(read), nil), nil
}

// before returns the parameters of the list next to the view that contained the form. They are empty if the list is the
// project's list of waiting items, if the view is unknown, or if the view belongs to another project.
func (v *view) before() url.Values {
	from, err := url.Parse(v.r.Referer())
	if err != nil || from.Host != v.r.Host {
		return nil
	}
	if from.Path == inProject("") {
		return url.Values{inList: {inAll}}
	}
	q, in := from.Query(), url.Values{}
	if q.Get(inList) == "" || q.Get(inList) != inAll && !strings.HasPrefix(from.Path, v.at()) {
		return nil
	}
	for _, name := range listParams {
		if value := q.Get(name); value != "" {
			in.Set(name, value)
		}
	}
	return in
}

// listBefore returns the URL of the list of waiting items next to the view that contained the form.
func (v *view) listBefore() string {
	if v.before().Get(inList) == inAll {
		return inProject("")
	}
	return v.at()
}

// back returns the URL of the view that contained the form, or the URL of the list if the view is unknown.
func (v *view) back() string {
	from, err := url.Parse(v.r.Referer())
	if err != nil || from.Host != v.r.Host || !strings.HasPrefix(from.Path, v.at()) || strings.HasPrefix(from.Path, "//") {
		return v.listBefore()
	}
	q := from.Query()
	for _, name := range dones {
		q.Del(name)
	}
	return (&url.URL{Path: from.Path, RawPath: from.RawPath, RawQuery: q.Encode()}).String()
}

// awayAfter is how long a user must be inactive to be considered away.
const awayAfter = 10 * time.Minute

// lastLooked returns the time of the user's last visit to the project before the user went away, or the zero time if
// it is unknown. The browser stores this time in a cookie for the project, so each browser has its own time.
func (v *view) lastLooked() (looked time.Time) {
	name := "looked-" + cookieName(v.r)
	if v.p == nil {
		name = "all-" + name
	}
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

// counted returns a number with a noun, such as "2 messages".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
