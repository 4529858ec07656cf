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
	"sync"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// unknownOutcome is the error for a call that the server may or may not have completed.
const unknownOutcome = "the server exited while it was working on this call, so the outcome is unknown. Check before you call again " +
	"(a message with a key is safe to resend: it is delivered once)"

// tries is the maximum number of times that a request is sent.
const tries = 5

// exchange sends a message to the server and writes the response, if there is one. If the server exits, and it is safe
// to repeat the message, exchange sends the message to the next server.
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

// once sends a message to one server. If again is true, the message may be sent again.
func (b *bridge) once(ctx context.Context, l *link, m *message) (again bool, err error) {
	res, err := b.post(ctx, m)
	if err == nil {
		defer res.Body.Close()
		err = b.pass(m, res)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return false, err
	case unsent(err) || m.method != "tools/call" && !m.batch:
		b.gone(ctx, l)
		return true, errors.New("the server exited while it was working on this request: try again")
	}
	b.gone(ctx, l)
	if b.onlyReads(ctx, m.tool) {
		return true, errors.New(unknownOutcome)
	}
	return false, errors.New(unknownOutcome)
}

// gone ends the link and waits until it is down. It is called after a request to the server has failed.
func (b *bridge) gone(ctx context.Context, l *link) {
	l.end()
	select {
	case <-l.down:
	case <-ctx.Done():
	}
}

// post sends a message to the server.
func (b *bridge) post(ctx context.Context, m *message) (*http.Response, error) {
	version := m.version
	if version == "" && m.method != "initialize" {
		b.mu.Lock()
		version = b.version
		b.mu.Unlock()
	}
	h := http.Header{}
	if version != "" {
		h.Set(protocol.VersionHeader, version)
	}
	return b.do(ctx, http.MethodPost, "mcp", m.raw, h)
}

// pass writes the response to a message.
func (b *bridge) pass(m *message, res *http.Response) error {
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return events(res.Body, func(data []byte) bool {
			var e envelope
			_ = json.Unmarshal(data, &e) // b.answer drops invalid JSON
			b.answer(data)
			return e.Result == nil && e.Error == nil
		})
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if m.method == "initialize" {
		b.begin(body)
	}
	if m.method == "initialize" || m.method == "server/discover" {
		body = b.welcome(body)
	}
	if len(bytes.TrimSpace(body)) > 0 && (m.asks() || m.method == "") {
		b.answer(withID(body, m.id))
	}
	return nil
}

// begin stores the revision in the server's response to initialize.
func (b *bridge) begin(answer []byte) {
	var a struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(answer, &a) == nil && a.Result.Version != "" {
		b.mu.Lock()
		b.version = a.Result.Version
		b.mu.Unlock()
	}
}

