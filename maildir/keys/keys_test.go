package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/maildir/format"
)

// TestTrustAtOnce checks that no change is lost if several callers change trusted_keys at the same time.
func TestTrustAtOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			public, _, err := ed25519.GenerateKey(nil)
			if err == nil {
				err = Trust(root, Key{ID: format.KeyID(public), Public: public, Name: fmt.Sprint("machine", i)})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if all, err := Trusted(root); len(all) != 8 || err != nil {
		t.Errorf("%d keys of 8, %v", len(all), err)
	}
}

// TestTrustedLongLine checks that a very long line does not hide other lines.
func TestTrustedLongLine(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := "# " + strings.Repeat("x", 100_000) + "\n" + Key{Public: public, Name: "laptop"}.String() + "\n"
	if err := os.WriteFile(filepath.Join(root, "trusted_keys"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := Trusted(root); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// TestKeyIsNoFlag checks that a store never creates a key that a command would treat as a flag.
func TestKeyIsNoFlag(t *testing.T) {
	t.Parallel()
	flag := make([]byte, ed25519.SeedSize)
	for !strings.HasPrefix(publicOf(ed25519.NewKeyFromSeed(flag)).String(), "-") {
		flag[0]++
	}
	other := bytes.Repeat([]byte{1}, ed25519.SeedSize)
	root := t.TempDir()
	if _, _, err := Open(root, io.MultiReader(bytes.NewReader(flag), bytes.NewReader(other), rand.Reader)); err != nil {
		t.Fatal(err)
	}
	if own, err := Own(root); err != nil || !own.Public.Equal(ed25519.NewKeyFromSeed(other).Public()) {
		t.Errorf("%s, %v", own, err)
	}
}

// BenchmarkVerified measures the cost of verifying the seals of twenty messages, both the first time and later.
func BenchmarkVerified(b *testing.B) {
	ring, private, err := Open(b.TempDir(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	var page []*format.Message
	for i := range 20 {
		m := &format.Message{
			ID:      fmt.Sprintf("msg_20260101_%016x", i),
			From:    "Ann",
			To:      []string{"Ann"},
			Subject: "s",
			Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Body:    "text",
		}
		sealed, err := format.ParseMessage(m.ID, format.Seal(private, format.FormatMessage(m)))
		if err != nil {
			b.Fatal(err)
		}
		page = append(page, sealed)
	}
	check := func(b *testing.B, before func()) {
		for b.Loop() {
			before()
			for _, m := range page {
				if _, ok := ring.Verified(m); !ok {
					b.Fatal("not verified")
				}
			}
		}
	}
	b.Run("first", func(b *testing.B) {
		check(b, func() {
			ring.mu.Lock()
			defer ring.mu.Unlock()
			clear(ring.believed().verified)
		})
	})
	b.Run("again", func(b *testing.B) { check(b, func() {}) })
}
