//go:build race

package markdown

// slow is how many times slower the race detector makes us.
const slow = 8
