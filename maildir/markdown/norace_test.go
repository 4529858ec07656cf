//go:build !race

package markdown

// These values apply without the race detector. With it, bodies are an eighth as long, because goldmark takes
// quadratic time.
const (
	slow  = 1
	worst = Limit
)
