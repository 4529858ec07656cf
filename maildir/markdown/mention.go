package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameBytes is how long a name may be: see format.ValidName.
const nameBytes = 64

// mention returns the first name mentioned in the prose, without "@"; "" when there is none. A
// mention is "@Name" after a blank or opening punctuation, so that mail addresses, "checkout@v4" and
// paths are none. A name is letters, digits, ".", "_" and "-".
func (p prose) mention() string {
	for start := 0; ; {
		at := strings.IndexByte(p.mask[start:], '@')
		if at < 0 {
			return ""
		}
		before, _ := utf8.DecodeLastRuneInString(p.mask[:start+at])
		opened := start+at == 0 || unicode.IsSpace(before) || strings.ContainsRune("(\"'“‘[{<,;:|!?…—–", before)
		start += at + 1
		rest := strings.TrimLeftFunc(p.mask[start:], inName)
		if name := nameAt(p.mask, start, len(p.mask)-len(rest)); opened && name != "" {
			return name
		}
	}
}

// inName says whether a name may have the rune.
func inName(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-'
}

// nameAt returns the name s[start:end] without the punctuation that ends its
// sentence, or "" if it is none: "@types/node", "@user@host".
func nameAt(s string, start, end int) string {
	name := strings.TrimRight(s[start:end], "._-")
	if len(name) > nameBytes || strings.TrimLeft(name, "._-") != name {
		return ""
	}
	if end < len(s) && (s[end] == '/' || s[end] == '@') {
		return ""
	}
	return name
}

// addressed says whether the prose begins with "@Name".
func (p prose) addressed() bool {
	name := p.mention()
	return name != "" && strings.HasPrefix(p.mask, "@"+name)
}
