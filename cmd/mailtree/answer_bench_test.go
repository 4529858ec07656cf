package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
)

// BenchmarkAnswer sends b.N durable messages from one client, one after another, and then twenty under strace, if it is
// installed. It measures the time until the answer, and how many system calls the server makes in that time. Each of the
// twenty is sent when the history is complete, so that the commits of the others are not counted.
func BenchmarkAnswer(b *testing.B) {
	exe, store := benchProgram(b), filepath.Join(bulk.Dir(b), "store")
	s := startServer(b, exe, store)
	defer s.end(b, os.Interrupt)
	s.agents(b, 16)
	requests, client := realSends(s.addr, 4096), bulk.Dial(b, s.addr)
	each, _ := bulk.Load(b, []*bulk.Client{client}, b.N, requests)
	b.ReportMetric(float64(each.At(0.5).Microseconds())/1000, "p50-ms")
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Log("strace: not installed")
		return
	}
	trace := filepath.Join(bulk.Dir(b), "trace")
	c := exec.Command(strace, "-f", "-ttt", "-o", trace, "-p", strconv.Itoa(s.pid))
	said, err := c.StderrPipe()
	if err = errors.Join(err, c.Start()); err != nil {
		b.Fatal(err)
	}
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil { // strace is attached
		b.Fatal(err)
	}
	var from, to []float64
	now := func() float64 { return float64(time.Now().UnixMicro()) / 1e6 }
	for i := range 20 {
		for ; s.uncommitted() > 0; time.Sleep(100 * time.Millisecond) {
		}
		from = append(from, now())
		bulk.Load(b, []*bulk.Client{client}, 1, requests[i:])
		to = append(to, now())
	}
	c.Process.Signal(os.Interrupt)
	c.Wait()
	calls := callsWithin(b, trace, from, to)
	slices.Sort(calls)
	b.ReportMetric(float64(calls[len(calls)/2]), "calls/answer")
}

// callsWithin returns how many system calls began between from[i] and to[i], for each i. trace is the output of strace
// -ttt, and the times are seconds since 1970.
func callsWithin(b *testing.B, trace string, from, to []float64) []int {
	data, err := os.ReadFile(trace)
	if err != nil {
		b.Fatal(err)
	}
	calls := make([]int, len(from))
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.Contains(line, " resumed>") {
			continue
		}
		at, _ := strconv.ParseFloat(fields[1], 64)
		for i := range from {
			if from[i] <= at && at <= to[i] {
				calls[i]++
			}
		}
	}
	return calls
}
