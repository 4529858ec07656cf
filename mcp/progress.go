package mcp

import (
	"net/http"
	"sync"
	"time"

	"mailtree/mcp/tool"
)

// progress is the ResponseWriter of a call that may wait up to an hour for mail. Clients give up on a call if they
// receive nothing for some time. To prevent that, begin turns the response into an event stream: it sends the headers,
// and then notifications at regular intervals until end is called. A JSON document that is written after begin becomes
// an event. A progress is safe for concurrent use. Spec: MCP 2025-06-18, progress.
type progress struct {
	http.ResponseWriter
	every time.Duration
	gone  func() // called when writing to the client has failed

	mu       sync.Mutex
	begun    bool
	answered bool          // something has been written after begin
	over     chan struct{} // closed by end
	ticking  sync.WaitGroup
}

func newProgress(w http.ResponseWriter, every time.Duration, gone func()) *progress {
	return &progress{
		ResponseWriter: w,
		every:          every,
		gone:           gone,
		over:           make(chan struct{}),
	}
}

// Unwrap returns the wrapped ResponseWriter to http.ResponseController.
func (p *progress) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// begin turns the response into an event stream, unless end has been called. Only the first call has an effect. The
// parameter token is the call's progress token. If it is nil, the client does not expect notifications and gets
// comments instead.
func (p *progress) begin(token any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.over:
		return
	default:
	}
	if p.begun {
		return
	}
	p.begun = true
	p.Header().Set("Content-Type", "text/event-stream")
	p.Header().Set("Cache-Control", "no-cache, no-transform")
	p.Header().Set("X-Accel-Buffering", "no")
	p.ResponseWriter.WriteHeader(http.StatusOK)
	p.flush()
	p.ticking.Go(func() { p.tick(token) })
}

// end stops the notifications and waits for the last one.
func (p *progress) end() {
	p.mu.Lock()
	close(p.over)
	p.mu.Unlock()
	p.ticking.Wait()
}

func (p *progress) tick(token any) {
	type params struct {
		Token    any     `json:"progressToken"`
		Progress float64 `json:"progress"` // seconds
		Message  string  `json:"message"`
	}
	type notification struct {
		Tag    string `json:"jsonrpc"`
		Method string `json:"method"`
		Params params `json:"params"`
	}
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for start := time.Now(); ; {
		select {
		case <-p.over:
			return
		case <-ticker.C:
		}
		if token == nil {
			if !p.comment() {
				return
			}
			continue
		}
		said := params{Token: token, Progress: time.Since(start).Seconds(), Message: "waiting for mail"}
		if !p.say(tool.Encode(notification{"2.0", "notifications/progress", said})) {
			return
		}
	}
}

// comment writes a comment. It returns false if nothing more can be written.
func (p *progress) comment() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		return false
	}
	if writeBeat(p.ResponseWriter) != nil {
		p.gone()
		return false
	}
	return true
}

// isStream reports whether the response is already an event stream.
func (p *progress) isStream() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// say writes a notification. It returns false if no more notifications can be written.
func (p *progress) say(notification []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered {
		return false
	}
	_, err := p.event(notification)
	return err == nil
}

// WriteHeader passes on the status, unless begin has already sent a status.
func (p *progress) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		p.ResponseWriter.WriteHeader(status)
	}
}

func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		p.answered = true
		return p.event(data)
	}
	return p.ResponseWriter.Write(data)
}

// FlushError flushes the response. It is called by http.ResponseController.
func (p *progress) FlushError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flush()
}

// event writes one event. The caller must hold p.mu.
func (p *progress) event(data []byte) (int, error) {
	extendDeadline(p.ResponseWriter, len(data))
	text := append(append([]byte("event: message\ndata: "), data...), "\n\n"...)
	if _, err := p.ResponseWriter.Write(text); err != nil {
		p.gone()
		return 0, err
	}
	return len(data), p.flush()
}

// flush sends what has been written so far. The caller must hold p.mu.
func (p *progress) flush() error {
	extendDeadline(p.ResponseWriter, 0)
	err := http.NewResponseController(p.ResponseWriter).Flush()
	if err != nil {
		p.gone()
	}
	return err
}
