package mcp

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// maxListing is the maximum size in bytes of a toolset's tools/list result. Many clients include the whole result in
// the prompt of every conversation.
const maxListing = 16 << 10

// TestListing checks that each toolset's tools/list result, as served, is within the limit.
func TestListing(t *testing.T) {
	t.Parallel()
	for name, result := range listings(t) {
		t.Logf("%s: %d bytes", name, len(result))
		if len(result) > maxListing {
			t.Errorf("tools/list of %s is %d bytes long, over the limit of %d", name, len(result), maxListing)
		}
	}
}

// listings returns each toolset's tools/list result, from a server without a store.
func listings(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	s := New(Config{})
	for _, d := range s.routes {
		d.paths = append(d.paths, "/listing/"+d.name) // needed for the toolsets that have no path on TCP
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	all := map[string]json.RawMessage{}
	for _, d := range s.routes {
		_, body := request(t, srv.URL, "POST /listing/"+d.name+"\nContent-Type: application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		var answer struct {
			Result json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Result) == 0 {
			t.Errorf("%s: %s (%v)", d.name, body, err)
		}
		all[d.name] = answer.Result
	}
	return all
}
