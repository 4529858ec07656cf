package markdown

import "strings"

// mentionPattern is "@Name" after a blank or opening punctuation, so that mail
// addresses, "checkout@v4" and paths are none. What follows the name is checked
// in nameAt. The name is the package's notion of a name: 64 characters of
// letters, digits, ".", "_" and "-".
var mentionPattern = lazily(`(?:^|[\s("'“‘\[{<,;:|!?…—–])@([A-Za-z0-9][A-Za-z0-9._-]*)`)

const nameBytes = 64

// mention returns the first name mentioned in the prose, without "@"; "" when there is none.
func (p prose) mention() string {
	if !strings.Contains(p.mask, "@") {
		return ""
	}
	for _, m := range mentionPattern().FindAllStringSubmatchIndex(p.mask, -1) {
		if name := nameAt(p.mask, m[2], m[3]); name != "" {
			return name
		}
	}
	return ""
}

// nameAt returns the name s[start:end] without the punctuation that ends its
// sentence, or "" if it is none: "@types/node", "@user@host".
func nameAt(s string, start, end int) string {
	name := strings.TrimRight(s[start:end], "._-")
	if len(name) > nameBytes {
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
