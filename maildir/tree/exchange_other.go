//go:build !linux

package tree

import "os"

// Exchange swaps two files or folders of the same file system. If it cannot rename b, it restores a. It returns
// errors from the system.
func Exchange(a, b string) error {
	aside := a + ".exchange"
	if err := os.Rename(a, aside); err != nil {
		return err
	}
	if err := os.Rename(b, a); err != nil {
		_ = os.Rename(aside, a)
		return err
	}
	return os.Rename(aside, b)
}
