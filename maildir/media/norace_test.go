//go:build !race

package media

// slow is true if the race detector is on.
const slow = false
