// Package docs contains the pages of the documentation, which `mailtree help` shows.
package docs

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"mailtree/maildir/lazy"
)

// files contains the pages, without their pictures, and the other files that pages link to.
//
//go:embed *.md */*.md monitoring reference/message.schema.json
var files embed.FS

// folders lists the folders of the pages. If two folders contain pages with the same name, the name without a folder
// refers to the page in the earlier folder. The folder "." contains the index and the tutorial.
var folders = []string{".", "reference", "explanation", "howto"}

// Names returns the full names of all pages, such as "tutorial" and "reference/tree".
func Names() (names []string) {
	for _, dir := range folders {
		entries, _ := fs.ReadDir(files, dir)
		for _, e := range entries {
			if name, isPage := strings.CutSuffix(e.Name(), ".md"); isPage {
				names = append(names, path.Join(dir, name))
			}
		}
	}
	return names
}

// others lists the full names of the files that are not pages.
var others = []string{"monitoring/alerts.yaml", "monitoring/dashboard.json", "reference/message.schema.json"}

// IsPage reports whether full is the name of a page, not of another file.
func IsPage(full string) bool { return path.Ext(full) == "" }

// Find returns the full name of the page or other file that name refers to, or "" if there is none. The name may omit
// the folder, and may be a link from another page, such as "../reference/tree.md".
func Find(name string) string {
	name = strings.TrimSuffix(strings.TrimLeft(name, "./"), ".md")
	for _, full := range append(Names(), others...) {
		if full == name || path.Base(full) == name {
			return full
		}
	}
	return ""
}

// comment matches a comment for tests and generators. Readers on the web do not see such comments either.
var comment = lazy.Regexp(`(?s) *<!--.*?-->\n?`)

// Page returns the page with the given full name, in Markdown, without comments. If full is the name of another file, Page
// returns its text.
func Page(full string) string {
	if !IsPage(full) {
		text, _ := fs.ReadFile(files, full)
		return string(text)
	}
	text, _ := fs.ReadFile(files, full+".md")
	return comment().ReplaceAllString(string(text), "")
}

// Heading is a heading of a page. Its section ends at the next heading of the same level or a higher one.
type Heading struct {
	Text, Anchor string // the anchor is the fragment of a link to the heading, without the #
	Section      string // the section in Markdown, with the heading

	level, at int
}

// Headings returns the headings of a page, in order. The first one is the page's title.
func Headings(page string) (all []Heading) {
	at, fenced := 0, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if text := strings.TrimLeft(line, "#"); text != line && text[0] == ' ' && !fenced {
			text = strings.TrimSpace(text)
			all = append(all, Heading{Text: text, Anchor: anchor(text), level: strings.Index(line, " "), at: at})
		}
		at += len(line)
	}
	for i := range all {
		end := len(page)
		for _, next := range all[i+1:] {
			if next.level <= all[i].level {
				end = next.at
				break
			}
		}
		all[i].Section = page[all[i].at:end]
	}
	return all
}

// anchor returns the anchor that Git forges give to the first heading with the given text on a page.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
