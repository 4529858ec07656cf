package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/waits"
)

// benchServer is a server that runs the released program, on a new or an existing store.
type benchServer struct {
	addr  string
	store string
	pid   int
	took  time.Duration // the time from the start until the server's first response
	cmd   *exec.Cmd
}

func startServer(b *testing.B, exe, store string, env ...string) *benchServer {
	b.Helper()
	began := time.Now()
	c := exec.Command(exe, "serve", "--port", "0", "--store", store)
	c.Env = benchEnv(store, append(env, "LOG_LEVEL=error")...) // other lines would break up the results
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	s := &benchServer{store: store, pid: c.Process.Pid, cmd: c}
	for lines := bufio.NewScanner(out); s.addr == "" && lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "  MCP      "); ok {
			s.addr = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
		}
	}
	if s.addr == "" {
		b.Fatal("the server did not start")
	}
	s.took = time.Since(began)
	go io.Copy(io.Discard, out)
	return s
}

// end stops the server: cleanly if how is os.Interrupt, immediately if how is os.Kill.
func (s *benchServer) end(b *testing.B, how os.Signal) {
	b.Helper()
	s.cmd.Process.Signal(how)
	if err := s.cmd.Wait(); err != nil && how != os.Kill {
		b.Error("the server ended with ", err)
	}
}

func (s *benchServer) agents(b *testing.B, n int) {
	b.Helper()
	for i := range n {
		args := fmt.Sprintf(`{"project_key":%q,"program":"x","model":"y","task_description":"z","name_hint":"Agent%02d"}`, bulk.HumanKey, i)
		if _, err := bulk.Dial(b, s.addr).Do(bulk.Call(s.addr, "create_agent", args)); err != nil {
			b.Fatal(err)
		}
	}
}

// benchUse is a server's resource usage. It includes the child processes that the server has waited for.
type benchUse struct {
	cpu     time.Duration
	written int64 // bytes written to disks
}

func (s *benchServer) used(b *testing.B) (u benchUse) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		b.Skip("no /proc: ", err)
	}
	for _, f := range strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))[12:16] {
		ticks, _ := strconv.Atoi(f)
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.pid))
	_, rest, _ := strings.Cut(string(data), "\nwrite_bytes: ")
	u.written, _ = strconv.ParseInt(strings.SplitN(rest, "\n", 2)[0], 10, 64)
	return u
}

// uncommitted returns how many operations and edits are waiting for a commit.
func (s *benchServer) uncommitted() (n int) {
	for _, p := range s.health().Detail {
		n += p.Uncommitted
	}
	return n
}

// health returns the server's report, which is empty if the server does not answer.
func (s *benchServer) health() (h healthReport) {
	answer, err := http.Get("http://" + s.addr + "/health")
	if err != nil {
		return h
	}
	defer answer.Body.Close()
	json.NewDecoder(answer.Body).Decode(&h)
	return h
}

// realSends returns n requests that send messages between sixteen agents. Each message has 150 different words out of
// thirty thousand, with the word frequencies of real text.
func realSends(addr string, n int) (all [][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 8, 30_000)
	for i := range n {
		seen, words := map[uint64]bool{}, []string{}
		for len(words) < 150 {
			if w := zipf.Uint64(); !seen[w] {
				seen[w] = true
				words = append(words, "w"+strconv.FormatUint(w*2654435761%(1<<32), 36))
			}
		}
		all = append(all, bulk.Call(addr, "send_message", fmt.Sprintf(
			`{"project_key":%q,"from_agent":"Agent%02d","to":["Agent%02d"],"subject":"Report %d","body_md":"%s","thread_id":"T-%d"}`,
			bulk.HumanKey, i%16, (i*7+1)%16, i, strings.Join(words, " "), i/8)))
	}
	return all
}

