//go:build !linux

package hook

// identity is not known here, so nobody looks after what a killed server left running.
func identity(int) (string, error) { return "", nil }
