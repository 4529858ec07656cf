package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"mailtree/gateway/spool"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
	mcpserver "mailtree/mcp"
)

// metrics serves GET /metrics in the Prometheus text format. The response contains counters that start at zero when the
// server starts, and the same current state as /health. See docs/reference/settings.md, "Metrics".
type metrics struct {
	health *health
	usage  func() mcpserver.Usage

	incoming func() spool.Usage // mail from other domains that is being received

	operations, durations, latency, calls *family
}

// newMetrics creates the counters. The caller must set health and usage before the first request.
func newMetrics() *metrics {
	m := &metrics{
		operations: newFamily("counter", "operations_total", "Write operations, by verb and outcome: ok or an error code."),
		durations: newFamily("histogram", "operation_duration_seconds", "How long callers waited for a write operation.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30),
		latency: newFamily("histogram", "delivery_latency_seconds",
			"Time from the creation of a message until a recipient retrieves it with check_mail or receive.",
			.01, .05, .25, 1, 5, 30, 60, 300, 1800, 3600, 6*3600, 24*3600, 7*24*3600),
		calls: newFamily("counter", "tool_calls_total", "Tool calls, by toolset, tool and outcome: ok or refused."),
	}
	m.latency.histogram() // create the histogram, so that it is shown before the first delivery
	return m
}

// family is a set of counters or histograms with the same name and different labels.
type family struct {
	name, help, kind string
	buckets          []float64 // upper bounds, for histograms
	set              *vm.Set
}

func newFamily(kind, name, help string, buckets ...float64) *family {
	return &family{name: "mailtree_" + name, help: help, kind: kind, buckets: buckets, set: vm.NewSet()}
}

// counter returns the counter with the given labels. The arguments are alternating names and values.
func (f *family) counter(labels ...string) *vm.Counter {
	return f.set.GetOrCreateCounter(f.name + labeled(labels...))
}

// histogram returns the histogram with the given labels, which are passed as for counter.
func (f *family) histogram(labels ...string) *vm.PrometheusHistogram {
	return f.set.GetOrCreatePrometheusHistogramExt(f.name+labeled(labels...), f.buckets)
}

func (f *family) write(w io.Writer) {
	describe(w, f.name, f.kind, f.help)
	f.set.WritePrometheus(w)
}

func describe(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// labeled formats labels as they appear after a metric's name.
func labeled(labels ...string) string {
	if len(labels) == 0 {
		return ""
	}
	var pairs []string
	for pair := range slices.Chunk(labels, 2) {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(pair[1], "\ufffd"))
		pairs = append(pairs, pair[0]+`="`+value+`"`)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// observe counts an operation. Its parameters are those of maildir.Config.Observe.
func (m *metrics) observe(op writer.Op, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = refusal.Code(err)
	}
	m.operations.counter("outcome", outcome, "verb", op.Verb).Inc()
	m.durations.histogram("verb", op.Verb).Update(took.Seconds())
	if err == nil && op.Verb == "pop" && op.ID != "" {
		m.latency.histogram().Update(op.Waited.Seconds())
	}
}

// called counts a tool call. It implements mcp.Config.Called.
func (m *metrics) called(toolset, tool string, refused bool) {
	outcome := "ok"
	if refused {
		outcome = "refused"
	}
	m.calls.counter("outcome", outcome, "tool", tool, "toolset", toolset).Inc()
}

// handler serves the metrics in m, together with the metrics of the process and of the Go runtime.
func (m *metrics) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		var all bytes.Buffer
		m.state(r.Context(), &all)
		for _, f := range []*family{m.operations, m.durations, m.latency, m.calls} {
			f.write(&all)
		}
		vm.WriteProcessMetrics(&all)
		vm.WriteFDMetrics(&all)
		w.Write(all.Bytes())
	})
}

func (m *metrics) state(ctx context.Context, w io.Writer) {
	r := m.health.report(ctx)
	value := func(name string, v float64) { fmt.Fprintf(w, "%s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64)) }
	gauge := func(name, help string, v float64) {
		name = "mailtree_" + name
		describe(w, name, "gauge", help)
		value(name, v)
	}
	byLabel := func(name, help, label string, values map[string]float64) {
		name = "mailtree_" + name
		describe(w, name, "gauge", help)
		for _, l := range slices.Sorted(maps.Keys(values)) {
			value(name+labeled(label, l), values[l])
		}
	}
	pending, waiting := 0, 0
	for _, d := range r.Detail {
		pending, waiting = pending+d.Uncommitted, waiting+d.WaitingCount
	}
	degraded := 0.0
	if r.Status != "ok" {
		degraded = 1
	}
	modes := map[string]float64{"starting": 0, "watching": 0, "polling": 0, "degraded": 0}
	modes[r.Watcher.Mode] = 1
	u, incoming := m.usage(), m.incoming()
	byLabel("build_info", "Always 1; the label contains the server's version.", "version", map[string]float64{r.Version: 1})
	gauge("degraded", "1 if there is a problem that a user must fix; /health reports it.", degraded)
	gauge("projects", "Projects in the store.", float64(r.Projects))
	gauge("agents", "Agents in all projects.", float64(r.Agents))
	gauge("messages", "Messages in all projects.", float64(r.Messages))
	gauge("deliveries", "Copies in all inboxes.", float64(r.Deliveries))
	gauge("unread", "Unread copies in all inboxes.", float64(r.Unread))
	gauge("problems", "Invalid files; `mailtree doctor` lists them.", float64(r.Problems))
	gauge("index_lag_seconds", "Age of the oldest file change that the server has seen but not indexed yet.", r.IndexLag)
	byLabel("watcher_mode", "1 for the watcher's current mode, 0 for the other modes.", "mode", modes)
	gauge("watched_folders", "Number of watched folders.", float64(r.Watcher.Folders))
	gauge("history_pending", "Operations and edits that are not committed yet.", float64(pending))
	gauge("waiting_files", "Files that cannot be read because of a system error; the server retries them.", float64(waiting))
	gauge("requests", "Requests in progress.", float64(u.Requests))
	gauge("streams", "Open streams and bridges, and calls that are waiting for mail.", float64(u.Streams))
	gauge("waiting_calls", "Calls that are waiting for mail.", float64(u.Waiting))
	gauge("sessions", "Sessions in memory.", float64(u.Sessions))
	gauge("incoming_memory_bytes", "Memory in bytes that is used to receive and parse mail from other domains.",
		float64(incoming.Memory))
	gauge("incoming_memory_limit_bytes", "Limit on mailtree_incoming_memory_bytes.", spool.MemoryLimit)
	gauge("incoming_file_bytes", "Bytes in temporary files of mail from other domains that is being received.", float64(incoming.Files))
	gauge("incoming_file_limit_bytes", "Limit on mailtree_incoming_file_bytes; above it, the server replies 452.", spool.FileLimit)
}
