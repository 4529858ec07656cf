package storedir

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"

	"mailtree/maildir/tree"
)

// readme is the README.md that explains a store's files to users.
//
//go:embed README.md
var readme []byte

// KeepReadme writes the store's README.md if it is missing or differs from this version's text. It does not touch a
// README.md that is not a regular file. It returns any disk error.
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
