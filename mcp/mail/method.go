package mail

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// anyParams are the parameters of a method that needs none.
type anyParams struct{ mcp.ParamsBase }

// completeResult is the beginning of the result of a method that the SDK does not know.
type completeResult struct {
	mcp.ResultBase
	Type string `json:"resultType"`
}

func complete() completeResult { return completeResult{Type: "complete"} }

// addMethod serves a method of an extension of the protocol.
func addMethod[P interface {
	*T
	mcp.Params
}, R mcp.Result, T any](t *Toolset, name string, handle func(context.Context, *mcp.ServerSession, P) (R, error)) {
	if err := mcp.AddReceivingCustomMethod(t.Server(), name, handle); err != nil {
		panic(fmt.Sprintf("mail: %v", err)) // a name that the SDK serves itself
	}
}
