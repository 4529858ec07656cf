//go:build race

package media

// slow reports whether the race detector is on.
const slow = true
