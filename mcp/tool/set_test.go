package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
)

// TestAnswers checks the form in which clients get the values that Run returns.
func TestAnswers(t *testing.T) {
	s := NewSet(Config{}, About{Name: "t", Words: refusal.Words{Says: map[refusal.What]string{refusal.MailboxNotYours: "EACCES not authorized"}}})
	denied := &refusal.Error{What: refusal.MailboxNotYours, Name: "ann"}
	nothing := Of(Tool{Name: "t"}, func(context.Context, *struct{}) (any, error) { return nil, nil }).Run
	for _, tt := range []struct {
		args             string
		run              func(ctx context.Context, a json.RawMessage) (any, error)
		text, structured string
	}{
		{`{}`, func(context.Context, json.RawMessage) (any, error) {
			return struct {
				A string `json:"a"`
			}{"<b>"}, nil
		},
			`{"a":"<b>"}`, `{"a":"<b>"}`},
		{`{}`, func(context.Context, json.RawMessage) (any, error) {
			return Result{Text: "null", Value: struct{}{}}, nil
		}, `null`, `{}`},
		{`{}`, func(context.Context, json.RawMessage) (any, error) { return nil, denied }, `EACCES not authorized`, `{"error":"EACCES not authorized","code":"denied","near":[]}`},
		{`{}`, func(context.Context, json.RawMessage) (any, error) { panic("x") }, InternalText, `{"error":"` + InternalText + `","code":"internal","near":[]}`},
		{`{}`, func(context.Context, json.RawMessage) (any, error) { return func() {}, nil }, InternalText, `{"error":"` + InternalText + `","code":"internal","near":[]}`},
		{`{"x":1}`, nothing, `Unknown argument "x" of t. It takes none.`, `{"error":"Unknown argument \"x\" of t. It takes none.","code":"invalid","near":[]}`},
		{`7`, nothing, `Arguments must be a JSON object such as {}.`, `{"error":"Arguments must be a JSON object such as {}.","code":"invalid","near":[]}`},
	} {
		res, err := s.handler(Tool{Name: "t", Run: tt.run})(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: []byte(tt.args)}})
		if err != nil {
			t.Fatal(err)
		}
		text, structured := res.Content[0].(*mcp.TextContent).Text, fmt.Sprintf("%s", res.StructuredContent)
		if text != tt.text || structured != tt.structured || res.IsError != strings.Contains(structured, `"error"`) {
			t.Errorf("got %s and %s (error %t)\nwant %s and %s", text, structured, res.IsError, tt.text, tt.structured)
		}
	}
}

func TestCaller(t *testing.T) {
	if c := CallerOf(t.Context()); c.Auth != "none" || c.UID == maildir.NoOwner || c.UID >= 0 || c.Root {
		t.Errorf("a caller about whom nothing is known: %+v", c)
	}
	for want, c := range map[string]Caller{"default": {}, "/w": {WorkTree: "/w"}, "p": {WorkTree: "/w", Project: "p"}} {
		if got := c.ProjectKey(); got != want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
