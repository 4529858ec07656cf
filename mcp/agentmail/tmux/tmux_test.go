package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
	"mailtree/mcp/agentmail/tmux"
)

func TestParse(t *testing.T) {
	for value, ok := range map[string]bool{
		"/tmp/tmux-1000/default,123,0": true, "/tmp/a,b,7,123,0": true, "": false, "/tmp/s,1": false, "s,1,2": false, "/tmp/../s,1,2": false,
		"/tmp/s,1,$2": false, "/tmp/s\n,1,2": false, "/tmp/s,-1,2": false, "/tmp/s,1,2 kill-server": false,
	} {
		if _, err := tmux.Parse(value); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestPanes checks that Panes lists the panes of one session only, regardless of how the windows are named.
func TestPanes(t *testing.T) {
	t.Parallel()
	srv := tmuxtest.Start(t)
	dir := t.TempDir()
	alice := srv.Window("work", "alice", dir)
	odd := srv.Window("work", "bob /x $(y)", dir)
	japan := srv.Window("work", "日本", dir)
	other := srv.Window("other", "carol", dir)
	split := srv.Split(alice, dir).Pane
	srv.Run("copy-mode", "-t", odd.Pane)
	session, err := tmux.Parse(alice.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	for _, near := range []string{"", alice.Pane} {
		got, err := session.Panes(t.Context(), near)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i].ID = strings.NewReplacer(alice.Pane, "A", split, "S", odd.Pane, "O", japan.Pane, "J").Replace(got[i].ID)
		}
		want := []tmux.Pane{
			{ID: "A", Window: "alice", Quiet: true, Dir: dir}, {ID: "S", Window: "alice", Active: true, Quiet: true, Dir: dir},
			{ID: "O", Window: "bob /x $(y)", Active: true, Dir: dir}, {ID: "J", Window: "日本", Active: true, Quiet: true, Dir: dir},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("near %q: %s", near, diff)
		}
	}
	if got, err := session.Panes(t.Context(), other.Pane); err != nil || len(got) != 1 || got[0].Window != "carol" {
		t.Errorf("the pane determines the session: %v %v", got, err)
	}
	for _, bad := range []string{"%99", "alice", "%0; kill-server", "-a"} {
		if got, err := session.Panes(t.Context(), bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := session.Panes(gone, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	later, err := tmux.Parse(strings.Replace(alice.Tmux, ",", ",9", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.Panes(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "has exited") {
		t.Errorf("another server on the same socket: %v", err)
	}
	srv.Run("kill-server")
	if _, err := session.Panes(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "tmux says: ") {
		t.Errorf("no server: %v", err)
	}
}

// TestType checks that text arrives unchanged and as one line, even if it looks like a key name or a tmux option.
func TestType(t *testing.T) {
	t.Parallel()
	w := tmuxtest.Start(t).Window("work", "alice", t.TempDir())
	session, err := tmux.Parse(w.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"Enter", "C-c ; kill-server", "-l", "-t x $(y) `z` #{pid}", "Grüße, 日本"}
	for _, l := range lines {
		if err := session.Type(t.Context(), w.Pane, l, 0); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(lines, w.Typed()); diff != "" {
		t.Error(diff)
	}
	if err := session.Type(t.Context(), "%99", "x", 0); err == nil {
		t.Error("the pane does not exist, but there is no error")
	}
	if err := session.Type(t.Context(), "work:0", "x", 0); err == nil {
		t.Error("text was typed into something that is not a pane")
	}
}

// TestFree checks that Free returns ErrBusy if the user is typing in the pane or a client is showing a dialog.
func TestFree(t *testing.T) {
	t.Parallel()
	srv, terminal := tmuxtest.Start(t), tmuxtest.Start(t)
	w := srv.Window("work", "alice", t.TempDir())
	session, err := tmux.Parse(w.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	free := func(why string) {
		t.Helper()
		err := session.Free(t.Context(), w.Pane, "You have new mail.")
		if (err == nil) != (why == "") || err != nil && (!errors.Is(err, tmux.ErrBusy) || !strings.Contains(err.Error(), why)) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	free("")
	srv.Run("send-keys", "-t", w.Pane, "-l", "half a line")
	w.Shows("half a line")
	free("has text in its prompt")
	srv.Run("send-keys", "-t", w.Pane, "Enter")
	w.Await(1)
	srv.Run("send-keys", "-t", w.Pane, "-l", "You have new mail.")
	w.Shows("You have new mail.")
	free("")
	srv.Run("send-keys", "-t", w.Pane, "-l", " Hm")
	w.Shows("Hm")
	free("has text in its prompt")
	srv.Run("send-keys", "-t", w.Pane, "Enter")
	w.Await(2)
	free("")
	srv.Run("send-keys", "-t", w.Pane, "-l", "› 1. Yes, go on")
	w.Shows("go on")
	free("shows a dialog")
	srv.Run("send-keys", "-t", w.Pane, "C-u")
	w.ShowsNot("go on")
	free("")
	const key = "somebody pressed a key there just now"
	waits.Until(t, key, func() bool { // for a few seconds, tmux counts attaching as activity too
		terminal.Attach(srv)
		err := session.Free(t.Context(), w.Pane, "You have new mail.")
		return errors.Is(err, tmux.ErrBusy) && strings.Contains(err.Error(), key)
	})
}

// TestNotSubmitted checks that Type presses Enter again if the client has ignored it, and returns an error if the
// client ignores it a second time.
func TestNotSubmitted(t *testing.T) {
	t.Parallel()
	srv := tmuxtest.Start(t)
	const client = `printf '› '; while IFS= read -rsN1 c; do
		if [ "$c" != $'\n' ]; then printf %%s "$c"; elif [ $((n += 1)) -gt %d ]; then printf '\n› '; fi; done`
	for swallowed, why := range map[int]string{0: "", 1: "", 9: "the notice, which is still in the prompt"} {
		w := srv.Program("work", fmt.Sprintf(client, swallowed))
		w.Shows("›")
		session, err := tmux.Parse(w.Tmux)
		if err != nil {
			t.Fatal(err)
		}
		err = session.Type(t.Context(), w.Pane, "You have new mail.", 0)
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%d: %v", swallowed, err)
		}
	}
}

// TestSlowToShow checks that Type does not press Enter until a busy client shows the text. Otherwise, the client would
// treat the text and Enter as a paste. If the first call fails, the next call must submit the text that is still in the
// prompt.
func TestSlowToShow(t *testing.T) {
	t.Parallel()
	srv := tmuxtest.Start(t)
	const client = `python3 -c '
import os, time, tty
tty.setraw(0)
os.write(1, "› ".encode())
while not os.path.exists("%s"):
    time.sleep(0.01)
typed = ""
while True:
    keys = os.read(0, 4096).decode()
    if keys == "\r":
        typed, keys = "", ""
        os.write(1, b"\r\nsubmitted\r\n\r\n")
    typed += keys.replace("\r", " ")
    os.write(1, ("\r› " + typed).encode())
'`
	for _, first := range []bool{true, false} { // whether the client becomes responsive during the first call
		goOn := filepath.Join(t.TempDir(), "on")
		w := srv.Program("work", fmt.Sprintf(client, goOn))
		w.Shows("›")
		session, err := tmux.Parse(w.Tmux)
		if err != nil {
			t.Fatal(err)
		}
		free := func() { os.WriteFile(goOn, nil, 0o600) }
		if first {
			time.AfterFunc(1500*time.Millisecond, free)
		}
		err = session.Type(t.Context(), w.Pane, "You have new mail.", 0)
		if (err == nil) != first || err != nil && !strings.Contains(err.Error(), "the typed notice did not appear") {
			t.Errorf("%v: %v", first, err)
		}
		if !first {
			free()
			w.Shows("You have new mail.")
			if err := session.Type(t.Context(), w.Pane, "You have new mail.", 0); err != nil {
				t.Error(err)
			}
		}
		w.Shows("submitted")
	}
}
