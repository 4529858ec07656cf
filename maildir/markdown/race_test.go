//go:build race

package markdown

// slow is how many times slower the race detector makes us, and room: 20 times were measured.
const slow = 32
