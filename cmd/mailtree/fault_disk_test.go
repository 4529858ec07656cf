package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFaultDisk checks the responses of the server while the disk is full. It fills the disk under load, several times,
// and sometimes kills the server while the disk is full. Each call either succeeds, or fails with an error that says
// that the disk is full. When there is space again, everything works again without a restart.
func TestFaultDisk(t *testing.T) {
	t.Parallel()
	t.Run("tmpfs", func(t *testing.T) {
		needMounts(t)
		fillDisk(t, mount(t, "-t", "tmpfs", "-o", "size=256m", "mailtree-test"))
	})
	t.Run("ext4", func(t *testing.T) {
		needMounts(t, "mkfs.ext4")
		fillDisk(t, mount(t, "-o", "loop", image(t, "192M")))
	})
}

func fillDisk(t *testing.T, dir string) {
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.start()
	l := newLoad(t, d)
	l.pace = 5 * time.Millisecond
	full := 0
	for round := range extent(1, 12) {
		l.refusal = func(err error) {
			if !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "could not be written") {
				t.Errorf("refused: %v", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		clients := l.clients(ctx, 4)
		ballast := filepath.Join(dir, "ballast")
		fill(t, ballast)
		before := l.refused.Load()
		until(t, "a full disk is noticed", 60*time.Second, func() bool { fill(t, ballast); return l.refused.Load() > before+20 })
		full += int(l.refused.Load() - before)
		if round%3 == 2 {
			d.kill()
			clients.Wait()
			os.Remove(ballast)
			d.start()
			clients = l.clients(ctx, 4)
		}
		os.Remove(ballast)
		until(t, "mail is sent again", 60*time.Second, func() bool {
			l.mu.Lock()
			l.again = nil
			l.mu.Unlock()
			m := l.draft("Ann")
			n := l.refused.Load()
			return l.send(m) == nil && l.refused.Load() == n
		})
		cancel()
		clients.Wait()
		l.refusal = nil
		ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		l.clients(ctx, 4).Wait()
		cancel()
		until(t, "health is ok", 60*time.Second, func() bool { return d.health(t) == "ok" })
	}
	l.drain()
	d.check(l.ledger)
	t.Logf("%d calls on a full disk: %s", full, l)
}

// TestFaultDiskDies checks that every response is correct if the disk fails under load and nothing can be written or
// removed. Once the disk works again, the server starts without manual intervention.
func TestFaultDiskDies(t *testing.T) {
	t.Parallel()
	needMounts(t, "mkfs.ext4")
	disk := image(t, "512M") // room for forty rounds
	dir := mount(t, "-o", "loop", disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.start()
	l := newLoad(t, d)
	l.pace = time.Millisecond
	rounds, unsure := extent(2, 40), 0
	for range rounds {
		var refused, open atomic.Int64
		l.refusal = func(err error) {
			refused.Add(1)
			if !denied(err) {
				open.Add(1)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		clients := l.clients(ctx, 6)
		l.live(9)
		shutDown(t, dir)
		until(t, "a dead disk is noticed", 60*time.Second, func() bool { return refused.Load() > 10 })
		cancel()
		clients.Wait()
		unsure += int(open.Load())
		d.kill()
		unmount(t, dir)
		if out, err := exec.Command("mount", "-o", "loop", disk, dir).CombinedOutput(); err != nil {
			t.Fatalf("mount: %v: %s", err, out)
		}
		d.start()
	}
	l.refusal = nil
	l.drain()
	d.check(l.ledger)
	t.Logf("%d dead disks, %d answers with an unknown outcome: %s", rounds, unsure, l)
}

// shutDown makes ext4 stop writing, so that every write fails.
func shutDown(t *testing.T, dir string) {
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const shutdown, withoutFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, withoutFlush); err != nil {
		notHere(t, "shutdown of ext4: %v", err)
	}
}

// fill writes to the file until the disk is full.
func fill(t *testing.T, file string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // there is not even room for the file itself
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for n := len(block); n >= 1; n /= 4 {
		for err = nil; err == nil; {
			_, err = f.Write(block[:n])
		}
	}
	f.Sync()
}

// health returns the status from GET /health.
func (d *daemon) health(t testing.TB) string {
	resp, err := d.client.Get(d.url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var report struct{ Status string }
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil {
		t.Fatalf("health: %v: %s", err, data)
	}
	return report.Status
}
