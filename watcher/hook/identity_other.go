//go:build !linux

package hook

// identity is not available on this system, so commands that a killed server left running are not ended.
func identity(int) (string, error) { return "", nil }
