package page

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// menu contains the items that are waiting for the user, and the menu's counts.
type menu struct {
	Waits  *maildir.Waits
	Agents int
	Claims int // live claims
	Now    []nowShown
}

// nowShown is an agent and what it is doing.
type nowShown struct {
	Name, State string
	Doing       string // "edits" or "claims"; "" if the state matters more
	File        string // the file that the agent is editing, or the pattern that it claimed last
}

// Short returns the last element of File, with its folder if the element is a pattern.
func (n nowShown) Short() string {
	dir, file := path.Split(n.File)
	if strings.Contains(file, "*") && dir != "" {
		return path.Base(dir) + "/" + file
	}
	return file
}

// nowMost is the maximum number of agents shown in the rail, which are the most recently active ones.
const nowMost = 12

// Waiting returns the number of prompts, and of threads that need something from the user or are new to the user.
func (m *menu) Waiting() int {
	if m.Waits == nil {
		return 0
	}
	return len(m.Waits.Prompts) + m.Waits.Totals.Blocked + m.Waits.Totals.Questions + m.Waits.Totals.New
}

// Blocked returns, as JSON, the items about which the browser can notify the user: the prompts, and the threads that
// are blocked on the user. Each item has an id, a line of text, and the URL of its view.
func (v *view) Blocked() string {
	all := [][3]string{}
	if w := v.Menu.Waits; w != nil && v.Signed {
		for _, p := range w.Prompts {
			at := inProject(cmp.Or(p.Project, v.Slug()), "agents") + "#" + p.Agent
			all = append(all, [3]string{p.Agent + p.Since.String(), p.Agent + " asks for permission in " + p.Client, at})
		}
		for _, t := range w.Blocked {
			at := inProject(cmp.Or(t.Project, v.Slug()), "thread", t.Thread)
			all = append(all, [3]string{t.Message, strings.Join(t.People, ", ") + ", " + t.Importance + ": " + t.Subject, at})
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // only strings
	}
	return string(text)
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
	if m.Waits, err = v.page.waitsOf(v).read(v, waitsLast); err != nil {
		return err
	}
	agents, err := v.p.Agents.List(v.ctx())
	if err != nil {
		return err
	}
	const ended = false
	claims, err := v.p.Claims.List(v.ctx(), ended)
	m.Agents, m.Claims, m.Now = len(agents), len(claims), v.now(agents, claims)
	return err
}

// more shows the menu entries that do not fit in a narrow window.
func (h *Page) more(v *view) error {
	if err := v.in("more", "More"); err != nil {
		return err
	}
	return v.show("more", nil)
}

// now returns the most recently active agents, except the user, along with the files that they are editing or
// claiming. Agents that ask for permission come first.
func (v *view) now(agents []index.AgentRow, claims []claim.Row) (all []nowShown) {
	agents = slices.DeleteFunc(slices.Clone(agents), func(a index.AgentRow) bool { return a.Name == v.Me })
	is := map[string]string{} // the agents' states
	for i := range agents {
		is[agents[i].Name] = v.stateOf(&agents[i])
	}
	for _, u := range v.Menu.Waits.Asleep {
		if is[u.Agent] != held {
			is[u.Agent] = asleep
		}
	}
	for _, p := range v.Menu.Waits.Prompts {
		is[p.Agent] = asking
	}
	slices.SortStableFunc(agents, func(a, b index.AgentRow) int {
		if a, b := is[a.Name] == asking, is[b.Name] == asking; a != b {
			return map[bool]int{true: -1, false: 1}[a]
		}
		return b.LastActive.Compare(a.LastActive)
	})
	edits := v.p.Edits.Recent()
	for i := range agents[:min(len(agents), nowMost)] {
		n := nowShown{Name: agents[i].Name, State: is[agents[i].Name]}
		for _, c := range claims { // the newest come last, so the newest wins
			if c.Agent == n.Name && !slices.Contains([]string{asking, held, asleep, states[format.Offline], quiet}, n.State) {
				n.Doing, n.File = "claims", c.Pattern
			}
		}
		for _, e := range slices.Backward(edits) { // from the oldest to the newest, so the newest wins
			if e.Agent == n.Name && n.State != asking && n.State != held {
				n.Doing, n.File = "edits", e.Path
			}
		}
		all = append(all, n)
	}
	return all
}

// mailbox identifies a user's mail in a project, either as the signed-in user sees it or as it is shown without a
// session.
type mailbox struct {
	p  *maildir.Project
	me string

	signed bool
}

// keptWaits caches the items that are waiting for a user. Reading them takes tens of milliseconds in a large project,
// so all views of a user share the result. The cache is safe for concurrent use.
type keptWaits struct {
	mu    sync.Mutex      // held while reading, so that views requested in the meantime share the result
	bell  <-chan struct{} // closed when the project has changed since the last read
	tick  int64           // the tick when the last read began
	waits *maildir.Waits
}

// waitsLast is the number of ticks for which a cached result stays valid if the project does not change. There is a
// limit because agents can get stuck or become idle without any event.
const waitsLast = 10

// waitsOf returns the cache for the view's user. If there is none yet, it creates an empty one.
func (h *Page) waitsOf(v *view) *keptWaits {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := mailbox{v.p, v.Me, v.Signed}
	if h.waits[of] == nil {
		h.waits[of] = &keptWaits{}
	}
	return h.waits[of]
}

// read returns the items that are waiting for the user. If the project has not changed, the result may be up to lasts
// ticks old. If the request asks for part of a view, the result may date from any time since the tick in the request.
func (k *keptWaits) read(v *view, lasts int64) (*maildir.Waits, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	tick := tickAt(time.Now())
	if k.waits != nil && (k.tick >= sinceTick(v.r) || tick < k.tick+lasts && !rung(k.bell)) {
		return k.waits, nil
	}
	bell := v.p.Changed()
	waits, err := v.box().Waits(v.ctx(), maildir.WaitsQuery{Open: !v.Signed})
	if err == nil {
		k.bell, k.tick, k.waits = bell, tick, waits
	}
	return waits, err
}

func rung(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}
