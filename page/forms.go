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

// Each form is handled once: a second click gets the answer of the first one. The answer of every form is
// the address of a view that says what was done (done) and offers to undo it.

// formsKept is how many handled forms are remembered.
const formsKept = 1000

// forms are the recently handled forms. It is safe for concurrent use.
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

// handleOnce calls do for the first form of its kind and returns the same result for later ones. A refused
// form may be tried again.
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

// maxForm is the largest form in bytes: a message of the greatest size, escaped.
const maxForm = 12 << 20

// write returns a handler that calls do for a form only if a page of this session has sent it, and only
// once for each form. do returns the address that the browser shows next.
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
		// A second click gets the result even if the browser of the first one has gone.
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

// CSRF returns the value that proves that a form comes from a view of this page.
func (v *view) CSRF() string {
	if !v.Signed {
		return ""
	}
	return v.page.signature("form", v.page.signed(&v.session))
}

// FormKey returns the idempotency key of a form: a second click sends nothing.
func (v *view) FormKey() string { return "page-" + rand.Text() }

// done describes what the person has just done, as the address of a view says it.
type done struct {
	Text    string
	Undo    string   // the address that undoes it; "" if it cannot be undone
	Readers []string // the agents who had read it
	Told    bool     // the readers were told
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

// Done returns what the address says was done; nil for nothing.
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

// saidAt returns an address with a signed sentence of ours, so that a link by someone else cannot put words
// on a view.
func (v *view) saidAt(path, text string) string {
	return path + "?" + url.Values{"said": {text}, "by": {v.page.signature("said", text)}}.Encode()
}

// saying returns an address with what was done to a message and who had read it.
func saying(path, done, id string, readers []string) string {
	q := url.Values{done: {id}}
	if len(readers) > 0 {
		q.Set("readers", joined(readers))
	}
	return path + "?" + q.Encode()
}
