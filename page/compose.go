package page

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// draftShown is the form for writing a message, with the form's initial content.
type draftShown struct {
	*view
	ReplyTo    *index.MessageRow // the message being answered; nil for a new message
	To, CC     string
	Off        []string // recipients among To and CC that are not selected
	Only       string   // recipient of a reply to the author alone; "" if the author is the only recipient anyway
	Subject    string
	Body       string
	Importance string
	Ack        bool
	Lost       bool       // the draft's files were lost and must be attached again
	Kept       []keptFile // files of a refused form, which are attached again unless the user removes them
	Faulty     string     // the field that caused the refusal; "" if none
	BCC        string     // bcc recipients of an undone message; the form cannot send to them again
	Refused    string     // the reason for the server's refusal; "" before the first attempt
	Agents     []index.AgentRow
	Elsewhere  []string // addresses of agents in other projects

	Asks   bool   // the thread asks the user for an answer or an acknowledgment
	YesNo  bool   // the Yes and No buttons can answer ReplyTo
	Shown  string // maildir.TextSum of ReplyTo, if YesNo is set
	Unread string // ids of unread messages, joined with commas; "" if the thread asks the user for something
	Unsent bool   // the user marked the thread as done, but the answer was not sent
}

// ThreadID returns the id of the thread to which the reply belongs.
func (d *draftShown) ThreadID() string { return cmp.Or(d.ReplyTo.ThreadID, d.ReplyTo.ID) }

// Levels returns the levels of importance, starting with the default.
func (d *draftShown) Levels() []string {
	return []string{format.Normal, format.Low, format.High, format.Urgent}
}

// replyTo returns the form for a reply to a message. By default, the reply goes to everyone on the message or, if the
// author is at another domain, only to the author. If the request has a "to" parameter, the reply goes to the names
// in it instead.
func (v *view) replyTo(m *index.MessageRow) (*draftShown, error) {
	all := v.box().Addressees(&m.Message)
	others := slices.Concat(all.To, all.CC)
	d := &draftShown{view: v, ReplyTo: m, To: joined(slices.Concat(all.Author, all.To)), CC: joined(all.CC)}
	if len(others) > 0 {
		d.Only = joined(all.Author)
	}
	if all.Outside && d.Only != "" {
		d.Off = others
	}
	if only := v.asked("to"); only != "" {
		d.To, d.CC, d.Off = only, "", nil
	}
	if again := v.undoneDraft(); again != nil && again.reply == m.ID {
		d.Off = nil
		d.To, d.CC, d.BCC, d.Body, d.Lost = again.to, again.cc, again.bcc, again.body, again.files > 0
	}
	return d, v.listAgents(d)
}

// mostElsewhere is the maximum number of addresses of other projects' agents that a form suggests.
const mostElsewhere = 200

// listAgents fills in the agents that a form suggests as recipients. Without a session, the agents of other projects
// are left out.
func (v *view) listAgents(d *draftShown) (err error) {
	if d.Agents, err = v.p.Agents.List(v.ctx()); err != nil || !v.Signed {
		return err
	}
	for _, p := range v.page.cfg.Store.Projects() {
		if p == v.p {
			continue
		}
		agents, err := p.Agents.List(v.ctx())
		if err != nil {
			return err
		}
		for _, a := range agents[:min(len(agents), mostElsewhere-len(d.Elsewhere))] {
			d.Elsewhere = append(d.Elsewhere, p.AddressOf(a.Name))
		}
	}
	return nil
}

func (h *Page) compose(v *view) error {
	d := &draftShown{
		To:      v.asked("to"),
		Subject: v.asked("subject"),
		Body:    v.asked("body"),
	}
	if again := v.undoneDraft(); again != nil {
		d.To, d.CC, d.BCC, d.Subject, d.Body = again.to, again.cc, again.bcc, again.subject, again.body
		d.Importance, d.Ack, d.Lost = again.importance, again.ack, again.files > 0
	}
	return v.showDraft(http.StatusOK, d)
}

// showDraft shows the form for a message next to the list, without a thread.
func (v *view) showDraft(status int, d *draftShown) (err error) {
	name, title := "compose", "New message"
	if d.ReplyTo != nil {
		name, title = "reply", "Reply"
	}
	if err := v.in("compose", title); err != nil {
		return err
	}
	if err := v.lay(nil); err != nil {
		return err
	}
	if err := v.listAgents(d); err != nil {
		return err
	}
	d.view, v.Live = v, d.Refused == "" && !d.Unsent // after a refused form, reloading would not show anything new
	return v.showAs(status, name, d)
}

