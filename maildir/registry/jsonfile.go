package registry

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// MaxJSON is the maximum size of owners.json and hooks.json, in bytes. Each file is kept in memory as a whole. The
// limit leaves room for a hundred thousand mailboxes, or about ten thousand hooks.
const MaxJSON = 16 << 20

// JSONFile encodes and decodes one of a store's JSON files. Its fields contain the file's name and the refusals for
// an unusable file.
type JSONFile struct {
	Name     string
	Wrong    refusal.What // the file is not a regular file, or too large to read
	Damaged  refusal.What
	TooLarge refusal.What // the file would be too large to write
}

// NewJSON returns the file with the given name in the folder root. Its content is a T encoded as JSON, or the zero
// value if the file does not exist.
func NewJSON[T any](root string, file JSONFile) *File[T] {
	return New(filepath.Join(root, file.Name), Format[T]{
		Limit: MaxJSON,
		Parse: func(data []byte, _ tree.FileStat) (content T, err error) {
			err = file.Decode(data, &content)
			return content, err
		},
		Print:  func(content T) ([]byte, error) { return file.Encode(content) },
		Refuse: file.Refuse,
	})
}

// Decode parses the file's bytes into the value that into points to. If data is nil because the file does not exist,
// Decode leaves that value unchanged. It returns refusal.ErrUnavailable if the bytes cannot be parsed.
func (f *JSONFile) Decode(data []byte, into any) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &refusal.Error{What: f.Damaged, Why: err.Error()}
	}
	return nil
}

// Encode returns the file's bytes. It returns refusal.ErrTooLarge if they exceed MaxJSON.
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

// Refuse turns an error from reading or writing the file into refusal.ErrUnavailable.
func (f *JSONFile) Refuse(err error) error { return refusal.Disk(WrongFile(err, f.Wrong, f.Name)) }

// WrongFile returns a refusal if err means that one of the store's files is not a regular file or is too large. It
// returns any other error unchanged.
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
