package page

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// searchShown is a page of search results.
type searchShown struct {
	Query  string
	Ranked bool // by relevance; otherwise the newest first
	Among  int  // how many of the newest matches were ranked
	Hits   []index.Hit
	Next   string
	Note   string
}

func (h *Page) search(v *view) error {
	shown := searchShown{Query: v.asked("q"), Ranked: v.asked("order") == "rank"}
	if err := v.in("search", "Search"); err != nil {
		return err
	}
	if shown.Query == "" {
		return v.show("search", shown)
	}
	v.Title = shown.Query
	page, err := v.p.Search(v.ctx(), maildir.SearchRequest{
		Text:   shown.Query,
		Rank:   shown.Ranked,
		Limit:  50,
		Cursor: v.asked("cursor"),
	})
	if err != nil {
		return err
	}
	shown.Hits, shown.Next, shown.Among = page.Hits, page.Next, page.Ranked
	if page.Note != nil {
		shown.Note = h.cfg.Explain(page.Note)
	}
	return v.show("search", shown)
}

// threadsSize is how many threads one view lists.
const threadsSize = 50

type threadsShown struct {
	Threads []maildir.ThreadListed
	Next    string
	Note    string
}

// threads lists the threads of the messages that a search finds, or all threads without a search.
func (h *Page) threads(v *view) error {
	if err := v.in("threads", "Threads"); err != nil {
		return err
	}
	page, err := v.p.Threads(v.ctx(), maildir.ThreadsRequest{
		Text:   v.Query(),
		Agent:  v.Me,
		Limit:  threadsSize,
		Cursor: v.asked("cursor"),
	})
	if err != nil {
		return err
	}
	shown := threadsShown{Threads: page.Threads, Next: page.Next}
	if page.Note != nil {
		shown.Note = h.cfg.Explain(page.Note)
	}
	return v.show("threads", shown)
}

// Query returns the search in the address; "" for none.
func (v *view) Query() string { return v.asked("q") }

// Few returns the first names of a list, and how many more there are.
func (v *view) Few(names []string) (few fewNames) {
	const most = 2
	n := min(len(names), most)
	return fewNames{names[:n], len(names) - n}
}

// fewNames are names, and how many more there are.
type fewNames struct {
	Names []string
	More  int
}

// did is one operation in the activity.
type did struct {
	At        time.Time
	Who, What string // Who is "" if unknown
	Link      string // to the message, or to its history if it is gone; "" for a claim or an agent
	Subject   string
	Gone      bool // the message is no longer in the mail
	Path      string
}

type activityShown struct {
	Only string // the agent whose activity is shown; "" for everyone's
	Rows []did
}

// activityRows is how many operations the activity shows.
const activityRows = 100

// activityRead is how many of the project's newest changes the activity is taken from.
const activityRead = 1000

// told are the changes that show an operation, in words.
var told = map[format.Kind]map[string]string{
	format.KindCanonical: {index.Added: "wrote", index.Changed: "changed", index.Removed: "removed"},
	format.KindRead:      {index.Added: "read"},
	format.KindAck:       {index.Added: "acknowledged"},
	format.KindArchived:  {index.Added: "archived"},
	format.KindClaim:     {index.Added: "claimed", index.Changed: "renewed a claim"},
	format.KindReleased:  {index.Added: "released"},
	format.KindProfile:   {index.Added: "came"},
	format.KindStatus:    {index.Added: "set its status", index.Changed: "set its status"},
}

// activity shows the newest operations of the project.
func (h *Page) activity(v *view) error {
	if err := v.in("activity", "Activity"); err != nil {
		return err
	}
	changes, err := v.p.NewestChanges(v.ctx(), activityRead)
	if err != nil {
		return err
	}
	const all = true
	claims, err := v.p.Claims(v.ctx(), all)
	if err != nil {
		return err
	}
	held := map[string]claim.Row{} // by their files
	for i := range claims {
		held[claims[i].Path] = claims[i]
	}
	more := readWith(changes)
	shown := activityShown{Only: v.asked("agent")}
	for i := range changes {
		if len(shown.Rows) == activityRows {
			break
		}
		c := &changes[i]
		what := told[c.Kind][c.Op]
		if c.Kind == format.KindRead && more[markOf(c)] {
			continue
		}
		if c.Kind == format.KindCanonical && c.Op != index.Added {
			c.Agent = "" // the feed names the message's sender; only the history knows who changed the message
		}
		if c.Kind == format.KindReleased {
			c.Agent = cmp.Or(v.p.ReleasedBy(c.Path), held[format.ClaimOfMark(c.Path)].Agent)
		}
		if what == "" || shown.Only != "" && c.Agent != shown.Only {
			continue
		}
		d := did{
			At:   c.At,
			Who:  c.Agent,
			What: what,
		}
		if c.ID != "" {
			open, err := v.tellMessage(&d, c)
			if err != nil {
				return err
			}
			if !open && !v.Signed {
				continue
			}
		}
		if c.Kind == format.KindClaim || c.Kind == format.KindReleased {
			file := c.Path
			if c.Kind == format.KindReleased {
				file = format.ClaimOfMark(file)
			}
			d.Path = cmp.Or(held[file].Pattern, file)
		}
		shown.Rows = append(shown.Rows, d)
	}
	return v.show("activity", shown)
}

// mark is an agent's mark on its copy of a message, with the time.
type mark struct {
	id, agent string
	at        int64
}

func markOf(c *index.Change) mark { return mark{c.ID, c.Agent, c.At.UnixMicro()} }

// readWith returns the marks of acknowledging and archiving. Each of them has marked the message as read
// too, but is one operation.
func readWith(changes []index.Change) map[mark]bool {
	all := map[mark]bool{}
	for i := range changes {
		if c := &changes[i]; c.Op == index.Added && (c.Kind == format.KindAck || c.Kind == format.KindArchived) {
			all[markOf(c)] = true
		}
	}
	return all
}

// tellMessage fills in the message of an operation. open reports whether everyone may know that the agent
// is involved (Invariant I7).
func (v *view) tellMessage(d *did, c *index.Change) (open bool, err error) {
	m, err := v.p.MessageHead(v.ctx(), c.ID)
	if errors.Is(err, maildir.ErrNotFound) {
		d.Gone, d.Link = true, v.at("message", c.ID, "history")
		return c.Kind == format.KindCanonical, nil
	}
	if err != nil {
		return false, err
	}
	d.Subject, d.Link = m.Subject, v.linkTo(m)
	return c.Kind == format.KindCanonical || slices.Contains(slices.Concat([]string{m.From}, m.To, m.CC), c.Agent), nil
}

func (h *Page) problemsView(v *view) error {
	if err := v.in("problems", "Problems"); err != nil {
		return err
	}
	all, err := h.cfg.Store.Problems(v.ctx(), v.p.Slug, 500)
	if err != nil {
		return err
	}
	return v.show("problems", all)
}
