package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/waits"
	"mailtree/maildir/storedir"
)

// TestStopOfEndingServer checks that stop waits for a server that holds the store's lock but no longer answers, as a
// server does while it shuts down.
func TestStopOfEndingServer(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	lock, err := storedir.Take(store)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	code := make(chan int, 1)
	err = waits.Go(`\(\*program\)\.stop$`, func() {
		code <- run(context.Background(), []string{"stop", "--store", store}, nil, stdio{out: &said, err: &said})
	})
	if err != nil || len(code) > 0 {
		t.Fatalf("%v; it ended: %s", err, &said)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit status %d: %s", got, &said)
	}
}

// TestStopOfHungServer checks that stop says how to end a server that accepts connections but does not respond. If the
// lock file does not name the process, stop must not print a command that ends a process.
func TestStopOfHungServer(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	lock, err := storedir.Take(store)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release() //nolint:errcheck // the folder is removed anyway
	listener, err := net.Listen("unix", storedir.SocketPath(store))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	stop := func() (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var said bytes.Buffer
		return run(ctx, []string{"stop", "--store", store}, nil, stdio{out: &said, err: &said}), said.String()
	}
	if code, said := stop(); code != exitFailed || !strings.HasSuffix(said, fmt.Sprintf("kill -9 %d\n", os.Getpid())) {
		t.Errorf("exit status %d: %s", code, said)
	}
	if err := os.Truncate(filepath.Join(store, "server.lock"), 0); err != nil {
		t.Fatal(err)
	}
	if code, said := stop(); code != exitFailed || strings.Contains(said, "kill") {
		t.Errorf("without a PID: exit status %d: %s", code, said)
	}
}
