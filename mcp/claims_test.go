package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
)

// TestClaimsNeverBothWin makes concurrent claim requests in both protocol eras, at /mcp and /mcp/, with and without
// sessions. It checks that only one of two overlapping patterns is granted, and that the claim files match the
// responses.
func TestClaimsNeverBothWin(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, storetest.Config{})
	_, url := serve(t, Config{Store: st.Store})
	const agents = 16
	for i := range agents {
		result(t, url, "create_agent", fmt.Sprintf(`{"project_key":"/abs/path/shop","program":"x","model":"y","task_description":"z","name_hint":"Agent%02d"}`, i))
	}
	modern, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer modern.Close()
	session := inSession(begin(t, url))
	heads := []string{post, strings.Replace(post, "/mcp", "/mcp/", 1), session}
	claim := func(i int, pattern string) bool {
		args := fmt.Sprintf(`{"project_key":"/abs/path/shop","agent_name":"Agent%02d","paths":[%q,"own/%d"]}`, i, pattern, i)
		if i%4 == 3 {
			res, err := modern.CallTool(t.Context(), &mcp.CallToolParams{Name: "claim_paths", Arguments: json.RawMessage(args)})
			if err != nil || res.IsError {
				t.Errorf("%s: %+v %v", args, res, err)
				return false
			}
			data, err := json.Marshal(res.StructuredContent)
			return err == nil && !strings.Contains(string(data), `"granted":[]`)
		}
		_, body := request(t, url, heads[i%4], fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"claim_paths","arguments":%s}}`, i, args))
		if !strings.Contains(body, `"structuredContent"`) || strings.Contains(body, `"isError":true`) {
			t.Errorf("%s: %s", args, body)
			return false
		}
		return !strings.Contains(body, `"granted":[]`)
	}
	var all sync.WaitGroup
	var won atomic.Int64
	for i := range agents {
		all.Go(func() {
			if claim(i, []string{"src/**", "src/a.go", "src/*.go", "s*/{a,b}.go", "src"}[i%5]) {
				won.Add(1)
			}
		})
	}
	all.Wait()
	held := len(storetest.LiveClaims(t, st.Projects()[0]))
	if won.Load() != 1 || held != 2 {
		t.Errorf("%d won, %d claims are held", won.Load(), held)
	}
}
