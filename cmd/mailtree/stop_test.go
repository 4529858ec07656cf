package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
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

// TestStopOfHungServer checks that stop names the process of a server that accepts connections but does not respond.
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
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	code := run(ctx, []string{"stop", "--store", store}, nil, stdio{out: &said, err: &said})
	if want := fmt.Sprintf("kill -9 %d\n", os.Getpid()); code != exitFailed || !strings.HasSuffix(said.String(), want) {
		t.Errorf("exit status %d: %s", code, &said)
	}
}
