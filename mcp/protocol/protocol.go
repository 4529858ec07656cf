// Package protocol defines what both ends of the wire must agree on: revisions, headers, error codes. It imports no
// other mailtree package, so servers, bridges and clients can all import it.
package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// NewEra is the first revision of MCP without sessions. Earlier revisions are the old era.
const NewEra = "2026-07-28"

// IsStateless reports whether a revision belongs to the new era. A client that names no revision ("")
// belongs to the old era.
func IsStateless(revision string) bool { return revision >= NewEra }

// These are the headers of MCP over HTTP.
const (
	VersionHeader = "Mcp-Protocol-Version"
	SessionHeader = "Mcp-Session-Id"
	MethodHeader  = "Mcp-Method"
	NameHeader    = "Mcp-Name"
)

// HelloHeader contains the self-asserted part of tool.Caller as JSON. A bridge sends it on the socket.
const HelloHeader = "Mailtree-Hello"

// AcceptBoth is the Accept header of a client that accepts a document as well as a stream.
const AcceptBoth = "application/json, text/event-stream"

// These are the codes of JSON-RPC errors. This server defines the codes from CodeBusy on, and the standard defines the
// others.
const (
	CodeParse    = jsonrpc.CodeParseError
	CodeRequest  = jsonrpc.CodeInvalidRequest
	CodeMethod   = jsonrpc.CodeMethodNotFound
	CodeParams   = jsonrpc.CodeInvalidParams
	CodeInternal = jsonrpc.CodeInternalError

	CodeBusy     = -32000
	CodeDenied   = -32001
	CodeNotFound = -32002 // the resource does not exist, in the old era; CodeParams in the new era
	CodeHeaders  = -32020 // headers that contradict the message
	CodeUnknown  = -32023 // an unknown event (SEP-3415)
)

// Failure returns a JSON-RPC error as the response to the message with the given id. id is nil if it is unknown.
func Failure(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	err := to.Encode(map[string]any{
		"jsonrpc": "2.0",
		"id":      id,
		"error":   map[string]any{"code": code, "message": text},
	})
	if err != nil {
		panic(err) // the id was parsed before
	}
	return bytes.TrimSpace(b.Bytes())
}
