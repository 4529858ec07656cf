package mcp

import (
	"net/http"
	"strings"
	"testing"

	"mailtree/mcp/protocol"
)

// TestIDs checks that a response contains the request's id exactly as the client wrote it, for any number, in both eras
// and in a batch.
func TestIDs(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{})
	session := begin(t, url)
	for _, id := range []string{"9007199254740993", "-9007199254740993", "123456789012345678901234567890", "1.5", "1e3", "7", `"9007199254740993"`} {
		ping := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`
		for name, head := range map[string]string{
			"bare":    post,
			"session": post + "\nAccept: application/json, text/event-stream\nMcp-Session-Id: " + session,
			"new era": post + "\nAccept: application/json, text/event-stream\nMcp-Method: tools/list\nMcp-Protocol-Version: " + protocol.NewEra,
		} {
			body := ping
			if name == "new era" {
				body = strings.TrimSuffix(ping, "}") + `,"params":{` + newEraMeta + `}}`
			}
			res, answer := request(t, url, head, body)
			if res.StatusCode != 200 || !strings.Contains(answer, `"id":`+id+`,`) && !strings.Contains(answer, `"id":`+id+`}`) {
				t.Errorf("%s, %s: %d %.200s", name, id, res.StatusCode, answer)
			}
			if strings.Contains(answer, numberMark) {
				t.Errorf("%s, %s: %.200s", name, id, answer)
			}
		}
		res, answer := request(t, url, post, "["+ping+","+strings.Replace(ping, id, "3", 1)+"]")
		if res.StatusCode != 200 || !strings.Contains(answer, `"id":`+id) || !strings.Contains(answer, `"id":3`) {
			t.Errorf("batch, %s: %d %.200s", id, res.StatusCode, answer)
		}
	}
}

// TestUnknownRevision checks that a request is refused if its revision is newer than all revisions that the server
// supports. The refusal must list the supported revisions.
func TestUnknownRevision(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{})
	for _, revision := range []string{"2031-01-01", "banana"} {
		for _, body := range []string{initialize, `{"jsonrpc":"2.0","id":1,"method":"ping"}`} {
			res, answer := request(t, url, post+"\nAccept: application/json, text/event-stream\nMcp-Protocol-Version: "+revision, body)
			for _, want := range []string{`"code":-32022`, `"requested":"` + revision + `"`, `"supported":["2026-07-28","2025-11-25"`, `"id":1`} {
				if res.StatusCode != http.StatusBadRequest || !strings.Contains(answer, want) {
					t.Errorf("%s: %d %s\nwithout %s", revision, res.StatusCode, answer, want)
				}
			}
		}
	}
}
