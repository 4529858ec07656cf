package page

import (
	"regexp"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// searchShown is a page of search results.
type searchShown struct {
	Ranked bool // by relevance; otherwise the newest first
	Among  int  // how many of the newest matches were ranked
	Hits   []hitShown
	Count  int // number of all hits, at most countMost+1; 0: unknown
	Next   string
	Note   string
}

// hitShown is a message that a search found.
type hitShown struct {
	index.MessageRow
	Snippet []piece // nil if it only repeats the subject
}

// searchSize is how many hits one view lists. countMost is how many it counts.
const (
	searchSize = 50
	countMost  = 1000
)

func (h *Page) search(v *view) error {
	shown := searchShown{Ranked: v.asked("order") == "rank"}
	if err := v.in("search", "Search"); err != nil {
		return err
	}
	if v.Query() == "" {
		return v.show("search", shown)
	}
	v.Title = v.Query()
	page, err := v.p.Search(v.ctx(), maildir.SearchRequest{
		Text:   v.Query(),
		Rank:   shown.Ranked,
		Limit:  searchSize,
		Cursor: v.asked("cursor"),
	})
	if err != nil {
		return err
	}
	for i := range page.Hits {
		shown.Hits = append(shown.Hits, hitShown{page.Hits[i].MessageRow, snippet(&page.Hits[i])})
	}
	shown.Next, shown.Among = page.Next, page.Ranked
	if page.Note != nil {
		shown.Note = h.cfg.Explain(page.Note)
	}
	if shown.Count, err = v.p.CountMatches(v.ctx(), v.Query(), countMost+1); err != nil {
		return err
	}
	return v.show("search", shown)
}

// Counted returns a phrase that says how many messages were found.
func (s searchShown) Counted() string {
	if s.Count > countMost {
		return "More than " + counted(countMost, "message")
	}
	return counted(s.Count, "message")
}

// piece is a part of a snippet.
type piece struct {
	Text string
	Hit  bool // this part matches the search
}

// These letters replace the marks of a snippet while its markup is removed. markdown treats them as letters, but
// removes control characters. If the text itself contains these letters, the wrong places are shown as matches.
const (
	openLetter  = "\uE000"
	closeLetter = "\uE001"
)

var letterMarks = strings.NewReplacer(index.MarkOpen, openLetter, index.MarkClose, closeLetter)

// blockMarkup matches lines that consist only of markup. A fragment does not show to which block such a line belongs.
var blockMarkup = regexp.MustCompile("(?m)^[ \t]*(?:(?:```|~~~).*|[-|:= \t]{3,})$")

// tableRow matches table rows. markdown recognizes a table only by its head, which a fragment may lack.
var tableRow = regexp.MustCompile(`(?m)^[ \t]*\|.*$`)

// imageData matches an image with its data, or the part of it that a fragment contains. The group is the image's
// description.
var imageData = regexp.MustCompile(`(?:!\[)?([^\[\]\n]*)\]\(data:[^\s()]*\)?`)

// snippet returns the text in a message that matches the search, without markup. It returns nil if the text is in the
// subject.
func snippet(h *index.Hit) (all []piece) {
	text := blockMarkup.ReplaceAllString(letterMarks.Replace(h.Matched), "")
	text = imageData.ReplaceAllString(text, "$1")
	text = tableRow.ReplaceAllStringFunc(text, func(row string) string { return strings.ReplaceAll(row, "|", " ") })
	text = markdown.PlainText(text)
	text = strings.ReplaceAll(text, "`", "") // its counterpart was cut off
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