// BenchmarkSustained sends 1,000*b.N durable messages from 64 clients without a pause, on a new store. It measures the
// cost of a send, whether the last sends are as fast as the first, and how far the history falls behind. Afterwards, it
// measures how long a start takes, after a clean stop and after a kill. Processor time and bytes include the git
// processes.
func BenchmarkSustained(b *testing.B) {
	exe, store := benchProgram(b), filepath.Join(bulk.Dir(b), "store")
	s := startServer(b, exe, store)
	s.agents(b, 16)
	requests := realSends(s.addr, 4096)
	var clients []*bulk.Client
	for range 64 {
		clients = append(clients, bulk.Dial(b, s.addr))
	}
	w := watchSends(b, s)
	before := s.used(b)
	b.ResetTimer()
	for i := range b.N {
		const n = 1000
		at := i * n % len(requests)
		bulk.Load(b, clients, n, append(requests[at:], requests[:at]...))
		w.sent.Add(n)
	}
	b.StopTimer()
	rates := w.stop()
	after, sent := s.used(b), float64(w.sent.Load())
	b.ReportMetric(sent/b.Elapsed().Seconds(), "sends/s")
	b.ReportMetric((after.cpu-before.cpu).Seconds()*1000/sent, "cpu-ms/send")
	b.ReportMetric(float64(after.written-before.written)/1000/sent, "kB/send")
	b.ReportMetric(w.behind.Seconds(), "behind-s")
	b.ReportMetric(w.rss, "rss-MB")
	if len(rates) > 4 {
		tenth := max(1, len(rates)/10)
		b.ReportMetric(mean(rates[len(rates)-tenth:])/mean(rates[:tenth]), "last/first")
		b.ReportMetric(slices.Min(rates)/slices.Sorted(slices.Values(rates))[len(rates)/2], "worst/median")
	}
	for ; s.uncommitted() > 0; time.Sleep(100 * time.Millisecond) {
	}
	b.ReportMetric(float64(folderSize(filepath.Join(bulk.Repo(store), ".git")))/1000/sent, "git-kB/send")
	s.end(b, os.Interrupt)
	// Measure the folder at rest: while the server runs, SQLite's log adds up to 32 MB, regardless of the amount of
	// mail.
	b.ReportMetric(float64(folderSize(filepath.Join(store, "index")))/float64(folderSize(filepath.Join(bulk.Repo(store), "messages"))), "index/messages")
	s = startServer(b, exe, store)
	b.ReportMetric(s.took.Seconds(), "start-s")
	bulk.Load(b, []*bulk.Client{bulk.Dial(b, s.addr)}, 100, realSends(s.addr, 100))
	s.end(b, os.Kill)
	s = startServer(b, exe, store)
	b.ReportMetric(s.took.Seconds(), "killed-start-s")
	s.end(b, os.Interrupt)
}

// BenchmarkCopied writes 20,000 messages, which are 60,000 files, into the tree of a running server. It measures the
// time from the first file until all messages are in the index, and until the history contains all of them. For
// comparison, it measures how long the writing takes.
func BenchmarkCopied(b *testing.B) {
	n := 300
	if bulk.Large() {
		n = 20_000
	}
	exe := benchProgram(b)
	for range b.N {
		store := filepath.Join(bulk.Dir(b), "store")
		s := startServer(b, exe, store)
		s.agents(b, 16)
		began := time.Now()
		bulk.Mail{Messages: n}.Write(b, bulk.Repo(store), 0, n)
		b.ReportMetric(time.Since(began).Seconds(), "written-s")
		for ; s.health().Messages < n; time.Sleep(50 * time.Millisecond) {
		}
		b.ReportMetric(time.Since(began).Seconds(), "indexed-s")
		for ; s.uncommitted() > 0; time.Sleep(50 * time.Millisecond) {
		}
		b.ReportMetric(time.Since(began).Seconds(), "committed-s")
		s.end(b, os.Interrupt)
		list := exec.Command("git", "-C", bulk.Repo(store), "ls-tree", "-r", "--name-only", "HEAD", "messages")
		if out, err := list.Output(); err != nil || bytes.Count(out, []byte("\n")) != n {
			b.Errorf("the history contains %d messages instead of %d: %v", bytes.Count(out, []byte("\n")), n, err)
		}
	}
}

