package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCall implements `call [AGENT/]TOOL JSON`. It calls a tool in the mail toolset or, with an agent, a postal tool
// as that agent. It uses a plain POST and prints the structured content, one key per line. It fails on a tool error.
// With !, it fails unless there is a tool error. Text and structured content must agree.
func cmdCall(ts *testscript.TestScript, neg bool, args []string) {
	out, isError, err := callTool(of(ts).url, args)
	ts.Check(err)
	if isError != neg {
		ts.Fatalf("call %s: error is %v:\n%s", args[0], isError, out)
	}
	show(ts, out)
}

func show(ts *testscript.TestScript, out string) {
	fmt.Fprint(ts.Stdout(), out)
	ts.Logf("%s", out)
}

func callTool(url string, args []string) (out string, isError bool, err error) {
	if len(args) != 2 {
		return "", false, fmt.Errorf("usage: call TOOL JSON")
	}
	var res struct {
		Result struct {
			Content    []struct{ Text string }
			Structured json.RawMessage `json:"structuredContent"`
			IsError    bool
		}
		Error json.RawMessage
	}
	tool := args[0]
	if agent, name, ok := strings.Cut(tool, "/"); ok {
		url, tool = url+"/agents/"+agent, name
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args[1])
	if err := postJSON(url, body, &res); err != nil {
		return "", false, err
	}
	if res.Error != nil {
		return "", false, fmt.Errorf("protocol error: %s", res.Error)
	}
	if len(res.Result.Content) == 0 {
		return "", false, fmt.Errorf("no content")
	}
	var structured any
	if err := json.Unmarshal(res.Result.Structured, &structured); err != nil {
		return "", false, err
	}
	if text := res.Result.Content[0].Text; !res.Result.IsError && !agree(text, structured) {
		return "", false, fmt.Errorf("text and structured content differ:\n%s\n%s", text, res.Result.Structured)
	}
	return indented(structured), res.Result.IsError, nil
}

// agree reports whether text and structured content match. They match if they are the same JSON. In postal, the text
// may be only the id, or null for an empty mailbox.
func agree(text string, structured any) bool {
	var v any
	same := json.Unmarshal([]byte(text), &v) == nil && indented(v) == indented(structured)
	return same || cmp.Equal(structured, any(map[string]any{"id": text})) ||
		text == "null" && cmp.Equal(structured, any(map[string]any{"empty": true}))
}

func indented(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	e.Encode(v)
	return b.String()
}

func postJSON(url, body string, v any) error {
	resp, err := http.Post(url+"/mcp", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %s", resp.Status, data)
	}
	return nil
}

// cmdRead implements `read URI`. It reads a resource and prints its text.
func cmdRead(ts *testscript.TestScript, neg bool, args []string) {
	out, isError, err := readResource(of(ts).url, args)
	ts.Check(err)
	if isError != neg {
		ts.Fatalf("read %s: error is %v:\n%s", args[0], isError, out)
	}
	show(ts, out)
}

func readResource(url string, args []string) (out string, isError bool, err error) {
	if len(args) != 1 {
		return "", false, fmt.Errorf("usage: read URI")
	}
	var res struct {
		Result struct{ Contents []struct{ Text string } }
		Error  any
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q}}`, args[0])
	if err := postJSON(url, body, &res); err != nil {
		return "", false, err
	}
	if res.Error != nil || len(res.Result.Contents) == 0 {
		return indented(res.Error), true, nil
	}
	var v any
	if err := json.Unmarshal([]byte(res.Result.Contents[0].Text), &v); err != nil {
		return "", false, err
	}
	return indented(v), false, nil
}

// cmdPost implements `post STATUS FILE [HEADER…]`. It posts the file to $URL/mcp and prints the response. Apart from
// the content type, the request has only the given headers. The response must have the given status.
func cmdPost(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest("POST", of(ts).url+"/mcp", strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range args[2:] {
		k, v, _ := strings.Cut(h, ": ")
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	req.Close = true
	status, data, err := exchange(req)
	for range 5 { // the server stops reading an overlong request, so the response may be lost half a second later
		if !errors.Is(err, syscall.ECONNRESET) {
			break
		}
		status, data, err = exchange(req)
	}
	ts.Check(err)
	if got := fmt.Sprint(status); got != args[0] {
		ts.Fatalf("status %s, want %s: %s", got, args[0], data)
	}
	show(ts, string(data)+"\n")
}

// exchange returns the response even if the request could not be sent completely.
func exchange(req *http.Request) (status int, body []byte, err error) {
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	sent := req.Clone(req.Context())
	if sent.Body, err = req.GetBody(); err != nil {
		return 0, nil, err
	}
	go sent.Write(conn)
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
