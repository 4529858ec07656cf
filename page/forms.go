package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"sync"

	"mailtree/maildir/format"
)

// A form is handled once: of a second click nothing comes but the answer of the first. The answer of
// every form is the address of a view, which says what was done (done) and offers to undo it.

// formsKept is how many forms are remembered.
const formsKept = 1000

// forms are those that were handled lately. Safe for concurrent use.
type forms struct {
	mu  sync.Mutex
	by  map[formSum]*handling // by address and content: who changes a form and sends it again means it
	old []formSum             // keys of by, the oldest first
}

type formSum [sha256.Size]byte

// handling is a form that is handled, or was.
type handling struct {
	done chan struct{}
	to   string
	err  error
}

// handleOnce calls do where no such form was handled, and returns what do has returned for the first
// of them. What was refused may be tried again.
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
	if first.to, first.err = do(); first.err != nil {
		f.mu.Lock()
		delete(f.by, form)
		f.mu.Unlock()
	}
	close(first.done)
	return first.to, first.err
}

// maxForm bounds what a form sends: a message of the greatest size, escaped.
const maxForm = 12 << 20

// write lets do handle a form only where a session's own page has sent it, and each form once. do
// returns the address that the browser shows next.
func (h *Page) write(do func(*view) (to string, err error)) func(*view) error {
	return func(v *view) error {
		if !v.Signed || !ownOrigin(v.r) {
			return errNoWrite
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
		if err := v.r.ParseForm(); err != nil {
			v.fail(http.StatusBadRequest, "The form did not come whole, or is too large.")
			return nil
		}
		// A second click is told how it ends, also where the first has gone.
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
		var err error
		if form.Get("key") == "" {
			to, err = handle()
		} else {
			to, err = h.forms.handleOnce(v.ctx(), sha256.Sum256([]byte(v.Path+"?"+form.Encode())), handle)
		}
		if err != nil {
			return err
		}
		return v.goTo(to)
	}
}

// CSRF is what forms carry to show that a view of this page made them.
func (v *view) CSRF() string {
	if !v.Signed {
		return ""
	}
	return v.page.signature("form", v.page.signed(&v.session))
}

// FormKey is the idempotency key of a form: a second click sends nothing.
func (v *view) FormKey() string { return "page-" + rand.Text() }

// done is what the person has done just now, as the address of a view says it.
type done struct {
	Text    string
	Undo    string   // the address that takes it back; "": nothing does
	Readers []string // who had read it
	Told    bool     // the readers are told
}

// dones are the parameters of an address that say what was done, and to which message.
var dones = []struct {
	name string
	done
}{
	{"sent", done{Text: "Sent."}},
	{"read", done{Text: "Marked as read."}},
	{"unread", done{Text: "Marked as unread."}},
	{"acknowledged", done{Text: "Acknowledged."}},
	{"archived", done{Text: "Archived."}},
	{"deleted", done{Text: "Deleted for everybody."}},
	{"undone", done{Text: "Undone.", Told: true}},
	{"released", done{Text: "Released."}},
	{"freed", done{Text: "Released, and its holder is told."}},
}

// Done is what the address says; nil for nothing.
func (v *view) Done() *done {
	if text := v.asked("said"); text != "" && hmac.Equal([]byte(v.asked("by")), []byte(v.page.signature("said", text))) {
		return &done{Text: text}
	}
	for _, of := range dones {
		if id := v.asked(of.name); id != "" {
			d := of.done
			d.Readers = names(v.asked("readers"))
			switch of.name {
			case "undone":
			case "released":
				d.Undo = v.at("claims", "undo")
			default:
				d.Undo = v.at("message", id, "undo")
			}
			return &d
		}
	}
	return nil
}

// saidAt is an address with a sentence of ours, signed: nobody else's link puts words on a view.
func (v *view) saidAt(path, text string) string {
	return path + "?" + url.Values{"said": {text}, "by": {v.page.signature("said", text)}}.Encode()
}

// saying is an address with what was done to a message, and who had read that.
func saying(path, done, id string, readers []string) string {
	q := url.Values{done: {id}}
	if len(readers) > 0 {
		q.Set("readers", joined(readers))
	}
	return path + "?" + q.Encode()
}
