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

// Ring verifies seals made with the store's own key or a key in trusted_keys. It is safe for concurrent use.
type Ring struct {
	own     Key
	trusted *registry.File[*trust]
	nobody  *trust // trusts no key; used while trusted_keys is unusable

	mu sync.Mutex // guards the verified map of every trust
}

// trust is the content of one version of trusted_keys.
type trust struct {
	keys     map[string]Key  // by id
	verified map[string]bool // results of verifying seals, by digest and seal: true if the seal is valid
}

func newTrust(keys []Key) *trust {
	t := &trust{map[string]Key{}, map[string]bool{}}
	for _, k := range keys {
		t.keys[k.ID] = k
	}
	return t
}

// Open reads the private key of the store at root and returns it with a Ring. At the first start, it creates the key
// with rand. It renames a key in an older format to key.old. If Open fails, it returns ErrUnavailable with the file's
// name and instructions.
func Open(root string, rand io.Reader) (*Ring, ed25519.PrivateKey, error) {
	private, err := openKey(root, rand)
	if err != nil {
		return nil, nil, err
	}
	file := registry.New(filepath.Join(root, trustedFile), registry.Format[*trust]{
		Limit: maxTrusted,
		Parse: func(data []byte, _ tree.FileStat) (*trust, error) {
			all, _ := parseTrusted(data) // `mailtree doctor` reports the lines that are not keys
			return newTrust(all), nil
		},
	})
	return &Ring{own: publicOf(private), trusted: file, nobody: newTrust(nil)}, private, nil
}

// maxVerified is the maximum number of verified seals to remember. They take up about 12 MiB, at about 200 bytes each.
const maxVerified = 1 << 16

// Verified reports whether m's seal was made with a trusted key or the store's own key and is still valid for m. If so,
// it also returns the Voucher. It returns false if a user wrote or edited the message's file, or if the seal was made
// with an untrusted key.
func (r *Ring) Verified(m *format.Message) (Voucher, bool) {
	k, ok := r.keyOf(m)
	return Voucher{m.Origin, k.Name}, ok
}

// keyOf returns the key with which the message's seal was made. It returns false if that key is not trusted.
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

// believed returns the content of trusted_keys. If the file cannot be read because of a machine fault, believed returns
// the content that was last read.
func (r *Ring) believed() *trust {
	t, err := r.trusted.Load()
	if t == nil || err != nil && tree.FaultOf(err) != tree.FaultMachine {
		return r.nobody
	}
	return t
}

// Voucher describes who vouches for a message: which store sealed the message, and how that store's server
// authenticated the sender.
type Voucher struct {
	format.Origin        // as determined by the sealing server
	Machine       string // name of the trusted key that sealed the message; empty for this store's own key
}

// SelfAsserted is the text that responses show if no server has authenticated the sender.
const SelfAsserted = "self-asserted"

// String says in words who vouches for the sender: "person, uid 1000", "uid 1000 (program)", "token", "dmarc
// example.org", or SelfAsserted if nothing proves the sender's identity.
//
// If another trusted key sealed the message, the name of that key's machine comes first, as in "machine laptop, uid
// 1000 (program)", because another machine's uids have no meaning on this machine.
//
// "person" means that this store sealed the message, and that the message came through a web page or a command that a
// user appears to have typed at a terminal. A program run by the same OS user can fake both.
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
