// Package protocol has what both ends of the wire must agree on: revisions, headers, error codes.
// It imports nothing of ours, so that servers, bridges and clients all may import it.
package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// NewEra is the first revision of MCP without sessions: it divides the eras of the protocol.
const NewEra = "2026-07-28"

// IsStateless reports whether a revision is of the new era. A client that names none, "", is of the
// old one.
func IsStateless(revision string) bool { return revision >= NewEra }

// Headers of MCP over HTTP.
const (
	VersionHeader = "Mcp-Protocol-Version"
	SessionHeader = "Mcp-Session-Id"
	MethodHeader  = "Mcp-Method"
	NameHeader    = "Mcp-Name"
)

// HelloHeader is where a bridge on the socket says, as JSON, the self-asserted part of tool.Caller.
const HelloHeader = "Mailtree-Hello"

// AcceptBoth is the Accept header of a client that takes a document as well as a stream.
const AcceptBoth = "application/json, text/event-stream"

// Codes of JSON-RPC errors: the standard ones, and from CodeBusy on those of a server's own.
const (
	CodeParse    = jsonrpc.CodeParseError
	CodeRequest  = jsonrpc.CodeInvalidRequest
	CodeMethod   = jsonrpc.CodeMethodNotFound
	CodeParams   = jsonrpc.CodeInvalidParams
	CodeInternal = jsonrpc.CodeInternalError

	CodeBusy     = -32000
	CodeDenied   = -32001
	CodeNotFound = -32002 // a resource that is not there, in the old era; CodeParams in the new one
	CodeHeaders  = -32020 // headers that do not say what the message says
	CodeUnknown  = -32023 // an event that there is not (SEP-3415)
)

// Failure is a JSON-RPC error as the answer to the message of that id; nil where it is not known.
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
