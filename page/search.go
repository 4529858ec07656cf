package page

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/maildir/lazy"
	"mailtree/maildir/markdown"
)

// searchShown describes the results of a search.
type searchShown struct {
	Count  int // number of all hits, up to countMost+1; 0 if unknown
	Note   string
	Status int // HTTP status of the response if the query was refused; otherwise 0
}

// hitShown is a message found by a search.
type hitShown struct {
	index.MessageRow
	Link    string
	Snippet []piece // nil if it would only repeat the subject
}

// searchSize is the number of hits in one view. countMost is the maximum number of hits to count.
const (
	searchSize = 50
	countMost  = 1000
)

// search shows the messages that a search finds, grouped by thread.
func (h *Page) search(v *view) error { return v.showList(cmp.Or(v.Query(), "Search")) }

// laySearch adds a page of search results to the list. If the query is refused, it adds the reason instead.
func (v *view) laySearch() error {
	d := v.Desk
	f := &d.Found
	if v.Query() == "" {
		return nil
	}
	r := maildir.SearchRequest{
		Text:   v.Query(),
		Agent:  v.Me,
		Limit:  searchSize,
		Cursor: v.asked("cursor"),
	}
	page, err := v.p.Search(v.ctx(), r)
	if v.refusesQuery(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range page.Hits {
		v.addHit(&page.Hits[i])
	}
	if page.Next != "" {
		d.Older = v.With("cursor", page.Next)
	}
	if page.Note != nil {
		f.Note = v.page.cfg.Explain(page.Note)
	}
	f.Count, err = v.p.CountMatches(v.ctx(), r, countMost+1)
	return err
}

// refusesQuery reports whether err means that the query was refused. If so, the list shows the reason below the
// search field.
func (v *view) refusesQuery(err error) bool {
	for _, kind := range []error{maildir.ErrInvalid, maildir.ErrTooLarge, maildir.ErrNotFound} {
		if errors.Is(err, kind) {
			v.Desk.Found.Status, v.Desk.Found.Note = v.reason(err)
			return true
		}
	}
	return false
}

// addHit adds a message that was found to the row of its thread.
func (v *view) addHit(h *index.Hit) {
	d, m := v.Desk, &h.MessageRow
	thread := cmp.Or(m.ThreadID, m.ID)
	at := slices.IndexFunc(d.Rows, func(r rowShown) bool { return r.Thread == thread })
	if at < 0 {
		at, d.Rows = len(d.Rows), append(d.Rows, v.row(maildir.WaitingThread{
			Thread:  thread,
			Message: m.ID,
			Subject: index.WithoutRe(m.Subject),
			At:      m.Created,
		}, ""))
	}
	r := &d.Rows[at]
	if !slices.Contains(r.People, m.From) {
		r.People = append(r.People, m.From)
	}
	link, _, _ := strings.Cut(r.Link, "#")
	r.Hits = append(r.Hits, hitShown{*m, link + "#" + m.ID, snippet(h)})
}

// Counted returns a phrase that states how many messages were found.
func (s searchShown) Counted() string {
	if s.Count > countMost {
		return "More than " + counted(countMost, "message")
	}
	return counted(s.Count, "message")
}

// piece is a part of a snippet.
type piece struct {
	Text string
	Hit  bool // whether this part matches the search
}

// These letters replace the marks in a snippet while its markup is being removed, because markdown keeps letters but
// removes control characters. If the text itself contains these letters, the wrong parts of it are shown as matches.
const (
	openLetter  = "\uE000"
	closeLetter = "\uE001"
)

var letterMarks = strings.NewReplacer(index.MarkOpen, openLetter, index.MarkClose, closeLetter)

// blockMarkup matches lines that consist only of markup. In a fragment of text, such a line may belong to any block.
var blockMarkup = lazy.Regexp("(?m)^[ \t]*(?:(?:```|~~~).*|[-|:= \t]{3,})$")

// tableRow matches rows of tables. Markdown recognizes a table only by its header row, which may be missing from a
// fragment.
var tableRow = lazy.Regexp(`(?m)^[ \t]*\|.*$`)

// imageData matches an image with embedded data. If a fragment contains only a part of the image, imageData matches
// that part. The submatch is the image's description.
var imageData = lazy.Regexp(`(?:!\[)?([^\[\]\n]*)\]\(data:[^\s()]*\)?`)

// snippet returns the part of a message's text that matches the search, without markup. If the matching text is in the
// subject, snippet returns nil.
func snippet(h *index.Hit) (all []piece) {
	text := blockMarkup().ReplaceAllString(letterMarks.Replace(h.Matched), "")
	text = imageData().ReplaceAllString(text, "$1")
	text = tableRow().ReplaceAllStringFunc(text, func(row string) string { return strings.ReplaceAll(row, "|", " ") })
	text = markdown.PlainText(text)
	text = strings.ReplaceAll(text, "`", "") // the matching backquote was cut off
	for i, before := range strings.Split(text, openLetter) {
		hit, after, found := strings.Cut(before, closeLetter)
		switch {
		case i > 0 && found:
			all = append(all, piece{hit, true}, piece{after, false})
		default:
			all = append(all, piece{before, false})
		}
	}
	whole := ""
	for _, p := range all {
		whole += p.Text
	}
	if strings.Contains(h.Subject, strings.Trim(whole, "… ")) {
		return nil
	}
	return all
}