// BenchmarkMixed performs 100*b.N operations, a hundred per second, on a day that has fifteen thousand messages. Of
// every ten operations, three send, three read an inbox, two set marks, one searches and one renews a claim.
func BenchmarkMixed(b *testing.B) {
	exe, store := benchProgram(b), filepath.Join(bulk.Dir(b), "store")
	s := startServer(b, exe, store)
	defer s.end(b, os.Interrupt)
	s.agents(b, 16)
	requests, stored := realSends(s.addr, 4096), 15_000
	if !bulk.Large() {
		stored = 1_000
	}
	var clients []*bulk.Client
	for range 16 {
		clients = append(clients, bulk.Dial(b, s.addr))
	}
	bulk.Load(b, clients, stored, requests)
	for ; s.uncommitted() > 0; time.Sleep(100 * time.Millisecond) {
	}
	ids := inboxIDs(b, s, 10*b.N)
	before, began := s.used(b), time.Now()
	b.ResetTimer()
	each, free := make(bulk.Times, 100*b.N), make(idleClients, 100*b.N)
	var all sync.WaitGroup
	for i := range each {
		waits.Pace(time.Until(began.Add(time.Duration(i) * 10 * time.Millisecond)))
		request := mixed(s.addr, i, requests, ids)
		all.Go(func() { each[i] = free.timed(b, s.addr, request) })
	}
	all.Wait()
	b.StopTimer()
	took := time.Since(began)
	after := s.used(b)
	each.Report(b, "")
	b.ReportMetric(float64(each.At(1).Microseconds())/1000, "worst-ms")
	b.ReportMetric((after.cpu-before.cpu).Seconds()/took.Seconds(), "cores")
	b.ReportMetric(float64(after.written-before.written)/1000/float64(len(each)), "kB/op")
}

