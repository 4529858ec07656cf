package maildir

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Files of the store that hold its keys: configuration, never in a tree that a `git pull` could change.
const (
	keyFile     = "key"          // the private key of the seals
	oldKeyFile  = "key.old"      // what stood there in an older format: its seals are no longer believed
	trustedFile = "trusted_keys" // whose seals are believed beside the store's own, one public key and name a line
)

// keyPrefix begins the key file; base64url of the private key's 32-byte seed follows.
const keyPrefix = "ed25519 "

// TrustedKey is a public key whose seals this store believes.
type TrustedKey struct {
	ID     string // as seals name it
	Public ed25519.PublicKey
	Name   string // what people call the machine that holds the private key; "" for the store's own
}

// String writes the key as a line of trusted_keys, which the other machine's `mailtree key trust` takes as it is.
func (k TrustedKey) String() string {
	return strings.TrimSpace(base64.RawURLEncoding.EncodeToString(k.Public) + " " + k.Name)
}

// keyring verifies seals: by the store's own key, and by those of trusted_keys. Safe for concurrent
// use.
type keyring struct {
	own     TrustedKey
	trusted *registry.File[*trust]
	nobody  *trust // what holds while trusted_keys is not what it should be

	mu sync.Mutex // held while a trust is used
}

// trust is what one state of trusted_keys says.
type trust struct {
	keys     map[string]TrustedKey // by id
	verified map[string]bool       // by digest and seal, with these keys or the store's own
}

func newTrust(keys []TrustedKey) *trust {
	t := &trust{map[string]TrustedKey{}, map[string]bool{}}
	for _, k := range keys {
		t.keys[k.ID] = k
	}
	return t
}

func newKeyring(root string, own TrustedKey) *keyring {
	return &keyring{own: own, nobody: newTrust(nil), trusted: registry.New(filepath.Join(root, trustedFile), registry.Format[*trust]{
		Limit: maxTrusted,
		Parse: func(data []byte, _ tree.FileStat) (*trust, error) {
			keys, _ := parseTrustedKeys(data) // `mailtree doctor` names the lines that are no key
			return newTrust(keys), nil
		},
	})}
}

// maxVerified bounds how many verifications are remembered: at some 200 bytes each, 12 MiB.
const maxVerified = 1 << 16

// Voucher is who vouches for a message: the store whose seal it carries, and how that store's server knew the sender.
type Voucher struct {
	Auth     string // none, token, uid:N or dmarc:DOMAIN, as the sealing server found it
	Door     string // through what that server got the message
	Terminal bool   // the process behind format.DoorCLI had a controlling terminal
	Machine  string // name of the trusted key that sealed it; "": this store's own
}

// String is the voucher as answers show it: "uid:1000 (program)", or "machine laptop, uid:1000 (program)" where another
// trusted key sealed the message: that machine's uids are not this one's. "uid:1000 (person)" is shown where the message
// came through a web page, or a command line with a controlling terminal, and this store sealed it. A program of the same
// user can feign both.
func (v Voucher) String() string {
	switch {
	case v.Machine != "":
		own := v
		own.Machine, own.Door = "", ""
		return "machine " + v.Machine + ", " + own.String()
	case v.Auth == "none":
		return v.Auth // whoever it was
	case v.Door == format.DoorPage, v.Door == format.DoorCLI && v.Terminal:
		return v.Auth + " (person)"
	case strings.HasPrefix(v.Auth, "uid:"):
		return v.Auth + " (program)"
	}
	return v.Auth
}

// Verified reports whether m is as a server wrote it whose key this store trusts, its own among them, and who vouches for it
// then. A message that is made or edited by hand, or sealed by a key that nobody trusts, gives false.
func (s *Store) Verified(m *format.Message) (Voucher, bool) {
	k, ok := s.keys.keyOf(m)
	return Voucher{
		Auth:     m.Auth,
		Door:     m.Door,
		Terminal: m.Terminal,
		Machine:  k.Name,
	}, ok
}

// VerifiedIn is Verified for a message of the index: one that this store's own server sealed for another project is not
// verified where somebody has put it.
func (s *Store) VerifiedIn(m *MessageRow) (Voucher, bool) {
	v, ok := s.Verified(&m.Message)
	if p := s.known(m.Project); ok && v.Machine == "" && p != nil && m.Message.Project != p.name() {
		return Voucher{}, false
	}
	return v, ok
}

