package page

// projects lists the projects. If there is only one, it shows that project instead.
func (h *Page) projects(v *view) error {
	all := h.cfg.Store.Projects()
	if len(all) == 1 {
		return v.goTo(inProject(all[0].Slug))
	}
	v.Title = "Projects"
	type row struct {
		*projectShown
		Unread int
	}
	var rows []row
	for _, p := range all {
		mine, err := p.Box(v.Me, v.origin()).Counts(v.ctx()) // zero if the user is not an agent of the project
		if err != nil {
			return err
		}
		rows = append(rows, row{shownProject(p), mine.Unread})
	}
	return v.show("projects", rows)
}
