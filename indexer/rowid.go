package indexer

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// The row number of a message is its place in time: 53 bits of microseconds since 1900, and ten
// bits that keep messages of one microsecond apart. Messages from before 1900 or after 2185 share
// the places at the ends.
const (
	tieBits = 10
	// lastMicro leaves room above itself for messages of one instant that do not fit into its 1,024
	// places.
	lastMicro = 1<<53 - 1<<25
)

var epoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// firstRow is the lowest row of messages created at us, microseconds since 1970.
func firstRow(us int64) int64 {
	return min(max(us-epoch, 1), lastMicro) << tieBits
}

// place proposes the row number of a message, try by try. Which one is free depends on the order of
// arrival, so the dump leaves row numbers out. Every try doubles the range: n messages of the same
// instant cost log n tries each.
func place(us int64, id string, try int) int64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte{byte(try)})
	return firstRow(us) + int64(h.Sum64()>>1)%(1<<(tieBits+min(try, 24)))
}

// facets are the words of a message in the full-text index that stand for its project, sender,
// recipients, thread, and importance unless normal, so that one full-text query covers them. They
// begin with a letter that no living language uses and end in hex digits, so that no word or prefix
// of a user matches them. They name no recipient of a blind copy.
func facets(pid int64, m *format.Message) string {
	var b strings.Builder
	b.WriteString(facet(pid, "p", ""))
	b.WriteString(" " + facet(pid, "f", m.From))
	for _, n := range m.To {
		b.WriteString(" " + facet(pid, "r", n))
	}
	for _, n := range m.CC {
		b.WriteString(" " + facet(pid, "r", n) + " " + facet(pid, "c", n))
	}
	if m.Importance != format.Normal {
		b.WriteString(" " + facet(pid, "i", m.Importance))
	}
	if m.ThreadID != "" {
		b.WriteString(" " + facet(pid, "t", m.ThreadID))
	}
	return b.String()
}

// facet is one such word: its kind (p project, f from, r recipient, c recipient of a carbon copy, i
// importance, t thread), the project, the name.
func facet(pid int64, about, name string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 24+2*len(name))
	b = append(append(b, "ƿ"...), about...)
	b = append(strconv.AppendInt(b, pid, 10), 'x')
	for i := range len(name) {
		b = append(b, digits[name[i]>>4], digits[name[i]&15])
	}
	return string(b)
}

func joinNames(names []string) string { return strings.Join(names, " ") }
