package tool

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mailtree/maildir/refusal"
	"mailtree/mcp/protocol"
)

// ResourceError converts an error that occurred when the resource at uri was read. The result has the form of the given
// protocol version, and its text uses the given wording.
func (s *Set) ResourceError(ctx context.Context, words *refusal.Words, uri, version string, err error) error {
	r := s.ExplainIn(ctx, words, "resources/read", err)
	e := &jsonrpc.Error{Code: protocol.CodeInternal, Message: r.Error}
	switch r.Code {
	case "internal", "unavailable":
	case "not_found":
		e.Code = protocol.CodeNotFound
		if protocol.IsStateless(version) { // the new era uses this code for a missing resource: SEP-2164
			e.Code = protocol.CodeParams
		}
	default:
		e.Code = protocol.CodeParams
	}
	e.Data = Encode(struct {
		URI  string   `json:"uri"`
		Code string   `json:"code"`
		Near []string `json:"near"`
	}{Clip(uri), r.Code, r.Near})
	return e
}
