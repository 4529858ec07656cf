package page

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"html/template"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// threadSize is the number of messages in one view of a thread.
const threadSize = 50

type threadShown struct {
	ID       string
	Subject  string // subject of the first message
	Messages []messageShown
	Earlier  bool        // there are earlier messages
	Later    string      // cursor for the next messages; "" at the end
	Asks     bool        // a message asks the user for an answer or an acknowledgment
	Urgent   string      // importance of a message that is new or asks for something; "" if normal
	Reply    *draftShown // form below the thread; nil if there is none
	Said     []partShown // summary of a long thread; nil if there is none

	opened []string // ids of the messages that were unread until the user opened the thread
}

// messageShown is one message in a thread.
type messageShown struct {
	index.MessageRow
	HTML   template.HTML   // if "", Body is shown as plain text
	Mine   *index.Delivery // nil without a session, or if the message is not in the user's inbox
	Depth  int             // indentation: number of messages in its chain of replies that have siblings, at most 3
	Open   bool            // shown in full rather than on one line
	Asks   bool            // whether it asks the user for an answer or an acknowledgment
	Status string          // status of the message's sender
	Sender string          // the name that the sender at another domain has chosen; "" if none
}

// at returns the creation time of the newest message.
func (t *threadShown) at() (at time.Time) {
	for i := range t.Messages {
		at = t.Messages[i].Created
	}
	return at
}

// row returns the thread's row in the list.
func (t *threadShown) row() maildir.WaitingThread {
	last := &t.Messages[len(t.Messages)-1]
	return maildir.WaitingThread{
		Thread:   t.ID,
		Message:  last.ID,
		Subject:  t.Subject,
		People:   []string{last.From},
		Line:     t.Line(*last),
		Messages: len(t.Messages),
		Files:    len(last.Attachments),
		At:       last.Created,
	}
}

// Line returns the beginning of a message's text on one line.
func (t *threadShown) Line(m messageShown) string { return markdown.PlainText(m.Body) }

// threadPage reads one page of the thread named in the request's path.
func (v *view) threadPage() (*maildir.ThreadPage, error) {
	q := index.ThreadQuery{
		Thread:   fromSegment(v.r.PathValue("id")),
		Bodies:   true,
		MostBody: mostBody,
		MostText: mostText,
		Receipts: true,
		Limit:    threadSize,
	}
	q.After, _ = strconv.ParseInt(v.asked("after"), 10, 64)
	if v.Signed {
		q.Agent = v.Me
	}
	return v.p.ThreadPage(v.ctx(), q)
}

func (h *Page) thread(v *view) error {
	page, opened, err := v.openPage()
	if err != nil {
		return err
	}
	if page.Note != nil { // the path contained the id of a message in the thread
		return v.goTo(v.at("thread", page.Thread) + v.With())
	}
	h.cfg.Looked(v.p.Slug, page.Thread)
	if err := v.in("thread", "Thread"); err != nil {
		return err
	}
	shown := threadShown{ID: page.Thread, Earlier: v.asked("after") != "", opened: opened}
	answers, err := v.fold(&shown, page)
	if err != nil {
		return err
	}
	if page.Next != 0 {
		shown.Later = strconv.FormatInt(page.Next, 10)
	}
	if len(shown.Messages) >= saidFrom || shown.Earlier || shown.Later != "" {
		if shown.Said, err = v.said(page.Thread); err != nil {
			return err
		}
	}
	var open *threadShown
	if answers != nil {
		open = &shown
		v.Title, shown.Subject = shown.Messages[0].Subject, shown.Messages[0].Subject
		for i := range shown.Messages {
			if shown.Messages[i].ID == v.asked("reply") {
				answers = &shown.Messages[i]
				answers.Open = true
			}
		}
		form, err := v.replyTo(&answers.MessageRow)
		if err != nil {
			return err
		}
		shown.Reply, form.Asks = form, shown.Asks
		form.YesNo = answers.Asks && answers.BodyNext == 0 && v.box().Decides(answers.Mine)
		if form.YesNo {
			form.Shown = maildir.TextSum(answers.Subject, answers.Body)
		}
		if !shown.Asks {
			form.Unread = joined(shown.unread())
		}
	}
	if err := v.lay(open); err != nil {
		return err
	}
	return v.show("thread", &shown)
}

