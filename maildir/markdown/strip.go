package markdown

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// stripBytes bounds the text that strip is given: its expressions are linear,
// but slow.
const stripBytes = 4 << 10

// lazily compiles an expression at its first use: every start of the program
// would pay for all of them, a commit hook's too.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// stripRules take inline markup off, in order. $1 is what stays.
var stripRules = []struct {
	pattern func() *regexp.Regexp
	keep    string
}{
	{lazily(`<((?:https?|mailto|ftp):[^<>\s]+|[^<>\s@]+@[^<>\s@]+)>`), "$1"},
	{lazily(`(?i)<br ?/?>`), " "},
	{lazily(`<!--.*?-->|</?[A-Za-z][^<>]*>`), ""},
	{lazily(`!\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`), "$1"},
	{lazily(`\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`), "$1"},
	{lazily(`\*{1,3}([^\s*](?:[^*]*[^\s*])?)\*{1,3}`), "$1"},
	{lazily(`~~([^\s~](?:[^~]*[^\s~])?)~~`), "$1"},
	{lazily(`\b_{1,3}([^\s_](?:[^_]*[^\s_])?)_{1,3}\b`), "$1"},
	// Nested one in the other: "**bold *and* more**".
	{lazily(`\*{1,3}([^\s*](?:[^*]*[^\s*])?)\*{1,3}`), "$1"},
}

// strip takes inline markup off a text, by and large: what it does not
// understand stays. The result may hold line ends and blanks.
func strip(s string) string {
	if len(s) > stripBytes {
		s, _ = clipBody(s, stripBytes)
	}
	if !strings.ContainsAny(s, "`*_~[<&\\") {
		return s
	}
	var kept keeper
	s = kept.escapes(kept.code(strings.ReplaceAll(s, "\x00", " ")))
	for _, rule := range stripRules {
		s = rule.pattern().ReplaceAllString(s, rule.keep)
	}
	return kept.restore(html.UnescapeString(s))
}

// keeper hides literal text from the rules: it stands as NUL number NUL.
type keeper struct{ literals []string }

func (k *keeper) keep(s string) string {
	k.literals = append(k.literals, s)
	return "\x00" + strconv.Itoa(len(k.literals)-1) + "\x00"
}

// code hides code spans, without their backticks.
func (k *keeper) code(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '`')
		if i < 0 {
			break
		}
		rest := strings.TrimLeft(s[i:], "`")
		run := s[i : len(s)-len(rest)]
		b.WriteString(s[:i])
		end := closingRun(rest, len(run))
		if end < 0 {
			b.WriteString(k.keep(run))
			s = rest
			continue
		}
		b.WriteString(k.keep(strings.TrimSpace(rest[:end])))
		s = rest[end+len(run):]
	}
	return b.String() + s
}

// closingRun returns where the next run of exactly n backticks begins, or -1.
func closingRun(s string, n int) int {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		run := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if run == n {
			return at
		}
		at += run
	}
}

// escapes hides what a backslash escapes.
func (k *keeper) escapes(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			break
		}
		b.WriteString(s[:i])
		if punctuation(s[i+1]) {
			b.WriteString(k.keep(s[i+1 : i+2]))
			s = s[i+2:]
			continue
		}
		b.WriteByte('\\')
		s = s[i+1:]
	}
	return b.String() + s
}

// restore puts the literals back.
func (k *keeper) restore(s string) string {
	parts := strings.Split(s, "\x00")
	for i := 1; i < len(parts); i += 2 {
		if n, err := strconv.Atoi(parts[i]); err == nil && n < len(k.literals) {
			parts[i] = k.literals[n]
		}
	}
	return strings.Join(parts, "")
}
