package page

import (
	"cmp"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// composeShown is what the form for a new message begins with.
type composeShown struct {
	To, Subject, Body string
	Agents            []maildir.AgentRow
}

func (h *Page) compose(v *view) error {
	if err := v.in("compose", "New message"); err != nil {
		return err
	}
	agents, err := v.p.Agents(v.ctx())
	if err != nil {
		return err
	}
	return v.show("compose", composeShown{
		To:      v.asked("to"),
		Subject: v.asked("subject"),
		Body:    v.asked("body"),
		Agents:  agents,
	})
}

// becomeAgent makes the person an agent of the project where they are none yet.
func (v *view) becomeAgent() (err error) {
	v.Me, _, err = v.p.Person(v.ctx(), v.Me)
	return err
}

// send sends what a form says: a new message, or with reply_to an answer.
func (h *Page) send(v *view) error {
	if err := v.becomeAgent(); err != nil {
		return err
	}
	form := v.r.PostForm
	body := strings.ReplaceAll(form.Get("body"), "\r\n", "\n") // as browsers send it
	var sent *maildir.Sent
	var err error
	if original := form.Get("reply_to"); original != "" {
		sent, err = v.p.Reply(v.ctx(), maildir.ReplyDraft{
			From:        v.Me,
			ReplyTo:     original,
			Body:        body,
			To:          names(form.Get("to")),
			AckRequired: form.Get("ack") != "",
			Key:         form.Get("key"),
			Auth:        v.session.Auth,
			Door:        format.DoorPage,
		})
	} else {
		sent, err = v.p.Send(v.ctx(), maildir.Draft{
			From:        v.Me,
			To:          names(form.Get("to")),
			CC:          names(form.Get("cc")),
			Subject:     form.Get("subject"),
			Body:        body,
			Importance:  form.Get("importance"),
			AckRequired: form.Get("ack") != "",
			Key:         form.Get("key"),
			Auth:        v.session.Auth,
			Door:        format.DoorPage,
		})
	}
	if err != nil {
		return err
	}
	if original := form.Get("reply_to"); original != "" {
		v.readOriginal(original)
	}
	return v.goTo(v.at("thread", cmp.Or(sent.ThreadID, sent.ID)) + "?sent=" + sent.ID + "#" + sent.ID)
}

// readOriginal marks what was answered as read, where it lies in the person's inbox.
func (v *view) readOriginal(id string) {
	const read = true
	if _, err := v.p.SetRead(v.ctx(), v.Me, id, read); err != nil {
		v.page.cfg.Log.Debug("page: what was answered stays unread", "id", id, "error", err)
	}
}

// names reads a list of agents, with commas or spaces between them.
func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}

// mark marks a message of the person's inbox: read, unread, or acknowledged.
func (h *Page) mark(v *view) (err error) {
	id, as := v.r.PathValue("id"), v.r.PostForm.Get("as")
	switch as {
	case "acknowledged":
		_, err = v.p.Acknowledge(v.ctx(), v.Me, id)
	case "read", "unread":
		_, err = v.p.SetRead(v.ctx(), v.Me, id, as == "read")
	default:
		return errNoView
	}
	if err != nil {
		return err
	}
	m, err := v.p.Message(v.ctx(), id)
	if err != nil {
		return err
	}
	return v.goTo(v.linkTo(m))
}
