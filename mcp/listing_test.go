package mcp

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// maxListing is how many bytes the tools/list result of a toolset may have: many clients put all of
// it into the prompt of every conversation.
const maxListing = 16 << 10

// TestListing measures tools/list of each toolset as it is served.
func TestListing(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for _, d := range s.doors {
		d.paths = append(d.paths, "/listing/"+d.name) // the toolsets of the socket have no path over TCP
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	for _, d := range s.doors {
		_, body := request(t, srv.URL, "POST /listing/"+d.name+"\nContent-Type: application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		var answer struct {
			Result json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Result) == 0 {
			t.Errorf("%s: %s (%v)", d.name, body, err)
		}
		t.Logf("%s: %d bytes", d.name, len(answer.Result))
		if len(answer.Result) > maxListing {
			t.Errorf("tools/list of %s has %d bytes, over the limit of %d", d.name, len(answer.Result), maxListing)
		}
	}
}
