package format

import (
	"crypto/sha256"
	"encoding/json"
)

// CopySum returns a digest of the content that all copies of a message have in common, or nil for an invalid file. The
// digest does not cover the bcc recipients, the seal or the layout of the header, which may differ between copies.
func CopySum(id string, data []byte) *[sha256.Size]byte {
	if _, err := ParseMessage(id, data); err != nil {
		return nil
	}
	if IsForeign(data) {
		sum := sha256.Sum256(data)
		return &sum
	}
	header, body, err := SplitMessage(data)
	var keys map[string]json.RawMessage
	if err != nil || json.Unmarshal(header, &keys) != nil {
		return nil
	}
	delete(keys, "bcc")
	delete(keys, "seal")
	common, err := json.Marshal(keys) // sorted by key, without spaces
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(append(append(common, '\n'), body...))
	return &sum
}