// subscribe opens a newer-era subscription on behalf of an older-era client, unless the client is already subscribed to
// the resource. It returns once the subscription has begun or failed. If the server has refused it, the server will
// refuse the client's own request too.
func (b *bridge) subscribe(ctx, listening context.Context, uri string) {
	listening, cancel := context.WithCancel(listening)
	b.mu.Lock()
	known := b.watched[uri] != nil
	if !known {
		b.watched[uri] = cancel
	}
	b.mu.Unlock()
	if known {
		cancel()
		return
	}
	begun := make(chan struct{})
	told := sync.OnceFunc(func() { close(begun) })
	b.streams.Go(func() {
		defer cancel()
		defer told()
		_ = b.listen(listening, listenTo(uri), func(e *envelope, _ []byte) {
			if e.Method == "notifications/resources/updated" {
				b.answer([]byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":` + string(tool.Encode(uri)) + `}}`))
			}
			told()
		})
		if listening.Err() == nil { // the server has refused the subscription
			b.unsubscribe(uri)
		}
	})
	select {
	case <-begun:
	case <-ctx.Done():
	}
}

// unsubscribe ends a subscription opened by subscribe.
func (b *bridge) unsubscribe(uri string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if end := b.watched[uri]; end != nil {
		end()
		delete(b.watched, uri)
	}
}

// listenTo returns the request that opens one of the bridge's own subscriptions.
func listenTo(uri string) *message {
	const meta = `{"io.modelcontextprotocol/protocolVersion":"` + protocol.NewEra + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"mailtree stdio","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	raw := `{"jsonrpc":"2.0","id":"mailtree","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":[` +
		string(tool.Encode(uri)) + `]},"_meta":` + meta + `}}`
	m, _, err := parse([]byte(raw))
	if err != nil {
		panic(err) // cannot happen: the text above is valid
	}
	return m
}

// listen keeps a newer-era subscription open across restarts of the server, until ctx is done or a server refuses the
// subscription. It passes each message for the client to the function say. If no server is available before the
// subscription has begun, listen returns an error.
func (b *bridge) listen(ctx context.Context, m *message, say func(e *envelope, data []byte)) error {
	for begun := false; ctx.Err() == nil; pause(ctx) {
		l, err := b.connect(ctx, !begun)
		if err != nil && !begun {
			return err
		}
		if err != nil {
			continue
		}
		if b.hear(ctx, m, &begun, say) {
			return nil
		}
		l.end() // the server must have stopped, because it ended the subscription
		<-l.down
	}
	return nil
}

// hear passes on the messages from one server. It returns true if the server has refused the subscription, or if no
// more messages for the client will follow. The flag begun records whether the client has been notified that the
// subscription has begun.
func (b *bridge) hear(ctx context.Context, m *message, begun *bool, say func(e *envelope, data []byte)) (over bool) {
	res, err := b.post(ctx, m)
	if err != nil {
		return ctx.Err() != nil
	}
	defer res.Body.Close()
	lasts := true
	tell := func(data []byte) bool {
		var e envelope
		if json.Unmarshal(data, &e) != nil || e.Result != nil && lasts { // the server is stopping: do not tell the client
			return false
		}
		if over = e.Error != nil || e.Result != nil; e.Method == "notifications/subscriptions/acknowledged" {
			lasts = e.params().Notifications.any()
			if *begun {
				for _, u := range m.uris {
					updated := &envelope{Method: "notifications/resources/updated"}
					say(updated, updatedLine(u, m.id))
				}
				return true
			}
			*begun = true
		}
		say(&e, data)
		return !over
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		_ = events(res.Body, tell)
	} else if body, err := io.ReadAll(res.Body); err == nil {
		lasts = false
		tell(withID(body, m.id))
	}
	return over || ctx.Err() != nil
}

// updatedLine returns the notification that a resource may have changed, in the newer era's form.
func updatedLine(uri string, id json.RawMessage) []byte {
	meta := `{"io.modelcontextprotocol/subscriptionId":` + string(id) + `}`
	params := `{"_meta":` + meta + `,"uri":` + string(tool.Encode(uri)) + `}`
	return []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + params + `}`)
}

// onlyReads reports whether the toolset declares the tool to be read-only.
func (b *bridge) onlyReads(ctx context.Context, name string) bool {
	b.mu.Lock()
	hints := b.hints
	b.mu.Unlock()
	for try := 1; hints == nil && try <= tries; try++ {
		hints = b.askHints(ctx)
	}
	b.mu.Lock()
	b.hints = hints
	b.mu.Unlock()
	return hints[name]
}

// askHints asks the server which tools are read-only. It returns nil if there is no server, or if the server exits
// before it answers.
func (b *bridge) askHints(ctx context.Context) map[string]bool {
	l, err := b.connect(ctx, true)
	if err != nil {
		return nil
	}
	res, err := b.do(ctx, http.MethodPost, "mcp", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), nil)
	if err != nil {
		b.gone(ctx, l)
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
		b.gone(ctx, l)
		return nil
	}
	hints := map[string]bool{}
	for _, t := range list.Result.Tools {
		hints[t.Name] = t.Annotations.ReadOnlyHint
	}
	return hints
}

// events calls each with the data of every event in the stream, until each returns false or the stream ends.
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
