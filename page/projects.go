package page

import (
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir"
)

// all shows the items that are waiting for the user in all projects. If there is only one project, it shows that
// project instead.
func (h *Page) all(v *view) (err error) {
	projects := h.cfg.Store.Projects()
	if len(projects) == 1 {
		return v.goTo(inProject(projects[0].Slug))
	}
	v.Section, v.Title = inAll, allTitle
	v.Live, v.State = true, h.stateOf(projects...)
	if v.Menu.Waits, err = v.everywhere(); err != nil {
		return err
	}
	if err := v.lay(nil); err != nil {
		return err
	}
	if err := v.catchUp(); err != nil {
		return err
	}
	return v.show("waiting", nil)
}

const allTitle = "All projects"

// othersLast is the number of ticks for which the cached items of another project stay valid if that project does not
// change.
const othersLast = 300

// waitsIn returns the items that are waiting for the user in a project.
func (v *view) waitsIn(p *maildir.Project) (*maildir.Waits, error) {
	of := v.of(p)
	return v.page.waitsOf(of).read(of, othersLast, of.readWaits)
}

// of returns a copy of the view for the project p.
func (v *view) of(p *maildir.Project) *view {
	of := *v
	of.p, of.Project = p, shownProject(p)
	return &of
}

// inside returns a copy of the view for the project with the given slug, or for all projects if slug is "".
func (v *view) inside(slug string) (*view, error) {
	if slug == "" {
		all := *v
		all.p, all.Project = nil, nil
		return &all, nil
	}
	p, err := v.page.cfg.Store.Project(v.ctx(), slug)
	if err != nil {
		return nil, err
	}
	return v.of(p), nil
}

// inOne contains a view for one project and the ids of messages in that project.
type inOne struct {
	*view
	ids []string
}

// byProject groups messages by project. In a view of all projects, each id must be preceded by the slug of its
// project and a colon.
func (v *view) byProject(ids []string) (each []*inOne, err error) {
	for _, id := range ids {
		in := v
		if v.p == nil {
			slug, own, _ := strings.Cut(id, ":")
			if in, err = v.inside(slug); err != nil {
				return nil, err
			}
			if id = own; in.p == nil {
				return nil, errNoView
			}
		}
		at := slices.IndexFunc(each, func(o *inOne) bool { return o.p == in.p })
		if at < 0 {
			at, each = len(each), append(each, &inOne{view: in})
		}
		each[at].ids = append(each[at].ids, id)
	}
	return each, nil
}

// idsIn returns the ids of a project's messages in the form that byProject reads. If slug is "", the ids are for a
// view of the project itself. Otherwise, they are for a view of all projects.
func idsIn(slug string, ids []string) (all []string) {
	for _, id := range ids {
		if slug != "" {
			id = slug + ":" + id
		}
		all = append(all, id)
	}
	return all
}

// diagnostics contains the small lines below a list, one for each kind of event that does not need an answer from the
// user.
type diagnostics struct {
	*view
	Stopped *stoppedLine // nil if claims have not stopped any agent
	Asleep  *asleepLine  // nil if all agents can be woken
	Broken  []brokenIn   // the projects with invalid files
	Files   int          // number of invalid files
}

// stoppedLine shows one of the agents that claims have stopped. asleepLine shows one of the agents that cannot be
// woken. The view is for the agent's project, and More is the number of other such agents.
type (
	stoppedLine struct {
		*view
		Stop maildir.Stop
		More int
	}
	asleepLine struct {
		*view
		Agent maildir.Unwoken
		More  int
	}
	brokenIn struct{ Slug, Name string }
)

// Any reports whether there is something to show.
func (q *diagnostics) Any() bool { return q.Stopped != nil || q.Asleep != nil || q.Files > 0 }

// Quiet returns the diagnostics of the projects in the list. It omits projects that currently cannot be read.
func (v *view) Quiet() *diagnostics {
	q := &diagnostics{view: v}
	for _, p := range v.listed() {
		w, err := v.waitsIn(p)
		if err != nil {
			continue
		}
		of := v.of(p)
		for _, s := range w.Stopped {
			if q.Stopped == nil {
				q.Stopped = &stoppedLine{view: of, Stop: s, More: -1}
			}
			q.Stopped.More++
		}
		for _, a := range w.Asleep {
			if q.Asleep == nil {
				q.Asleep = &asleepLine{view: of, Agent: a, More: -1}
			}
			q.Asleep.More++
		}
		if n := w.BrokenFiles(); n > 0 {
			q.Files += n
			q.Broken = append(q.Broken, brokenIn{p.Slug, of.Project.Name})
		}
	}
	return q
}

// listed returns the projects in the list of waiting items.
func (v *view) listed() []*maildir.Project {
	if v.p == nil || v.list() == inAll {
		return v.page.cfg.Store.Projects()
	}
	return []*maildir.Project{v.p}
}

// ListAction returns the URL for an action on rows of the list.
func (v *view) ListAction(name string) string {
	if v.list() == inAll {
		return inProject("", name)
	}
	return v.at(name)
}

// everywhere returns the items that are waiting for the user in all projects.
func (v *view) everywhere() (*maildir.Waits, error) {
	var each []*maildir.Waits
	for _, p := range v.page.cfg.Store.Projects() {
		w, err := v.waitsIn(p)
		if err != nil {
			return nil, fmt.Errorf("cannot list what is waiting in project %s: %w", p.Slug, err)
		}
		each = append(each, w)
	}
	return maildir.WaitsTogether(v.Me, each, maildir.WaitsQuery{}), nil
}

// Slug returns the slug of the view's project, or "" if the view shows all projects.
func (v *view) Slug() string {
	if v.Project == nil {
		return ""
	}
	return v.Project.Slug
}

// chosen is an entry in the list of projects that the user can choose from.
type chosen struct {
	projectShown
	Current bool
	Waiting int // number of prompts, plus the number of threads that are new or need something from the user
}

// Chooser returns the projects that the user can choose from. If there are several, the first entry represents all of
// them. A project that currently cannot be read is shown without waiting items.
func (v *view) Chooser() (entries []chosen) {
	total := 0
	for _, p := range v.page.cfg.Store.Projects() {
		var m menu
		m.Waits, _ = v.waitsIn(p)
		entries = append(entries, chosen{*shownProject(p), p.Slug == v.Slug(), m.Waiting()})
		total += m.Waiting()
	}
	if len(entries) > 1 {
		everything := chosen{projectShown{Name: allTitle}, v.Project == nil, total}
		entries = append([]chosen{everything}, entries...)
	}
	return entries
}

// NameOf returns the name of the project with the given slug.
func (v *view) NameOf(slug string) string {
	p, err := v.page.cfg.Store.Project(v.ctx(), slug)
	if err != nil {
		return slug
	}
	return shownProject(p).Name
}