// undoneDraft is the content of a message whose author undid the send.
type undoneDraft struct {
	who, id, reply string // reply is the id of the message being answered; "" if none
	to, cc, bcc    string
	subject, body  string
	importance     string
	ack            bool
	files          int
}

// undoneKept is the maximum number of undone messages to keep. The oldest ones are dropped.
const undoneKept = 20

// keepUndone keeps the content of a message when its send is undone, unless its text is too long for a view.
func (v *view) keepUndone(m *index.MessageRow, bcc []string) {
	if len(m.Body) > mostBody {
		return
	}
	d := undoneDraft{
		who:        v.session.Person,
		id:         m.ID,
		reply:      m.InReplyTo,
		to:         strings.Join(m.To, ", "),
		cc:         strings.Join(m.CC, ", "),
		bcc:        strings.Join(bcc, ", "),
		subject:    m.Subject,
		body:       m.Body,
		importance: m.Importance,
		ack:        m.AckRequired,
		files:      len(m.Attachments),
	}
	h := v.page
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.undone = append(h.undone, d); len(h.undone) > undoneKept {
		h.undone = slices.Delete(h.undone, 0, 1)
	}
}

// undoneDraft returns the content of the undone message named in the request, or nil if there is none.
func (v *view) undoneDraft() *undoneDraft {
	h := v.page
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.undone {
		if d := h.undone[i]; v.Signed && d.who == v.session.Person && d.id == v.asked(again) {
			return &d
		}
	}
	return nil
}

// again is the URL parameter that fills the form with the content of an undone message.
const again = "again"

// errNoText means that the message has no text. errNobody means that the user has not selected any recipient of a
// reply.
var (
	errNoText = errors.New("the message has no text")
	errNobody = errors.New("no recipient is selected")
)

// errUnsent means that the user wants to mark a thread as done, but the form also contains an answer that has not
// been sent.
var errUnsent = errors.New("the form contains an unsent answer")

// sending returns a handler for a form that contains a message. do sends the message. If the message is refused, the
// handler shows the form again with the same content.
func (h *Page) sending(do func(*view) (to string, err error)) func(*view) error {
	return func(v *view) error {
		err := h.write(keeping(do))(v)
		if err == nil || errors.Is(err, errNoWrite) || v.ctx().Err() != nil {
			return err
		}
		d := v.formDraft()
		var status int
		status, d.Refused = v.reason(err)
		d.Faulty = faulty(err)
		return v.showDraft(status, d)
	}
}

// finishing returns a handler for a button with which the user finishes a thread or a message. If the form also
// contains an answer, the handler shows the form again instead of calling do.
func (h *Page) finishing(do func(*view) (to string, err error)) func(*view) error {
	check := func(v *view) (string, error) {
		written := strings.TrimSpace(v.r.PostForm.Get("body")) != "" || len(v.uploads()) > 0
		if written && v.p != nil { // the list of all projects has no field for an answer
			return "", errUnsent
		}
		return do(v)
	}
	return func(v *view) error {
		err := h.write(keeping(check))(v)
		if !errors.Is(err, errUnsent) {
			return err
		}
		d := v.formDraft()
		d.Unsent = true
		return v.showDraft(http.StatusConflict, d)
	}
}

// formDraft returns the content of the form in the request.
func (v *view) formDraft() *draftShown {
	form := v.r.PostForm
	d := &draftShown{
		To:         strings.Join(form["to"], ", "),
		CC:         strings.Join(form["cc"], ", "),
		Subject:    form.Get("subject"),
		Body:       form.Get("body"),
		Importance: form.Get("importance"),
		Ack:        form.Get("ack") != "",
	}
	d.Kept, d.Lost = v.kept, v.lost
	if original := form.Get("reply_to"); original != "" {
		d.ReplyTo, _ = v.p.MessageHead(v.ctx(), original) // if the original is gone, the text becomes a new message
	}
	return d
}

// becomeAgent makes the user an agent of the project if necessary.
func (v *view) becomeAgent() (err error) {
	v.Me, _, err = v.p.Agents.Person(v.ctx(), v.Me)
	return err
}

