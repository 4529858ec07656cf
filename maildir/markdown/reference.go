package markdown

import (
	"strings"
	"unicode"
)

// namePattern is what names a part of the code without a code span: src/app.go:12, app.py,
// /api/users, parse(), pkg.Func(), #123, a commit. Addresses of the web and of mail are none.
var namePattern = lazily(`^(?:` +
	`(?:\.{0,2}/)?(?:[\w@.-]+/)+[\w.-]*\.[A-Za-z]\w{0,9}(?::\d+)?|` +
	`[\w-]+(?:\.[\w-]+)*\.(?:go|py|ts|tsx|js|jsx|rs|java|kt|c|h|cc|cpp|cs|rb|php|swift|md|json|ya?ml|toml|sql|sh|html|css|proto|tf|` +
	`conf|cfg|ini|xml|csv|txt|log)(?::\d+)?|` +
	`/[\w-]+(?:/[\w{}:.-]*\w)+|` +
	`[A-Za-z_][\w.]*\(\)|` +
	`#\d+|` +
	`[0-9a-f]{7,40}` +
	`)$`)

// codeBytes bounds a reference: what is longer is code, and not the name of it.
const codeBytes = 80

// references lists the code spans of the prose and what its text names.
func (p prose) references() []string {
	var all []string
	for _, code := range p.code {
		if code != "" && len(code) <= codeBytes {
			all = append(all, code)
		}
	}
	for word := range strings.FieldsSeq(p.mask) {
		word, _, _ = strings.Cut(strings.TrimLeft(word, "(\"'“‘["), "?")
		word = strings.TrimRight(word, ".,;:!\"'”’]")
		if !strings.HasSuffix(word, "()") {
			word = strings.TrimRight(word, ").,;:\"'”’]")
		}
		if mayName(word) && namePattern().MatchString(word) {
			all = append(all, word)
		}
	}
	return all
}

// mayName spares most words the pattern.
func mayName(word string) bool {
	if len(word) < 2 || len(word) > codeBytes {
		return false
	}
	return strings.ContainsAny(word, "./#(") || len(word) >= 7 && strings.ContainsFunc(word, unicode.IsDigit) &&
		strings.ContainsFunc(word, unicode.IsLetter)
}