// BenchmarkIdle measures the resources that a server uses with twenty projects, forty agents that are waiting for
// mail in long polls, and five bridges. First, nothing happens for b.N times six seconds. Then, for the same time,
// the benchmark sends two messages per second and reads them.
func BenchmarkIdle(b *testing.B) {
	exe, store := benchProgram(b), filepath.Join(bulk.Dir(b), "store")
	s := startServer(b, exe, store)
	defer s.end(b, os.Interrupt)
	free := make(idleClients, 1000)
	call := func(tool, format string, args ...any) {
		free.timed(b, s.addr, bulk.Call(s.addr, tool, fmt.Sprintf(format, args...)))
	}
	for i := range 20 {
		for _, name := range []string{"Ann", "Bob"} {
			call("create_agent", `{"project_key":"/idle/p%d","program":"x","model":"y","task_description":"z","name_hint":%q}`, i, name)
		}
	}
	rest := 6 * time.Second
	if testing.Short() {
		rest = 100 * time.Millisecond
	}
	var waiting sync.WaitGroup
	for i := range 40 {
		waiting.Go(func() {
			agent := []string{"Ann", "Bob"}[i%2]
			for end := time.Now().Add(time.Duration(b.N) * rest); time.Now().Before(end); {
				wait := max(1, int(time.Until(end).Seconds()))
				call("check_my_messages", `{"project_key":"/idle/p%d","agent_name":%q,"wait_seconds":%d}`, i/2, agent, wait)
			}
		})
	}
	for range 5 {
		bridge := exec.Command(exe, "stdio", "--no-start", "--store", store, "--project", "/idle/p0")
		bridge.Env = benchEnv(store)
		in, err := bridge.StdinPipe()
		if err == nil {
			err = bridge.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		defer bridge.Wait()
		defer in.Close()
	}
	for ; s.uncommitted() > 0; time.Sleep(100 * time.Millisecond) {
	}
	before := s.used(b)
	b.ResetTimer()
	waits.Pace(time.Duration(b.N) * rest)
	idle := s.used(b)
	b.ReportMetric((idle.cpu-before.cpu).Seconds()/b.Elapsed().Minutes(), "cpu-s/min")
	waiting.Wait()
	idle, began := s.used(b), time.Now()
	for i := range b.N * int(2*rest.Seconds()) {
		waits.Pace(time.Until(began.Add(time.Duration(i) * 500 * time.Millisecond)))
		call("send_message", `{"project_key":"/idle/p0","from_agent":"Ann","to":["Bob"],"subject":"Note %d","body_md":"Some text."}`, i)
		call("check_my_messages", `{"project_key":"/idle/p0","agent_name":"Bob"}`)
	}
	b.ReportMetric((s.used(b).cpu-idle.cpu).Seconds()/time.Since(began).Seconds(), "cores")
}

// idleClients are connections that are not in use at the moment.
type idleClients chan *bulk.Client

// timed sends a request on an idle connection, and returns how long the request took.
func (free idleClients) timed(b *testing.B, addr string, request []byte) time.Duration {
	var c *bulk.Client
	select {
	case c = <-free:
	default:
		c = bulk.Dial(b, addr)
	}
	began := time.Now()
	if _, err := c.Do(request); err != nil {
		b.Error(err)
	}
	took := time.Since(began)
	free <- c
	return took
}

// mixed returns the i-th operation in BenchmarkMixed.
func mixed(addr string, i int, sends [][]byte, ids []string) []byte {
	of := func(tool, format string, args ...any) []byte {
		return bulk.Call(addr, tool, fmt.Sprintf(`{"project_key":%q,`+format+`}`, append([]any{bulk.HumanKey}, args...)...))
	}
	switch i % 10 {
	case 0, 3, 6:
		return sends[i%len(sends)]
	case 1, 4, 7:
		return of("check_my_messages", `"agent_name":"Agent%02d"`, i/10%16)
	case 2, 5:
		return of("acknowledge_message", `"agent_name":"Agent01","message_id":%q`, ids[i/5%len(ids)])
	case 8:
		return of("search_messages", `"query":"w%s"`, strconv.FormatUint(uint64(i%300)*2654435761%(1<<32), 36))
	}
	return of("claim_paths", `"agent_name":"Agent%02d","paths":["src/%d.go"],"ttl_seconds":3600,"reason":"x"`, i/10%16, i/10%16)
}

// inboxIDs returns the ids of messages in Agent01's inbox.
func inboxIDs(b *testing.B, s *benchServer, n int) (ids []string) {
	all, err := filepath.Glob(filepath.Join(bulk.Repo(s.store), "agents/Agent01/inbox/*/*/*/*.md"))
	if err != nil || len(all) == 0 {
		b.Fatal("no mail", err)
	}
	for _, file := range all[:min(n, len(all))] {
		ids = append(ids, strings.TrimSuffix(filepath.Base(file), ".md"))
	}
	return ids
}

// sendWatch checks a server four times a second.
type sendWatch struct {
	sent   atomic.Int64
	behind time.Duration // the maximum age of the oldest uncommitted operation
	rss    float64       // maximum, in MB

	end   chan struct{}
	rates chan []float64
}

// mark records the number of sends that had been answered at a certain time.
type mark struct {
	at   time.Time
	sent int64
}

func watchSends(b *testing.B, s *benchServer) *sendWatch {
	w := &sendWatch{end: make(chan struct{}), rates: make(chan []float64)}
	go func() {
		marks := []mark{{time.Now(), 0}}
		for tick := time.NewTicker(250 * time.Millisecond); ; {
			select {
			case <-tick.C:
			case <-w.end:
				w.rates <- fiveSeconds(marks)
				return
			}
			marks = append(marks, mark{time.Now(), w.sent.Load()})
			committed := w.sent.Load() - int64(s.uncommitted())
			for i := len(marks) - 1; i >= 0 && committed < marks[len(marks)-1].sent; i-- {
				if marks[i].sent <= committed {
					w.behind = max(w.behind, time.Since(marks[i].at))
					break
				}
			}
			w.rss = max(w.rss, resident(b, s.pid, "VmRSS"))
		}
	}()
	return w
}

func (w *sendWatch) stop() []float64 {
	close(w.end)
	return <-w.rates
}

// fiveSeconds returns the sends per second in each interval of five seconds.
func fiveSeconds(marks []mark) (rates []float64) {
	from := marks[0]
	for _, m := range marks {
		if took := m.at.Sub(from.at); took >= 5*time.Second {
			rates = append(rates, float64(m.sent-from.sent)/took.Seconds())
			from = m
		}
	}
	return rates
}

func mean(all []float64) (sum float64) {
	for _, v := range all {
		sum += v / float64(len(all))
	}
	return sum
}

// folderSize returns the total size of the files below a folder.
func folderSize(dir string) (bytes int64) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				bytes += fi.Size()
			}
		}
		return nil
	})
	return bytes
}
