// Package protocol defines what both ends of the wire must agree on: revisions, headers and error codes. It does not
// import any other mailtree package, so servers, bridges and clients can all import it.
package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// NewEra is the first revision of MCP without sessions. All earlier revisions belong to the old era.
const NewEra = "2026-07-28"

// IsStateless reports whether a revision belongs to the new era. A client that does not specify a revision ("") belongs
// to the old era.
func IsStateless(revision string) bool { return revision >= NewEra }

// HTTP headers used by MCP.
const (
	VersionHeader = "Mcp-Protocol-Version"
	SessionHeader = "Mcp-Session-Id"
	MethodHeader  = "Mcp-Method"
	NameHeader    = "Mcp-Name"
)

// HelloHeader contains the self-asserted part of tool.Caller as JSON. Bridges send it on the socket.
const HelloHeader = "Mailtree-Hello"

// FailureTrailer contains the reason if the server could not complete a response that is not JSON.
const FailureTrailer = "Mailtree-Failure"

// AcceptBoth is the Accept header of a client that accepts JSON documents and event streams.
const AcceptBoth = "application/json, text/event-stream"

// Codes of JSON-RPC errors. This server defines CodeBusy and the codes after it. The standard defines the others.
const (
	CodeParse    = jsonrpc.CodeParseError
	CodeRequest  = jsonrpc.CodeInvalidRequest
	CodeMethod   = jsonrpc.CodeMethodNotFound
	CodeParams   = jsonrpc.CodeInvalidParams
	CodeInternal = jsonrpc.CodeInternalError

	CodeBusy     = -32000
	CodeDenied   = -32001
	CodeNotFound = -32002 // the resource does not exist (old era; the new era uses CodeParams)
	CodeHeaders  = -32020 // a header contradicts the message
	CodeUnknown  = -32023 // an unknown event (SEP-3415)
)

// Failure returns a JSON-RPC error as the response to the message with the given id. The id is nil if it is unknown.
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
		panic(err) // cannot happen: the id has already been parsed
	}
	return bytes.TrimSpace(b.Bytes())
}
