package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mailtree/mcp/tool"
)

// TestLost checks the error that a call returns if the server exits before or during its response. The error must say
// that the outcome is unknown, and how the user can check the outcome.
func TestLost(t *testing.T) {
	for name, answer := range map[string]string{
		"before the answer": "",
		"within the answer": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"resu",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte(answer))
			conn.Close()
		}))
		c := NewClient(func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}, tool.Caller{})
		var lost *LostError
		for what, err := range map[string]error{
			"call": c.Call(t.Context(), "send_message", nil, &struct{}{}),
			"verb": c.Ask(t.Context(), "undo", nil, &struct{}{}),
		} {
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), "mailtree log -n 3") {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
		server.Close()
	}
}
