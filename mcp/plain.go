package mcp

import (
	"encoding/json"
	"net/http"

	"mailtree/mcp/tool"
)

// A plain body is {"tool": …, "args": …} instead of a JSON-RPC message. Programs written for postal send such bodies.
// The response is the tool's result without an envelope. If the call is refused, the response is the tool's {error,
// code, near} with status 400, or with status 503 if retrying may help.

// translate converts a plain body to a tools/call message. If the body is not a plain body, translate returns false and
// changes nothing.
func (m *message) translate() bool {
	var p struct {
		Tool *string         `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if m.method != "" || m.tagged || json.Unmarshal(m.body, &p) != nil || p.Tool == nil {
		return false
	}
	params := map[string]any{"name": *p.Tool}
	if p.Args != nil {
		params["arguments"] = p.Args
	}
	body := tool.Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	m.body, m.method, m.id, m.tagged = body, "tools/call", json.RawMessage("1"), true
	return true
}

// plainAnswer strips the envelope from a JSON-RPC response to a tools/call.
func plainAnswer(body []byte, shape envelopeless) (status int, answer []byte) {
	var m struct {
		Result struct {
			Structured json.RawMessage `json:"structuredContent"`
			IsError    bool            `json:"isError"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		panic(err) // cannot happen: the SDK encoded body
	}
	switch {
	case m.Error != nil: // the tool does not exist; invalid arguments are reported in a result
		text := m.Error.Message + "; the method tools/list lists the tools"
		return http.StatusBadRequest, tool.Encode(tool.Refusal{Error: text, Code: "invalid", Near: []string{}})
	case !m.Result.IsError:
		return http.StatusOK, shape.Plain(m.Result.Structured)
	}
	var r tool.Refusal
	if err := json.Unmarshal(m.Result.Structured, &r); err != nil {
		panic(err) // cannot happen: package tool encoded the refusal
	}
	switch r.Code {
	case "unavailable":
		return http.StatusServiceUnavailable, m.Result.Structured
	case "internal":
		return http.StatusInternalServerError, m.Result.Structured
	}
	return http.StatusBadRequest, m.Result.Structured
}
