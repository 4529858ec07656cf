package keys

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Key is a public key whose seals a store trusts.
type Key struct {
	ID     string // the id used in seals
	Public ed25519.PublicKey
	Name   string // the user's name for the machine that has the private key; empty for the store's own key
}

// String returns the key as a line in trusted_keys. `mailtree key trust` on another machine accepts the line unchanged.
func (k Key) String() string {
	return strings.TrimSpace(base64.RawURLEncoding.EncodeToString(k.Public) + " " + k.Name)
}

// maxTrusted is the maximum size of trusted_keys in bytes. This is enough for about ten thousand keys.
const maxTrusted = 1 << 20

// Trusted lists the keys in the store's trusted_keys, in file order. If there is no file, it returns no keys. If some
// lines are not keys, it returns the other keys and an ErrInvalid that lists those lines.
func Trusted(root string) ([]Key, error) {
	data, _, err := tree.ReadPlain(filepath.Join(root, trustedFile), maxTrusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, registry.WrongFile(err, refusal.TrustedFileWrong, trustedFile)
	}
	return parseTrusted(data)
}

// parseTrusted is like Trusted, but takes the content of the file.
func parseTrusted(data []byte) (keys []Key, err error) {
	var bad []error
	for i, line := range strings.Split(string(data), "\n") {
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' {
			continue
		}
		k, err := Parse(text)
		if err != nil {
			bad = append(bad, &refusal.Error{
				What:   refusal.Invalid("The store's trusted_keys, line {count}: {cause}"),
				Counts: []int{i + 1},
				Err:    err,
			})
			continue
		}
		keys = append(keys, k)
	}
	return keys, errors.Join(bad...)
}

// maxKeyName is the maximum length of a trusted key's name in bytes.
const maxKeyName = 64

// Parse reads a public key in base64url, followed by a name. It returns ErrInvalid for any other text.
func Parse(line string) (Key, error) {
	text, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	name = strings.TrimSpace(name)
	public, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(public) != ed25519.PublicKeySize:
		return Key{}, &refusal.Error{
			What: refusal.Invalid("{name} is not a public key: a public key consists of 43 letters, digits, - and " +
				"_. {show a key}"),
			Name: format.Cut(text, 80),
		}
	case name == "":
		return Key{}, &refusal.Error{
			What: refusal.Invalid("No name follows the public key {=other}: add a name for that machine, such as " +
				"laptop."),
			Other: text,
		}
	case len(name) > maxKeyName || strings.ContainsFunc(name, format.Misleading):
		return Key{}, &refusal.Error{
			What: refusal.Invalid("The name {name} of a trusted key is longer than {limit} bytes or contains control " +
				"characters: choose another name."),
			Name:  format.Cut(name, 80),
			Limit: maxKeyName,
		}
	}
	return Key{ID: format.KeyID(public), Public: public, Name: name}, nil
}

// changeTrusted durably replaces the lines of trusted_keys with the result of edit. Comments and any lines that edit
// does not touch stay unchanged. Concurrent calls run one after another.
func changeTrusted(root string, edit func(lines []string) ([]string, error)) error {
	file := filepath.Join(root, trustedFile)
	lock, _, err := tree.OpenPlain(filepath.Join(root, trustedLock), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return registry.WrongFile(err, refusal.Unavailable("The store's trusted_keys.lock is {why}: remove it."), trustedFile)
	}
	defer lock.Close() // closing the file also unlocks it
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

// withoutKey returns the lines that do not contain a certain key. The argument which is the key's name, its id, or the
// public key itself. found reports whether there was such a line.
func withoutKey(lines []string, which string) (left []string, found bool) {
	left = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		k, err := Parse(line)
		is := err == nil && (k.Name == which || k.ID == which || base64.RawURLEncoding.EncodeToString(k.Public) == which)
		found = found || is
		return is
	})
	return left, found
}

// Trust adds a key to trusted_keys, and replaces any line with the same public key. It returns ErrInvalid for the
// store's own key, ErrConflict if another key has the same name, and ErrUnavailable if the file cannot be changed.
func Trust(root string, key Key) error {
	if own, err := Own(root); err == nil && own.ID == key.ID {
		return &refusal.Error{What: refusal.Invalid("The public key {=name} is this store's own, which is always " +
			"trusted."), Name: key.ID}
	}
	return changeTrusted(root, func(lines []string) ([]string, error) {
		lines, _ = withoutKey(lines, base64.RawURLEncoding.EncodeToString(key.Public))
		for _, line := range lines {
			if old, err := Parse(line); err == nil && old.Name == key.Name {
				return nil, &refusal.Error{
					What: refusal.Conflict("The name {name} is taken by the key {=other}: choose another name, or " +
						"remove that key first {forget a key}."),
					Name:  key.Name,
					Other: old.ID,
				}
			}
		}
		return append(lines, key.String()), nil
	})
}

// Distrust removes keys from trusted_keys by name, id or public key. Mail sealed with these keys is then shown as
// unverified. It returns ErrUnavailable if the file cannot be changed. If there is no such key, it returns an
// ErrNotFound that lists the existing names.
func Distrust(root, which string) error {
	return changeTrusted(root, func(lines []string) ([]string, error) {
		left, found := withoutKey(lines, which)
		if found {
			return left, nil
		}
		e := &refusal.Error{What: refusal.NotFound("No trusted key is named {name}. {list the keys}"), Name: which}
		for _, line := range lines {
			if k, err := Parse(line); err == nil {
				e.Near = append(e.Near, k.Name)
			}
		}
		return nil, e
	})
}
