package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// unknownOutcome is told of a call that may have been done.
const unknownOutcome = "the server ended while it worked on this call, and whether it was done is not known: look before you call again " +
	"(mail that was sent with a key can be sent again, it is delivered once)"

// tries is how often a request is given to another server.
const tries = 5

// exchange gives a message to the server and writes the answer, if there is one. It is given to the
// next server where the first has gone and that is safe.
func (b *bridge) exchange(ctx context.Context, m *message) {
	for try := 1; ; try++ {
		l, err := b.connect(ctx, true)
		if err == nil {
			var again bool
			if again, err = b.once(ctx, l, m); again && try < tries {
				continue
			}
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil && m.asks() && (ctx.Err() == nil || errors.Is(err, errInputEnded)) {
			b.answer(m.failure(err.Error()))
		}
		return
	}
}

// once tries one server: again says that it is safe to try another.
func (b *bridge) once(ctx context.Context, l *link, m *message) (again bool, err error) {
	res, err := b.post(ctx, l, m)
	if err == nil {
		defer res.Body.Close()
		if res.StatusCode == http.StatusNotFound && l.inSession() && !m.stateless() {
			l.end() // the session is over though the server runs: begin anew
			<-l.down
			return true, errors.New("the server does not know this session any more")
		}
		err = b.pass(ctx, m, l, res)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return false, err
	case unsent(err) || m.method != "tools/call" && !m.batch:
		b.gone(ctx, l)
		return true, errors.New("the server ended while it worked on this request: try again")
	}
	b.gone(ctx, l)
	if b.onlyReads(ctx, m.tool) {
		return true, errors.New(unknownOutcome)
	}
	return false, errors.New(unknownOutcome)
}

// gone waits until the link of a server that breaks off an answer is known to be down.
func (b *bridge) gone(ctx context.Context, l *link) {
	l.end()
	select {
	case <-l.down:
	case <-ctx.Done():
	}
}

// post sends a message; in the client's session, where it has one and the message is not of the
// newer era.
func (b *bridge) post(ctx context.Context, l *link, m *message) (*http.Response, error) {
	h := l.headers()
	if m.stateless() {
		h = http.Header{protocol.VersionHeader: {m.version}}
	}
	if m.method == "initialize" {
		h = nil
	}
	return b.do(ctx, http.MethodPost, "mcp", m.raw, h)
}

// pass writes the answer and remembers what is needed after a restart.
func (b *bridge) pass(ctx context.Context, m *message, l *link, res *http.Response) error {
	if m.method == "initialize" && res.StatusCode == http.StatusOK {
		if err := b.begun(ctx, m, l, res); err != nil {
			return err
		}
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return events(res.Body, func(data []byte) bool {
			var e envelope
			_ = json.Unmarshal(data, &e) // what is no JSON b.answer drops
			b.answer(data)
			return e.Result == nil && e.Error == nil
		})
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode < 300 {
		b.remember(m, l)
	}
	if len(bytes.TrimSpace(body)) > 0 && (m.asks() || m.method == "") {
		b.answer(withID(body, m.id))
	}
	return nil
}

// begun keeps a handshake and opens the session's stream.
func (b *bridge) begun(ctx context.Context, m *message, l *link, res *http.Response) error {
	if err := l.beginStream(res); err != nil {
		return nil //nolint:nilerr // the client sees the refusal
	}
	b.mu.Lock()
	b.shake = handshake{initialize: m.raw, uris: map[string]bool{}}
	current := b.changed(l)
	b.mu.Unlock()
	if current {
		b.stream(ctx, l)
	}
	return nil
}

// remember keeps what the next server must be told.
func (b *bridge) remember(m *message, l *link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m.method {
	case "notifications/initialized":
		b.shake.initialized = true
	case "resources/subscribe":
		for _, u := range m.uris {
			b.shake.uris[u] = true
		}
	case "resources/unsubscribe":
		for _, u := range m.uris {
			delete(b.shake.uris, u)
		}
	default:
		return
	}
	b.changed(l)
}

// inSession reports whether the client began with initialize.
func (b *bridge) inSession() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shake.initialize != nil
}

// listen serves a subscription of the newer era, over restarts of the server, until the client
// cancels it.
func (b *bridge) listen(ctx context.Context, m *message) {
	for begun := false; ctx.Err() == nil; {
		l, err := b.connect(ctx, !begun)
		if err != nil && !begun {
			if ctx.Err() == nil {
				b.answer(m.failure(err.Error()))
			}
			return
		}
		if err != nil {
			pause(ctx)
			continue
		}
		if b.hear(ctx, l, m, &begun) {
			return
		}
		l.end() // a subscription ends when its server does
		<-l.down
		pause(ctx)
	}
}

// hear passes on what one server says; over when it has refused or the client needs no more. begun
// is whether the client has been told that the subscription began.
func (b *bridge) hear(ctx context.Context, l *link, m *message, begun *bool) (over bool) {
	res, err := b.post(ctx, l, m)
	if err != nil {
		return ctx.Err() != nil
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return b.pass(ctx, m, l, res) == nil
	}
	lasts := true
	_ = events(res.Body, func(data []byte) bool {
		var e envelope
		if json.Unmarshal(data, &e) != nil || e.Result != nil && lasts { // the server stops: the client learns nothing of it
			return false
		}
		if over = e.Error != nil || e.Result != nil; e.Method == "notifications/subscriptions/acknowledged" {
			lasts = e.params().Notifications.any()
			if *begun {
				for _, u := range m.uris {
					b.answer(updated(u, m.id))
				}
				return true
			}
			*begun = true
		}
		b.answer(data)
		return !over
	})
	return over || ctx.Err() != nil
}

// updated says in a subscription of the newer era that a resource may have changed.
func updated(uri string, id json.RawMessage) []byte {
	meta := `{"io.modelcontextprotocol/subscriptionId":` + string(id) + `}`
	params := `{"_meta":` + meta + `,"uri":` + string(tool.Encode(uri)) + `}`
	return []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + params + `}`)
}

// onlyReads reports whether the tool changes nothing, as the toolset declares it.
func (b *bridge) onlyReads(ctx context.Context, name string) bool {
	b.mu.Lock()
	hints := b.hints
	b.mu.Unlock()
	if hints == nil {
		if hints = b.askHints(ctx); hints == nil {
			return false
		}
		b.mu.Lock()
		b.hints = hints
		b.mu.Unlock()
	}
	return hints[name]
}

func (b *bridge) askHints(ctx context.Context) map[string]bool {
	if _, err := b.connect(ctx, true); err != nil {
		return nil
	}
	res, err := b.do(ctx, http.MethodPost, "mcp", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), nil)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var list struct {
		Result struct {
			Tools []struct {
				Name        string
				Annotations struct{ ReadOnlyHint bool }
			}
		}
	}
	if json.NewDecoder(res.Body).Decode(&list) != nil {
		return nil
	}
	hints := map[string]bool{}
	for _, t := range list.Result.Tools {
		hints[t.Name] = t.Annotations.ReadOnlyHint
	}
	return hints
}

// events calls each with the data of every event until it returns false or the stream ends.
func events(r io.Reader, each func(data []byte) bool) error {
	b := bufio.NewReader(r)
	var data []byte
	for {
		line, err := b.ReadBytes('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		}
		if len(line) == 0 && len(data) > 0 {
			if !each(data) {
				return nil
			}
			data = nil
		}
	}
}