// send sends the message in a form: a new message or, if reply_to is set, a reply. After a reply, the next thread in
// the list is shown.
func (h *Page) send(v *view) (to string, err error) {
	form := v.r.PostForm
	d := maildir.Draft{
		Body:        v.formBody(),
		To:          names(strings.Join(form["to"], ",")),
		CC:          names(strings.Join(form["cc"], ",")),
		Subject:     form.Get("subject"),
		Importance:  form.Get("importance"),
		AckRequired: form.Get("ack") != "",
		Key:         form.Get("key"),
		Anywhere:    true,
	}
	if strings.TrimSpace(d.Body) == "" {
		return "", errNoText
	}
	if d.Files, err = v.uploaded(); err != nil {
		return "", err
	}
	original := form.Get("reply_to")
	if original == "" {
		sent, err := v.box().Send(v.ctx(), d)
		if err != nil {
			return "", err
		}
		return v.saying(v.linkTo(&index.MessageRow{Message: sent.Message}), "sent", sent.ID, nil), nil
	}
	if len(d.To) == 0 {
		d.To, d.CC = d.CC, nil
	}
	if len(d.To) == 0 { // otherwise Reply would choose the recipients
		return "", errNobody
	}
	sent, err := v.box().Reply(v.ctx(), original, d)
	if err != nil {
		return "", err
	}
	return v.saying(cmp.Or(v.nextLink(), v.linkTo(&index.MessageRow{Message: sent.Message})), "sent", sent.ID, nil), nil
}

// formBody returns the text in a form.
func (v *view) formBody() string {
	return strings.ReplaceAll(v.r.PostForm.Get("body"), "\r\n", "\n") // browsers send CRLF
}

// errFiles means that the user answered yes or no with a form that contains files.
var errFiles = errors.New("a yes or no answer cannot include files")

// errAs means that the form's answer is neither yes nor no.
var errAs = errors.New("the answer is neither yes nor no")

// decide answers a question with yes or no, followed by the text in the form. Then the next thread in the list is
// shown.
func (h *Page) decide(v *view) (to string, err error) {
	if len(v.uploads())+len(v.r.PostForm["kept"]) > 0 {
		return "", errFiles
	}
	as := v.r.PostForm.Get("as")
	if as != "yes" && as != "no" {
		return "", errAs
	}
	answer := maildir.Decision{
		ID:    v.r.PathValue("id"),
		Yes:   as == "yes",
		Text:  strings.TrimSpace(v.formBody()),
		Shown: v.r.PostForm.Get("shown"),
	}
	decided, err := v.box().Decide(v.ctx(), answer)
	if err != nil {
		return "", err
	}
	thread := with(v.linkTo(&index.MessageRow{Message: decided.Sent.Message}), v.before())
	return v.saying(cmp.Or(v.nextLink(), thread), "sent", decided.ID, nil), nil
}

// laterFor is how long Later hides a thread.
const laterFor = 2 * time.Hour

// uploaded returns the files in a form.
func (v *view) uploaded() (all []attachment.File, err error) {
	for _, f := range v.keptFiles() {
		all = append(all, attachment.Named(f.Name, f.data))
	}
	for _, f := range v.uploads() {
		from, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(from)
		from.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, attachment.Named(filepath.Base(f.Filename), data))
	}
	return all, nil
}

// faulty returns the form field that a refusal refers to, or "" if it does not refer to a field.
func faulty(err error) string {
	var refused *maildir.Error
	switch {
	case errors.Is(err, errNoText):
		return "body"
	case errors.Is(err, errNobody):
		return "to"
	case !errors.As(err, &refused):
		return ""
	}
	switch refused.Field {
	case refusal.Recipients, refusal.To, refusal.Agent:
		return "to"
	case refusal.CC:
		return "cc"
	case refusal.Subject:
		return "subject"
	case refusal.Body:
		return "body"
	}
	return ""
}

// Extra reports whether the form must show its extra fields. It returns true if the draft has CC recipients, a refused
// CC field, or an importance other than normal.
func (d *draftShown) Extra() bool {
	return d.CC != "" || d.Faulty == "cc" || d.Importance != "" && d.Importance != format.Normal
}

// chip is a recipient of a reply that the user can remove.
type chip struct {
	Field, Name    string // Field is "to" or "cc"
	Selected, Sole bool   // whether Name gets the reply, and whether Name also gets a reply to the author alone
}

// Chips returns the recipients of a reply.
func (d *draftShown) Chips() (all []chip) {
	for _, name := range names(d.To) {
		all = append(all, chip{"to", name, d.Selected(name), slices.Contains(names(d.Only), name)})
	}
	for _, name := range names(d.CC) {
		all = append(all, chip{"cc", name, d.Selected(name), false})
	}
	return all
}

