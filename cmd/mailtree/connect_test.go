package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/storedir"
)

// TestCommandMeetsEnd checks a command that connects to a background server just as that server shuts down. The
// command must connect to the next server instead.
func TestCommandMeetsEnd(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", storedir.SocketPath(store))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for ending := time.Now().Add(100 * time.Millisecond); time.Now().Before(ending); {
			if c, err := l.Accept(); err == nil {
				c.Close()
			}
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
		srv.Serve(l)
	}()
	var out bytes.Buffer
	p := &program{std: stdio{out: &out}, cfg: &config{Store: store}}
	if err := p.nudge(t.Context(), false); err != nil || !strings.HasPrefix(out.String(), "no agents to notify") {
		t.Errorf("%v %q", err, &out)
	}
}
