package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// slow is a connection that records how a response is written to it.
type slow struct {
	*httptest.ResponseRecorder
	pieces    []int
	deadline  time.Time
	deadlines int
}

func (s *slow) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	s.deadlines++
	return nil
}

func (s *slow) Write(b []byte) (int, error) {
	s.pieces = append(s.pieces, len(b))
	if s.deadlines < len(s.pieces) || time.Until(s.deadline) > answerPatience {
		return 0, http.ErrHandlerTimeout
	}
	return s.ResponseRecorder.Write(b)
}

// TestWritePieces checks that a response is written in pieces, each with its own deadline, and that no deadline
// remains on the connection for the next request.
func TestWritePieces(t *testing.T) {
	t.Parallel()
	to := &slow{ResponseRecorder: httptest.NewRecorder()}
	v := &view{page: &Page{memory: semaphore.NewWeighted(mostHeld)}, w: to, r: httptest.NewRequest(http.MethodGet, "/", nil)}
	text := strings.Repeat("0123456789", 20_000)
	if !v.reserve(whileMade) {
		t.Fatal("no memory")
	}
	v.writeWhole(http.StatusOK, []byte(text))
	if to.Body.String() != text || len(to.pieces) != 4 || !to.deadline.IsZero() {
		t.Errorf("%d bytes in pieces of %v, deadline %v", to.Body.Len(), to.pieces, to.deadline)
	}
	if v.held > int64(len(text))*2 {
		t.Errorf("%d bytes are reserved while %d are written", v.held, len(text))
	}
}

// TestMemory checks that a request gets status 503 with Retry-After while other responses hold all of the page's
// memory. The memory must be available again once those responses have been read.
func TestMemory(t *testing.T) {
	t.Parallel()
	h := &Page{memory: semaphore.NewWeighted(mostHeld), cfg: Config{Now: time.Now}, key: []byte("k")}
	asked := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.view(whileMade, func(v *view) error {
			v.writeWhole(http.StatusOK, []byte("all"))
			return nil
		}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w
	}
	if err := h.memory.Acquire(t.Context(), mostHeld); err != nil {
		t.Fatal(err)
	}
	if w := asked(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	h.memory.Release(mostHeld)
	for range 2 * mostHeld / whileMade {
		if w := asked(); w.Code != http.StatusOK {
			t.Fatalf("%d after the memory was released", w.Code)
		}
	}
}
