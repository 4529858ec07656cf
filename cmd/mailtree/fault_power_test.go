package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// TestFaultPowerLoss checks that nothing is lost if the power fails under load. It copies the file that backs a mounted
// ext4 file system. The copy has the content that a disk would have at that moment. The test mounts the copy, which
// replays its journal, and starts a server on it. Everything that the server reported as done before the copy began is
// in the store, nothing is incomplete, the repository is sound, and the index can be reconciled.
func TestFaultPowerLoss(t *testing.T) {
	t.Parallel()
	needMounts(t, "mkfs.ext4")
	disk := image(t, fmt.Sprintf("%dM", extent(64, 400)))
	dir := mount(t, "-o", rareWrites, disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.start()
	l := newLoad(t, d)
	l.claims, l.pace = true, 5*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	clients := l.clients(ctx, 6)
	cuts, torn := extent(2, 60), 0
	for n := range cuts {
		_, sent, _, _, _, _ := l.ledger.Counts()
		until(t, "more mail", 60*time.Second, func() bool { _, now, _, _, _, _ := l.ledger.Counts(); return now > sent+20+17*n%60 })
		ledger, lost := cutPower(t, d, l, disk)
		torn += lost
		l.rest.Lock() // messages sent during the check would only prolong the next check
		t.Run("", func(t *testing.T) { afterPowerLoss(t, lastCopy(disk), ledger) })
		l.rest.Unlock()
		if t.Failed() {
			break
		}
	}
	cancel()
	clients.Wait()
	d.check(l.ledger)
	t.Logf("%d power cuts (%d copies discarded because the kernel wrote meanwhile): %s", cuts, torn, l)
}

// rareWrites are mount options that make the kernel write as little as possible on its own. Writes that were not made
// durable are then lost when the power fails.
const rareWrites = "loop,commit=300"

// TestFaultPowerSteps checks the content of the disk after the power fails at each step of a send to three recipients.
// The power also fails right after the responses to a send, an acknowledgment and a pop, and after the commit. At each
// step, it fails twice. The first time, the disk contains only data that the server had made durable. The second time,
// the kernel has also written the names of all files, but not the content of files that were not made durable.
func TestFaultPowerSteps(t *testing.T) {
	longer(t)
	t.Parallel()
	needMounts(t, "mkfs.ext4")
	disk := image(t, "64M")
	dir := mount(t, "-o", rareWrites, disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.start()
	s, cuts := &steps{load: newLoad(t, d)}, 0
	cut := func(name string) {
		ledger, _ := cutPower(t, d, s.load, disk)
		cuts++
		t.Run(name, func(t *testing.T) { afterPowerLoss(t, lastCopy(disk), ledger) })
	}
	at := 0
	for held := true; held && !t.Failed(); {
		at += extent(5, 1)
		for _, names := range []bool{false, true} {
			s.n++
			answer := make(chan error, 1)
			_, err := d.verb("hold", "at", strconv.Itoa(at))
			s.must(err)
			go func() { answer <- sendThree(s) }()
			if held = d.held(answer); held {
				if names {
					writeNames(t, dir)
				}
				cut(fmt.Sprintf("step %d", at))
				_, err := d.verb("go")
				s.must(err)
			}
			s.must(<-answer)
		}
	}
	_, err := d.verb("hold", "at", "0")
	s.must(err)
	s.n++
	oneMessage(s)
	cut("sent")
	s.must(acknowledge(s))
	toldAck(s)
	cut("acknowledged")
	_, err = d.verb("flush", "project", faultKey)
	s.must(err)
	cut("committed")
	s.n++
	oneMessage(s)
	s.must(popOne(s))
	cut("popped")
	d.check(s.ledger)
	t.Logf("%d power cuts at %d steps: %s", cuts, at, s)
}

// TestFaultPowerSync cuts a machine's power while it merges files that another machine has pushed. The power fails at
// every step of the writer, and at random moments of a sync. The merged files are complete or absent. If the server
// reported the sync as done, the files are complete. The next sync delivers the rest, regardless of how much of the
// fetched data is left.
func TestFaultPowerSync(t *testing.T) {
	longer(t)
	t.Parallel()
	needMounts(t, "mkfs.ext4")
	disk := image(t, "128M")
	dir := mount(t, "-o", rareWrites, disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.env = []string{"SYNC_INTERVAL=1h"}
	d.start()
	s, cuts, whole := &steps{load: newLoad(t, d)}, 0, 0
	look := func(name string, answered bool) {
		cuts++
		t.Run(name, func(t *testing.T) { whole += s.afterPowerLoss(t, lastCopy(disk), answered) })
	}
	at := 0
	for held := true; held && !t.Failed(); {
		at += extent(5, 1)
		for _, names := range []bool{false, true} {
			s.n++
			_, _ = d.verb("sync", "project", faultKey) // this sync fails, and pushed waits for the failure
			pushed(s)
			_, err := d.verb("hold", "at", strconv.Itoa(at))
			s.must(err)
			answer := make(chan error, 1)
			go func() { answer <- syncStep(s) }()
			if held = d.held(answer); held {
				if names {
					writeNames(t, dir)
				}
				cutPower(t, d, s.load, disk)
				look(fmt.Sprintf("step %d", at), false)
				_, err := d.verb("go")
				s.must(err)
			}
			s.must(<-answer)
			_, err = d.verb("hold", "at", "0")
			s.must(err)
		}
	}
	for range extent(1, 40) {
		s.n++
		_, _ = d.verb("sync", "project", faultKey)
		pushed(s)
		answer := make(chan error, 1)
		go func() { answer <- syncStep(s) }()
		waits.Pace(rand.N(150 * time.Millisecond))
		cutPower(t, d, s.load, disk)
		s.must(<-answer)
		look("round", false)
		cutPower(t, d, s.load, disk)
		look("answered", true)
	}
	t.Logf("%d power cuts at %d steps and in rounds, after which the merge was complete %d times", cuts, at, whole)
}

// afterPowerLoss starts a server on the copy of the disk, and runs a sync. After the sync, the store must contain all
// files of the other machine. afterPowerLoss returns 1 if the store contained them before the sync, and 0 otherwise.
func (s *steps) afterPowerLoss(t *testing.T, disk string, answered bool) (whole int) {
	dir := mount(t, "-o", "loop", disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.env = s.d.env
	d.start()
	after := &steps{load: &load{d: d}, old: s.old}
	got := lookSynced(after)
	if got != 4 && (got != 0 || answered) {
		t.Errorf("%d of the 4 files of the other machine are there (answered: %v)", got, answered)
	}
	if _, err := os.Stat(s.bare() + "/away"); err == nil { // outside syncStep, the repository is unreachable
		s.reach(true)
		defer s.reach(false)
	}
	_, err := d.verb("sync", "project", faultKey)
	after.must(err)
	if got := lookSynced(after); got != 4 {
		t.Errorf("after a sync, %d of the 4 files of the other machine are there", got)
	}
	d.stop()
	for _, p := range storetest.CheckEdited(t.Context(), d.store) {
		t.Error(p)
	}
	unmount(t, dir)
	return got / 4
}

// held waits until the writer is waiting. If the call returns first, held returns false and leaves the call's result in
// the channel.
func (d *daemon) held(answer chan error) (held bool) {
	d.t.Helper()
	until(d.t, "a waiting writer", time.Minute, func() bool {
		is, err := d.verb("held")
		if err != nil {
			d.t.Fatal(err)
		}
		held = is == "true"
		return held || len(answer) > 0
	})
	return held
}

// writeNames makes ext4 write its journal. The journal then contains all names and sizes that ext4 knows, and the
// content of one file that writeNames creates.
func writeNames(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "bystander"))
	if err == nil {
		_, err = f.WriteString(time.Now().String())
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func lastCopy(disk string) string { return disk + ".copy" }

// cutPower copies the disk as it is at one moment, and returns a ledger of the calls that had been answered by then.
// The server is paused during the copy, so that the kernel writes little. If two reads of the disk are equal, nothing
// was written between them.
func cutPower(t *testing.T, d *daemon, l *load, disk string) (answered *storetest.Ledger, torn int) {
	t.Helper()
	answered = l.ledger.Copy()
	d.cmd.Process.Signal(syscall.SIGSTOP)
	defer d.cmd.Process.Signal(syscall.SIGCONT)
	until(t, "a copy of one instant", 10*time.Minute, func() bool {
		before := copyFile(t, disk, lastCopy(disk))
		if bytes.Equal(before, copyFile(t, disk, os.DevNull)) {
			return true
		}
		torn++
		return false
	})
	return answered.With(l.ledger), torn
}

// copyFile copies a file, leaving holes where there is no data, and returns the SHA-256 of the content.
func copyFile(t *testing.T, from, to string) []byte {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	sum, block, empty, size := sha256.New(), make([]byte, 64<<10), make([]byte, 64<<10), int64(0)
	for {
		n, err := io.ReadFull(in, block)
		sum.Write(block[:n])
		if !bytes.Equal(block[:n], empty[:n]) {
			if _, err := out.WriteAt(block[:n], size); err != nil && to != os.DevNull {
				t.Fatal(err)
			}
		}
		if size += int64(n); err != nil {
			break
		}
	}
	if to != os.DevNull {
		if err := out.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	return sum.Sum(nil)
}

// afterPowerLoss starts a server on the copy of the disk, and checks the store.
func afterPowerLoss(t *testing.T, disk string, ledger *storetest.Ledger) {
	dir := mount(t, "-o", "loop", disk)
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.real = true
	d.start()
	d.check(ledger)
	unmount(t, dir)
}
