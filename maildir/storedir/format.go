package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Format is the number of the store format. It changes only when earlier versions of the program would damage the store
// or lose data in it. The index and the journal have their own versions.
const Format = 1

// formatFile is the file that contains the number of the format in which the store was written. A store without this
// file has format 1.
const formatFile = "format"

// CheckFormat returns a refusal if a newer version of the program has written the store in a format that this version
// does not support, or if the format file is invalid. It changes nothing.
func CheckFormat(root string) error {
	_, err := formatOf(root)
	return err
}

// keepFormat is like CheckFormat, but it also writes this version's format if the store has an older format or no
// format file.
func keepFormat(root string) error {
	n, err := formatOf(root)
	if err != nil || n == Format {
		return err
	}
	if err := tree.WriteFile(filepath.Join(root, formatFile), []byte(strconv.Itoa(Format)+"\n")); err != nil {
		return fmt.Errorf("cannot write the format of the store: %w", err)
	}
	return nil
}

// formatOf returns the number in the store's format file, or 0 if there is no such file. It returns the same errors as
// CheckFormat.
func formatOf(root string) (int, error) {
	data, _, err := tree.ReadPlain(filepath.Join(root, formatFile), 100)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	n := 0
	if err == nil {
		n, err = strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || n < 1 {
			err = errors.New("it does not contain a positive number")
		}
	}
	switch {
	case err != nil:
		return 0, &refusal.Error{
			What: refusal.Unavailable("The file `format` in the store {=other} cannot be read: {why}. The file " +
				"must contain the number of the store's format. Restore the file from a backup, or remove it if only " +
				"this version of mailtree has used the store."),
			Other: root,
			Why:   err.Error(),
			Err:   err,
		}
	case n > Format:
		return 0, &refusal.Error{
			What: refusal.Unavailable("The store {=other} was written by a newer version of mailtree. The store has format {count}, and " +
				"this version supports formats up to {limit}. Install the newer version."),
			Other:  root,
			Counts: []int{n},
			Limit:  Format,
		}
	}
	return n, nil
}