// fold prepares the messages of a thread for display. It opens messages that are new, messages that ask for something,
// and the newest message. It returns the message that a reply by the user answers. This is the newest message that asks
// the user for something or, if there is none, the newest message that the user received or wrote. Without such a
// message, it is the newest message of all. If the thread is empty, fold returns nil.
func (v *view) fold(shown *threadShown, page *maildir.ThreadPage) (answers *messageShown, err error) {
	agents, err := v.p.Agents.List(v.ctx())
	if err != nil {
		return nil, err
	}
	status := map[string]string{}
	for _, a := range agents {
		status[a.Name] = a.Status
	}
	children, depth := map[string]int{}, map[string]int{}
	for i := range page.Messages {
		children[page.Messages[i].InReplyTo]++
	}
	made := 0 // number of bytes of HTML
	for i := range page.Messages {
		m := &page.Messages[i]
		var body template.HTML
		if made < mostHTML {
			body = bodyHTML(m)
			made += len(body)
		}
		above, ok := depth[m.InReplyTo]
		if ok && children[m.InReplyTo] > 1 {
			above++
		}
		depth[m.ID] = min(above, 3)
		shown.Messages = append(shown.Messages, messageShown{
			MessageRow: *m,
			HTML:       body,
			Depth:      depth[m.ID],
			Open:       i == len(page.Messages)-1,
			Mine:       page.Own[m.ID],
			Status:     status[m.From],
			Sender:     v.senderName(m),
		})
	}
	// A question is answered if the user has written to its author since. See index.Replied.ByAgent.
	wrote, answered := false, map[string]bool{}
	for i := len(shown.Messages) - 1; i >= 0; i-- {
		m := &shown.Messages[i]
		if m.From == v.Me {
			wrote = true
			for _, to := range slices.Concat(m.To, m.CC) {
				answered[to] = true
			}
		}
		d := m.Mine
		got := d != nil && !d.Archived && d.Kind != index.KindSent
		open := !answered[m.From] && !(wrote && strings.Contains(m.From, "@"))
		m.Asks = got && !d.Acked && (m.AckRequired || open && d.Kind == "to" && m.Question && !format.ServerName(m.From))
		m.Open = m.Open || m.Asks || m.unread() || slices.Contains(shown.opened, m.ID)
		if answers == nil && (got || wrote) || m.Asks && !shown.Asks {
			answers = m
		}
		shown.Asks = shown.Asks || m.Asks
		if urgent(m.Importance) && m.Open && got && shown.Urgent != format.Urgent {
			shown.Urgent = m.Importance
		}
	}
	if n := len(shown.Messages); answers == nil && n > 0 {
		answers = &shown.Messages[n-1]
	}
	return answers, nil
}

// opens reports whether the user is opening the view by following a link or submitting a form on this page. Prefetches,
// requests by the script, requests from other sites, and requests without a browser's Sec-Fetch headers do not count. A
// view that is shown as the result of an action (didWhat) does not count either, because the user did not choose to
// open it.
func (v *view) opens() bool {
	h := v.r.Header
	return v.Signed && v.r.Method == http.MethodGet && h.Get(fragmentHeader) == "" &&
		h.Get("Sec-Fetch-Site") == "same-origin" && h.Get("Sec-Fetch-Mode") == "navigate" &&
		h.Get("Sec-Purpose") == "" && h.Get("Purpose") == "" && v.asked(didWhat) == ""
}

// unread reports whether the message is unread in the user's inbox.
func (m messageShown) unread() bool { return unread(m.Mine) }

// unread reports whether a message is unread in the inbox that contains the delivery d. If d is nil, the message is not
// in the inbox.
func unread(d *index.Delivery) bool {
	return d != nil && !d.Read && !d.Archived && d.Kind != index.KindSent
}

// unread returns the ids of the unread messages in the view.
func (t *threadShown) unread() (ids []string) {
	for i := range t.Messages {
		if t.Messages[i].unread() {
			ids = append(ids, t.Messages[i].ID)
		}
	}
	return ids
}

// openPage is like threadPage. If the user is opening the view, it also marks the messages on the page as read, and
// returns the ids of the messages that were unread. The page and the view's state are then read again. Otherwise, the
// stream would report these marks as a change, and the browser would load the view a second time.
func (v *view) openPage() (page *maildir.ThreadPage, opened []string, err error) {
	page, err = v.threadPage()
	if err != nil || page.Note != nil || !v.opens() { // if there is a note, the browser is redirected
		return page, nil, err
	}
	ctx := format.Through(context.WithoutCancel(v.ctx()), format.DoorPage)
	for i := range page.Messages {
		id := page.Messages[i].ID
		if !unread(page.Own[id]) {
			continue
		}
		const read = true
		if _, err := v.box().SetRead(ctx, id, read); err != nil {
			v.page.cfg.Log.Warn("page: failed to mark a message as read", "id", id, "error", err)
			break
		}
		opened = append(opened, id)
	}
	if len(opened) > 0 {
		v.State = v.page.stateOf(v.p)
		page, err = v.threadPage()
	}
	return page, opened, err
}

