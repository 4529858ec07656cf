package indexer

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// keptOrders is how many ranked searches can be paged through at a time: 16 kB each at most.
const keptOrders = 128

// order is what a ranked search has put into order. It is kept for the pages after the first: each
// message that comes changes bm25's weights, and with them the order of all others.
type order struct {
	id   string
	of   string // the search
	rows []int64
}

// orders keeps the newest ranked searches. The zero value is ready. Safe for concurrent use.
type orders struct {
	mu   sync.Mutex
	last int64
	kept []order // oldest first
}

// keep takes an order for its later pages. now makes ids that another run of the program did not
// give.
func (o *orders) keep(now int64, of string, rows []int64) order {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = max(o.last+1, now)
	one := order{id: strconv.FormatInt(o.last, 36), of: of, rows: rows}
	if len(rows) > 1 {
		o.kept = append(o.kept, one)
		o.kept = o.kept[max(0, len(o.kept)-keptOrders):]
	}
	return one
}

// resume finds the order that a cursor of this search is of, and how far it has been shown.
func (o *orders) resume(cursor, of string) (one order, shown int, ok bool) {
	id, rest, _ := strings.Cut(cursor, ".")
	shown, err := strconv.Atoi(rest)
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.kept, func(k order) bool { return k.id == id && k.of == of })
	if err != nil || i < 0 || shown < 1 || shown > len(o.kept[i].rows) {
		return order{}, 0, false
	}
	return o.kept[i], shown, true
}

// after is the cursor of what follows the row.
func (o order) after(row int64) string {
	return o.id + "." + strconv.Itoa(slices.Index(o.rows, row)+1)
}
