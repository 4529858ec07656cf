package gitlog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

const (
	subjectBytes = 200 // limit, in bytes, for a subject line
	summaryBytes = 120 // limit, in bytes, for a summary in a list of operations
	listedPaths  = 100 // maximum number of paths that the commit message for edits lists
)

// oneLine converts text to one line for a commit message. It replaces control characters and line breaks with spaces,
// and invalid UTF-8 with U+FFFD, and truncates the text to limit bytes at a rune boundary.
func oneLine(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	return format.Cut(s, limit-len("…")) + "…"
}

// word converts a verb, name or id to one word. It is like oneLine, but replaces spaces with underscores.
func word(s string) string {
	return strings.ReplaceAll(oneLine(s, 128), " ", "_")
}

// opsMessage returns the message for a commit of operations. The package comment describes the layout.
func opsMessage(ops []operation) string {
	var b strings.Builder
	if len(ops) == 1 {
		op := ops[0]
		b.WriteString(oneLine(word(op.Verb)+": "+orDash(cmp.Or(op.Summary, op.ID, op.Agent)), subjectBytes))
		b.WriteString("\n")
	} else {
		b.WriteString(oneLine(tally(ops), subjectBytes))
		b.WriteString("\n\n")
		for _, op := range ops {
			line := []string{orDash(word(op.Verb)), orDash(word(op.Agent)), orDash(word(op.ID))}
			if s := oneLine(op.Summary, summaryBytes); s != "" {
				line = append(line, s)
			}
			b.WriteString(strings.Join(line, " "))
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, op := range ops {
		trailer(&b, "Mail-Op", orDash(word(op.Verb)))
		trailer(&b, "Mail-Id", word(op.ID))
		trailer(&b, "Mail-Marks", word(op.Marks))
		trailer(&b, "Agent", word(op.Agent))
		trailer(&b, "Mail-Door", word(op.Door))
		trailer(&b, "Mail-Step", word(op.Step))
	}
	return b.String()
}

func trailer(b *strings.Builder, key, value string) {
	if value != "" {
		fmt.Fprintf(b, "%s: %s\n", key, value)
	}
}

func orDash(s string) string { return cmp.Or(s, "-") }

// tally returns the count of each verb in the order of first appearance, such as "send ×12, read ×3".
func tally(ops []operation) string {
	var verbs []string
	count := map[string]int{}
	for _, op := range ops {
		v := orDash(word(op.Verb))
		if count[v]++; count[v] == 1 {
			verbs = append(verbs, v)
		}
	}
	for i, v := range verbs {
		verbs[i] = fmt.Sprintf("%s ×%d", v, count[v])
	}
	return strings.Join(verbs, ", ")
}

// editMessage returns the message for a commit of edits.
func editMessage(changes []*change) string {
	verb := history.VerbEdit
	if !slices.ContainsFunc(changes, func(c *change) bool { return c.new.Mode != 0 }) {
		verb = history.VerbRemove
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = oneLine(c.path, subjectBytes)
	}
	if len(paths) == 1 {
		return oneLine(verb+": "+paths[0], subjectBytes) + editTrailer
	}
	more := ""
	if len(paths) > listedPaths {
		more = fmt.Sprintf("\n… and %d more", len(paths)-listedPaths)
		paths = paths[:listedPaths]
	}
	return fmt.Sprintf("%s: %d files\n\n%s%s", verb, len(changes), strings.Join(paths, "\n"), more) + editTrailer
}

// identityPart removes characters that Git does not allow in names and email addresses.
func identityPart(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '<' || r == '>' {
			return -1
		}
		return r
	}, oneLine(s, 128))
	return strings.Trim(s, " .,:;\"'\\")
}

// identity returns "Name <mail>".
func identity(name, mail string) string {
	return fmt.Sprintf("%s <%s>", identityPart(name), strings.ReplaceAll(identityPart(mail), " ", ""))
}

const (
	serverName    = "mailtree"
	defaultDomain = "mailtree.local"
)

func (l *Log) server() string { return identity(serverName, serverName+"@"+l.cfg.Domain) }

// agent returns the author of an agent's operations. If name is empty, the author is the server.
func (l *Log) agent(name string) string {
	if identityPart(name) == "" {
		return l.server()
	}
	return identity(name, name+"@"+l.cfg.Domain)
}
