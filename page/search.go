package page

import (
	"regexp"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// searchShown is one page of search results.
type searchShown struct {
	Ranked bool // sorted by relevance; otherwise newest first
	Among  int  // number of newest matches that were ranked
	Hits   []hitShown
	Count  int // number of all hits, up to countMost+1; 0 if unknown
	Next   string
	Note   string
}

// hitShown is a message found by a search.
type hitShown struct {
	index.MessageRow
	Snippet []piece // nil if it would only repeat the subject
}

// searchSize is the number of hits in one view. countMost is the number of hits up to which they are counted.
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
	Hit  bool // whether this part matches the search
}

// These letters replace the marks in a snippet while its markup is being removed, because markdown keeps letters but
// removes control characters. If the text itself contains these letters, the wrong places are shown as matches.
const (
	openLetter  = "\uE000"
	closeLetter = "\uE001"
)

var letterMarks = strings.NewReplacer(index.MarkOpen, openLetter, index.MarkClose, closeLetter)

// blockMarkup matches lines that consist only of markup. A fragment of a text does not show to which block such a line
// belongs.
var blockMarkup = regexp.MustCompile("(?m)^[ \t]*(?:(?:```|~~~).*|[-|:= \t]{3,})$")

// tableRow matches rows of tables. Markdown recognizes a table only by its head, which a fragment may lack.
var tableRow = regexp.MustCompile(`(?m)^[ \t]*\|.*$`)

// imageData matches an image with embedded data, or the part of it that a fragment contains. The group is the image's
// description.
var imageData = regexp.MustCompile(`(?:!\[)?([^\[\]\n]*)\]\(data:[^\s()]*\)?`)

// snippet returns the part of a message's text that matches the search, without markup. If that text is in the subject,
// snippet returns nil.
func snippet(h *index.Hit) (all []piece) {
	text := blockMarkup.ReplaceAllString(letterMarks.Replace(h.Matched), "")
	text = imageData.ReplaceAllString(text, "$1")
	text = tableRow.ReplaceAllStringFunc(text, func(row string) string { return strings.ReplaceAll(row, "|", " ") })
	text = markdown.PlainText(text)
	text = strings.ReplaceAll(text, "`", "") // the matching one was cut off
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
