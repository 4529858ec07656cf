package mail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

func TestParseRef(t *testing.T) {
	for _, tt := range []struct{ uri, want string }{
		{"resource://inbox/BlueLake", "profile BlueLake | 0 false false 20"},
		{"resource://inbox/BlueLake?project=/abs/path/backend&limit=10", "profile BlueLake|/abs/path/backend| 0 false false 10"},
		{"resource://inbox/Blue%4Cake?project=%2Fabs%2Fc%2B%2B+x&limit=1000&urgent_only=TRUE&include_bodies=1&since_ts=1761232934", "profile BlueLake|/abs/c+++x| 1761232934 true true 200"},
		{"resource://inbox/BlueLake?", "profile BlueLake | 0 false false 20"},
		{"resource://message/msg_1?project=a", "message msg_1|a| 0 false false 20"},
		{"resource://thread/TKT%2F12%203?include_bodies=false", "other TKT/12 3 | 0 false false 20"},
		{"resource://attachment/2A6F?project=a", "attachment 2A6F|a| 0 false false 20"},
		{"resource://thread/TKT/12", "other TKT/12 | 0 false false 20"},
	} {
		r, err := parseRef(tt.uri)
		since := int64(0)
		if !r.query.Since.IsZero() {
			since = r.query.Since.Unix()
		}
		project := " | "
		if r.project != "" {
			project = "|" + r.project + "| "
		}
		got := fmt.Sprintf("%s %s%s%d %t %t %d", r.kind, r.name, project, since, r.query.UrgentOnly, r.query.Bodies, r.query.Limit)
		if err != nil || got != tt.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", tt.uri, got, err, tt.want)
		}
	}
}

func TestParseRefRefused(t *testing.T) {
	for _, tt := range []struct{ uri, code, want string }{
		{"test://x", "not_found", `There is no resource "test://x": use resource://inbox/`},
		{"resource://inbox", "not_found", "There is no resource"},
		{"resource://inbox/", "not_found", "There is no resource"},
		{"resource://outbox/A", "not_found", "There is no resource"},
		{"resource://inbox/" + strings.Repeat("x", maxURI), "not_found", "There is no resource"},
		{"resource://inbox/%zz", "invalid", `"%zz" is not valid percent-encoding`},
		{"resource://inbox/A?projekt=x", "invalid", `Unknown parameter "projekt": this resource takes project, since_ts, urgent_only, include_bodies, limit, cursor`},
		{"resource://message/m?limit=3", "invalid", `Unknown parameter "limit": this resource takes project`},
		{"resource://inbox/A?limit=0", "invalid", "limit=0 is not valid: use a number from 1 to 200"},
		{"resource://inbox/A?urgent_only=maybe", "invalid", "urgent_only=maybe is not valid: use true or false"},
		{"resource://inbox/A?since_ts=noon", "invalid", "since_ts=noon is not valid: use seconds since 1970, or a time such as 2025-10-23T15:22:14Z"},
	} {
		_, err := parseRef(tt.uri)
		if refusal.Code(err) != tt.code || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %s: %v; want %s: %s", tool.Clip(tt.uri), refusal.Code(err), err, tt.code, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	ts := New(tool.Config{})
	near := &refusal.Own{
		Kind: refusal.ErrNotFound,
		Text: "no agent Blue",
		Near: []string{"BlueLake"},
		Err:  io.EOF,
	}
	for _, tt := range []struct {
		err     error
		version string
		code    int64
		want    string // text that the refusal must contain
	}{
		{near, "2025-11-25", -32002, `{"error":"no agent Blue","code":"not_found","near":["BlueLake"]}`},
		{near, "2026-07-28", -32602, `{"error":"no agent Blue","code":"not_found","near":["BlueLake"]}`},
		{fmt.Errorf("op: %w", near), "", -32002, `{"error":"no agent Blue","code":"not_found","near":["BlueLake"]}`},
		{tool.Refused(refusal.ErrConflict, "in <a> & <b>"), "2026-07-28", -32602, `{"error":"in <a> & <b>","code":"conflict","near":[]}`},
		{tool.Refused(refusal.ErrUnavailable, "disk full"), "2026-07-28", -32603, `{"error":"disk full","code":"unavailable","near":[]}`},
		{fmt.Errorf("SELECT: %w", io.ErrUnexpectedEOF), "2026-07-28", -32603, `{"error":"Internal error: see the server's log.","code":"internal","near":[]}`},
		{context.Canceled, "2026-07-28", -32603, `{"error":"The call was canceled before it finished: try again.","code":"unavailable","near":[]}`},
	} {
		res := ts.Refuse(t.Context(), "op", tt.err)
		if got := fmt.Sprintf("%s", res.StructuredContent); got != tt.want || !res.IsError || len(res.Content) != 1 {
			t.Errorf("%v: got %s, want %s", tt.err, got, tt.want)
		}
		var wire *jsonrpc.Error
		err := ts.resourceError(t.Context(), "resource://inbox/Blue", tt.version, tt.err)
		if !errors.As(err, &wire) || wire.Code != tt.code || strings.Contains(err.Error()+string(wire.Data), "SELECT") {
			t.Errorf("%v in %s: got %v, want code %d", tt.err, tt.version, err, tt.code)
		}
	}
}
