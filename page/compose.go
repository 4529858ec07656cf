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

// draftShown is the initial content of the form for a message.
type draftShown struct {
	*view
	ReplyTo    *index.MessageRow // the message that it answers; nil for a new message
	To, CC     string
	Subject    string
	Body       string
	Importance string
	Ack        bool
	Refused    string // why it was not sent; "" before the first try
	Agents     []index.AgentRow
}

// ThreadID returns the thread of the answer.
func (d *draftShown) ThreadID() string { return cmp.Or(d.ReplyTo.ThreadID, d.ReplyTo.ID) }

// Levels lists the degrees of importance; the first is the default.
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

// showDraft shows only the form of a message.
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
	d.view, v.Live = v, d.Refused == "" // reloading the address of a refused form would show nothing new
	return v.showAs(status, name, d)
}

// errNoText says that the message has no text.
var errNoText = errors.New("the message has no text")

// sending handles the form of a message. If it is refused, sending shows the form again as it came.
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
		d.ReplyTo, _ = v.p.MessageHead(v.ctx(), original) // if the original is gone, the text may become a new message
	}
	var status int
	status, d.Refused = v.reason(err)
	return v.showDraft(status, d)
}

// becomeAgent registers the person as an agent of the project if necessary.
func (v *view) becomeAgent() (err error) {
	v.Me, _, err = v.p.Person(v.ctx(), v.Me)
	return err
}

// send sends the message of a form: a new message, or with reply_to an answer.
func (h *Page) send(v *view) (to string, err error) {
	form := v.r.PostForm
	body := strings.ReplaceAll(form.Get("body"), "\r\n", "\n") // browsers send CRLF
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

// readOriginal marks the answered message as read if it is in the person's inbox.
func (v *view) readOriginal(id string) {
	const read = true
	if _, err := v.box().SetRead(v.ctx(), id, read); err != nil {
		v.page.cfg.Log.Debug("page: what was answered stays unread", "id", id, "error", err)
	}
}

// names parses a list of agents separated by commas or spaces.
func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}

func joined(names []string) string { return strings.Join(names, ",") }

// mark does to a message what the form says: it marks it in the person's inbox, archives it, or deletes it
// for everyone.
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
			return saying(v.at("inbox"), as, id, gone.Readers), nil
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

// undo takes back the person's last operation on a message.
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

// messageSaying returns the address of a message in its thread, or of the inbox if the message is gone,
// with a note on what was done to it.
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
