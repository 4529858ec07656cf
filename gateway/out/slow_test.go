package out

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/maildir/outgoing"
)

// tarpit is a Transport that accepts mail for good.example immediately, and mail for other domains only when the test
// allows it.
type tarpit struct {
	free  chan struct{}
	under atomic.Int32 // number of concurrent slow deliveries
	most  atomic.Int32
}

func (p *tarpit) Deliver(_ context.Context, i *outgoing.Item, _ []byte, _ func() error) (string, error) {
	if !strings.HasSuffix(i.To, "@good.example") {
		p.most.Store(max(p.most.Load(), p.under.Add(1)))
		<-p.free
		p.under.Add(-1)
	}
	return "250 ok", nil
}

// TestSlowDomain checks that many items for a domain with slow servers do not block mail to other domains.
func TestSlowDomain(t *testing.T) {
	t.Parallel()
	store := &memory{items: map[string]outgoing.Item{}}
	add := func(to string) {
		i := outgoing.Item{ID: to, Message: to, To: to, State: outgoing.Queued, Queued: start, Next: start}
		store.items[to] = i
	}
	for n := range 4 * maxParallel {
		add(fmt.Sprintf("u%d@slow.example", n))
	}
	add("ann@good.example")
	p := &tarpit{free: make(chan struct{})}
	q := NewQueue(store, p, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	for sent := false; !sent; {
		if _, err := q.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		i, err := store.Get(t.Context(), "ann@good.example")
		sent = err == nil && i.State == outgoing.Sent
	}
	close(p.free)
	q.wg.Wait()
	if most := p.most.Load(); most > maxToDomain {
		t.Errorf("%d concurrent deliveries to one domain", most)
	}
}
