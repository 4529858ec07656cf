package format

import (
	"bytes"
	"crypto/ed25519"
	"testing"
)

func keyPair(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// TestSealBreaks checks that the seal becomes invalid if anything in the file is changed, including how the sender
// was authenticated.
func TestSealBreaks(t *testing.T) {
	t.Parallel()
	public, key := keyPair(t)
	m := sample()
	file := Seal(key, FormatMessage(m))
	for _, change := range [][2]string{{`"none"`, `"uid:0"`}, {"text", "test"}, {"GreenCastle", "GreenCastlf"}, {"backend", "backenx"}, {"---\n\n#", "---\n\n #"}} {
		edited := bytes.Replace(file, []byte(change[0]), []byte(change[1]), 1)
		got, err := ParseMessage(m.ID, edited)
		if err != nil {
			t.Fatal(err)
		}
		if SealHolds(public, got.Seal, got.Digest) {
			t.Errorf("%q -> %q: still verified", change[0], change[1])
		}
	}
	hand, err := ParseMessage(m.ID, FormatMessage(m))
	if err != nil {
		t.Fatal(err)
	}
	if SealHolds(public, hand.Seal, hand.Digest) {
		t.Error("a missing seal is treated as valid")
	}
}
