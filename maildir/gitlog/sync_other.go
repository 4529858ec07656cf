//go:build !linux

package gitlog

import (
	"os"
	"slices"
	"time"
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

// stopwatch measures time by the clock, where a thread's own is not to be had.
func stopwatch() (done func() time.Duration) {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
