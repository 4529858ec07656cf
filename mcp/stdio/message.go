package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// message contains the parts of a message that the bridge needs. The server handles the rest.
type message struct {
	raw     []byte
	id      json.RawMessage // id of a request or a response; nil if it has none
	method  string          // the method; "" in responses and batches
	version string          // the revision that the message specifies; "" if there is none
	cancels string          // in a notifications/cancelled: id of the request to cancel, as JSON
	tool    string          // the tool that a tools/call calls
	waits   bool            // the message is a tools/call that asks to wait for mail, or a batch that contains such a call
	batch   bool            // a batch of revision 2025-03-26
	uris    []string        // URIs of resources/subscribe, resources/unsubscribe and subscriptions/listen
}

type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Tool   json.RawMessage `json:"tool"` // the tool to call, in a call without an envelope
}

// isEmpty reports whether the envelope has none of the fields of a message.
func (e *envelope) isEmpty() bool {
	return (e.ID == nil || string(e.ID) == "null") && e.Method == "" && e.Tool == nil && e.Error == nil
}

type params struct {
	Meta struct {
		Version string `json:"io.modelcontextprotocol/protocolVersion"`
	} `json:"_meta"`
	RequestID json.RawMessage `json:"requestId"`
	Name      string          `json:"name"`
	Arguments struct {
		Wait      json.RawMessage `json:"wait_seconds"`
		WaitReply json.RawMessage `json:"wait_reply_seconds"`
	} `json:"arguments"`
	URI           string  `json:"uri"`
	Notifications subject `json:"notifications"`
}

// subject lists the notifications that a newer-era client requests, or the notifications that the server has accepted.
type subject struct {
	URIs      []string `json:"resourceSubscriptions"`
	Tools     bool     `json:"toolsListChanged"`
	Prompts   bool     `json:"promptsListChanged"`
	Resources bool     `json:"resourcesListChanged"`
}

// any reports whether the subscription covers anything. The server answers a subscription to nothing immediately.
func (s subject) any() bool { return len(s.URIs) > 0 || s.Tools || s.Prompts || s.Resources }

// params returns the params of a message. It ignores errors, because the server reports them.
func (e *envelope) params() (p params) {
	_ = json.Unmarshal(e.Params, &p)
	return p
}

// waits reports whether the params contain a request to wait for mail.
func (p *params) waits() bool {
	asks := func(arg json.RawMessage) bool {
		wait := strings.Trim(string(arg), `"`)
		return wait != "" && wait != "0" && wait != "null"
	}
	return asks(p.Arguments.Wait) || asks(p.Arguments.WaitReply)
}

// parse parses a line. If it fails, code is the JSON-RPC error code.
func parse(text []byte) (m *message, code int, err error) {
	m = &message{raw: text}
	if !utf8.Valid(text) {
		return nil, protocol.CodeParse, errors.New("the line is not valid UTF-8")
	}
	if !json.Valid(text) {
		return nil, protocol.CodeParse, errors.New("the line is not JSON: write each message on its own line")
	}
	if text[0] == '[' {
		var all []envelope
		if json.Unmarshal(text, &all) != nil || len(all) == 0 || slices.ContainsFunc(all, func(e envelope) bool { return e.isEmpty() }) {
			return nil, protocol.CodeRequest, errors.New("the line is not a batch of JSON-RPC messages")
		}
		m.batch = true
		m.waits = slices.ContainsFunc(all, func(e envelope) bool {
			p := e.params()
			return p.waits()
		})
		return m, 0, nil
	}
	var e envelope
	if text[0] != '{' || json.Unmarshal(text, &e) != nil || e.isEmpty() {
		return nil, protocol.CodeRequest, errors.New("the line is not a JSON-RPC message (a JSON object with a method)")
	}
	p := e.params()
	m.id, m.method = e.ID, e.Method
	if string(m.id) == "null" {
		m.id = nil
	}
	m.waits = p.waits()
	m.tool, m.uris, m.version = p.Name, p.Notifications.URIs, p.Meta.Version
	if m.version == "" && m.method == "server/discover" {
		m.version = protocol.NewEra
	}
	if p.URI != "" {
		m.uris = []string{p.URI}
	}
	if m.method == "notifications/cancelled" {
		m.cancels = string(p.RequestID)
	}
	return m, 0, nil
}

// asks reports whether the message is a batch or a request. As in a bare POST, a request does not need an id: every
// message with a method is a request, except a notification.
func (m *message) asks() bool {
	return m.batch || m.method != "" && !strings.HasPrefix(m.method, "notifications/")
}

// stateless reports whether the message belongs to the newer era, which has no sessions.
func (m *message) stateless() bool { return protocol.IsStateless(m.version) }

// failure returns the bridge's own response to m, for use if the server has not answered. For a tool call, the response
// is a tool error, because models can correct only errors that they see.
func (m *message) failure(text string) []byte {
	if m.method != "tools/call" {
		return protocol.Failure(m.id, protocol.CodeBusy, text)
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type result struct {
		Type       string       `json:"resultType,omitempty"`
		Content    []content    `json:"content"`
		Structured tool.Refusal `json:"structuredContent"`
		IsError    bool         `json:"isError"`
	}
	r := result{
		Content:    []content{{"text", text}},
		Structured: tool.Refusal{Error: text, Code: "unavailable", Near: []string{}},
		IsError:    true,
	}
	if m.stateless() {
		r.Type = "complete"
	}
	return tool.Encode(struct {
		Tag    string          `json:"jsonrpc"`
		ID     json.RawMessage `json:"id"`
		Result result          `json:"result"`
	}{"2.0", m.id, r})
}

// withID adds the id to an error that the server sent without one. The bridge can do this, because it knows which
// request caused the error.
func withID(data []byte, id json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if id == nil || json.Unmarshal(data, &m) != nil || m["error"] == nil || string(m["id"]) != "null" {
		return data
	}
	m["id"] = id
	return tool.Encode(m)
}

// compact writes JSON without newlines.
func compact(b *bytes.Buffer, data []byte) error { return json.Compact(b, data) }
