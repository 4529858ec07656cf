package tool

import (
	"slices"
	"strings"
	"unicode"

	"mailtree/maildir/format"
)

// alike are words that models use for each other in the names of arguments.
var alike = [][]string{
	{"body", "text", "message", "msg", "content", "markdown", "md"},
	{"query", "text", "search", "q"},
	{"path", "file", "pattern", "glob"},
	{"attachment", "file", "image"},
	{"from", "sender", "author"},
	{"to", "recipient", "receiver", "name"},
	{"name", "agent", "recipient", "mailbox", "hook"},
	{"agent", "user", "identity", "username", "me"},
	{"subject", "title"},
	{"importance", "priority"},
	{"project", "repo", "repository", "workspace", "cwd"},
	{"limit", "max", "count", "size"},
	{"cursor", "page", "offset"},
	{"ttl", "lease", "duration", "expires"},
	{"wait", "timeout"},
	{"since", "after"},
	{"cmd", "command"},
}

// meant returns the arguments that a call probably means by a name that the tool does not take,
// among those that it does not give: at most three, equally near; nil where none is like it.
func (a *Args) meant(given string) (near []string) {
	const least = 0.5 // half of the words mean the same
	best := least
	var spelled []string
	for _, p := range a.in {
		if a.Has(p.Name) {
			continue
		}
		spelled = append(spelled, p.Name)
		score := likeness(nameWords(given), nameWords(p.Name))
		if p.Need && score > 0.3 {
			score += 0.25 // what the call still needs is what it means
		}
		switch {
		case score > best, score == best && near == nil:
			best, near = score, []string{p.Name}
		case score == best:
			near = append(near, p.Name)
		}
	}
	if near == nil {
		near = format.Near(given, spelled)
	}
	return near[:min(3, len(near))]
}

// likeness is the share of the words of two names that have an equal, or like, word in the other: 0
// to 1. An id is nothing but an id: the body of a message is not its message_id.
func likeness(a, b []string) float64 {
	strict := slices.Contains(a, "id") != slices.Contains(b, "id")
	shared := 0
	for _, pair := range [][2][]string{{a, b}, {b, a}} {
		for _, word := range pair[0] {
			if slices.ContainsFunc(pair[1], func(other string) bool { return word == other || !strict && areAlike(word, other) }) {
				shared++
			}
		}
	}
	return float64(shared) / float64(max(1, len(a)+len(b)))
}

func areAlike(a, b string) bool {
	return slices.ContainsFunc(alike, func(group []string) bool { return slices.Contains(group, a) && slices.Contains(group, b) })
}

// nameWords are the words of a name such as reply_to, replyTo or reply-to, in lower case and
// singular.
func nameWords(name string) (words []string) {
	var b strings.Builder
	for _, r := range Clip(name) {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		if r == '_' || r == '-' || r == '.' {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	for _, word := range strings.Fields(b.String()) {
		if stem, plural := strings.CutSuffix(word, "ies"); plural {
			word = stem + "y"
		} else if len(word) > 3 && !strings.HasSuffix(word, "ss") {
			word = strings.TrimSuffix(word, "s")
		}
		words = append(words, word)
	}
	return words
}
