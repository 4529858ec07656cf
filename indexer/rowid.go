package indexer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/query"
)

// A message's row number encodes its time: 53 bits of microseconds since 1900, and ten bits that distinguish messages
// created in the same microsecond. Messages from before 1900 share the first numbers, and messages from after 2185
// share the last numbers.
const (
	tieBits = 10
	// lastMicro leaves higher numbers free, because more than 1,024 messages may have the same time and need
	// additional row numbers.
	lastMicro = 1<<53 - 1<<25
)

var epoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// firstRow returns the lowest row number for messages created at us, in microseconds since 1970.
func firstRow(us int64) int64 {
	return min(max(us-epoch, 1), lastMicro) << tieBits
}

// place returns a candidate row number for a message. Which numbers are still free depends on the order in which
// messages arrive, so Dump omits row numbers. Each try doubles the range, so each of n messages with the same time
// takes about log n tries.
func place(us int64, id string, try int) int64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	h.Write([]byte{byte(try)})
	return firstRow(us) + int64(h.Sum64()>>1)%(1<<(tieBits+min(try, 24)))
}

// faceting defines the facets of a message for one search filter.
type faceting struct {
	key    query.Key
	letter string
	of     func(*format.Message) []string
}

// faceted lists the search filters that use facets. The other filters apply to the whole query.
var faceted = []faceting{
	{query.From, "f", func(m *format.Message) []string { return []string{m.From} }},
	{query.To, "r", func(m *format.Message) []string { return slices.Concat(m.To, m.CC) }},
	{query.CC, "c", func(m *format.Message) []string { return m.CC }},
	{query.Importance, "i", func(m *format.Message) []string {
		if m.Importance == format.Normal {
			return nil // nearly all messages have this importance
		}
		return []string{m.Importance}
	}},
	{query.Has, "h", func(m *format.Message) []string {
		if len(m.Attachments) == 0 {
			return nil
		}
		return []string{query.HasFile}
	}},
}

// facets returns words for the full-text index. They represent a message's project, sender, recipients, importance
// (unless normal), thread, own id (as a thread), attachments, and whether it has attachments. With facets, a single
// full-text query can filter by all of these. A facet begins with a letter that no living language uses and ends with
// a hash, so it matches no word or prefix that a user types. Facets do not reveal recipients of blind copies.
func facets(pid int64, m *format.Message) string {
	all := []string{facet(pid, "p", ""), facet(pid, "t", m.ID)}
	for _, f := range faceted {
		for _, value := range f.of(m) {
			all = append(all, facet(pid, f.letter, value))
		}
	}
	if m.ThreadID != "" && m.ThreadID != m.ID {
		all = append(all, facet(pid, "t", m.ThreadID))
	}
	for _, a := range m.Attachments {
		all = append(all, facet(pid, "a", a.SHA1))
	}
	return strings.Join(all, " ")
}

// facet returns a single facet. It consists of a letter for its kind and a hash of the project and the name. The letter
// is p (project), t (thread), a (attachment), or a letter from faceted. Finding another name with the same hash is
// infeasible.
func facet(pid int64, about, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", about, pid, name))
	return "ƿ" + about + strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

func joinNames(names []string) string { return strings.Join(names, " ") }
