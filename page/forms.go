package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// Each form is handled only once. A second click gets the same response as the first. The response redirects the
// browser to a view that shows the outcome and offers to undo the action.

// formsKept is the number of handled forms to remember.
const formsKept = 1000

// forms contains the most recently handled forms. It is safe for concurrent use.
type forms struct {
	mu  sync.Mutex
	by  map[formSum]*handling // by URL and content; a changed form counts as a new one
	old []formSum             // keys of by, oldest first
}

type formSum [sha256.Size]byte

// handling is a form that is being handled or has been handled.
type handling struct {
	done chan struct{}
	to   string
	err  error
}

// errBroken is the result for later copies of a form if do panicked while handling the first copy.
var errBroken = errors.New("an earlier submission of this form was interrupted")

// handleOnce calls do for the first copy of a form and returns the same result for later copies. A refused form may be
// sent again.
func (f *forms) handleOnce(ctx context.Context, form formSum, do func() (string, error)) (to string, err error) {
	f.mu.Lock()
	first, again := f.by[form]
	if !again {
		first = &handling{done: make(chan struct{})}
		f.by[form] = first
		if f.old = append(f.old, form); len(f.old) > formsKept {
			delete(f.by, f.old[0])
			f.old = f.old[1:]
		}
	}
	f.mu.Unlock()
	if again {
		select {
		case <-first.done:
			return first.to, first.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	first.err = errBroken
	defer func() {
		if first.err != nil {
			f.mu.Lock()
			delete(f.by, form)
			f.mu.Unlock()
		}
		close(first.done)
	}()
	first.to, first.err = do()
	return first.to, first.err
}

// maxForm is the maximum size in bytes of a form without its files. Even the largest message fits in such a form after
// it is escaped. maxUpload is the maximum size of the form's files. Up to inMemory bytes are kept in memory, and the
// rest in temporary files.
const (
	maxForm   = 12 << 20
	maxUpload = attachment.MaxTotal
	inMemory  = 2 << 20
)

// write returns a handler for a form. The handler calls do only if the form was sent by a page in this session, and
// only once for each form. do returns the URL that the browser shows next.
func (h *Page) write(do func(*view) (to string, err error)) func(*view) error {
	return func(v *view) error {
		if !v.Signed || !ownOrigin(v.r) {
			return errNoWrite
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm+maxUpload)
		err := v.r.ParseMultipartForm(inMemory)
		if f := v.r.MultipartForm; f != nil {
			defer f.RemoveAll() //nolint:errcheck // leftovers are among the system's temporary files
		}
		if err != nil && !errors.Is(err, http.ErrNotMultipart) {
			v.fail(http.StatusBadRequest, "The form is incomplete or too large.")
			return nil
		}
		// Handling continues when the request ends, so that a second click gets the result even if the first click's
		// connection is gone.
		v.r = v.r.WithContext(format.Through(context.WithoutCancel(v.r.Context()), format.DoorPage))
		form := v.r.PostForm
		if !hmac.Equal([]byte(form.Get("csrf")), []byte(v.CSRF())) {
			return errNoWrite
		}
		handle := func() (string, error) {
			if v.p == nil { // do calls becomeAgent in each of the form's projects
				return do(v)
			}
			if err := v.becomeAgent(); err != nil {
				return "", err
			}
			return do(v)
		}
		var to string
		if form.Get("key") == "" {
			to, err = handle()
		} else {
			var sum formSum
			if sum, err = v.formSum(); err == nil {
				to, err = h.forms.handleOnce(v.ctx(), sum, handle)
			}
		}
		if err != nil {
			return err
		}
		return v.goTo(to)
	}
}

// formSum returns a checksum of a form: its fields and files. It returns an error if a file cannot be read.
func (v *view) formSum() (sum formSum, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s?%s", v.Path, v.r.PostForm.Encode())
	for _, u := range v.uploads() {
		f, err := u.Open()
		if err != nil {
			return sum, fmt.Errorf("cannot read the uploaded file %q: %w", u.Filename, err)
		}
		fmt.Fprintf(h, "\n%q %d\n", u.Filename, u.Size)
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return sum, fmt.Errorf("cannot read the uploaded file %q: %w", u.Filename, err)
		}
	}
	return formSum(h.Sum(nil)), nil
}

// uploads returns the files in a form.
func (v *view) uploads() []*multipart.FileHeader {
	if v.r.MultipartForm == nil {
		return nil
	}
	return v.r.MultipartForm.File["file"]
}

// CSRF returns a value that proves that a form comes from one of this page's views.
func (v *view) CSRF() string {
	if !v.Signed {
		return ""
	}
	return v.page.signature("form", v.page.signed(&v.session))
}

// FormKey returns an idempotency key for a form, so that a second click does not send the message again.
func (v *view) FormKey() string { return "page-" + rand.Text() }

// outcome describes the user's last action, according to the request's URL.
type outcome struct {
	Text    string
	Subject string   // subject of the affected message; "" if there are several messages or Text contains the subject
	Undo    string   // URL that undoes the operation; "" if it cannot be undone
	Readers []string // agents that had read the message
	Outside []string // recipients at other domains, whose copies cannot be recalled
	Told    bool     // whether the readers were notified
	Link    string   // URL of the sent message; "" if none was sent
}

// didWhat, didID and didIn are the URL parameters that describe an action: its kind, the ids of its messages (joined
// with commas), and its project. If didIn is empty, each message id is preceded by its project (see byProject). The
// variable dones contains all parameters that describe an outcome.
const (
	didWhat = "did"
	didID   = "of"
	didIn   = "at"
)

var dones = []string{didWhat, didID, didIn, "readers", "said", "by"}

// didWords maps each kind of action to a sentence that describes the outcome.
var didWords = map[string]string{
	"sent":         "Sent.",
	"read":         "Marked as read.",
	"unread":       "Marked as unread.",
	"acknowledged": "Acknowledged.",
	"archived":     "Archived.",
	"later":        "Hidden for two hours.",
	"deleted":      "Deleted for everyone.",
	"undone":       "Undone.",
	"released":     "Released.",
	"freed":        "Released. The holder has been notified.",
	"held":         "The agent is on hold and has been notified.",
	"let go":       "The hold has ended. The agent has been notified.",
}

// Done returns the outcome in the request's URL, or nil if there is none.
func (v *view) Done() *outcome {
	if text := v.asked("said"); text != "" && hmac.Equal([]byte(v.asked("by")), []byte(v.page.signature("said", text))) {
		return &outcome{Text: text}
	}
	what, of := v.asked(didWhat), v.asked(didID)
	said := saidOf(what, of, v.asked(didIn), v.asked("readers"))
	if !hmac.Equal([]byte(v.asked("by")), []byte(v.page.signature("done", said.Encode()))) {
		return nil
	}
	in, err := v.inside(v.asked(didIn))
	if err != nil {
		return nil // the project has since been removed
	}
	return in.done(what, of)
}

// done returns the outcome of an operation on messages. If the view has no project, the messages may be in several
// projects.
func (v *view) done(what, of string) *outcome {
	d := &outcome{Text: didWords[what]}
	for _, name := range names(v.asked("readers")) {
		if v.Outside(name) {
			d.Outside = append(d.Outside, name)
		} else {
			d.Readers = append(d.Readers, name)
		}
	}
	switch what {
	case "undone":
		d.Told = true
	case "released":
		d.Undo = v.at("claims", "undo")
	case "sent":
		v.tellSent(d, of)
		fallthrough
	default:
		d.Undo = v.at("message", of, "undo")
	}
	if d.Text == "" || of == "" {
		return nil
	}
	switch n := len(names(of)); {
	case n > 1 && what != "undone" && what != "released":
		d.Text = strings.TrimSuffix(d.Text, ".") + ": " + counted(n, "message") + "."
	case !slices.Contains([]string{"sent", "freed", "held", "let go"}, what):
		if d.Subject = v.subjectOf(of); d.Subject != "" {
			d.Text = strings.TrimSuffix(d.Text, ".") + ":"
		}
	}
	return d
}

// subjectOf returns the subject of a message, or "" if the message is unknown. It also finds an undone message whose
// content was kept.
func (v *view) subjectOf(id string) string {
	each, err := v.byProject([]string{id})
	if err != nil {
		return ""
	}
	in, id := each[0].view, each[0].ids[0]
	if m, err := in.p.MessageHead(v.ctx(), id); err == nil && v.Signed {
		return m.Subject
	}
	if d := v.undoneDraft(); d != nil && d.id == id {
		return d.subject
	}
	return ""
}

// tellSent adds the recipients of a sent message to d. It also adds whether sending the message acknowledged the
// message that it answers.
func (v *view) tellSent(d *outcome, id string) {
	m, err := v.p.MessageHead(v.ctx(), id)
	if err != nil || !v.Signed || m.From != v.Me {
		return
	}
	to := slices.Concat(m.To, m.CC)
	d.Link, d.Text = v.linkTo(m), "Sent to "+strings.Join(to, ", ")
	if len(to) > 4 {
		d.Text = "Sent to " + counted(len(to), "agent")
	}
	if m.InReplyTo != "" {
		if of, err := v.box().Delivery(v.ctx(), m.InReplyTo); err == nil && of.AckRequired && of.Acked {
			d.Text += ", acknowledged"
		}
	}
	if queued := v.p.Queued(v.ctx(), id); len(queued) > 0 {
		d.Text += ", queued for " + strings.Join(queued, ", ")
	}
	d.Text += "."
}

// saidAt returns path with a URL parameter that contains one of the page's own sentences. The sentence is signed, so
// that nobody else can create a link that makes a view show other text.
func (v *view) saidAt(path, text string) string {
	return with(path, url.Values{"said": {text}, "by": {v.page.signature("said", text)}})
}

// saying adds parameters to a URL. The parameters describe an action on a message, and the recipients that had read the
// message or received it at another domain. They are signed, as in saidAt.
func (v *view) saying(to, done, id string, readers []string) string {
	q := saidOf(done, id, v.Slug(), joined(readers))
	q.Set("by", v.page.signature("done", q.Encode()))
	return with(to, q)
}

// saidOf returns the URL parameters that describe an action.
func saidOf(done, ids, project, readers string) url.Values {
	q := url.Values{didWhat: {done}, didID: {ids}, didIn: {project}}
	if readers != "" {
		q.Set("readers", readers)
	}
	return q
}

// with adds parameters to a URL.
func with(to string, q url.Values) string {
	if len(q) == 0 {
		return to
	}
	to, anchor, anchored := strings.Cut(to, "#")
	sign := "?"
	if strings.Contains(to, "?") {
		sign = "&"
	}
	to += sign + q.Encode()
	if anchored {
		to += "#" + anchor
	}
	return to
}
