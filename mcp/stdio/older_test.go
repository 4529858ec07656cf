package stdio

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOlderServer checks that the instructions contain a notice only if the server is older than the bridge. It covers
// clients of both protocol eras.
func TestOlderServer(t *testing.T) {
	t.Parallel()
	const notice = "The running mailtree server (v1.2.0) is older than the installed mailtree (v1.10.0). Ask the user to run `mailtree stop`"
	for _, c := range []struct {
		server, program string
		older           bool
	}{
		{"v1.2.0", "v1.10.0", true},
		{"v1.10.0", "v1.10.0", false},
		{"v1.2.0", "devel", false},
		{"v1.10.0", "v1.2.0", false},
		{"", "v1.10.0", false}, // the server's version is devel
	} {
		t.Run(c.server+" "+c.program, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.version = c.server
			b := w.bridge(func(cfg *Config) { cfg.Version = c.program })
			b.send(hello, ready, `{"jsonrpc":"2.0","id":"find","method":"server/discover","params":{`+meta+`}}`)
			for _, id := range []string{`"id":"hi"`, `"id":"find"`} {
				line, _ := b.hear(id)
				var a struct {
					Result struct {
						Capabilities struct{ Tools map[string]any }
						Instructions string
					}
				}
				if err := json.Unmarshal([]byte(line), &a); err != nil {
					t.Fatal(err)
				}
				said := strings.Contains(a.Result.Instructions, "older")
				if said != c.older || said && !strings.HasPrefix(a.Result.Instructions, notice) || a.Result.Capabilities.Tools == nil {
					t.Errorf("%s: a notice: %t, want %t: %s", id, said, c.older, line)
				}
			}
			if err := b.finish(); err != nil {
				t.Error(err)
			}
		})
	}
}
