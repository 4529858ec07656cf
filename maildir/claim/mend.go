package claim

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mailtree/maildir/glob"
	"mailtree/maildir/refusal"
)

// Mending turns what callers write for patterns into patterns: several in one text, paths as
// another system or a shell writes them, absolute paths below the code base. What may mean
// something else is refused, and never becomes a pattern as it stands. See docs/guard.md, "Making a
// claim".
type Mending struct {
	Top    string                 // absolute path of the code base; "" where the project has none
	Home   string                 // the home folder, for ~; "" for none
	Exists func(path string) bool // whether something lies at a path below the top
}

// Patterns are those that the texts stand for, each once, clean and in their order. Errors:
// refusal.PathUnclaimable.
func (m *Mending) Patterns(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		parts, why := m.Mend(text)
		for _, p := range parts {
			p = glob.Clean(p)
			if _, err := glob.Compile(p, false); err != nil {
				why = err.Error()
			}
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		if why != "" {
			return nil, &refusal.Error{
				What:  refusal.PathUnclaimable,
				Field: refusal.Paths,
				Name:  text,
				Why:   why,
			}
		}
	}
	return out, nil
}

// Mend is Patterns for one text; why it is refused goes on behind "cannot be claimed: ".
func (m *Mending) Mend(text string) (patterns []string, why string) {
	text = strings.TrimSpace(text)
	if text == "" || m.Exists(text) {
		return []string{quote(text)}, ""
	}
	parts := cutUnquoted(text, ",\r\n")
	switch {
	case len(parts) == 0:
		return nil, "it names no path"
	case len(parts) > MaxPatterns:
		return nil, tooMany
	}
	for _, part := range parts {
		mended, why := m.mendPath(part)
		if why != "" {
			return nil, why
		}
		patterns = append(patterns, mended...)
	}
	return patterns, ""
}

// mendPath mends a text without separators between paths but blanks.
func (m *Mending) mendPath(p string) (patterns []string, why string) {
	if m.Exists(p) {
		return []string{quote(p)}, ""
	}
	if isWindows(p) {
		p = backslashes.ReplaceAllLiteralString(p, "/")
	}
	if p == "~" || strings.HasPrefix(p, "~/") && m.Home != "" {
		p = m.Home + p[1:]
	}
	switch {
	case p != "" && p[0] == '~':
		return nil, "it begins with ~: write it relative to the code repository's root"
	case drive.MatchString(p):
		return nil, "it begins with a drive's letter: write it relative to the code repository's root"
	case filepath.IsAbs(p):
		below, ok := strings.CutPrefix(filepath.Clean(p)+"/", m.Top+"/")
		if m.Top == "" || !ok {
			return nil, "it is absolute and does not lie below the code repository's root: write it relative to that"
		}
		if p = strings.TrimSuffix(below, "/"); p == "" {
			p = "."
		}
	}
	if m.Exists(p) {
		return []string{quote(p)}, ""
	}
	return m.mendBlanks(p)
}

// mendBlanks splits a text at blanks where each part names something. It leaves those in the name
// of something that exists, and those behind a \.
func (m *Mending) mendBlanks(p string) (patterns []string, why string) {
	parts := cutUnquoted(p, " \t")
	if len(parts) < 2 {
		return []string{p}, ""
	}
	head := p
	if last := strings.LastIndexAny(p, " \t"); strings.Contains(p[last:], "/") {
		head = p[:last+strings.IndexByte(p[last:], '/')]
	}
	if len(parts) > MaxPatterns {
		return nil, tooMany
	}
	if m.Exists(head) {
		return []string{quote(head) + p[len(head):]}, ""
	}
	for _, part := range parts {
		if !m.Exists(part) && !strings.ContainsAny(part, "*?[{") {
			return nil, `it holds blanks and names no file: list each path on its own, or write "\ " for a blank in the name of a new file`
		}
	}
	for _, part := range parts {
		mended, why := m.mendPath(part)
		if why != "" {
			return nil, why
		}
		patterns = append(patterns, mended...)
	}
	return patterns, ""
}

// MaxPatterns is how many patterns one request may have.
const MaxPatterns = 200

var tooMany = fmt.Sprintf("it names more than %d paths: claim folders", MaxPatterns)

var (
	backslashes = regexp.MustCompile(`\\+`)
	drive       = regexp.MustCompile(`^[A-Za-z]:/`)
)

// quoted are the characters that a \ before them means as they are. Before any other it is taken
// for the separator of another system.
const quoted = `[]{}?,!^- `

// isWindows reports whether a \ stands where it quotes nothing.
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

// quote is the pattern of exactly that path.
func quote(path string) string { return special.Replace(path) }

var special = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// cutUnquoted splits a text at each of the separators that stands in no braces, in no class and
// behind no \. Empty parts are left out.
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
