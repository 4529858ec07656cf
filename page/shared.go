package page

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Browsers that hear of a change ask for their views at once, and many show the same one. So time is
// cut into ticks: the streams tell of changes at the beginning of a tick, by its number, and what
// the first browser gets after that beginning serves every other that asks for the same view, of the
// same session, since that tick. Whatever changes later is told at the next tick.

// tickLasts is the time between two events of a stream: who sends pays little for pages that are
// open.
const tickLasts = time.Second

// maxShared is how many parts are kept for others.
const maxShared = 500

// tickAt is the tick of a time.
func tickAt(t time.Time) int64 { return t.UnixMilli() / tickLasts.Milliseconds() }

// rightNow is the tick of a request that wants a view as it is now.
const rightNow = math.MaxInt64

// sinceTick is the tick since when a request wants a view: that of fragmentHeader, or rightNow.
func sinceTick(r *http.Request) int64 {
	tick, err := strconv.ParseInt(r.Header.Get(fragmentHeader), 10, 64)
	if err != nil || tick <= 1 || r.Method != http.MethodGet {
		return rightNow
	}
	return tick
}

// untilTick is how long it takes from a time until the next tick.
func untilTick(t time.Time) time.Duration {
	return time.UnixMilli((tickAt(t) + 1) * tickLasts.Milliseconds()).Sub(t)
}

// shared are the parts of views that were made lately, by who asks and for what.
type shared struct {
	mu    sync.Mutex
	parts map[string]*part
	swept int64 // the tick at which old ones were dropped
}

// part is the answer to a request, for others to have too.
type part struct {
	tick   int64         // at which it was begun
	done   chan struct{} // closed when it is whole
	status int
	header http.Header
	body   bytes.Buffer
}

func (p *part) Header() http.Header         { return p.header }
func (p *part) WriteHeader(status int)      { p.status = status }
func (p *part) Write(b []byte) (int, error) { return p.body.Write(b) }

// writeTo answers a request with the part.
func (p *part) writeTo(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body.Bytes()) // the browser may be gone
}

// share lets one answer of next serve all requests since a tick for the same part of a view.
func (s *shared) share(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := sinceTick(r)
		if asked == rightNow {
			next.ServeHTTP(w, r)
			return
		}
		p, first := s.partOf(r.Host+"\n"+r.Header.Get("Cookie")+"\n"+r.RequestURI, asked)
		if first {
			defer close(p.done) // also when next panics: then nobody else has it
			next.ServeHTTP(p, r)
			if r.Context().Err() == nil {
				p.writeTo(w)
			}
			return
		}
		select {
		case <-p.done:
		case <-r.Context().Done():
			return
		}
		if p.status != http.StatusOK { // the first one's browser may have gone
			next.ServeHTTP(w, r)
			return
		}
		p.writeTo(w)
	})
}

// partOf returns the part of that name that was begun at the tick or later, or a new one, which the
// caller is the first to ask for.
func (s *shared) partOf(name string, since int64) (p *part, first bool) {
	now := tickAt(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swept < now {
		for name, p := range s.parts {
			if p.tick < now-1 {
				delete(s.parts, name)
			}
		}
		s.swept = now
	}
	if p := s.parts[name]; p != nil && p.tick >= since {
		return p, false
	}
	p = &part{tick: now, done: make(chan struct{}), header: http.Header{}}
	if len(s.parts) < maxShared {
		s.parts[name] = p
	}
	return p, true
}
