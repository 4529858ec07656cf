package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// writeError sends a JSON-RPC error. If the request's id is unknown, pass nil as the id.
func writeError(w http.ResponseWriter, status int, id []byte, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(protocol.Failure(id, code, text)) // the client may be gone
}

// refusalOf converts a plain-text refusal from the SDK to a JSON-RPC error. The parameter id is the id of the refused
// message, or nil if the message has none.
func refusalOf(id, body []byte) (code int, text string) {
	text = strings.TrimSpace(string(body))
	if method, ok := strings.CutPrefix(text, "JSON RPC not handled: "); ok && id != nil {
		return protocol.CodeMethod, "method not found: " + method
	}
	return protocol.CodeRequest, text
}

// closedEarly is the error for a client that has closed its side of the connection but is still reading. The server
// treats such a client as disconnected.
const closedEarly = "the connection was closed before the response was sent: keep it open until the response arrives"

// answer is the ResponseWriter that the SDK writes to. It sets a deadline for each write and converts the SDK's
// plain-text refusals to JSON-RPC errors. In the response to a bare tools/call, it merges the structured content into
// the result. From the response to a plain body, it strips the JSON-RPC envelope.
type answer struct {
	http.ResponseWriter
	request *http.Request // a failed write also cancels its context
	merge   bool          // whether to merge structured content into the result; set before the first write
	plain   envelopeless  // strips the envelope; nil for JSON-RPC; set before the first write
	greet   func() []byte // only for a stream: returns bytes to send once, after the first write
	numbers keptNumbers   // numbers to restore in the response; set before the first write
	wait    *progress     // for a call that may wait for mail for up to an hour; otherwise nil

	cancel context.CancelFunc
	id     []byte
	status int
	whole  *bytes.Buffer // buffers the response until finish is called; nil if the response is not buffered
}

func newAnswer(w http.ResponseWriter, r *http.Request, id []byte) *answer {
	ctx, cancel := context.WithCancel(r.Context())
	return &answer{
		ResponseWriter: w,
		request:        r.WithContext(ctx),
		cancel:         cancel,
		id:             id,
	}
}

func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	kind := a.Header().Get("Content-Type")
	if strings.HasPrefix(kind, "text/event-stream") {
		a.Header().Set("X-Accel-Buffering", "no")
	}
	refused := status >= 400 && strings.HasPrefix(kind, "text/plain")
	rewritten := status == http.StatusOK && (a.merge || a.plain != nil) && kind == "application/json"
	if a.request.Method == http.MethodPost && (refused || rewritten) {
		a.whole = &bytes.Buffer{}
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.whole != nil {
		return a.whole.Write(p)
	}
	a.deadline(len(p))
	n, err := a.ResponseWriter.Write(a.numbers.restore(p))
	if len(a.numbers) > 0 && err == nil {
		n = len(p) // a Writer must return len(p), even if restore changed the length
	}
	if a.greet != nil && a.status == http.StatusOK && err == nil {
		_, err = a.ResponseWriter.Write(a.greet())
		a.greet = nil
	}
	if err != nil {
		a.cancel()
	}
	return n, err
}

// FlushError flushes the response. It is called by http.ResponseController.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.whole != nil {
		return nil
	}
	a.deadline(0)
	err := http.NewResponseController(a.ResponseWriter).Flush()
	if err != nil {
		a.cancel()
	}
	return err
}

// deadline sets the write deadline for the next n bytes. Without a deadline, a client that does not read could block
// the writer, and thus the notifications for other clients.
func (a *answer) deadline(n int) { extendDeadline(a.ResponseWriter, n) }

func extendDeadline(w http.ResponseWriter, n int) {
	d := 10*time.Second + time.Duration(n>>16)*time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // the writers in tests do not support deadlines
}

// showProgress lets a call wait for up to an hour, and meanwhile sends progress notifications or comments.
func (a *answer) showProgress(every time.Duration) {
	a.wait = newProgress(a.ResponseWriter, every, a.cancel)
	a.ResponseWriter = a.wait
}

// finish writes the buffered response.
func (a *answer) finish() {
	defer a.cancel()
	if a.wait != nil {
		defer a.wait.end()
	}
	if a.status == 0 && a.id != nil && a.request.Context().Err() != nil {
		// If the client is still reading, it must not get an empty response with a success status.
		a.deadline(0)
		if errors.Is(context.Cause(a.request.Context()), errLeft) {
			writeError(a.ResponseWriter, http.StatusNotFound, a.id, protocol.CodeRequest, errLeft.Error())
			return
		}
		writeError(a.ResponseWriter, http.StatusBadRequest, a.id, protocol.CodeRequest, closedEarly)
		return
	}
	if a.whole == nil {
		a.deadline(0) // net/http may still have buffered data to write
		return
	}
	body := a.whole.Bytes()
	if a.status == http.StatusOK {
		if a.plain != nil {
			a.status, body = plainAnswer(body, a.plain)
		} else {
			body = mergeStructured(body)
		}
		a.deadline(len(body))
		a.ResponseWriter.WriteHeader(a.status)
		_, _ = a.ResponseWriter.Write(a.numbers.restore(body))
		return
	}
	code, text := refusalOf(a.id, body)
	if code == protocol.CodeMethod {
		a.status = http.StatusOK // clients mistake the SDK's 400 for a broken transport
	}
	writeError(a.ResponseWriter, a.status, a.id, code, text)
}

// mergeStructured copies the keys of result.structuredContent into result, except keys that result already has.
// Python clients without a session read profile["name"] directly from result.
func mergeStructured(body []byte) []byte {
	var m, result, structured map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m["result"], &result) != nil ||
		json.Unmarshal(result["structuredContent"], &structured) != nil {
		return body
	}
	for k, v := range structured {
		if _, ok := result[k]; !ok {
			result[k] = v
		}
	}
	m["result"] = object(result)
	return object(m)
}

// object encodes an object whose values are already compact JSON. It does not re-encode the values, because that would
// take longer than all other work on a page of mail.
func object(m map[string]json.RawMessage) (text []byte) {
	text = append(text, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, tool.Encode(name)...), ':'), m[name]...)
	}
	return append(text, '}')
}
