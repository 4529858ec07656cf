package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/tool"
)

// callerHeader tells the handlers of the SDK who calls: they see the headers of each request, but
// only the context of a session's first. The server overwrites whatever a client sends under this
// name.
const callerHeader = "Mailtree-Caller"

// headerOf encodes a caller as the value of callerHeader.
func headerOf(c tool.Caller) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(b)
}

// withCaller puts the caller of a request into ctx.
func withCaller(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	c := tool.Unknown()
	if extra != nil && extra.Header.Get(callerHeader) != "" {
		if err := json.Unmarshal([]byte(extra.Header.Get(callerHeader)), &c); err != nil {
			panic(err) // endpoint made it
		}
	}
	return tool.WithCaller(ctx, c)
}

// requestHeader names, in the same way, the HTTP request that a method came in.
const requestHeader = "Mailtree-Request"

// underWay knows the HTTP requests that are being answered. Safe for concurrent use.
type underWay struct {
	last atomic.Int64
	byID sync.Map // string to openRequest
}

// openRequest is an HTTP request that is being answered.
type openRequest struct {
	done  context.Context // ends with it
	place *place
}

// enterRequest registers a request, so that its methods end with it. Call leave when it has been
// answered.
func (u *underWay) enterRequest(r *http.Request, p *place) (leave func()) {
	id := strconv.FormatInt(u.last.Add(1), 10)
	u.byID.Store(id, openRequest{r.Context(), p})
	r.Header.Set(requestHeader, id)
	return func() { u.byID.Delete(id) }
}

// bind calls cancel when the HTTP request of a method ends, at once where it has ended. stop undoes
// it.
func (u *underWay) bind(extra *mcp.RequestExtra, cancel func()) (stop func() bool) {
	stop = func() bool { return true }
	if extra == nil || extra.Header.Get(requestHeader) == "" {
		return stop
	}
	r, ok := u.byID.Load(extra.Header.Get(requestHeader))
	if !ok {
		cancel()
		return stop
	}
	return context.AfterFunc(r.(openRequest).done, cancel)
}

// withAdmission puts into ctx the question whether the method's request may wait for mail.
func (u *underWay) withAdmission(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	if extra == nil {
		return ctx
	}
	if r, ok := u.byID.Load(extra.Header.Get(requestHeader)); ok {
		return tool.WithAdmission(ctx, r.(openRequest).place.roomToWait)
	}
	return ctx
}