// VerifiedHere is Verified for the store's own seals alone: what this server itself found out about the sender.
func (s *Store) VerifiedHere(m *format.Message) (auth string, ok bool) {
	v, ok := s.Verified(m)
	if !ok || v.Machine != "" {
		return "", false
	}
	return v.Auth, true
}

// keyOf returns the key whose seal the message carries; false where none that is trusted does.
func (r *keyring) keyOf(m *format.Message) (TrustedKey, bool) {
	id, _, ok := strings.Cut(m.Seal, ":")
	if !ok {
		return TrustedKey{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.believed()
	key, known := t.keys[id]
	if id == r.own.ID {
		key, known = r.own, true
	}
	if !known {
		return TrustedKey{}, false
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
func (r *keyring) believed() *trust {
	t, err := r.trusted.Load()
	if t == nil || err != nil && tree.FaultOf(err) != tree.FaultMachine {
		return r.nobody
	}
	return t
}

// maxTrusted bounds the file trusted_keys in bytes: some ten thousand keys.
const maxTrusted = 1 << 20

// ReadTrustedKeys lists the keys of the store's trusted_keys in the order of the file; none where there is no such file. A line
// that is no key is left out and named in the error, which then wraps ErrInvalid; the others are returned beside it.
func ReadTrustedKeys(root string) ([]TrustedKey, error) {
	data, _, err := tree.ReadPlain(filepath.Join(root, trustedFile), maxTrusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, registry.WrongFile(err, refusal.TrustedFileWrong, trustedFile)
	}
	return parseTrustedKeys(data)
}

// parseTrustedKeys is ReadTrustedKeys for the bytes of the file.
func parseTrustedKeys(data []byte) (keys []TrustedKey, err error) {
	var bad []error
	for i, line := range strings.Split(string(data), "\n") {
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' {
			continue
		}
		k, err := ParseTrustedKey(text)
		if err != nil {
			bad = append(bad, &Error{What: refusal.TrustedLineUnusable, Counts: []int{i + 1}, Err: err})
			continue
		}
		keys = append(keys, k)
	}
	return keys, errors.Join(bad...)
}

// maxKeyName is how long the name of a trusted key may be, in bytes.
const maxKeyName = 64

// ParseTrustedKey reads a public key in base64url and the name behind it. Errors: ErrInvalid.
func ParseTrustedKey(line string) (TrustedKey, error) {
	text, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	name = strings.TrimSpace(name)
	public, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(public) != ed25519.PublicKeySize:
		return TrustedKey{}, &Error{What: refusal.PublicKeyMalformed, Name: format.Cut(text, 80)}
	case name == "":
		return TrustedKey{}, &Error{What: refusal.PublicKeyUnnamed, Other: text}
	case len(name) > maxKeyName || strings.ContainsFunc(name, misleading):
		return TrustedKey{}, &Error{What: refusal.KeyNameUnusable, Name: format.Cut(name, 80), Limit: maxKeyName}
	}
	return TrustedKey{ID: format.KeyID(public), Public: public, Name: name}, nil
}

// WriteTrustedKeys has edit change the lines of the store's trusted_keys and puts the result into place durably. Comments and
// lines that edit leaves alone stay as they are. Of several that run at once each sees the one before. A server that runs
// takes the new file at its next look.
func WriteTrustedKeys(root string, edit func(lines []string) ([]string, error)) error {
	file := filepath.Join(root, trustedFile)
	lock, _, err := tree.OpenPlain(file+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return registry.WrongFile(err, refusal.TrustedLockWrong, trustedFile)
	}
	defer lock.Close() // and with that unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	data, _, err := tree.ReadPlain(file, maxTrusted)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return registry.WrongFile(err, refusal.TrustedFileWrong, trustedFile)
	}
	var lines []string
	if text := strings.TrimSuffix(string(data), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	if lines, err = edit(lines); err != nil {
		return err
	}
	return tree.WriteFile(file, []byte(strings.Join(append(lines, ""), "\n")))
}

// openKeys reads the store's private key, making it at first start. A key of an older format is renamed to key.old.
// Errors: ErrUnavailable, naming the file and what to do.
func openKeys(root string, rand io.Reader) (*keyring, ed25519.PrivateKey, error) {
	file := filepath.Join(root, keyFile)
	private, err := readKey(file)
	if errors.Is(err, errOldKey) {
		if err := os.Rename(file, filepath.Join(root, oldKeyFile)); err != nil {
			return nil, nil, &Error{
				What:  refusal.KeyOldInTheWay,
				Other: file,
				Why:   err.Error(),
				Err:   err,
			}
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		private, err = makeKey(file, rand)
	}
	if err != nil {
		return nil, nil, err
	}
	public := private.Public().(ed25519.PublicKey)
	return newKeyring(root, TrustedKey{ID: format.KeyID(public), Public: public}), private, nil
}

// errOldKey says that the key file holds the secret of the seals that stores made before they had key pairs.
var errOldKey = &Error{What: refusal.KeyOld}

// readKey reads the private key. Errors: fs.ErrNotExist; errOldKey; ErrUnavailable, naming the file and what to do.
func readKey(file string) (ed25519.PrivateKey, error) {
	data, _, err := tree.ReadPlain(file, maxSecret)
	switch err = registry.WrongFile(err, refusal.SecretFileWrong, file); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrUnavailable):
		return nil, err
	case err != nil:
		return nil, &Error{
			What:  refusal.SecretUnread,
			Other: keyFile,
			Why:   err.Error(),
			Err:   err,
		}
	}
	text := strings.TrimSpace(string(data))
	seed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, keyPrefix))
	isHex := !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
	switch {
	case isHex && len(text) >= 32:
		return nil, errOldKey
	case !strings.HasPrefix(text, keyPrefix) || err != nil || len(seed) != ed25519.SeedSize:
		return nil, &Error{What: refusal.KeyMalformed, Other: file}
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func makeKey(file string, rand io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, err
	}
	text := keyPrefix + base64.RawURLEncoding.EncodeToString(seed) + "\n"
	if err := tree.WriteFile(file, []byte(text)); err != nil {
		return nil, &Error{
			What:  refusal.SecretUnwritten,
			Other: keyFile,
			Why:   err.Error(),
			Err:   err,
		}
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// PublicKey reads the public key of the store at root. Errors: fs.ErrNotExist before the first start; ErrUnavailable.
func PublicKey(root string) (TrustedKey, error) {
	private, err := readKey(filepath.Join(root, keyFile))
	if err != nil {
		return TrustedKey{}, err
	}
	public := private.Public().(ed25519.PublicKey)
	return TrustedKey{ID: format.KeyID(public), Public: public}, nil
}

// forgetKey takes the lines of a key out, which is named by its name, id or public key. found is false where none is.
func forgetKey(lines []string, which string) (left []string, found bool) {
	left = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		k, err := ParseTrustedKey(line)
		is := err == nil && (k.Name == which || k.ID == which || base64.RawURLEncoding.EncodeToString(k.Public) == which)
		found = found || is
		return is
	})
	return left, found
}

