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

// callerHeader tells the handlers of the SDK, which see the headers of each request but only the
// context of a session's first, who calls. Whatever a client sends under this name is overwritten.
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

// enterRequest marks a request, whose methods end with it; leave when it is answered.
func (u *underWay) enterRequest(r *http.Request, p *place) (leave func()) {
	id := strconv.FormatInt(u.last.Add(1), 10)
	u.byID.Store(id, openRequest{r.Context(), p})
	r.Header.Set(requestHeader, id)
	return func() { u.byID.Delete(id) }
}

// bind has cancel called when the request that a method came in ends, at once where it has. stop
// undoes it.
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

// withAdmission puts into ctx how the method's request asks whether it may wait for mail.
func (u *underWay) withAdmission(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	if extra == nil {
		return ctx
	}
	if r, ok := u.byID.Load(extra.Header.Get(requestHeader)); ok {
		return tool.WithAdmission(ctx, r.(openRequest).place.roomToWait)
	}
	return ctx
}
