//go:build !linux

package gitlog

import (
	"os"
	"slices"
)

// syncAll makes the files and folders durable.
func syncAll(_ string, paths []string) error {
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		f, err := os.Open(p)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = f.Sync()
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