// Trust adds a key to the store's trusted_keys; a line for the same public key is replaced. Errors: ErrInvalid, ErrConflict
// where another key has that name, ErrUnavailable.
func Trust(root string, key TrustedKey) error {
	if own, err := PublicKey(root); err == nil && own.ID == key.ID {
		return &Error{What: refusal.KeyIsOwn, Name: key.ID}
	}
	return WriteTrustedKeys(root, func(lines []string) ([]string, error) {
		lines, _ = forgetKey(lines, base64.RawURLEncoding.EncodeToString(key.Public))
		for _, line := range lines {
			if old, err := ParseTrustedKey(line); err == nil && old.Name == key.Name {
				return nil, &Error{What: refusal.KeyNameTaken, Name: key.Name, Other: old.ID}
			}
		}
		return append(lines, key.String()), nil
	})
}

// Distrust removes keys from the store's trusted_keys by name, id or public key: their mail is shown as unverified from then
// on. Errors: ErrNotFound with the names that there are, ErrUnavailable.
func Distrust(root, which string) error {
	return WriteTrustedKeys(root, func(lines []string) ([]string, error) {
		left, found := forgetKey(lines, which)
		if found {
			return left, nil
		}
		e := &Error{What: refusal.UnknownTrustedKey, Name: which}
		for _, line := range lines {
			if k, err := ParseTrustedKey(line); err == nil {
				e.Near = append(e.Near, k.Name)
			}
		}
		return nil, e
	})
}
