package page

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"html/template"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// threadSize is how many messages of a thread one view shows.
const threadSize = 50

type threadShown struct {
	ID       string
	Subject  string // of the first message
	Messages []messageShown
	Earlier  bool        // there are earlier messages
	Next     string      // cursor of the next messages; "" at the end
	Reply    *draftShown // the form below; nil for none
}

// messageShown is one message of a thread.
type messageShown struct {
	index.MessageRow
	HTML   template.HTML   // "": show Body as it is written
	Mine   *index.Delivery // nil if it is not in the person's inbox, or without a session
	Depth  int             // how many of the messages shown above it form its chain of replies
	Status string          // presence of its sender
}

// threadPage reads one page of the thread in the address.
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
	page, err := v.threadPage()
	if err != nil {
		return err
	}
	if page.Note != nil { // the address named a message of the thread
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
			HTML:       bodyHTML(m),
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

// message redirects to a message in its thread.
func (h *Page) message(v *view) error {
	m, err := v.p.MessageHead(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.goTo(v.linkTo(m))
}

// raw shows a message's file as plain text. If the canonical file is gone it needs a session, because the
// sender's copy names the bcc recipients.
func (h *Page) raw(v *view) error {
	m, err := v.p.MessageHead(v.ctx(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.Signed && format.Locate(m.Path).Kind != format.KindCanonical {
		return errNoView
	}
	file, st, err := v.p.Tree.Open(m.Path)
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

// atom serves the newest messages of a thread as a feed.
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

// rest returns the sentence after a body that is shown in part; "" if all of it is shown.
func (v *view) rest(m *index.MessageRow) string {
	if m.BodyNext == 0 {
		return ""
	}
	return fmt.Sprintf("\n[%d of %d bytes are shown; all of them: http://%s%s]",
		len(m.Body), m.BodyBytes, v.r.Host, v.at("message", m.ID, "raw"))
}
