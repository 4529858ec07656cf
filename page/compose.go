package page

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// draftShown is what the form for a message begins with.
type draftShown struct {
	*view
	ReplyTo    *index.MessageRow // what it answers; nil for a new message
	To, CC     string
	Subject    string
	Body       string
	Importance string
	Ack        bool
	Refused    string // why it was not sent; "" before somebody has tried
	Agents     []index.AgentRow
}

// ThreadID is the thread that the answer goes to.
func (d *draftShown) ThreadID() string { return cmp.Or(d.ReplyTo.ThreadID, d.ReplyTo.ID) }

// Levels are the degrees of importance; the first goes without saying.
func (d *draftShown) Levels() []string {
	return []string{format.Normal, format.Low, format.High, format.Urgent}
}

func (h *Page) compose(v *view) error {
	return v.showDraft(http.StatusOK, &draftShown{
		To:      v.asked("to"),
		Subject: v.asked("subject"),
		Body:    v.asked("body"),
	})
}

// showDraft shows the form of a message alone.
func (v *view) showDraft(status int, d *draftShown) (err error) {
	name, title := "compose", "New message"
	if d.ReplyTo != nil {
		name, title = "reply", "Reply"
	}
	if err := v.in("compose", title); err != nil {
		return err
	}
	if d.Agents, err = v.p.Agents(v.ctx()); err != nil {
		return err
	}
	d.view, v.Live = v, d.Refused == "" // the address of what was refused shows nothing anew
	return v.showAs(status, name, d)
}

// errNoText says that a message has nothing to tell.
var errNoText = errors.New("the message has no text")

// sending handles the form of a message. It shows the form again, as it came, where that is refused.
func (h *Page) sending(v *view) error {
	err := h.write(h.send)(v)
	if err == nil || errors.Is(err, errNoWrite) || v.ctx().Err() != nil {
		return err
	}
	form := v.r.PostForm
	d := &draftShown{
		To:         form.Get("to"),
		CC:         form.Get("cc"),
		Subject:    form.Get("subject"),
		Body:       form.Get("body"),
		Importance: form.Get("importance"),
		Ack:        form.Get("ack") != "",
	}
	if original := form.Get("reply_to"); original != "" {
		d.ReplyTo, _ = v.p.MessageHead(v.ctx(), original) // where it is gone, the text may become a new message
	}
	var status int
	status, d.Refused = v.reason(err)
	return v.showDraft(status, d)
}

// becomeAgent makes the person an agent of the project where they are none yet.
func (v *view) becomeAgent() (err error) {
	v.Me, _, err = v.p.Person(v.ctx(), v.Me)
	return err
}

// send sends what a form says: a new message, or with reply_to an answer.
func (h *Page) send(v *view) (to string, err error) {
	form := v.r.PostForm
	body := strings.ReplaceAll(form.Get("body"), "\r\n", "\n") // as browsers send it
	if strings.TrimSpace(body) == "" {
		return "", errNoText
	}
	original := form.Get("reply_to")
	var sent *maildir.Sent
	if original != "" {
		sent, err = v.box().Reply(v.ctx(), original, maildir.Draft{
			Body:        body,
			To:          names(form.Get("to")),
			AckRequired: form.Get("ack") != "",
			Key:         form.Get("key"),
		})
	} else {
		sent, err = v.box().Send(v.ctx(), maildir.Draft{
			To:          names(form.Get("to")),
			CC:          names(form.Get("cc")),
			Subject:     form.Get("subject"),
			Body:        body,
			Importance:  form.Get("importance"),
			AckRequired: form.Get("ack") != "",
			Key:         form.Get("key"),
		})
	}
	if err != nil {
		return "", err
	}
	if original != "" {
		v.readOriginal(original)
	}
	return saying(v.at("thread", cmp.Or(sent.ThreadID, sent.ID)), "sent", sent.ID, nil) + "#" + sent.ID, nil
}

// readOriginal marks what was answered as read, where it lies in the person's inbox.
func (v *view) readOriginal(id string) {
	const read = true
	if _, err := v.box().SetRead(v.ctx(), id, read); err != nil {
		v.page.cfg.Log.Debug("page: what was answered stays unread", "id", id, "error", err)
	}
}

// names reads a list of agents, with commas or spaces between them.
func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}

func joined(names []string) string { return strings.Join(names, ",") }

// mark does with a message what the form says: marks it in the person's inbox, puts it away, or
// deletes it for everybody.
func (h *Page) mark(v *view) (to string, err error) {
	id, as := v.r.PathValue("id"), v.r.PostForm.Get("as")
	switch as {
	case "acknowledged":
		_, err = v.box().Acknowledge(v.ctx(), id)
	case "read", "unread":
		_, err = v.box().SetRead(v.ctx(), id, as == "read")
	case "archived":
		_, err = v.box().Archive(v.ctx(), id)
	case "deleted":
		var gone *maildir.Deleted
		if gone, err = v.box().Delete(v.ctx(), id); err == nil {
			return saying(v.at("inbox"), as, id, gone.Readers()), nil
		}
	default:
		err = errNoView
	}
	switch {
	case err != nil:
		return "", err
	case as == "archived":
		return saying(v.at("inbox"), as, id, nil), nil
	}
	return v.messageSaying(id, as, nil)
}

// undo takes back what the person has done last to a message.
func (h *Page) undo(v *view) (to string, err error) {
	id := v.r.PathValue("id")
	undone, err := v.box().Undo(v.ctx(), maildir.Undoing{
		ID: id,
	})
	if err != nil {
		return "", err
	}
	return v.messageSaying(id, "undone", undone.Readers)
}

// messageSaying is the address of a message in its thread, or of the inbox where it is gone, with
// what was done to it.
func (v *view) messageSaying(id, done string, readers []string) (string, error) {
	m, err := v.p.Message(v.ctx(), id)
	switch {
	case errors.Is(err, maildir.ErrNotFound):
		return saying(v.at("inbox"), done, id, readers), nil
	case err != nil:
		return "", err
	}
	return saying(v.at("thread", cmp.Or(m.ThreadID, m.ID)), done, id, readers) + "#" + m.ID, nil
}
