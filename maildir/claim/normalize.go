package claim

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/glob"
	"mailtree/maildir/lazy"
	"mailtree/maildir/refusal"
)

// Normalizer converts callers' text into patterns. A relative path is relative to the folder Below, unless its first
// elements exist only at the top. Normalizer accepts several patterns in one text, paths in the style of another
// operating system or a shell, and absolute paths below the code base. It rejects ambiguous text instead of using the
// text as a pattern. See docs/reference/guard.md, "Making a claim".
type Normalizer struct {
	Top      string  // absolute path of the code base; empty if the project has none
	Home     string  // the home folder, which replaces ~; empty if unknown
	CodeBase         // reports which files and folders exist
	Below    string  // folder below the top that the caller gave as the project; empty for the top
	Moved    []Moved // texts that were resolved relative to the top, although Below is set
}

// CodeBase looks up paths in a code base. See repo.View.
type CodeBase interface {
	// Exists reports whether a file or folder exists at a path relative to the top.
	Exists(path string) bool
	// Relative converts an absolute path into a path relative to the top, in a linked worktree as well as in the main
	// one. ok is false if the path is not in a worktree.
	Relative(path string) (rel string, ok bool)
}

// From specifies where a Normalizer's caller works.
type From struct {
	Folder  string // the value for Normalizer.Below
	WorkDir string // absolute path of the folder in which the caller works, which determines the worktree; empty if unknown
}

// Moved records that Text does not exist in the folder that the caller gave as the project, but does exist relative to
// the top. Path is relative to the top.
type Moved struct{ Text, Path string }

// Patterns converts texts into patterns. The patterns are clean, follow the order of the texts, and contain no
// duplicates. If a text cannot be normalized, Patterns returns ErrInvalid.
func (m *Normalizer) Patterns(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		parts, why := m.normalize(text)
		for _, p := range parts {
			p = glob.Clean(p)
			const fold = false
			if _, err := glob.Compile(p, fold); err != nil {
				why = err.Error()
			}
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		if why != "" {
			return nil, &refusal.Error{
				What:  refusal.Invalid("The path {name} {arg} cannot be claimed: {why}."),
				Field: refusal.Paths,
				Name:  text,
				Why:   why,
			}
		}
	}
	return out, nil
}

// normalize is like Patterns, but for one text. why completes the sentence "cannot be claimed: …".
func (m *Normalizer) normalize(text string) (patterns []string, why string) {
	text = strings.TrimSpace(text)
	for _, t := range []string{text, unwrap(text)} {
		if at := m.existing(m.Below, t); at != "" || t == "" {
			return []string{m.literal(at)}, ""
		}
	}
	text = unwrap(text)
	switch {
	case object().MatchString(text):
		return nil, "it is a JSON object. Write only the path"
	}
	var parts []string
	for _, part := range cutUnquoted(text, ",\r\n") {
		if m.existing(m.Below, part) != "" {
			parts = append(parts, part)
			continue
		}
		parts = append(parts, cutUnquoted(part, ";")...)
	}
	switch {
	case len(parts) == 0:
		return nil, "it does not contain a path"
	case len(parts) > MaxPatterns:
		return nil, tooMany
	}
	return m.normalizePaths(parts)
}

// normalizePaths is like normalize, but for a text that was split into parts. If any part cannot be normalized, why
// gives the reason for the first such part.
func (m *Normalizer) normalizePaths(parts []string) (patterns []string, why string) {
	for _, part := range parts {
		normalized, why := m.normalizePath(part)
		if why != "" {
			return nil, why
		}
		patterns = append(patterns, normalized...)
	}
	return patterns, ""
}

// normalizePath is like normalize, but for text whose only separators are spaces.
func (m *Normalizer) normalizePath(p string) (patterns []string, why string) {
	if at := m.existing(m.Below, p); at != "" {
		return []string{m.literal(at)}, ""
	}
	p = unwrap(p)
	if found := m.find(m.Below, p); found != "" {
		return []string{m.literal(found)}, ""
	}
	p, isAbsolute, why := m.relative(p)
	if why != "" {
		return nil, why
	}
	folder := m.Below
	if isAbsolute {
		folder = ""
	}
	if found := m.find(folder, p); found != "" {
		return []string{m.literal(found)}, ""
	}
	if folder != "" {
		p = m.inFolder(p)
	}
	if _, rest := m.lead(p); rest != "" {
		if why := otherDialect(rest, rest == p); why != "" {
			return nil, why
		}
	}
	if p, why = m.withoutDots(p); why != "" {
		return nil, why
	}
	return m.normalizeBlanks(p)
}

