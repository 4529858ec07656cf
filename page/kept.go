package page

import (
	"crypto/rand"
	"io"
	"path/filepath"
	"slices"
)

// A refused form is shown again with its content. Because browsers do not restore the files in a form, the server
// keeps them.

// keptMost is the maximum number of bytes of files that are kept. The oldest files are dropped first.
const keptMost = 2 * maxUpload

// keptFile is a file of a refused form.
type keptFile struct {
	ID, Name string
	who      string // the user who sent the form
	data     []byte
}

// Bytes returns the size of the file.
func (f keptFile) Bytes() int64 { return int64(len(f.data)) }

// keptFiles returns the files that the form refers to and that the server has kept since an earlier refusal.
func (v *view) keptFiles() (all []keptFile) {
	h := v.page
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.kept {
		if f.who == v.session.Person && slices.Contains(v.r.PostForm["kept"], f.ID) {
			all = append(all, f)
		}
	}
	return all
}

// keeping wraps do, which handles a form. If do fails, the returned function keeps the form's files. Otherwise they
// would be lost, because a form's files are deleted once the form has been handled.
func keeping(do func(*view) (to string, err error)) func(*view) (string, error) {
	return func(v *view) (string, error) {
		to, err := do(v)
		if err != nil {
			v.kept, v.lost = v.keepFiles()
		}
		return to, err
	}
}

// keepFiles keeps the files in a form and returns them, along with the files already kept. lost reports whether a file
// could not be kept.
func (v *view) keepFiles() (all []keptFile, lost bool) {
	all = v.keptFiles()
	lost = len(all) < len(v.r.PostForm["kept"])
	h := v.page
	for _, u := range v.uploads() {
		from, err := u.Open()
		if err != nil {
			lost = true
			continue
		}
		data, err := io.ReadAll(from)
		from.Close()
		if err != nil {
			lost = true
			continue
		}
		all = append(all, keptFile{rand.Text(), filepath.Base(u.Filename), v.session.Person, data})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = slices.DeleteFunc(h.kept, func(f keptFile) bool {
		return slices.ContainsFunc(all, func(g keptFile) bool { return g.ID == f.ID })
	})
	h.kept = append(h.kept, all...)
	size := int64(0)
	for i := len(h.kept) - 1; i >= 0; i-- {
		if size += h.kept[i].Bytes(); size > keptMost {
			h.kept = slices.Delete(h.kept, 0, i+1)
			break
		}
	}
	return all, lost
}
