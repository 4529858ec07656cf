package indexer

import (
	"context"
	"strings"
)

// attachedText is a query for the agents that have a copy of a message with a given attachment. The full-text index
// finds candidate messages by a facet. A comparison with the header then makes the match exact.
const attachedText = "SELECT DISTINCT a.name FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1) h " +
	"CROSS JOIN messages m ON m.row = h.r " +
	"CROSS JOIN files f ON f.pid = m.pid AND f.name = m.id || '.md' CROSS JOIN agents a ON a.aid = f.aid " +
	"WHERE m.pid = ?2 AND instr(m.rest, ?3) AND f.kind IN (6, 9) AND f.valid ORDER BY a.name"

// Attached implements index.Index. It returns the agents that have a copy of a message with a given attachment.
func (x *Index) Attached(ctx context.Context, slug, sum string) ([]string, error) {
	sum = strings.ToLower(sum)
	pid := x.pid(slug)
	return column[string](ctx, x, attachedText, fts{pid}.facet("a", sum), pid, `"`+sum+`"`)
}
