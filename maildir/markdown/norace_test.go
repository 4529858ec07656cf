//go:build !race

package markdown

// With the race detector, bodies are an eighth as long, because goldmark takes quadratic time.
const (
	slow  = 1
	worst = Limit
)
