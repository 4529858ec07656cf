package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"mailtree/mcp/protocol"
)

// MCP revision 2025-03-26 supports batches. The SDK would run all messages of a batch concurrently and keep their
// responses until the last one is complete. A single request could then use as much memory as hundreds of requests, and
// exceed the limits. This server instead handles the messages in order, and writes each response before it handles the
// next message. A batch therefore counts as one request. If a message waits for mail, the messages after it wait too. A
// client can avoid this by sending separate requests.

// maxBatch is the maximum number of messages in a batch. Each call in a batch may wait a minute for mail, so a batch
// of this size can take about an hour.
const maxBatch = 64

// entry is one message in a batch.
type entry struct {
	raw    []byte
	id     json.RawMessage // nil if the message has no id
	method string
}

// parseBatch splits a JSON array into messages. It returns an error if a message is invalid, or if there are more than
// maxBatch messages.
func parseBatch(array []byte) (all []entry, err error) {
	d := json.NewDecoder(bytes.NewReader(array))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		if len(all) == maxBatch {
			return nil, fmt.Errorf("the batch has more than %d messages: split it into several batches", maxBatch)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		if raw[0] != '{' {
			return nil, errors.New("a batch must contain only JSON-RPC messages, which are JSON objects")
		}
		e, err := parseEnvelope(raw)
		if err != nil {
			return nil, err
		}
		// A batch must not contain initialize (MCP 2025-03-26, lifecycle).
		if e.Method == "initialize" || e.Method == "subscriptions/listen" {
			return nil, errors.New(e.Method + " must not be part of a batch: send it separately")
		}
		all = append(all, entry{raw, e.ID, e.Method})
	}
	if len(all) == 0 {
		return nil, errors.New("a batch must contain at least one JSON-RPC message")
	}
	return all, nil
}

// nobodysAnswer is a message that has no effect, because it responds to a request that the server never sent.
const nobodysAnswer = `{"jsonrpc":"2.0","id":"mailtree-batch","result":{}}`

// serveBatch writes an array of the responses, or status 202 if there are none. If one message fails, its error becomes
// the response to that message. If the whole request fails, for example because its session has ended, the error
// becomes the response to the request.
func serveBatch(h http.Handler, a *answer, all []entry) {
	if p := a.part(h, []byte(nobodysAnswer)); p.status >= 400 {
		maps.Copy(a.Header(), p.header)
		a.WriteHeader(p.status)
		_, _ = a.Write(p.body.Bytes()) // the client may be gone
		return
	}
	before := "["
	for _, e := range all {
		text := a.entry(h, e)
		if text == nil {
			continue
		}
		a.Header().Set("Content-Type", "application/json")
		a.Header().Set("Cache-Control", "no-cache, no-transform")
		if _, err := a.Write(append([]byte(before), text...)); err != nil {
			return
		}
		before = ","
	}
	if before == "[" {
		a.WriteHeader(http.StatusAccepted)
		return
	}
	_, _ = a.Write([]byte("]"))
}

// entry returns the response to one message of a batch, or nil if the message gets no response.
func (a *answer) entry(h http.Handler, e entry) []byte {
	p := &part{}
	if a.request.Context().Err() == nil {
		p = a.part(h, e.raw)
	}
	body := p.body.Bytes()
	switch {
	case p.status == http.StatusAccepted:
		return nil
	case p.status >= 400 && strings.HasPrefix(p.header.Get("Content-Type"), "text/plain"):
		code, text := refusalOf(e.id, body)
		return protocol.Failure(e.id, code, text)
	case p.status >= 400:
		return body
	case len(body) > 2:
		return body[1 : len(body)-1] // remove the brackets around the only element
	case e.id == nil:
		return nil
	case a.request.Context().Err() != nil:
		return protocol.Failure(e.id, protocol.CodeRequest, closedEarly)
	}
	return protocol.Failure(e.id, protocol.CodeRequest, "the session ended before the response was sent")
}

// part passes one message of a batch to the SDK, as a batch of its own, and returns the response.
func (a *answer) part(h http.Handler, raw []byte) *part {
	body := append(append([]byte("["), raw...), ']')
	r := a.request.WithContext(a.request.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	p := &part{header: http.Header{}}
	h.ServeHTTP(p, r)
	return p
}

// part is the ResponseWriter for one message of a batch. It records the response.
type part struct {
	header http.Header
	status int // 0 means WriteHeader was not called
	body   bytes.Buffer
}

func (p *part) Header() http.Header { return p.header }

func (p *part) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *part) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if strings.HasPrefix(p.header.Get("Content-Type"), "text/event-stream") {
		return 0, errors.New("the response to a batch cannot be a stream")
	}
	return p.body.Write(b)
}
