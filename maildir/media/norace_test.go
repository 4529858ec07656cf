//go:build !race

package media

// slow says that the race detector is on.
const slow = false
