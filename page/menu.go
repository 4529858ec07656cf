package page

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/index"
)

// menu contains the items that are waiting for the user, and the menu's counts.
type menu struct {
	Waits  *maildir.Waits
	Agents int
	Now    []nowShown
}

// Short returns the last element of File, with its folder if the element is a pattern.
func (n nowShown) Short() string {
	dir, file := path.Split(n.File)
	if strings.Contains(file, "*") && dir != "" {
		return path.Base(dir) + "/" + file
	}
	return file
}

// Waiting returns the number of prompts, plus the number of threads that are new or need something from the user.
func (m *menu) Waiting() int {
	if m.Waits == nil {
		return 0
	}
	return len(m.Waits.Prompts) + m.Waits.Totals.Blocked + m.Waits.Totals.Questions + m.Waits.Totals.New
}

// Blocked returns, as JSON, the items about which the browser can notify the user: the prompts, and the threads that
// are blocked on the user by mail whose author is proven. Each item has an id, a line of text, and the URL of its view.
func (v *view) Blocked() string {
	all := [][3]string{}
	if w := v.Menu.Waits; w != nil && v.Signed {
		for _, p := range w.Prompts {
			slug := cmp.Or(p.Project, v.Slug())
			text := v.NameOf(slug) + ": " + p.Agent + " asks for permission in " + p.Client
			all = append(all, [3]string{slug + p.Agent + p.Since.String(), text, inProject(slug, "agents") + "#" + p.Agent})
		}
		for _, t := range w.Blocked {
			slug := cmp.Or(t.Project, v.Slug())
			if d := v.proven(slug, t.Message); d != nil {
				text := v.NameOf(slug) + ": " + d.From + ", " + d.Importance + ": " + index.WithoutRe(d.Subject)
				all = append(all, [3]string{t.Message, text, inProject(slug, "thread", t.Thread)})
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // cannot fail: all contains only strings
	}
	return string(text)
}

// proven returns a message in the user's inbox if its author is proven, and nil otherwise. See maildir.Store.Proven.
func (v *view) proven(slug, id string) *index.Delivery {
	in, err := v.inside(slug)
	if err != nil {
		return nil
	}
	d, err := in.box().Delivery(v.ctx(), id)
	if err != nil || !v.page.cfg.Store.Proven(d) {
		return nil
	}
	return d
}

// Broken returns the number of invalid files.
func (m *menu) Broken() int {
	if m.Waits == nil {
		return 0
	}
	return m.Waits.Invalid
}

// countMenu fills in the menu.
func (v *view) countMenu() (err error) {
	m := &v.Menu
	if m.Waits, err = v.page.waitsOf(v).read(v, waitsLast, v.readWaits); err != nil {
		return err
	}
	if v.crowd, err = v.page.crowdOf(v.p).read(v, waitsLast, v.readCrowd); err != nil {
		return err
	}
	m.Agents, m.Now = v.crowd.count, v.now(v.crowd)
	return nil
}

// more shows the menu entries that do not fit in a narrow window.
func (h *Page) more(v *view) error {
	if err := v.in("more", "More"); err != nil {
		return err
	}
	const ended = false
	claims, err := v.p.Claims.List(v.ctx(), ended)
	if err != nil {
		return err
	}
	return v.show("more", len(claims))
}

// mailbox identifies a user's mail in a project, either as a signed-in user sees it or as it is shown without a
// session.
type mailbox struct {
	p  *maildir.Project
	me string

	signed bool
}

// kept caches a value that was read from a project. Views that are requested at about the same time share the value,
// because reading it takes tens of milliseconds in a large project. A kept is safe for concurrent use.
type kept[T any] struct {
	mu    sync.Mutex      // held while reading, so that views requested meanwhile share the result
	bell  <-chan struct{} // closed when the project has changed since the last read
	tick  int64           // the tick when the last read began
	value *T              // nil before the first read
}

// waitsLast is the number of ticks for which a cached result stays valid if the project does not change. There is a
// limit because agents can get stuck or become idle without any event.
const waitsLast = 10

// waitsOf returns the cached items that are waiting for the view's user.
func (h *Page) waitsOf(v *view) *kept[maildir.Waits] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return keptOf(h.waits, mailbox{v.p, v.Me, v.Signed})
}

// crowdOf returns the cached agents of a project.
func (h *Page) crowdOf(p *maildir.Project) *kept[crowd] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return keptOf(h.crowds, p)
}

// keptOf returns the cache for a key. If there is none yet, it creates an empty one.
func keptOf[K comparable, T any](all map[K]*kept[T], key K) *kept[T] {
	if all[key] == nil {
		all[key] = &kept[T]{}
	}
	return all[key]
}

// read returns the cached value, or calls load. If the project has not changed, the value may be up to lasts ticks
// old. If the request asks for part of a view, the value may date from any time since the tick in the request.
func (k *kept[T]) read(v *view, lasts int64, load func() (*T, error)) (*T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	tick := tickAt(time.Now())
	if k.value != nil && (k.tick >= sinceTick(v.r) || tick < k.tick+lasts && !rung(k.bell)) {
		return k.value, nil
	}
	bell := v.p.Changed()
	value, err := load()
	if err == nil {
		k.bell, k.tick, k.value = bell, tick, value
	}
	return value, err
}

// readWaits reads the items that are waiting for the view's user.
func (v *view) readWaits() (*maildir.Waits, error) {
	return v.box().Waits(v.ctx(), maildir.WaitsQuery{Open: !v.Signed})
}

func rung(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}
