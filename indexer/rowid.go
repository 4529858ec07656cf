package indexer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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
// recipients, importance unless normal, its thread, and the thread that its own id names, so that one
// full-text query covers them. They begin with a letter that no living language uses and end in a
// hash, so that no word or prefix of a user matches them. They name no recipient of a blind copy.
func facets(pid int64, m *format.Message) string {
	all := []string{facet(pid, "p", ""), facet(pid, "f", m.From), facet(pid, "t", m.ID)}
	for _, n := range m.To {
		all = append(all, facet(pid, "r", n))
	}
	for _, n := range m.CC {
		all = append(all, facet(pid, "r", n), facet(pid, "c", n))
	}
	if m.Importance != format.Normal {
		all = append(all, facet(pid, "i", m.Importance))
	}
	if m.ThreadID != "" && m.ThreadID != m.ID {
		all = append(all, facet(pid, "t", m.ThreadID))
	}
	return strings.Join(all, " ")
}

// facet is one such word: its kind (p project, f from, r recipient, c recipient of a carbon copy, i
// importance, t thread), and a hash of the project and the name that nobody finds another name for.
func facet(pid int64, about, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", about, pid, name))
	return "ƿ" + about + strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

func joinNames(names []string) string { return strings.Join(names, " ") }
