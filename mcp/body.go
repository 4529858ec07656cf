package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/mcp/protocol"
)

// message is the body of a POST: one JSON-RPC message, or a batch as defined in revision 2025-03-26.
type message struct {
	body   []byte
	batch  []entry         // the messages of a batch (see batch.go); nil for a single message
	method string          // method of a single message
	id     json.RawMessage // id of a single message; nil if it has no id
	tagged bool            // whether the message contains "jsonrpc"
}

// bodyTime is the time limit for a client to send a body.
const bodyTime = time.Minute

// countedBody reads a body and counts its bytes against the limits as they arrive. A client therefore cannot use up the
// limits by declaring more bytes than it sends. The creator of a countedBody must call giveBack.
type countedBody struct {
	body  io.Reader
	of    *limits
	large bool  // more than smallBody bytes were declared or have arrived
	taken int64 // number of this body's bytes that of.bodies includes
	share int64 // number of this body's bytes that of.large.bodies includes
}

// errNoRoom is returned by Read if reading more would exceed the limits.
var errNoRoom = errors.New("not enough memory for the body")

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.count(int64(n)) {
		return 0, errNoRoom
	}
	return n, err
}

// count counts n more bytes, or returns false if they would exceed the limits.
func (b *countedBody) count(n int64) bool {
	if !b.of.bodies.tryTake(n) {
		return false
	}
	b.taken += n
	b.large = b.large || b.taken > smallBody
	if !b.large {
		return true
	}
	more := b.taken - b.share
	if !b.of.large.bodies.tryTake(more) {
		return false
	}
	b.share += more
	return true
}

func (b *countedBody) giveBack() {
	b.of.bodies.give(b.taken)
	b.of.large.bodies.give(b.share)
}

// readBody reads the body and counts its bytes in b. If ok is false, readBody has already sent an error response.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, b *countedBody) (data []byte, ok bool) {
	if r.ContentLength > s.cfg.MaxBody {
		w.Header().Set("Connection", "close") // the server will not read the rest of the body
		s.tooLarge(w)
		return nil, false
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime)) // the writers in tests do not support deadlines
	b.body, b.large = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody), r.ContentLength > smallBody
	data, err := io.ReadAll(b)
	_ = c.SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		s.tooLarge(w)
	case errors.Is(err, errNoRoom):
		w.Header().Set("Connection", "close") // the server will not read the rest of the body
		busy(w, nil, "too many large requests at once", aMoment)
	case err != nil:
		writeError(w, http.StatusBadRequest, nil, protocol.CodeParse, "the request body is incomplete")
	default:
		return data, true
	}
	return nil, false
}

// readMessage parses the body. If ok is false, readMessage has already sent an error response.
func readMessage(w http.ResponseWriter, body []byte) (m *message, ok bool) {
	if !utf8.Valid(body) { // the decoder would silently replace invalid bytes with U+FFFD
		writeError(w, http.StatusBadRequest, nil, protocol.CodeParse, "the request is not valid UTF-8: encode its text as UTF-8")
		return nil, false
	}
	m, err := parseMessage(body)
	if err != nil {
		var bad *json.SyntaxError
		code := protocol.CodeRequest
		if errors.As(err, &bad) || len(body) == 0 {
			code = protocol.CodeParse
		}
		writeError(w, http.StatusBadRequest, nil, code, err.Error())
		return nil, false
	}
	return m, true
}

func (s *Server) tooLarge(w http.ResponseWriter) {
	writeError(w, http.StatusRequestEntityTooLarge, nil, protocol.CodeRequest,
		fmt.Sprintf("the request is over the limit of %d bytes: send less, or attach files by path", s.cfg.MaxBody))
}

type envelope struct {
	Tag    *json.RawMessage `json:"jsonrpc"`
	ID     json.RawMessage  `json:"id"` // nil if the message has no id
	Method string           `json:"method"`
}