// lead splits a path after the leading elements that exist under exactly these names, such as app/[id] in
// app/[id]/**. These elements are taken literally, not as wildcards.
func (m *Normalizer) lead(p string) (lead, rest string) {
	end := 0
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		if i > end && !m.Exists(p[:i]) {
			break
		}
		end = i
	}
	return p[:end], strings.TrimLeft(p[end:], "/")
}

// literal returns the pattern for an existing path. For an empty path, it returns "".
func (m *Normalizer) literal(p string) string {
	if p == "" {
		return ""
	}
	p = path.Clean(p)
	if rel, ok := m.Relative(m.Top + "/" + p); ok { // rel differs from p if p is in a linked worktree
		p = rel
	}
	return quote(p)
}

// pattern returns the pattern for a path. The leading elements that lead returns are taken literally.
func (m *Normalizer) pattern(p string) string {
	lead, rest := m.lead(p)
	switch {
	case lead == "":
		return p
	case rest == "":
		return m.literal(lead)
	}
	if lead = m.literal(lead); lead == "." {
		return rest
	}
	return lead + "/" + rest
}

// relative converts a file URL, an absolute path, or a path that begins with ~ into a path relative to the top. In any
// other path, it only replaces another operating system's separators, and isAbsolute is false.
func (m *Normalizer) relative(p string) (below string, isAbsolute bool, why string) {
	if at := fileURL().FindString(p); at != "" {
		p = p[len(at)-1:]
		if plain, err := url.PathUnescape(p); err == nil {
			p = plain
		}
		if drive().MatchString(p[1:]) {
			p = p[1:]
		}
	}
	if otherURL().MatchString(p) {
		return "", false, "it is a URL. Write the path relative to the code repository's root"
	}
	if name := variable().FindString(p); name != "" && !m.Exists(strings.TrimSuffix(name, "/")) {
		return "", false, "it begins with a shell variable. Write the path itself, or put ./ before a literal $"
	}
	lead, rest := m.lead(p)
	if isWindows(rest) {
		p = p[:len(p)-len(rest)] + backslashes().ReplaceAllLiteralString(rest, "/")
	}
	if p == "~" || strings.HasPrefix(p, "~/") && m.Home != "" {
		p = m.Home + p[1:]
	}
	switch {
	case p != "" && p[0] == '~' && lead == "":
		return "", false, "it begins with ~. Write the path relative to the code repository's root"
	case drive().MatchString(p):
		return "", false, "it begins with a drive letter. Write the path relative to the code repository's root"
	case filepath.IsAbs(p):
		below, ok := m.belowTop(p)
		if !ok {
			return "", false, "it is outside the code repository. Write a path relative to the repository's root"
		}
		if strings.HasSuffix(p, "/") && glob.HasWildcards(below) {
			below += "/"
		}
		return below, true, ""
	}
	return p, false, ""
}

// belowTop converts an absolute path into a path relative to the top. ok is false if the path is neither below the top
// nor in a linked worktree.
func (m *Normalizer) belowTop(p string) (below string, ok bool) {
	if m.Top == "" {
		return "", false
	}
	return m.Relative(filepath.Clean(p))
}

