package keys

import (
	"crypto/ed25519"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Ring verifies seals: by the store's own key, and by those of trusted_keys. Safe for concurrent
// use.
type Ring struct {
	own     Key
	trusted *registry.File[*trust]
	nobody  *trust // what holds while trusted_keys is not what it should be

	mu sync.Mutex // held while a trust is used
}

// trust is what one state of trusted_keys says.
type trust struct {
	keys     map[string]Key  // by id
	verified map[string]bool // by digest and seal, with these keys or the store's own
}

func newTrust(keys []Key) *trust {
	t := &trust{map[string]Key{}, map[string]bool{}}
	for _, k := range keys {
		t.keys[k.ID] = k
	}
	return t
}

// Open reads the private key of the store at root, making it with rand at first start, and returns
// the ring beside it. A key of an older format is renamed to key.old. Errors: ErrUnavailable,
// naming the file and what to do.
func Open(root string, rand io.Reader) (*Ring, ed25519.PrivateKey, error) {
	private, err := openKey(root, rand)
	if err != nil {
		return nil, nil, err
	}
	file := registry.New(filepath.Join(root, trustedFile), registry.Format[*trust]{
		Limit: maxTrusted,
		Parse: func(data []byte, _ tree.FileStat) (*trust, error) {
			all, _ := parseTrusted(data) // `mailtree doctor` names the lines that are no key
			return newTrust(all), nil
		},
	})
	return &Ring{own: publicOf(private), trusted: file, nobody: newTrust(nil)}, private, nil
}

// maxVerified bounds how many verifications are remembered: at some 200 bytes each, 12 MiB.
const maxVerified = 1 << 16

// Verified reports whether m is as a server wrote it whose key is trusted, the store's own among
// them, and who vouches for it then. A message that is made or edited by hand, or sealed by a key
// that nobody trusts, gives false.
func (r *Ring) Verified(m *format.Message) (Voucher, bool) {
	k, ok := r.keyOf(m)
	return Voucher{m.Origin, k.Name}, ok
}

// keyOf returns the key whose seal the message carries; false where none that is trusted does.
func (r *Ring) keyOf(m *format.Message) (Key, bool) {
	id, _, ok := strings.Cut(m.Seal, ":")
	if !ok {
		return Key{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.believed()
	key, known := t.keys[id]
	if id == r.own.ID {
		key, known = r.own, true
	}
	if !known {
		return Key{}, false
	}
	remembered := string(m.Digest) + m.Seal
	holds, seen := t.verified[remembered]
	if !seen {
		holds = format.SealHolds(key.Public, m.Seal, m.Digest)
		if len(t.verified) >= maxVerified {
			clear(t.verified)
		}
		t.verified[remembered] = holds
	}
	return key, holds
}

// believed is what trusted_keys says. While the machine does not let the file be read, it is what
// the file said before.
func (r *Ring) believed() *trust {
	t, err := r.trusted.Load()
	if t == nil || err != nil && tree.FaultOf(err) != tree.FaultMachine {
		return r.nobody
	}
	return t
}

// Voucher is who vouches for a message: the store whose seal it carries, and how that store's
// server knew the sender.
type Voucher struct {
	format.Origin        // as the sealing server found it
	Machine       string // name of the trusted key that sealed it; "": this store's own
}

// SelfAsserted is what answers show of a sender for whom nobody vouches.
const SelfAsserted = "self-asserted"

// String says in words who vouches for the sender: "person, uid 1000", "uid 1000 (program)",
// "token", "dmarc example.org", or SelfAsserted where the server took the sender's word. Where
// another trusted key sealed the message, the machine stands first, "machine laptop, uid 1000
// (program)": its uids are not this one's. "person" is said where the message came through a web
// page, or a command line with a controlling terminal, and this store sealed it. A program of the
// same user can feign both.
func (v Voucher) String() string {
	words := strings.Replace(v.Auth, ":", " ", 1)
	switch {
	case v.Machine != "":
		own := v
		own.Machine, own.Door = "", ""
		return "machine " + v.Machine + ", " + own.String()
	case v.Auth == "none" || v.Auth == "":
		return SelfAsserted
	case v.Door == format.DoorPage, v.Door == format.DoorCLI && v.Terminal:
		return "person, " + words
	case strings.HasPrefix(v.Auth, "uid:"):
		return words + " (program)"
	}
	return words
}
