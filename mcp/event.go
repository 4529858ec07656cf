package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// streamer is a toolset whose events can be followed: see mail.Toolset.Stream.
type streamer interface {
	Stream(ctx context.Context, id, params json.RawMessage, tell func(method string, params any)) error
}

// streamEvents serves events/stream (SEP-3415, "Push-Based Delivery"). The SDK has no way to send
// notifications of an extension, so this writes the stream itself.
func (s *Server) streamEvents(d *door, a *answer, m *message) {
	set, ok := d.set.(streamer)
	if !ok || m.id == nil {
		d.stateless.ServeHTTP(a, a.request) // which says that there is no such method, or no id
		return
	}
	if h := a.request.Header.Get(protocol.MethodHeader); h != m.method {
		writeError(a, http.StatusBadRequest, m.id, protocol.CodeHeaders,
			fmt.Sprintf("the header %s says %q, the message %q", protocol.MethodHeader, tool.Clip(h), m.method))
		return
	}
	var body struct {
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(m.body, &body); err != nil {
		panic(err) // it was parsed before
	}
	ctx, cancel := context.WithCancel(a.request.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.endWithServer(ctx, cancel) })
	begun := false
	write := func(message map[string]any) {
		if !begun {
			begun = true
			a.Header().Set("Content-Type", "text/event-stream")
			a.Header().Set("Cache-Control", "no-cache")
		}
		message["jsonrpc"] = "2.0"
		_, _ = fmt.Fprintf(a, "event: message\ndata: %s\n\n", tool.Encode(message))
		_ = a.FlushError() // a client that is gone ends ctx
	}
	err := set.Stream(ctx, m.id, body.Params, func(method string, params any) { write(map[string]any{"method": method, "params": params}) })
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		a.Header().Set("Content-Type", "application/json")
		a.WriteHeader(http.StatusBadRequest) // as the SDK answers errors in this era
		_, _ = a.Write(tool.Encode(map[string]any{"jsonrpc": "2.0", "id": m.id, "error": refused}))
		return
	}
	write(map[string]any{"id": m.id, "result": map[string]any{
		"resultType": "complete",
		"_meta":      map[string]any{mcp.MetaKeySubscriptionID: m.id},
	}})
}
