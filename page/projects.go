package page

import (
	"fmt"

	"mailtree/maildir"
)

// all shows what is waiting for the user in all projects. If there is only one project, it shows that project instead.
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
	return v.show("all", nil)
}

const allTitle = "All projects"

// othersLast is the number of ticks for which the counts of a project stay valid if the project does not change.
const othersLast = 300

// waitsIn returns what is waiting for the user in a project.
func (v *view) waitsIn(p *maildir.Project) (*maildir.Waits, error) {
	of := *v
	of.p = p
	return v.page.waitsOf(&of).read(&of, othersLast)
}

// everywhere returns what is waiting for the user in all projects.
func (v *view) everywhere() (*maildir.Waits, error) {
	var each []*maildir.Waits
	for _, p := range v.page.cfg.Store.Projects() {
		w, err := v.waitsIn(p)
		if err != nil {
			return nil, fmt.Errorf("what waits in project %s: %w", p.Slug, err)
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

// chosen is an entry in the list from which the user chooses a project.
type chosen struct {
	projectShown
	Current bool
	Waiting int // number of threads that need something from the user or are new to the user
}

// Chooser returns the projects from which the user chooses. If there are several, the first entry is all of them. A
// project that cannot be read now counts nothing.
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