// Selected reports whether a recipient of a reply is selected.
func (d *draftShown) Selected(name string) bool { return !slices.Contains(d.Off, name) }

// names parses a list of names separated by commas, semicolons or spaces.
func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}

func joined(names []string) string { return strings.Join(names, ",") }

// mark performs the form's action on a message: it marks or archives the message in the user's inbox, hides its
// thread for a while, or deletes the message for everyone.
func (h *Page) mark(v *view) (to string, err error) {
	id, as := v.r.PathValue("id"), v.r.PostForm.Get("as")
	to = v.back()
	var readers []string
	switch as {
	case "acknowledged":
		_, err = v.box().Acknowledge(v.ctx(), id)
	case "read":
		_, err = v.box().SetRead(v.ctx(), id, true)
	case "unread":
		_, err = v.box().SetRead(v.ctx(), id, false)
		to = v.at() // showing the message would mark it as read
	case "archived":
		_, err = v.box().Archive(v.ctx(), id)
	case "later":
		err = v.later(id)
		to = cmp.Or(v.nextLink(), v.listBefore())
	case "deleted":
		var gone *maildir.Deleted
		if gone, err = v.box().Delete(v.ctx(), id); err == nil {
			to, readers = v.at(), slices.Concat(gone.Readers, gone.Outside)
		}
	default:
		err = errNoView
	}
	if err != nil {
		return "", err
	}
	return v.saying(to, as, id, readers), nil
}

// errLater means that Later is not offered for the message.
var errLater = errors.New("the message is not a question from a verified agent of this store")

// later hides the thread of a question. Like Yes and No, it works only for verified mail from this store, so that no
// other sender can make the user hide a thread.
func (v *view) later(id string) error {
	m, err := v.box().Delivery(v.ctx(), id)
	if err != nil {
		return err
	}
	if !v.box().Decides(m) {
		return errLater
	}
	_, err = v.box().Later(v.ctx(), id, laterFor)
	return err
}

// undo undoes the user's last operation on each of the messages in the request. If that operation sent the message, the
// browser then shows a form with the message's content.
func (h *Page) undo(v *view) (to string, err error) {
	each, err := v.byProject(names(v.r.PathValue("id")))
	if err != nil {
		return "", err
	}
	var ids, readers []string
	to = v.back()
	for _, in := range each {
		if err := in.becomeAgent(); err != nil {
			return "", err
		}
		for i := range in.ids {
			more, at, err := in.undoOne(&in.ids[i])
			if err != nil {
				return "", err
			}
			readers, to = append(readers, more...), cmp.Or(at, to)
		}
		if v.p == nil {
			in.ids = idsIn(in.Slug(), in.ids)
		}
		ids = append(ids, in.ids...)
	}
	return v.saying(to, "undone", joined(ids), readers), nil
}

// undoOne undoes the user's last operation on a message, and replaces id with the full id. It returns the recipients
// that had already read the message or received it at another domain. It also returns the URL of a view that shows the
// result, or "" if there is none.
func (v *view) undoOne(id *string) (readers []string, to string, err error) {
	if *id, err = v.p.FullID(v.ctx(), *id); err != nil {
		return nil, "", err
	}
	m, err := v.p.Message(v.ctx(), *id)
	if err != nil && !errors.Is(err, maildir.ErrNotFound) {
		return nil, "", err
	}
	var bcc []string
	if own, err := v.myInbox(index.InboxQuery{ID: *id}); err == nil && len(own.Messages) == 1 && own.Messages[0].From == v.Me {
		bcc = own.Messages[0].BCC
	}
	undone, err := v.box().Undo(v.ctx(), maildir.Undoing{ID: *id})
	if err != nil {
		return nil, "", err
	}
	switch undone.Operation {
	case "delete":
		if back, err := v.p.MessageHead(v.ctx(), undone.ID); err == nil {
			to = v.linkTo(back)
		}
	case "send", "reply":
		if m == nil { // the message's file has reappeared since then
			break
		}
		v.keepUndone(m, bcc)
		to = v.at("compose")
		if of, err := v.p.MessageHead(v.ctx(), m.InReplyTo); m.InReplyTo != "" && err == nil {
			to = v.at("thread", cmp.Or(of.ThreadID, of.ID)) + "?reply=" + url.QueryEscape(of.ID)
		}
		to = with(with(to, v.before()), url.Values{again: {m.ID}}) + "#reply"
	}
	return slices.Concat(undone.Readers, undone.Outside), to, nil
}
