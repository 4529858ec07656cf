package maildir

import (
	"encoding/json"

	"mailtree/maildir/refusal"
)

// maxStoreFile is how large owners.json and hooks.json may be, in bytes: each is held in memory
// whole. That is a hundred thousand mailboxes, or some ten thousand hooks.
const maxStoreFile = 16 << 20

// jsonFile is what owners.json and hooks.json have in common: how they are written, and how one
// that cannot be used is refused.
type jsonFile struct {
	name     string
	wrong    refusal.What // it is no plain file, or too large to be read
	damaged  refusal.What
	tooLarge refusal.What // it would be, when written
}

// decode reads the file's bytes; where they are nil, because there is no file, into stays as it is.
// Errors: ErrUnavailable.
func (f *jsonFile) decode(data []byte, into any) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &Error{What: f.damaged, Why: err.Error()}
	}
	return nil
}

// encode makes the file's bytes. Errors: ErrTooLarge where they are more than decode would be
// given.
func (f *jsonFile) encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	if len(data) >= maxStoreFile {
		return nil, &Error{What: f.tooLarge, Counts: []int{len(data)}, Limit: maxStoreFile}
	}
	return append(data, '\n'), nil
}

// refuse makes ErrUnavailable of an error of reading or writing the file.
func (f *jsonFile) refuse(err error) error { return refusal.Disk(wrongFile(err, f.wrong, f.name)) }
