package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mailtree/gateway/spool"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
	mcpserver "mailtree/mcp"
)

// metrics answers GET /metrics in the Prometheus text format. It returns the counters since the start, and the same
// current state as /health. See docs/settings.md, "Metrics".
type metrics struct {
	health *health
	usage  func() mcpserver.Usage

	incoming func() spool.Usage // mail from other domains that is being received

	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	latency    prometheus.Histogram
	calls      *prometheus.CounterVec
}

// newMetrics creates the counters. The caller sets health and usage before the first request.
func newMetrics() *metrics {
	return &metrics{
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailtree_operations_total",
			Help: "Write operations, by verb and outcome: ok, or why they were refused.",
		}, []string{"verb", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mailtree_operation_duration_seconds",
			Help:    "How long callers waited for a write operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "mailtree_delivery_latency_seconds",
			Help:    "Time from the creation of a message until a recipient takes it out of its mailbox (check_mail, receive).",
			Buckets: []float64{.01, .05, .25, 1, 5, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600},
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mailtree_tool_calls_total",
			Help: "Tool calls, by toolset, tool and outcome: ok or refused.",
		}, []string{"toolset", "tool", "outcome"}),
	}
}

// observe counts an operation. See maildir.Config.Observe.
func (m *metrics) observe(op writer.Op, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = refusal.Code(err)
	}
	m.operations.WithLabelValues(op.Verb, outcome).Inc()
	m.durations.WithLabelValues(op.Verb).Observe(took.Seconds())
	if err == nil && op.Verb == "pop" && op.ID != "" {
		m.latency.Observe(op.Waited.Seconds())
	}
}

// called counts a tool call. See mcp.Config.Called.
func (m *metrics) called(toolset, tool string, refused bool) {
	outcome := "ok"
	if refused {
		outcome = "refused"
	}
	m.calls.WithLabelValues(toolset, tool, outcome).Inc()
}

// handler serves the metrics from their own registry, together with the metrics of the process and of Go.
func (m *metrics) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, m.operations, m.durations, m.latency, m.calls,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// Describe sends no descriptions, so Collect's metrics are checked when they are collected. See prometheus.Collector.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current state. See prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	r := m.health.report(context.Background()) // a Collector gets no context
	gauge := func(name, help string, value float64) {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("mailtree_"+name, help, nil, nil), prometheus.GaugeValue, value)
	}
	labelled := func(name, help, label string, values map[string]float64) {
		d := prometheus.NewDesc("mailtree_"+name, help, []string{label}, nil)
		for l, v := range values {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, l)
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
	labelled("build_info", "1, labeled with the server's version.", "version", map[string]float64{r.Version: 1})
	gauge("degraded", "1 if there is a problem that a user must fix; /health reports it.", degraded)
	gauge("projects", "Projects in the store.", float64(r.Projects))
	gauge("agents", "Agents in all projects.", float64(r.Agents))
	gauge("messages", "Messages in all projects.", float64(r.Messages))
	gauge("deliveries", "Copies in all inboxes.", float64(r.Deliveries))
	gauge("unread", "Unread copies in all inboxes.", float64(r.Unread))
	gauge("problems", "Invalid files; `mailtree doctor` lists them.", float64(r.Problems))
	gauge("index_lag_seconds", "Age of the oldest file change that the server has seen but not indexed yet.", r.IndexLag)
	labelled("watcher_mode", "1 for the watcher's current mode.", "mode", modes)
	gauge("watched_folders", "Folders that the watcher watches.", float64(r.Watcher.Folders))
	gauge("history_pending", "Operations and edits that are not committed yet.", float64(pending))
	gauge("waiting_files", "Files that cannot be read because of a system error; the server retries them.", float64(waiting))
	gauge("requests", "Requests in progress.", float64(u.Requests))
	gauge("streams", "Open streams and bridges, and calls that are waiting for mail.", float64(u.Streams))
	gauge("waiting_calls", "Calls that are waiting for mail.", float64(u.Waiting))
	gauge("sessions", "Sessions in memory.", float64(u.Sessions))
	gauge("incoming_memory_bytes", "Bytes of memory used by mail from other domains that is being received and parsed.",
		float64(incoming.Memory))
	gauge("incoming_memory_limit_bytes", "Maximum of mailtree_incoming_memory_bytes.", spool.MemoryLimit)
	gauge("incoming_file_bytes", "Bytes in temporary files of mail from other domains that is being received.", float64(incoming.Files))
	gauge("incoming_file_limit_bytes", "Maximum of mailtree_incoming_file_bytes; beyond it, the server answers 452.", spool.FileLimit)
}
