package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
)

// TestAttachmentFile checks that a caller on this machine gets the path of an attachment's file, both as the sender and
// as a reader. If a proxy has forwarded the call, the response must not contain the path, because the caller is on
// another machine.
func TestAttachmentFile(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	result(t, url, "create_agent", `{"project_key": "/w/a", "program": "x", "model": "y", "task_description": "z", "name_hint": "BlueLake"}`)
	sent := result(t, url, "send_message", `{"project_key":"/w/a","from_agent":"BlueLake","to":["BlueLake"],"subject":"Dot",`+
		`"body_md":"![dot](data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==)","image_embed_policy":"file"}`)
	inbox := `{"project_key":"/w/a","agent_name":"BlueLake"}`
	box := result(t, url, "check_my_messages", inbox)
	for _, m := range []map[string]any{sent, box["messages"].([]any)[0].(map[string]any)} {
		a := m["attachments"].([]any)[0].(map[string]any)
		file, _ := a["file"].(string)
		fi, err := os.Stat(file)
		if err != nil || !filepath.IsAbs(file) || float64(fi.Size()) != a["bytes"] {
			t.Errorf("the file of %v: %v", a, err)
		}
	}
	for _, header := range []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1"} {
		box := answerOf(t, url, header, "check_my_messages", inbox)
		m := box["messages"].([]any)[0].(map[string]any)
		if a := m["attachments"].([]any)[0].(map[string]any); a["file"] != nil || a["path"] == nil {
			t.Errorf("%s: %v", header, a)
		}
	}
}

// TestEmptyAttachment checks that the response for an empty attachment is valid. It would be invalid if it contained
// neither text nor bytes.
func TestEmptyAttachment(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	result(t, url, "create_agent", `{"project_key": "/w/a", "program": "x", "model": "y", "task_description": "z", "name_hint": "BlueLake"}`)
	sent := result(t, url, "send_message", `{"project_key":"/w/a","from_agent":"BlueLake","to":["BlueLake"],"subject":"Nothing","body_md":"![x](data:text/plain,)"}`)
	a := sent["attachments"].([]any)[0].(map[string]any)
	uri := "resource://attachment/" + a["sha1"].(string)
	_, body := request(t, url, "POST /mcp/\ncontent-type: application/json",
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
	if !strings.Contains(body, `"contents":[{"uri":"`+uri+`","mimeType":"text/plain","blob":""}]`) {
		t.Errorf("%v: %s", a, body)
	}
}
