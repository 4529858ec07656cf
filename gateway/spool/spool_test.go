package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// open returns a spool whose file budget is limit bytes, along with its folder.
func open(t *testing.T, limit int64) (*Spool, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := New(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// receive receives a message of n bytes.
func receive(t *testing.T, s *Spool, n int) (*Incoming, error) {
	t.Helper()
	m, err := s.Receive()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(m, bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), n/16)))
	return m, err
}

// TestSizes checks that messages of any size can be read back unchanged, that their files have no names, and that
// closing a message returns its bytes to the budgets.
func TestSizes(t *testing.T) {
	t.Parallel()
	s, dir := open(t, 8<<20)
	for _, n := range []int{0, 16, BufferBytes - 16, BufferBytes, BufferBytes + 16, 3 << 20} {
		m, err := receive(t, s, n)
		if err != nil || m.Size() != int64(n) {
			t.Fatalf("%d bytes: %d, %v", n, m.Size(), err)
		}
		want := append([]byte("above"), bytes.Repeat([]byte("0123456789abcdef"), n/16)...)
		err = m.Load(t.Context(), []byte("above"), func(whole []byte) {
			if !bytes.Equal(whole, want) {
				t.Errorf("%d bytes: read back %d bytes that differ", n, len(whole))
			}
			if u := s.Usage(); u.Memory != BufferBytes+int64(len(want)) || (u.Files > 0) != (n > BufferBytes) {
				t.Errorf("%d bytes: %+v in use", n, u)
			}
		})
		if left, _ := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d bytes: %v, files %v", n, err, left)
		}
		head, err := m.Head(100 << 10)
		if want := want[len("above"):][:min(n, max(BufferBytes, 100<<10))]; err != nil || !bytes.HasPrefix(want, head) || n > BufferBytes && len(head) != len(want) {
			t.Errorf("%d bytes: the head has %d, %v", n, len(head), err)
		}
		m.Close()
		m.Close()
		if u := s.Usage(); u != (Usage{}) {
			t.Errorf("%d bytes: %+v was not returned", n, u)
		}
	}
}

// TestNoRoom checks that a message is refused if a budget is exhausted or the disk is nearly full, and that messages
// are accepted again once there is room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 2<<20)
	first, err := receive(t, s, 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	second, err := receive(t, s, 2<<20)
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v over the file limit", err)
	}
	first.Close()
	second.Close()
	free := s.free
	s.free = func(string) (int64, error) { return minFree - 1, nil }
	third, err := receive(t, s, 1<<20)
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v when the disk is nearly full", err)
	}
	third.Close()
	s.free = free
	var all []*Incoming
	for err = nil; err == nil; {
		var m *Incoming
		if m, err = s.Receive(); err == nil {
			all = append(all, m)
		}
	}
	if !errors.Is(err, ErrNoRoom) || s.Usage().Memory > MemoryLimit-Parses*maxMessage || len(all) < 100 {
		t.Errorf("%v after %d concurrent messages: %+v", err, len(all), s.Usage())
	}
	for _, m := range all {
		m.Close()
	}
	if u := s.Usage(); u != (Usage{}) {
		t.Errorf("%+v was not returned", u)
	}
}

// TestParses checks that no more than Parses messages are loaded at a time, and that Load stops waiting when its
// context is done.
func TestParses(t *testing.T) {
	t.Parallel()
	s, _ := open(t, FileLimit)
	var now, most atomic.Int64
	release := make(chan struct{})
	entered := make(chan struct{}, 8)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			m, _ := receive(t, s, 1<<20)
			defer m.Close()
			err := m.Load(t.Context(), nil, func([]byte) {
				most.Store(max(most.Load(), now.Add(1)))
				entered <- struct{}{}
				<-release
				now.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range Parses {
		<-entered
	}
	late, _ := receive(t, s, 1<<20)
	defer late.Close()
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	if err := late.Load(ended, nil, func([]byte) { t.Error("a third message is in memory") }); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	close(release)
	all.Wait()
	if most.Load() != Parses {
		t.Errorf("%d messages in memory at a time", most.Load())
	}
}

// TestLeft checks that New removes a temporary file left behind by a killed server, but no other file.
func TestLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{prefix + "123", "token"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(dir, FileLimit); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "token" {
		t.Errorf("%v, %v", left, err)
	}
}

// TestUnlinked checks that a file's name is removed immediately if the system does not support nameless files.
func TestUnlinked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := unlinked(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
}
