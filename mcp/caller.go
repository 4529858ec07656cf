package mcp

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/tool"
)

// callerHeader tells the handlers of the SDK, which see the headers of each request but only the context of a
// session's first, who calls. Whatever a client sends under this name is overwritten.
const callerHeader = "Mailtree-Caller"

// headerOf is a caller as the value of callerHeader.
func headerOf(c tool.Caller) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(b)
}

// withCaller puts into ctx who makes a request.
func withCaller(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	c := tool.Caller{Auth: "none", UID: tool.NoUID}
	if extra != nil && extra.Header.Get(callerHeader) != "" {
		if err := json.Unmarshal([]byte(extra.Header.Get(callerHeader)), &c); err != nil {
			panic(err) // endpoint made it
		}
	}
	return tool.WithCaller(ctx, c)
}
