package indexer

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// The row of a message is its place in time: microseconds since 1900, 53 bits of them, and ten bits that keep
// messages of one microsecond apart. What lies outside 1900 to 2185 is kept at the ends.
const (
	tieBits = 10
	// lastMicro leaves room above itself for messages of one instant that do not fit into its 1,024 places.
	lastMicro = 1<<53 - 1<<25
)

var epoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// firstRow is the lowest row of messages created at us, microseconds since 1970.
func firstRow(us int64) int64 {
	return min(max(us-epoch, 1), lastMicro) << tieBits
}

// place proposes the row of a message, try by try. Which one is free depends on the order of arrival, so rows are no
// part of the dump. With every try the range doubles: n messages of the very same instant cost log n tries each.
func place(us int64, id string, try int) int64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte{byte(try)})
	return firstRow(us) + int64(h.Sum64()>>1)%(1<<(tieBits+min(try, 24)))
}

// facets are the opaque words of a message in the full-text index, by which project, sender, recipients and thread
// are part of one full-text query. They begin with a letter that is in no living language's alphabet and end in hex
// digits, so that no user's word or prefix meets them. Who got a blind copy is not among them.
func facets(pid int64, m *format.Message) string {
	var b strings.Builder
	b.WriteString(facet(pid, "p", ""))
	b.WriteString(" " + facet(pid, "f", m.From))
	for _, n := range m.To {
		b.WriteString(" " + facet(pid, "r", n))
	}
	for _, n := range m.CC {
		b.WriteString(" " + facet(pid, "r", n))
	}
	if m.ThreadID != "" {
		b.WriteString(" " + facet(pid, "t", m.ThreadID))
	}
	return b.String()
}

// facet is one such word: what it is about (p project, f from, r recipient, t thread), the project, the name.
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