// Heard returns a phrase that states whether the other recipients have received, read and answered a message. If there
// are no other recipients, it returns "".
func (v *view) Heard(m messageShown) string {
	var others []string
	read, acked, lost, unanswered := 0, 0, 0, 0
	for i := range m.Receipts {
		r := &m.Receipts[i]
		if r.Agent == v.Me || r.Agent == m.From {
			continue
		}
		others = append(others, r.Agent)
		switch {
		case r.Unanswered:
			unanswered++
			read++
		case r.Acked:
			acked++
			read++
		case r.Read:
			read++
		case r.Status == "" && !r.Delivered:
			lost++
		}
	}
	all := len(others)
	of := func(n int, did string) string {
		if all == 1 {
			return did
		}
		return did + " by " + strconv.Itoa(n) + " of " + strconv.Itoa(all)
	}
	switch {
	case all == 0:
		return ""
	case lost > 0:
		return of(lost, "not delivered")
	case unanswered > 0:
		return of(unanswered, "archived without an answer")
	case acked > 0 && (acked == read || m.AckRequired):
		return of(acked, "acknowledged")
	case read > 0:
		return of(read, "read")
	case all == 1:
		return others[0] + " has not read it"
	case all == 2:
		return others[0] + " and " + others[1] + " have not read it"
	}
	return "none of the " + strconv.Itoa(all) + " have read it"
}

// Blind returns the bcc recipients of a message that the user may see: all of them if the user wrote the message, and
// otherwise only the user.
func (v *view) Blind(m messageShown) []string {
	switch {
	case len(m.To)+len(m.CC) == 0:
		return v.recipientsOf(&m.MessageRow)
	case m.Mine == nil:
		return nil
	}
	return m.Mine.BCC
}

// message redirects to a message within its thread.
func (h *Page) message(v *view) error {
	m, err := v.p.MessageHead(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.goTo(v.linkTo(m))
}

// linkTo returns the URL of a message within its thread.
func (v *view) linkTo(m *index.MessageRow) string {
	return v.at("thread", cmp.Or(m.ThreadID, m.ID)) + "#" + m.ID
}

// LinkTo is like linkTo, for use in templates.
func (v *view) LinkTo(m index.MessageRow) string { return v.linkTo(&m) }

// raw shows a message's file as plain text. If the canonical file is gone, a session is required, because the sender's
// copy contains the bcc recipients.
func (h *Page) raw(v *view) error {
	m, err := v.p.MessageHead(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.Signed && format.Locate(m.Path).Kind != format.KindCanonical {
		return errNoView
	}
	file, st, err := v.p.OpenFile(m.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !st.Mode.IsRegular() {
		return errNoView
	}
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.writePieces(http.StatusOK, st.Size, file)
	return nil
}

// file serves an attachment.
func (h *Page) file(v *view) error {
	f, err := v.p.OpenAttachment(v.r.PathValue("sum"), attachment.MaxFile)
	if err != nil {
		return err
	}
	defer f.Close()
	return v.writeFile(f, filepath.Base(f.Path))
}

// These types define the Atom feed of a thread (RFC 4287).
type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Entries []atomEntry `xml:"entry"`
	}
	atomEntry struct {
		ID      string   `xml:"id"`
		Title   string   `xml:"title"`
		Updated string   `xml:"updated"`
		Author  string   `xml:"author>name"`
		Link    atomLink `xml:"link"`
		Content atomText `xml:"content"`
	}
	atomLink struct {
		Href string `xml:"href,attr"`
	}
	atomText struct {
		Type string `xml:"type,attr"`
		Text string `xml:",chardata"`
	}
)

// atom serves a thread's newest messages as a feed.
func (h *Page) atom(v *view) error {
	q := index.ThreadQuery{
		Thread:   fromSegment(v.r.PathValue("id")),
		Limit:    threadSize,
		Newest:   true,
		Bodies:   true,
		MostBody: mostBody,
		MostText: mostText,
	}
	page, err := v.p.ThreadPage(v.ctx(), q)
	if err != nil {
		return err
	}
	rows := page.Messages
	last := rows[len(rows)-1]
	feed := atomFeed{
		ID:      "urn:mailtree:" + v.Project.Slug + ":" + cmp.Or(last.ThreadID, last.ID),
		Title:   rows[0].Subject,
		Updated: last.Created.UTC().Format(time.RFC3339),
	}
	for i := len(rows) - 1; i >= 0; i-- {
		m := &rows[i]
		feed.Entries = append(feed.Entries, atomEntry{
			ID:      "urn:mailtree:" + v.Project.Slug + ":" + m.ID,
			Title:   m.Subject,
			Updated: m.Created.UTC().Format(time.RFC3339),
			Author:  m.From,
			Link:    atomLink{"http://" + v.r.Host + v.linkTo(m)},
			Content: atomText{"text", m.Body + v.rest(m)},
		})
	}
	data, err := xml.MarshalIndent(feed, "", " ")
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/atom+xml; charset=utf-8")
	v.writeWhole(http.StatusOK, append([]byte(xml.Header), data...))
	return nil
}

// rest returns the sentence to show after a truncated body, or "" if the whole body is shown.
func (v *view) rest(m *index.MessageRow) string {
	if m.BodyNext == 0 {
		return ""
	}
	return fmt.Sprintf("\n[%d of %d bytes are shown; full text: http://%s%s]",
		len(m.Body), m.BodyBytes, v.r.Host, v.at("message", m.ID, "raw"))
}
