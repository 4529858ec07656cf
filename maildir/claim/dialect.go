package claim

import (
	"strings"

	"mailtree/maildir/lazy"
)

// These expressions match the pattern syntax of other programs, which means something else in a claim. foreign also
// matches whole character classes and characters escaped with \, so that the caller can skip them.
var (
	foreign = lazy.Regexp(`\\.|` +
		`\[[^\]/]*\[[:.=][^\]/]*\][^\]/]*\]|` + // [[:digit:]]
		`\[[^\]]*\]|` +
		`[@+?*!]\([^()]*\)|` + // +(a|b)
		`\{-?\w+\.\.-?\w+(\.\.-?\w+)?\}|` + // {1..9}
		`\|`)
	posixClass = lazy.Regexp(`^\[.*\[[:.=]`)
	ellipsis   = lazy.Regexp(`(^|/)\.\.\.(/|$)`) // ./..., as in the commands of the Go tools
	pathspec   = lazy.Regexp(`^:[(!^/]`)         // Git's :(glob)src/** and :!src
)

// otherDialect explains why a pattern in another program's syntax is rejected, and what to write instead. It returns ""
// for any other pattern. whole reports whether text is the entire pattern rather than only its end.
func otherDialect(text string, whole bool) string {
	switch {
	case whole && pathspec().MatchString(text):
		return "it begins like a Git pathspec. Write only the pattern, relative to the code repository's root"
	case ellipsis().MatchString(text):
		return `it contains "...", which is not supported. Write ** for everything below a folder`
	}
	for _, m := range foreign().FindAllString(text, -1) {
		switch {
		case m == "|":
			return `it contains a |. List each path separately, or write {a,b}. For a | in a name, write "\|"`
		case posixClass().MatchString(m):
			return "it contains " + m + ", a POSIX character class, which is not supported. List the characters, " +
				"as in [0-9]"
		case strings.HasPrefix(m, "{"):
			return "it contains " + m + ", a brace range, which is not supported. List the alternatives, as in {1,2}"
		case strings.HasSuffix(m, ")") && m[0] != '\\':
			return "it contains " + m + ", an extended glob, which is not supported. Write {a,b}. For a ( in a name, write " +
				"[(]"
		}
	}
	if whole && text[0] == '!' {
		return "it begins with !, but a claim cannot exclude files. Claim only the files that you work on. For " +
			`a ! in a name, write "\!"`
	}
	return ""
}
