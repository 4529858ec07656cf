package page

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

//go:embed templates
var sources embed.FS

// view is one response. It contains the data that all templates use, and Data, which is specific to the template.
type view struct {
	Title   string
	Section string // the view's entry in the menu
	Project *projectShown
	Me      string // the user whose mail is shown; "" if none
	Signed  bool   // whether the browser has a session
	Now     time.Time
	Path    string // path of the request's URL
	Menu    menu
	Desk    *desk  // the list shown next to Data, or instead of it; nil if there is none
	State   string // the project's state, as returned by Page.stateOf
	Live    bool   // whether the script keeps the view up to date
	Data    any

	page    *Page
	session session
	p       *maildir.Project
	crowd   *crowd // the agents of the project, as read by countMenu
	w       http.ResponseWriter
	r       *http.Request
	kept    []keptFile // the files of a refused form
	lost    bool       // a file of a refused form could not be kept
	held    int64      // number of bytes reserved from Page.memory
}

type projectShown struct{ Slug, Name, Path string }

func shownProject(p *maildir.Project) *projectShown {
	s := &projectShown{Slug: p.Slug, Name: p.Slug, Path: p.HumanKey()}
	if s.Path != "" {
		s.Name = path.Base(s.Path)
	}
	return s
}

// Projects returns the store's projects for the menu.
func (v *view) Projects() (all []*projectShown) {
	for _, p := range v.page.cfg.Store.Projects() {
		all = append(all, shownProject(p))
	}
	return all
}

// Reads reports whether a thread or a form is shown next to the list.
func (v *view) Reads() bool { return v.Section == "thread" || v.Section == "compose" }

// WithArchived reports whether the list includes archived mail.
func (v *view) WithArchived() bool { return v.asked("archived") != "" }

// inRow pairs the view with one row of its list.
type inRow struct {
	*view
	Row rowShown
}

// Row pairs the view with a row of its list.
func (v *view) Row(r rowShown) inRow { return inRow{v, r} }

// in sets the fields that all views of a project have in common, and counts the items in the menu.
func (v *view) in(section, title string) error {
	v.Section, v.Title, v.Live = section, title, true
	return v.countMenu()
}

// Verified returns a phrase that states who vouches for a message.
func (v *view) Verified(m index.MessageRow) string {
	voucher, ok := v.page.cfg.Store.VerifiedIn(&m)
	switch {
	case !ok:
		return "not verified"
	case format.ServerName(m.From):
		return "the server"
	}
	return voucher.String()
}

// Left returns the time left until t.
func (v *view) Left(t time.Time) string { return format.TimeLeft(t.Sub(v.Now)) }

// Age returns how long ago t was, as a number followed by a unit, such as "5m".
func (v *view) Age(t time.Time) string {
	d := v.Now.Sub(t)
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return justNow
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Ago returns how long ago t was, as a phrase such as "now" or "5m ago".
func (v *view) Ago(t time.Time) string {
	if age := v.Age(t); age != "" && age != justNow {
		return age + " ago"
	}
	return v.Age(t)
}

// justNow is the age of something that happened less than a minute ago.
const justNow = "now"

// Clock returns the time of day, preceded by the day unless t is today.
func (v *view) Clock(t time.Time) string {
	if t, now := t.Local(), v.Now.Local(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("Mon 2 Jan 15:04")
	}
	return t.Local().Format("15:04")
}

// functions contains the functions that templates can call.
var functions = template.FuncMap{
	"seg":     segment,
	"exact":   func(t time.Time) string { return t.Local().Format("Mon 2 Jan 2006 15:04:05") },
	"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"mixed":   mixedScripts,
	"either":  func(a, b string) string { return firstOf(a, b) },
	"same":    sameSubject,
	"counted": counted,
	"urgent":  urgent,
	"names":   func(all []string) string { return strings.Join(all, ", ") },
	"anchor":  claimAnchor,
	"thumb":   thumbnail,
	"inwords": inWords,
	"ended": func(s string) bool {
		return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, ".")
	},
	"asset": assetAt,
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// sameSubject reports whether a message's subject adds nothing to the thread's subject.
func sameSubject(subject, thread string) bool {
	return strings.TrimPrefix(subject, "Re: ") == strings.TrimPrefix(thread, "Re: ")
}

// mixedScripts reports whether a name mixes Latin letters with letters of similar-looking scripts, such as Cyrillic
// and Greek.
func mixedScripts(name string) bool {
	latin, other := false, false
	for _, r := range name {
		latin = latin || unicode.Is(unicode.Latin, r)
		other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
	}
	return latin && other
}

// templates returns the views' templates by name: each file in templates/, combined with base.html. The templates are
// parsed when they are first used. Otherwise, every start of the program, even as a hook, would spend time parsing
// them.
var templates = sync.OnceValue(parseTemplates)

func parseTemplates() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(functions).ParseFS(sources, "templates/base.html", "templates/parts.html", "templates/record.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{
		"refused", "waiting", "thread", "compose", "reply", "agents", "claims", "activity",
		"problems", "history", "more", "decisions",
	} {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(sources, "templates/"+name+".html"))
	}
	return all
}
