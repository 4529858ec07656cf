package mcp

import (
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
)

// TestEcho checks that a response does not repeat more of its request than maxEcho allows.
func TestEcho(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{NoWatcher: true}).Store})
	long := strings.Repeat("x", 2<<20)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"` + long + `","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + long + `","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"resource://` + long + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"` + long + `"}}`,
		`{"tool":"` + long + `","args":{}}`,
	} {
		head := post
		if strings.HasPrefix(body, `{"tool"`) {
			head = strings.Replace(post, "/mcp", "/agents/ann/mcp", 1)
		}
		_, answer := request(t, url, head, body)
		if len(answer) > 64<<10 || !strings.Contains(answer, "over the limit of 8192") {
			t.Errorf("%.90s…: %d bytes: %.300s", body, len(answer), answer)
		}
	}
}
