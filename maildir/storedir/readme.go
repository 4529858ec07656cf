package storedir

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"

	"mailtree/maildir/tree"
)

// readme tells a person who looks into a store which file counts and what a change does.
//
//go:embed README.md
var readme []byte

// KeepReadme writes the store's README.md where it is missing or not as this version has it. What is
// no regular file is left alone. Errors: those of the disk.
func KeepReadme(root string) error {
	name := filepath.Join(root, "README.md")
	if fi, err := os.Lstat(name); err == nil {
		if !fi.Mode().IsRegular() {
			return nil
		}
		if old, _, err := tree.ReadPlain(name, int64(len(readme))); err == nil && bytes.Equal(old, readme) {
			return nil
		}
	}
	return tree.WriteFile(name, readme)
}
