package registry

import (
	"encoding/json"
	"errors"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// MaxJSON is how large owners.json and hooks.json may be, in bytes: each is held in memory whole.
// That is a hundred thousand mailboxes, or some ten thousand hooks.
const MaxJSON = 16 << 20

// JSONFile is what owners.json and hooks.json have in common: how they are written, and how one
// that cannot be used is refused.
type JSONFile struct {
	Name     string
	Wrong    refusal.What // it is no plain file, or too large to be read
	Damaged  refusal.What
	TooLarge refusal.What // it would be, when written
}

// Decode reads the file's bytes; where they are nil, because there is no file, into stays as it is.
// Errors: refusal.ErrUnavailable.
func (f *JSONFile) Decode(data []byte, into any) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &refusal.Error{What: f.Damaged, Why: err.Error()}
	}
	return nil
}

// Encode makes the file's bytes. Errors: refusal.ErrTooLarge where they are more than Decode would
// be given.
func (f *JSONFile) Encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	if len(data) >= MaxJSON {
		return nil, &refusal.Error{What: f.TooLarge, Counts: []int{len(data)}, Limit: MaxJSON}
	}
	return append(data, '\n'), nil
}

// Refuse makes refusal.ErrUnavailable of an error of reading or writing the file.
func (f *JSONFile) Refuse(err error) error { return refusal.Disk(WrongFile(err, f.Wrong, f.Name)) }

// WrongFile refuses what was opened as a file of the store and is none, or is too large. Another
// error stays as it is.
func WrongFile(err error, what refusal.What, file string) error {
	var bad *tree.FormatError
	if !errors.As(err, &bad) {
		return err
	}
	return &refusal.Error{
		What:  what,
		Other: file,
		Why:   bad.Reason,
		Err:   err,
	}
}
