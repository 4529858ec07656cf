package tool

import (
	"slices"
	"strings"
	"unicode"

	"mailtree/maildir/format"
)

// alike contains groups of words that models confuse with each other in argument names.
var alike = [][]string{
	{"body", "text", "message", "msg", "content", "markdown", "md"},
	{"query", "text", "search", "q", "keyword", "term"},
	{"path", "file", "pattern", "glob"},
	{"attachment", "file", "image"},
	{"from", "sender", "author"},
	{"to", "recipient", "receiver", "name"},
	{"name", "agent", "recipient", "mailbox", "hook"},
	{"agent", "user", "identity", "username", "me"},
	{"subject", "title", "topic"},
	{"importance", "priority"},
	{"project", "repo", "repository", "workspace", "cwd"},
	{"limit", "max", "count", "size"},
	{"cursor", "page", "offset"},
	{"ttl", "lease", "duration", "expires"},
	{"wait", "timeout"},
	{"since", "after"},
	{"cmd", "command"},
}

// meant returns the arguments that a caller probably meant by an unknown name. It considers only arguments that the
// call does not pass. It returns up to three equally similar arguments, or nil if no argument is similar enough.
func (a *args) meant(given string) (near []string) {
	const least = 0.5 // half of the words must match
	best := least
	var spelled []string
	for _, p := range a.in {
		if a.has(p.Name) {
			continue
		}
		spelled = append(spelled, p.Name)
		score := likeness(nameWords(given), nameWords(p.Name))
		if p.Need && score > 0.3 {
			score += 0.25 // prefer arguments that are still missing
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

// telling contains words that determine the meaning of a name. A name that contains one of them never matches an
// argument without it. For example, "reply_to" is a message, not a recipient.
var telling = []string{"reply", "thread", "program", "model"}

// likeness compares an unknown name with the name of an argument. It returns the fraction of the words in both names
// that also occur in the other name. Words in the same group of alike are treated as equal. However, if only one of the
// names contains the word id or byte, words must match exactly, because "message" does not mean message_id.
func likeness(given, name []string) float64 {
	only := func(word string) bool { return slices.Contains(given, word) && !slices.Contains(name, word) }
	if slices.ContainsFunc(telling, only) {
		return 0
	}
	strict := slices.ContainsFunc([]string{"id", "byte"}, func(word string) bool {
		return slices.Contains(given, word) != slices.Contains(name, word)
	})
	shared := 0
	for _, pair := range [][2][]string{{given, name}, {name, given}} {
		for _, word := range pair[0] {
			if slices.ContainsFunc(pair[1], func(other string) bool { return word == other || !strict && areAlike(word, other) }) {
				shared++
			}
		}
	}
	return float64(shared) / float64(max(1, len(given)+len(name)))
}

func areAlike(a, b string) bool {
	return slices.ContainsFunc(alike, func(group []string) bool { return slices.Contains(group, a) && slices.Contains(group, b) })
}

// nameWords splits a name such as reply_to, replyTo or reply-to into its words, in lower case and in the singular.
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
