package postal

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
	"mailtree/mcp/tool/tooltest"
)

func TestDeclared(t *testing.T) {
	var got []string
	tools := New(tool.Config{}).tools()
	for _, tl := range tools {
		got = append(got, tl.Name)
		for _, p := range tl.In {
			got = append(got, p.Name)
		}
	}
	if diff := cmp.Diff([]string{"send_to_agent", "name", "msg", "msg_id", "check_mail", "wait_seconds"}, got); diff != "" {
		t.Error(diff)
	}
	tooltest.Declared(t, tools...)
}

// TestShapes checks that the responses match the output schemas, and that Plain converts a response to what postal's
// own functions return.
func TestShapes(t *testing.T) {
	ts := New(tool.Config{})
	mail := func(id, key, body string) any {
		m := &index.MessageRow{}
		m.ID, m.Key = id, key
		return mailShape{ID: shownID(&m.Message), From: "alice", Auth: "token", Content: &body}
	}
	for _, tt := range []struct {
		tool   string
		answer any
		plain  string
	}{
		{"send_to_agent", tool.Result{Text: "m1", Value: sentShape{"m1"}}, `"m1"`},
		{"send_to_agent", tool.Result{Text: "null", Value: sentShape{"null"}}, `"null"`},
		{"check_mail", noMail(), `null`},
		{"check_mail", mail("m1", "", "<ping>"), `{"id":"m1","from":"alice","content":"<ping>"}`},
		{"check_mail", mail("m1", "k1", ""), `{"id":"k1","from":"alice","content":""}`},
	} {
		i := slices.IndexFunc(ts.tools(), func(tl tool.Tool) bool { return tl.Name == tt.tool })
		tooltest.Fits(t, ts.tools()[i], tt.answer)
		value := tt.answer
		if r, ok := value.(tool.Result); ok {
			value = r.Value
		}
		if got := string(ts.Plain(tool.Encode(value))); got != tt.plain {
			t.Errorf("%s: %s, want %s", tt.tool, got, tt.plain)
		}
	}
}

func TestWords(t *testing.T) { tooltest.Words(t, &words, New(tool.Config{}).tools()...) }
