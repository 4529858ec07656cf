package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"mailtree/maildir/writer"
	mcpserver "mailtree/mcp"
)

// TestMonitoring checks that the dashboard and the alert rules can be parsed. It also checks that the server provides
// each metric that appears in them or in the table of metrics in the documentation.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	var has []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+?)(?:_bucket|_sum|_count)?[{ ]`).FindAllStringSubmatch(servedMetrics(t), -1) {
		has = append(has, m[1])
	}
	for file, parse := range map[string]func([]byte, any) error{
		"../../docs/monitoring/dashboard.json": json.Unmarshal,
		"../../docs/monitoring/alerts.yaml":    yaml.Unmarshal,
		"../../docs/reference/settings.md":     nil,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if parse != nil {
			if err := parse(text, &map[string]any{}); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		named := regexp.MustCompile(`\b((?:mailtree|process|go)_[a-z_]+?)(?:_bucket|_sum|_count)?\b`).FindAllSubmatch(text, -1)
		if len(named) == 0 {
			t.Errorf("%s contains no metric", file)
		}
		for _, m := range named {
			if name := string(m[1]); !slices.Contains(has, name) {
				t.Errorf("%s contains %s, which is not a metric of the server", file, name)
			}
		}
	}
}

// servedMetrics returns the metrics that a server with some mail provides, in Prometheus's format.
func servedMetrics(t *testing.T) string {
	t.Helper()
	cfg, err := loadConfig(pflag.NewFlagSet("", pflag.ContinueOnError), []string{"MCP_MAIL_STORE=" + t.TempDir()}, "", os.UserHomeDir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := openApp(t.Context(), cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	config := a.serverConfig(&program{cfg: cfg}, nil, &web{cfg: cfg}, nil)
	a.metrics.usage, a.metrics.incoming = func() (none mcpserver.Usage) { return none }, a.spool.Usage
	a.metrics.observe(writer.Op{Verb: "pop", ID: "x", Waited: time.Second}, time.Millisecond, nil)
	a.metrics.called("mail", "whois", false)
	w := httptest.NewRecorder()
	config.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