// parseEnvelope parses the envelope of one message, a JSON object.
func parseEnvelope(object []byte) (e envelope, err error) {
	if err := json.Unmarshal(object, &e); err != nil {
		return e, errors.New("the method of a JSON-RPC message must be a string")
	}
	if e.ID = bytes.TrimSpace(e.ID); len(e.ID) == 0 || string(e.ID) == "null" {
		e.ID = nil
	}
	if e.ID != nil && e.ID[0] != '"' && e.ID[0] != '-' && (e.ID[0] < '0' || e.ID[0] > '9') {
		return e, errors.New("the id of a JSON-RPC message must be a string or a number")
	}
	switch {
	case len(e.ID) > maxEcho:
		return e, fmt.Errorf("the id of a JSON-RPC message is %d bytes long, over the limit of %d", len(e.ID), maxEcho)
	case len(e.Method) > maxEcho:
		return e, fmt.Errorf("the method of a JSON-RPC message is %d bytes long, over the limit of %d", len(e.Method), maxEcho)
	}
	return e, nil
}

// maxEcho is the maximum size, in bytes, of each part of a request that a response repeats: the id and, in an error,
// the method or the unknown name or URI.
const maxEcho = 8 << 10

// parseMessage checks body and parses the envelopes of its messages. The SDK itself would accept trailing garbage and
// report errors in plain text.
func parseMessage(body []byte) (*message, error) {
	m := &message{body: bytes.TrimSpace(body)}
	if len(m.body) == 0 {
		return nil, errors.New("the request has no body: POST a JSON-RPC message")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(m.body, &raw); err != nil {
		return nil, fmt.Errorf("the request is not JSON: %w", err)
	}
	var err error
	switch m.body[0] {
	case '[':
		if m.batch, err = parseBatch(m.body); err != nil {
			return nil, err
		}
	case '{':
		e, err := parseEnvelope(m.body)
		if err != nil {
			return nil, err
		}
		m.method, m.id, m.tagged = e.Method, e.ID, e.Tag != nil
	default:
		return nil, errors.New("the request must be a JSON-RPC message, which is a JSON object")
	}
	return m, nil
}

// complete adds the "jsonrpc" and "id" members if they are missing. Users who write requests themselves often omit
// them.
func (m *message) complete() {
	var add []string
	if !m.tagged {
		add = append(add, `"jsonrpc":"2.0"`)
	}
	if m.id == nil && m.method != "" && !strings.HasPrefix(m.method, "notifications/") {
		m.id = json.RawMessage(`1`)
		add = append(add, `"id":1`) // if a key appears twice, the last one wins, so the id goes after an "id":null
	}
	if add == nil {
		return
	}
	inner := bytes.TrimRight(m.body[:len(m.body)-1], " \t\r\n")
	if inner[len(inner)-1] != '{' {
		add = append([]string{""}, add...)
	}
	m.body = append(append(bytes.Clone(inner), strings.Join(add, ",")...), '}')
}

// describe sets the headers that repeat a message's method and name. The server must set them for bridges, because a
// bridge's clients do not send headers.
func (m *message) describe(h http.Header) {
	var p struct {
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal(m.body, &p) // if the name is missing, the SDK returns an error
	h.Set(protocol.MethodHeader, m.method)
	if h.Set(protocol.NameHeader, p.Params.Name); m.method == "resources/read" {
		h.Set(protocol.NameHeader, p.Params.URI)
	}
}

// keepNumbers replaces the numbers in the body that the SDK would otherwise alter.
func (m *message) keepNumbers() (k keptNumbers) {
	for i, e := range m.batch {
		m.batch[i].raw = k.replace(e.raw, e.id, e.method)
	}
	if m.batch == nil {
		m.body = k.replace(m.body, m.id, m.method)
	}
	return k
}

// restoreBody makes the body readable again. If bare is true or the request has no Accept header, restoreBody also sets
// the Accept header.
func (m *message) restoreBody(r *http.Request, bare bool) {
	r.Body = io.NopCloser(bytes.NewReader(m.body))
	r.ContentLength = int64(len(m.body))
	if bare || r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", protocol.AcceptBoth)
	}
}
