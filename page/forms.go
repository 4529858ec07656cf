package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// Each form is handled only once: a second click gets the answer to the first. Every form is answered with the address
// of a view that shows what was done (outcome) and offers to undo it.

// formsKept is how many handled forms are remembered.
const formsKept = 1000

// forms contains the recently handled forms. It is safe for concurrent use.
type forms struct {
	mu  sync.Mutex
	by  map[formSum]*handling // by address and content: a changed form counts as new
	old []formSum             // keys of by, the oldest first
}

type formSum [sha256.Size]byte

// handling is a form that is being handled or was handled.
type handling struct {
	done chan struct{}
	to   string
	err  error
}

// errBroken is the error for later copies of a form if do panicked for the first.
var errBroken = errors.New("handling of the same form was interrupted")

// handleOnce calls do for the first copy of a form, and returns the same result for later copies. A refused form may
// be sent again.
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

// maxForm is the maximum size in bytes of a form without its files: the largest message, escaped. maxUpload is the
// maximum size of its files. inMemory is how many of the bytes are kept in memory; the rest go to temporary files.
const (
	maxForm   = 12 << 20
	maxUpload = attachment.MaxTotal
	inMemory  = 2 << 20
)

// write returns a handler that calls do for a form only if a page in this session has sent it, and only once for each
// form. do returns the address that the browser shows next.
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
		// Handling does not stop when the request ends: a second click gets the result even if the first click's
		// connection is gone.
		v.r = v.r.WithContext(format.Through(context.WithoutCancel(v.r.Context()), format.DoorPage))
		form := v.r.PostForm
		if !hmac.Equal([]byte(form.Get("csrf")), []byte(v.CSRF())) {
			return errNoWrite
		}
		handle := func() (string, error) {
			if err := v.becomeAgent(); err != nil {
				return "", err
			}
			return do(v)
		}
		var to string
		if form.Get("key") == "" {
			to, err = handle()
		} else {
			to, err = h.forms.handleOnce(v.ctx(), v.formSum(), handle)
		}
		if err != nil {
			return err
		}
		return v.goTo(to)
	}
}

// formSum returns the checksum of a form: its fields, and the names and sizes of its files.
func (v *view) formSum() formSum {
	text := v.Path + "?" + v.r.PostForm.Encode()
	for _, f := range v.uploads() {
		text += "\n" + f.Filename + " " + strconv.FormatInt(f.Size, 10)
	}
	return sha256.Sum256([]byte(text))
}

// uploads returns the files of a form.
func (v *view) uploads() []*multipart.FileHeader {
	if v.r.MultipartForm == nil {
		return nil
	}
	return v.r.MultipartForm.File["file"]
}

// CSRF returns the value that proves that a form comes from a view of this page.
func (v *view) CSRF() string {
	if !v.Signed {
		return ""
	}
	return v.page.signature("form", v.page.signed(&v.session))
}

// FormKey returns a form's idempotency key: with it, a second click sends nothing.
func (v *view) FormKey() string { return "page-" + rand.Text() }

// outcome describes what the user has just done, according to the address of the view.
type outcome struct {
	Text    string
	Subject string   // of the affected message; "" if there are several or Text contains it
	Undo    string   // the address that undoes it; "" if it cannot be undone
	Readers []string // the agents that had read it
	Outside []string // recipients at other domains, who keep what they received
	Told    bool     // the readers were notified
	Link    string   // to the sent message; "" if none was sent
}

// didWhat and didID are the parameters of an address that say what was done, and to which messages (joined with
// commas). dones are all parameters that describe an outcome.
const (
	didWhat = "did"
	didID   = "of"
)

var dones = []string{didWhat, didID, "readers", "said", "by"}

// didWords contains the sentences that say what was done.
var didWords = map[string]string{
	"sent":         "Sent.",
	"read":         "Marked as read.",
	"unread":       "Marked as unread.",
	"acknowledged": "Acknowledged.",
	"archived":     "Archived.",
	"settled":      "Done.",
	"deleted":      "Deleted for everyone.",
	"undone":       "Undone.",
	"released":     "Released.",
	"freed":        "Released. The holder has been notified.",
}

// Done returns the outcome in the address, or nil if there is none.
func (v *view) Done() *outcome {
	if text := v.asked("said"); text != "" && hmac.Equal([]byte(v.asked("by")), []byte(v.page.signature("said", text))) {
		return &outcome{Text: text}
	}
	what, of := v.asked(didWhat), v.asked(didID)
	if !hmac.Equal([]byte(v.asked("by")), []byte(v.page.signature("done", saidOf(what, of, v.asked("readers")).Encode()))) {
		return nil
	}
	d := &outcome{Text: didWords[what]}
	for _, name := range names(v.asked("readers")) {
		if strings.Contains(name, "@") {
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
	case what != "sent" && what != "freed":
		if d.Subject = v.subjectOf(of); d.Subject != "" {
			d.Text = strings.TrimSuffix(d.Text, ".") + ":"
		}
	}
	return d
}

// subjectOf returns the subject of a message, or of an undone message's text. It returns "" if there is neither.
func (v *view) subjectOf(id string) string {
	if m, err := v.p.MessageHead(v.ctx(), id); err == nil && v.Signed {
		return m.Subject
	}
	if d := v.undoneDraft(); d != nil && d.id == id {
		return d.subject
	}
	return ""
}

// tellSent adds who received the sent message, and whether sending it acknowledged the message that it answers.
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
	d.Text += "."
}

// saidAt returns an address that contains one of the page's own sentences. The sentence is signed, so that other
// people's links cannot make a view show their text.
func (v *view) saidAt(path, text string) string {
	return with(path, url.Values{"said": {text}, "by": {v.page.signature("said", text)}})
}

// saying returns an address that says what was done to a message, and who had read it or received it at another
// domain. It is signed as in saidAt.
func (v *view) saying(to, done, id string, readers []string) string {
	q := saidOf(done, id, joined(readers))
	q.Set("by", v.page.signature("done", q.Encode()))
	return with(to, q)
}

// saidOf returns the parameters that say what was done.
func saidOf(done, ids, readers string) url.Values {
	q := url.Values{didWhat: {done}, didID: {ids}}
	if readers != "" {
		q.Set("readers", readers)
	}
	return q
}

// with returns an address with additional parameters.
func with(to string, q url.Values) string {
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
