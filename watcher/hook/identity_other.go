//go:build !linux

package hook

// identity is not known here: what a killed server left running is not looked after.
func identity(int) (string, error) { return "", nil }
