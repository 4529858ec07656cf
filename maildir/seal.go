package maildir

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// A seal says that this server wrote the file and how it knew the sender. It is an HMAC-SHA256 with the
// store's key over the SHA-256 of the file less the seal itself, so that a reader who has the digest from
// the index need not open the file. Spec: 2.1.

const sealContext = "mailtree seal 1\n"

func sealPiece(seal string) []byte { return []byte(",\n  \"seal\": \"" + seal + "\"") }

// digest is the SHA-256 over the file less its seal.
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

func makeSeal(key, digest []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(sealContext))
	h.Write(digest)
	return hex.EncodeToString(h.Sum(nil))
}

// sealed returns the file with its seal put in as the last key of the header.
func sealed(key, file []byte) []byte {
	at := bytes.Index(file, []byte("\n}\n"+fenceClose+"\n"))
	piece := sealPiece(makeSeal(key, digest(file, "")))
	out := make([]byte, 0, len(file)+len(piece))
	return append(append(append(out, file[:at]...), piece...), file[at:]...)
}

// Verified reports whether m is as this store's server wrote it, and if so how the server knew the sender:
// "none", "token" or "uid:N". A hand-made or hand-edited message gives "", false.
func (s *Store) Verified(m *Message) (auth string, ok bool) {
	if m.Seal == "" || !hmac.Equal([]byte(m.Seal), []byte(makeSeal(s.key, m.Digest))) {
		return "", false
	}
	return m.Auth, true
}
