package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// Client calls a store's server. It is safe for concurrent use.
type Client struct {
	http  http.Client
	hello string
}

// NewClient returns a client that connects to the server through dial. caller describes this process to the server,
// which has no other way to identify this process.
func NewClient(dial func(ctx context.Context) (net.Conn, error), caller tool.Caller) *Client {
	return &Client{
		http: http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, // a stopping server closes idle connections, perhaps just as a request is sent
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				c, err := dial(ctx)
				if err != nil {
					return nil, &dialError{err}
				}
				return c, nil
			},
		}},
		hello: string(tool.Encode(caller)),
	}
}

// dialError wraps an error from dial without changing the error's text.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// Greet returns nil if the server responds. Otherwise, it returns the error from dial, or a *LostError if the server
// closed the connection.
func (c *Client) Greet(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://mailtree/", nil)
	if err != nil {
		return err
	}
	res, err := c.do(r)
	if unreached := (*dialError)(nil); err != nil && !errors.As(err, &unreached) {
		return &LostError{err}
	}
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// LostError means that the server exited before it responded.
type LostError struct{ cause error }

func (e *LostError) Error() string {
	return "the server exited before it answered, so the outcome is unknown: " +
		"check with `mailtree log -n 3` before you try again"
}

func (e *LostError) Unwrap() error { return e.cause }

// lost returns err as a *LostError if the server closed the connection. Otherwise, it returns err unchanged.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) {
		return &LostError{err}
	}
	return err
}

// Refusal is the server's refusal of a request.
type Refusal struct {
	Text string // a sentence for the user
	Code string // a code from tool.Refusal; empty if there is none
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// NotFound reports whether the server refused the request because something that the request refers to does not exist.
func (r *Refusal) NotFound() bool { return r.Code == "not_found" }

// Call calls a tool in the mail toolset and decodes the tool's structured content into answer. answer points to one of
// the result types in package mail, or to a json.RawMessage for the unchanged content. Call returns a *Refusal, a
// *LostError, or a connection error.
func (c *Client) Call(ctx context.Context, name string, args, answer any) error {
	var result struct {
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	err := c.rpc(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, &result)
	if err != nil {
		return err
	}
	if result.IsError {
		var refused tool.Refusal
		if err := json.Unmarshal(result.Structured, &refused); err != nil {
			return err
		}
		return &Refusal{refused.Error, refused.Code}
	}
	return json.Unmarshal(result.Structured, answer)
}

// Read reads a resource in the mail toolset whose text is JSON, and decodes that text into answer. Read accepts the
// same types for answer as Call, and returns the same errors.
func (c *Client) Read(ctx context.Context, uri string, answer any) error {
	var result struct {
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
	}
	if err := c.rpc(ctx, "resources/read", map[string]string{"uri": uri}, &result); err != nil {
		return err
	}
	if len(result.Contents) != 1 {
		return fmt.Errorf("the server returned %d content items for %s instead of one", len(result.Contents), uri)
	}
	return json.Unmarshal([]byte(result.Contents[0].Text), answer)
}

// rpc sends one request to the mail toolset and decodes the result.
func (c *Client) rpc(ctx context.Context, method string, params, result any) error {
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
	res, err := c.post(ctx, "/toolset/mail/mcp", body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
			Data    struct {
				Code string `json:"code"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := lost(json.NewDecoder(res.Body).Decode(&answer)); err != nil {
		if gone := (*LostError)(nil); errors.As(err, &gone) {
			return err
		}
		return stranger(res)
	}
	if answer.Error != nil {
		return &Refusal{answer.Error.Message, answer.Error.Data.Code}
	}
	return json.Unmarshal(answer.Result, result)
}

// Of returns verb with a query parameter that selects the project in which the verb runs. project is the project's key,
// its slug, or the last element of its path. If project is "", Of returns verb unchanged.
func Of(project, verb string) string {
	if project == "" {
		return verb
	}
	return verb + "?project=" + url.QueryEscape(project)
}

// Ask asks the server to run one of its socket's verbs, with POST /mailtree/<verb>, and decodes the response into
// answer. It returns the same errors as Call.
func (c *Client) Ask(ctx context.Context, verb string, ask, answer any) error {
	res, err := c.postTo(ctx, "/mailtree/"+verb, ask)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return lost(json.NewDecoder(res.Body).Decode(answer))
}

// Stream asks the server to run a verb whose response consists of JSON lines, and calls each with every line until ctx
// ends. It returns nil when the server ends the response. It returns errors from each, the error that the server
// reports if it ends the response early, and the same errors as Call.
func (c *Client) Stream(ctx context.Context, verb string, ask any, each func(line json.RawMessage) error) error {
	res, err := c.postTo(ctx, "/mailtree/"+verb, ask)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for lines := json.NewDecoder(res.Body); ; {
		var line json.RawMessage
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return lost(err)
		}
		var ended struct{ Error string }
		if json.Unmarshal(line, &ended) == nil && ended.Error != "" {
			return &Refusal{Text: ended.Error}
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

// Copy asks the server to run a verb whose response is a file, and writes the file to w. If Copy returns an error, the
// file is incomplete. Copy returns errors from w, an error with the reason that the server gives, and the same errors
// as Call.
func (c *Client) Copy(ctx context.Context, verb string, w io.Writer) error {
	res, err := c.postTo(ctx, "/mailtree/"+verb, struct{}{})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return lost(err)
	}
	if why := res.Trailer.Get(protocol.FailureTrailer); why != "" {
		return &Refusal{Text: why}
	}
	return nil
}

// Yield asks the server to exit so that another server can start. It returns a *Refusal if the server keeps running,
// and otherwise the same errors as Call.
func (c *Client) Yield(ctx context.Context) error {
	res, err := c.postTo(ctx, "/yield", struct{}{})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// postTo posts a request to a path on the socket. If the server refuses the request, postTo returns the refusal as an
// error. The caller must close the body of the response.
func (c *Client) postTo(ctx context.Context, path string, ask any) (*http.Response, error) {
	res, err := c.post(ctx, path, ask)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = refusedBy(res)
		res.Body.Close()
	}
	return res, err
}

// Get requests a path on the server's socket and decodes the response into answer. It returns the same errors as Call.
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mailtree"+path, nil)
	if err != nil {
		return err
	}
	res, err := c.do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return stranger(res)
	}
	return json.NewDecoder(res.Body).Decode(answer)
}

func (c *Client) post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://mailtree"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return c.do(r)
}

func (c *Client) do(r *http.Request) (*http.Response, error) {
	r.Header.Set(protocol.HelloHeader, c.hello)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, lost(errors.Unwrap(err)) // the error inside the *url.Error
	}
	return res, nil
}

// refusedBy returns the error for a response with which the server refuses a request.
func refusedBy(res *http.Response) error {
	var said struct {
		Error struct{ Message string }
	}
	if json.NewDecoder(res.Body).Decode(&said) != nil || said.Error.Message == "" {
		return stranger(res)
	}
	refused := &Refusal{Text: said.Error.Message}
	if res.StatusCode == http.StatusNotFound {
		refused.Code = "not_found"
	}
	return refused
}

// stranger returns the error for a response that this version of mailtree does not understand.
func stranger(res *http.Response) error {
	return fmt.Errorf("unexpected response from the server: %s. Check that the server is yours and runs this version of mailtree", res.Status)
}
