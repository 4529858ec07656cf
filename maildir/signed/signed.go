// Package signed formats files that only this store may write, such as the queues of mail.
//
// A file is one line: an HMAC of the JSON under the store's key, a space, and the JSON. Each kind of file has a label,
// which the HMAC covers, so that a file of one kind is never accepted as another kind. A file with a wrong HMAC was not
// written by this store, and the reader ignores it (I8).
package signed

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Encode returns the bytes of a file that contains v. It returns an error if v cannot be encoded as JSON.
func Encode(key []byte, label string, v any) ([]byte, error) {
	js, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(mac(key, label, js)+" "), js...), '\n'), nil
}

// Decode reads a file into v, which is a pointer. It returns false if the store did not write the file with that label.
func Decode(key []byte, label string, data []byte, v any) bool {
	sum, js, ok := bytes.Cut(bytes.TrimSuffix(data, []byte("\n")), []byte(" "))
	return ok && hmac.Equal(sum, []byte(mac(key, label, js))) && json.Unmarshal(js, v) == nil
}

func mac(key []byte, label string, js []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label + "\n"))
	h.Write(js)
	return hex.EncodeToString(h.Sum(nil))
}
