package page

import (
	"cmp"
	"encoding/xml"
	"html/template"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// threadSize is how many messages of a thread one view shows.
const threadSize = 50

type threadShown struct {
	ID       string
	Subject  string // of the first
	Messages []messageShown
	Earlier  bool        // messages come before these
	Next     string      // cursor of the messages after these; "" at the end
	Reply    *draftShown // the form below; nil for none
}

// messageShown is one message of a thread.
type messageShown struct {
	maildir.MessageRow
	HTML   template.HTML     // "": Body is shown as it is written
	Mine   *maildir.Delivery // nil where it is not in the person's inbox, and where the browser is not theirs
	Depth  int               // how many messages above it are answered by it, as far as they are here
	Status string            // of its sender
}

// threadPage reads one page of the thread of the address.
func (v *view) threadPage() (*maildir.ThreadPage, error) {
	q := maildir.ThreadQuery{
		Thread:   fromSegment(v.r.PathValue("id")),
		Bodies:   true,
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
	page, err := v.threadPage()
	if err != nil {
		return err
	}
	if page.Note != nil { // a message of the thread was named
		return v.goTo(v.at("thread", page.Thread))
	}
	shown := threadShown{ID: page.Thread, Earlier: v.asked("after") != ""}
	agents, err := v.p.Agents(v.ctx())
	if err != nil {
		return err
	}
	status := map[string]string{}
	for _, a := range agents {
		status[a.Name] = a.Status
	}
	depth := map[string]int{}
	for i := range page.Messages {
		m := &page.Messages[i]
		if d, ok := depth[m.InReplyTo]; ok {
			depth[m.ID] = d + 1
		} else {
			depth[m.ID] = 0
		}
		one := messageShown{
			MessageRow: *m,
			HTML:       bodyHTML(v.ctx(), m),
			Depth:      min(depth[m.ID], 3),
			Mine:       page.Own[m.ID],
			Status:     status[m.From],
		}
		shown.Messages = append(shown.Messages, one)
	}
	if page.Next != 0 {
		shown.Next = strconv.FormatInt(page.Next, 10)
	}
	title := "Thread"
	if n := len(shown.Messages); n > 0 {
		title = shown.Messages[0].Subject
		chosen := func(m messageShown) bool { return m.ID == v.asked("reply") }
		i := slices.IndexFunc(shown.Messages, chosen)
		if i < 0 {
			i = n - 1
		}
		shown.Subject, shown.Reply = title, &draftShown{view: v, ReplyTo: &shown.Messages[i].MessageRow}
	}
	if err := v.in("threads", title); err != nil {
		return err
	}
	return v.show("thread", shown)
}

// message leads to a message in its thread.
func (h *Page) message(v *view) error {
	m, err := v.p.Message(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.goTo(v.linkTo(m))
}

// raw shows a message's file as it is, to read and not to run. Where the canonical file is gone it
// needs a session: the sender's copy names who got it blind.
func (h *Page) raw(v *view) error {
	m, err := v.p.Message(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.Signed && format.Locate(m.Path).Kind != format.KindCanonical {
		return errNoView
	}
	data, _, err := v.p.Tree().Read(m.Path, attachment.MaxFile)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = v.w.Write(data)
	return nil
}

// file hands out an attachment, to be saved.
func (h *Page) file(v *view) error {
	f, err := v.p.Attachment(v.r.PathValue("sum"), attachment.MaxFile)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/octet-stream")
	v.w.Header().Set("Content-Disposition", `attachment; filename="`+filepath.Base(f.Path)+`"`)
	_, _ = v.w.Write(f.Data)
	return nil
}

// The feed of a thread: RFC 4287.
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

// atom is the newest messages of a thread as a feed.
func (h *Page) atom(v *view) error {
	const withBodies = true
	rows, err := v.p.Thread(v.ctx(), fromSegment(v.r.PathValue("id")), withBodies)
	if err != nil {
		return err
	}
	rows = rows[max(0, len(rows)-threadSize):]
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
			Content: atomText{"text", m.Body},
		})
	}
	data, err := xml.MarshalIndent(feed, "", " ")
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/atom+xml; charset=utf-8")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(append([]byte(xml.Header), data...))
	return nil
}
