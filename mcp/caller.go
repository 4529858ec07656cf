package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/tool"
)

// callerHeader is the request header in which the server passes the caller to the SDK's handlers. The handlers see the
// headers of every request, but only the context of a session's first request. If a client sends this header itself,
// the server overwrites it.
const callerHeader = "Mailtree-Caller"

// headerOf encodes a caller as the value of callerHeader.
func headerOf(c tool.Caller) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // cannot happen: c has only strings, numbers and booleans
	}
	return string(b)
}

// withCaller adds the caller of a request to ctx.
func withCaller(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	c := tool.Unknown()
	if extra != nil && extra.Header.Get(callerHeader) != "" {
		if err := json.Unmarshal([]byte(extra.Header.Get(callerHeader)), &c); err != nil {
			panic(err) // cannot happen: endpoint encoded it
		}
	}
	return tool.WithCaller(ctx, c)
}

// requestHeader is the request header in which the server passes the id of an HTTP request to the SDK's handlers, in
// the same way as callerHeader.
const requestHeader = "Mailtree-Request"

// inFlight contains the HTTP requests that are currently being served. It is safe for concurrent use.
type inFlight struct {
	last atomic.Int64
	byID sync.Map // maps ids (strings) to values of type openRequest
}

// openRequest is an HTTP request that is currently being served.
type openRequest struct {
	done  context.Context // canceled when the request ends
	place *place
	wait  *progress // the same as answer.wait
}

// enterRequest registers a request, so that its method calls are canceled when the request ends. The caller must call
// leave once the request has been answered.
func (u *inFlight) enterRequest(a *answer, p *place) (leave func()) {
	id := strconv.FormatInt(u.last.Add(1), 10)
	u.byID.Store(id, openRequest{a.request.Context(), p, a.wait})
	a.request.Header.Set(requestHeader, id)
	return func() { u.byID.Delete(id) }
}

// bind arranges for cancel to be called when the HTTP request that contains the method call ends. If the request has
// already ended, bind calls cancel immediately. If stop is called first, cancel is not called.
func (u *inFlight) bind(extra *mcp.RequestExtra, cancel func()) (stop func() bool) {
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

// withAdmission records in ctx whether the method call may wait for mail, and for how long.
func (u *inFlight) withAdmission(ctx context.Context, req mcp.Request) context.Context {
	extra := req.GetExtra()
	if extra == nil {
		return ctx
	}
	r, ok := u.byID.Load(extra.Header.Get(requestHeader))
	if !ok {
		return ctx
	}
	open, admission := r.(openRequest), tool.Admission{Admit: r.(openRequest).place.roomToWait}
	token := progressToken(req)
	switch {
	case open.wait == nil:
	case open.wait.isStream():
		admission.Long = true
	case token != nil:
		admission.Long = true
		admission.Admit = func() error {
			err := open.place.roomToWait()
			if err == nil {
				open.wait.begin(token)
			}
			return err
		}
	}
	return tool.WithAdmission(ctx, admission)
}

// progressToken returns the progress token of a call, or nil if there is none.
func progressToken(req mcp.Request) any {
	if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
		return p.GetProgressToken()
	}
	return nil
}