// withoutDots removes the .. elements from a path that does not exist yet. If the path leaves the top and does not
// return, withoutDots keeps the .. elements, and glob.Compile then rejects the path.
func (m *Normalizer) withoutDots(p string) (clean, why string) {
	last := strings.LastIndex("/"+p+"/", "/../")
	if last < 0 {
		return p, ""
	}
	lead, _ := m.lead(p)
	if strings.ContainsAny(p[min(len(lead), last):last], `*?[{\`) {
		return "", "it has .. after a wildcard. Write the path without .."
	}
	clean = path.Clean(p)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		if below, ok := m.belowTop(m.Top + "/" + clean); ok {
			clean = below
		}
	}
	if strings.HasSuffix(p, "/") && glob.HasWildcards(clean) {
		clean += "/"
	}
	return clean, ""
}

// existing returns the path, relative to the top, of the existing file or folder whose exact name is text. It looks
// first in folder, which is relative to the top ("" for the top itself), and then in the top. It returns "" if
// nothing exists.
func (m *Normalizer) existing(folder, text string) string {
	if text == "" || text[0] == '/' {
		return ""
	}
	if at := path.Join(folder, text); m.Exists(at) {
		return at
	}
	if at := path.Clean(text); folder != "" && m.Exists(at) {
		m.move(text, at)
		return at
	}
	return ""
}

// move records that text was resolved relative to the top, although the caller gave a folder below it.
func (m *Normalizer) move(text, at string) {
	if moved := (Moved{text, at}); !slices.Contains(m.Moved, moved) {
		m.Moved = append(m.Moved, moved)
	}
}

// inFolder makes a path or pattern relative to the top. p must not name an existing file or folder. inFolder treats p
// as relative to Below, unless the first elements of p exist only at the top.
func (m *Normalizer) inFolder(p string) string {
	inside := m.Below + "/" + p
	if lead, _ := m.lead(inside); len(lead) <= len(m.Below) {
		if lead, _ = m.lead(p); lead != "" && lead != "." {
			m.move(p, p)
			return p
		}
	}
	return inside
}

// find returns the path of the existing file or folder whose name is text, taken literally. It tries the text itself,
// and the text without a leading @ or a trailing line number. It looks for each of these texts in the same folders as
// existing, and returns "" if nothing exists.
func (m *Normalizer) find(folder, text string) string {
	if text == "" || text[0] == '/' {
		return ""
	}
	texts := []string{text}
	if rest, ok := strings.CutPrefix(text, "@"); ok && rest != "" {
		texts = append(texts, rest)
	}
	for _, t := range texts {
		if at := line().FindStringIndex(t); at != nil && at[0] > 0 {
			texts = append(texts, t[:at[0]])
		}
	}
	for _, t := range texts {
		if at := m.existing(folder, t); at != "" {
			return at
		}
	}
	return ""
}

// normalizeBlanks splits text at its spaces if each part names an existing path or contains wildcards. It does not
// split at spaces that follow a \ or are part of the names of existing leading folders.
func (m *Normalizer) normalizeBlanks(p string) (patterns []string, why string) {
	if _, rest := m.lead(p); len(cutUnquoted(rest, " \t")) < 2 {
		return []string{m.pattern(p)}, ""
	}
	parts := cutUnquoted(p, " \t")
	if len(parts) > MaxPatterns {
		return nil, tooMany
	}
	for _, part := range parts {
		if len(parts) < 2 || !strings.ContainsAny(part, "*?[{") && !m.Exists(part) && m.find("", unwrap(part)) == "" {
			return nil, `it contains spaces, and no such file exists. List each path separately, or write "\ " for a space in the name of a new file`
		}
	}
	return m.normalizePaths(parts)
}

// MaxPatterns is the maximum number of patterns in one request.
const MaxPatterns = 200

var tooMany = fmt.Sprintf("it expands to more than %d paths. Claim folders instead", MaxPatterns)

var (
	backslashes = lazy.Regexp(`\\+`)
	drive       = lazy.Regexp(`^[A-Za-z]:/`)
	fileURL     = lazy.Regexp(`(?i)^file://(localhost)?/`)
	otherURL    = lazy.Regexp(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	variable    = lazy.Regexp(`^\$(\w+|\{[^}]*\}|\([^)]*\))(/|$)`)
	object      = lazy.Regexp(`^\{\s*(\}$|["'][^"']*["']\s*:)`)
	// a line number, as written by editors, compilers and forges
	line = lazy.Regexp(`(:\d+(:\d+|-\d+)?:?|#L\d+(C\d+)?(-L?\d+(C\d+)?)?)$`)
)

// quoted lists the characters that a \ escapes. Before any other character, a \ is treated as another operating
// system's path separator.
const quoted = `[]{}?,;|!^- `

// isWindows reports whether p contains a \ that does not escape anything.
func isWindows(p string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' {
			continue
		}
		i++
		if i == len(p) || !strings.Contains(quoted, p[i:i+1]) {
			return true
		}
	}
	return false
}

// unwrap removes quotation marks or backticks around the whole text.
func unwrap(text string) string {
	for len(text) > 1 && strings.IndexByte("\"'`", text[0]) >= 0 && strings.IndexByte(text[1:], text[0]) == len(text)-2 {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	return text
}

// quote returns the pattern that matches exactly the given path.
func quote(path string) string { return special.Replace(path) }

var special = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// cutUnquoted splits text at each separator that is outside braces and character classes and does not follow a \. It
// omits empty parts.
func cutUnquoted(text, separators string) (parts []string) {
	from, deep := 0, 0
	add := func(to int) {
		if part := strings.TrimSpace(text[from:to]); part != "" {
			parts = append(parts, part)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '{' || c == '[':
			deep++
		case (c == '}' || c == ']') && deep > 0:
			deep--
		case deep == 0 && strings.IndexByte(separators, c) >= 0:
			add(i)
			from = i + 1
		}
	}
	add(len(text))
	return parts
}
