package format

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A seal proves which store's server wrote a file, and that the file has not been changed since. The seal is
//
//	"seal": "<key id>:<base64url of an Ed25519 signature>"
//
// in the last line of the header. The signature covers the SHA-256 of the file without the seal. The index contains
// this digest, so a seal can be checked without opening the file. The key id consists of the first 16 hex digits of
// the public key's SHA-256. See docs/reference/tree.md, "Seals".

const sealContext = "mailtree seal 2\n"

func sealPiece(seal string) []byte { return []byte(",\n  \"seal\": \"" + seal + "\"") }

// digest returns the SHA-256 of the file without its seal.
func digest(data []byte, seal string) []byte {
	h := sha256.New()
	if seal != "" {
		if before, after, ok := bytes.Cut(data, sealPiece(seal)); ok {
			h.Write(before)
			h.Write(after)
			return h.Sum(nil)
		}
	}
	h.Write(data)
	return h.Sum(nil)
}

// Seal returns the file with a seal as the last key of the header.
func Seal(key ed25519.PrivateKey, file []byte) []byte {
	at := bytes.Index(file, []byte("\n}\n"+fenceClose+"\n"))
	piece := sealPiece(makeSeal(key, digest(file, "")))
	out := make([]byte, 0, len(file)+len(piece))
	return append(append(append(out, file[:at]...), piece...), file[at:]...)
}

func makeSeal(key ed25519.PrivateKey, digest []byte) string {
	signature := ed25519.Sign(key, append([]byte(sealContext), digest...))
	return KeyID(key.Public().(ed25519.PublicKey)) + ":" + base64.RawURLEncoding.EncodeToString(signature)
}

// SealHolds reports whether the seal is valid. A valid seal is a signature of the digest, made with the private key
// that matches public.
func SealHolds(public ed25519.PublicKey, seal string, digest []byte) bool {
	id, signature, _ := strings.Cut(seal, ":")
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	return err == nil && id == KeyID(public) && ed25519.Verify(public, append([]byte(sealContext), digest...), sig)
}

// KeyID returns the name that seals use for a public key: the first 16 hex digits of the key's SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}
