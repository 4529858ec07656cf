package keys

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

const (
	keyFile     = "key"
	oldKeyFile  = "key.old"
	tokenFile   = "token"
	trustedFile = "trusted_keys"
	trustedLock = trustedFile + ".lock" // held by a process while it changes trusted_keys
)

// IsFile reports whether a file with the given name in a store's folder belongs to this package.
func IsFile(name string) bool {
	return slices.Contains([]string{keyFile, oldKeyFile, tokenFile, trustedFile, trustedLock}, name)
}

// Problems reads the key files of a store in the same way as its server. For each unusable file, it returns an error
// that says what is wrong and what to do. It changes nothing.
func Problems(root string) (all []error) {
	_, keyErr := readKey(filepath.Join(root, keyFile))
	_, tokenErr := readToken(filepath.Join(root, tokenFile))
	_, trustedErr := Trusted(root)
	for _, err := range []error{keyErr, tokenErr, trustedErr} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return all
}

// keyPrefix is the beginning of the key file. It is followed by the private key's 32-byte seed in base64url.
const keyPrefix = "ed25519 "

// openKey reads the store's private key, or creates the key at the first start. It renames a key in an older format to
// key.old. If openKey fails, it returns ErrUnavailable with the file's name and instructions.
func openKey(root string, rand io.Reader) (ed25519.PrivateKey, error) {
	file := filepath.Join(root, keyFile)
	private, err := readKey(file)
	if errors.Is(err, errOldKey) {
		if err := os.Rename(file, filepath.Join(root, oldKeyFile)); err != nil {
			return nil, &refusal.Error{
				What:  refusal.Unavailable("{=other} comes from an older version of mailtree and cannot be renamed: {why}."),
				Other: file,
				Why:   err.Error(),
				Err:   err,
			}
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file, rand)
	}
	return private, err
}

// errOldKey means that the key file contains a secret in the older format, from before stores had key pairs.
var errOldKey = &refusal.Error{
	What: refusal.Unavailable("The store's key comes from an older version of mailtree; the server creates a new one " +
		"when it next starts."),
}

// readKey reads the private key. If it fails, it returns fs.ErrNotExist, errOldKey, or ErrUnavailable with the file's
// name and instructions.
func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := readSecret(file)
	if err != nil {
		return nil, err
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, keyPrefix))
	isHex := !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
	switch {
	case isHex && len(text) >= 32:
		return nil, errOldKey
	case !strings.HasPrefix(text, keyPrefix) || err != nil || len(seed) != ed25519.SeedSize:
		return nil, &refusal.Error{
			What: refusal.Unavailable("{=other} does not contain a valid private key. Fix the file, or " +
				"delete it to have the server create a new key; mail sealed with the old key is then shown as " +
				"unverified."),
			Other: file,
		}
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// makeKey creates a key pair and writes it to the file. The public key's text never begins with "-", because a command
// would treat it as a flag.
func makeKey(file string, rand io.Reader) (ed25519.PrivateKey, error) {
	for seed := make([]byte, ed25519.SeedSize); ; {
		if _, err := io.ReadFull(rand, seed); err != nil {
			return nil, err
		}
		private := ed25519.NewKeyFromSeed(seed)
		if strings.HasPrefix(publicOf(private).String(), "-") {
			continue
		}
		return private, writeSecret(file, keyPrefix+base64.RawURLEncoding.EncodeToString(seed))
	}
}

// Own returns the public key of the store at root. It returns fs.ErrNotExist before the first start, and ErrUnavailable
// if the key cannot be read.
func Own(root string) (Key, error) {
	private, err := readKey(filepath.Join(root, keyFile))
	if err != nil {
		return Key{}, err
	}
	return publicOf(private), nil
}

func publicOf(private ed25519.PrivateKey) Key {
	public := private.Public().(ed25519.PublicKey)
	return Key{ID: format.KeyID(public), Public: public}
}

// Token reads the store's bearer token, or creates the token at the first start. If it fails, it returns ErrUnavailable
// with the file's name and instructions.
func Token(root string, rand io.Reader) (string, error) {
	file := filepath.Join(root, tokenFile)
	token, err := readToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	b := make([]byte, 32)
	if _, err := io.ReadFull(rand, b); err != nil {
		return "", err
	}
	token = hex.EncodeToString(b)
	return token, writeSecret(file, token)
}

// OwnToken returns the token of the store at root. It returns fs.ErrNotExist before the first start, and ErrUnavailable
// if the token cannot be read.
func OwnToken(root string) (string, error) { return readToken(filepath.Join(root, tokenFile)) }

// readToken reads the token, which consists of at least 16 bytes in hex. If it fails, it returns fs.ErrNotExist, or
// ErrUnavailable with the file's name and instructions.
func readToken(file string) (string, error) {
	text, err := readSecret(file)
	if err != nil {
		return "", err
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) < 16 {
		return "", &refusal.Error{
			What: refusal.Unavailable("{=other} does not contain at least 32 hex digits. Fix the file, or delete " +
				"it to have the server create a new one."),
			Other: file,
		}
	}
	return hex.EncodeToString(b), nil
}

// maxSecret is the maximum size in bytes of a file that contains a secret. The files that a server writes contain at
// most 65 bytes.
const maxSecret = 4096

// readSecret reads a one-line file. If it fails, it returns fs.ErrNotExist or ErrUnavailable.
func readSecret(file string) (string, error) {
	data, _, err := tree.ReadPlain(file, maxSecret)
	switch err = registry.WrongFile(err, refusal.Unavailable("{=other} is {why}. Replace it with a valid file, "+
		"or remove it to have the server create a new one."), file); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, refusal.ErrUnavailable):
		return "", err
	case err != nil:
		return "", &refusal.Error{
			What:  refusal.Unavailable("The store's {=other} cannot be read: {why}."),
			Other: filepath.Base(file),
			Why:   err.Error(),
			Err:   err,
		}
	}
	return strings.TrimSpace(string(data)), nil
}

// writeSecret durably writes a one-line file. If it fails, it returns ErrUnavailable.
func writeSecret(file, text string) error {
	err := tree.WriteFile(file, []byte(text+"\n"))
	if err == nil {
		return nil
	}
	return &refusal.Error{
		What:  refusal.Unavailable("The store's {=other} could not be written: {why}."),
		Other: filepath.Base(file),
		Why:   err.Error(),
		Err:   err,
	}
}

// Renew removes the key and the token of the store at root, so that the server creates new ones at its next start. It
// returns any error from the file system.
func Renew(root string) error {
	for _, name := range []string{keyFile, oldKeyFile, tokenFile} {
		if err := os.Remove(filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
