//go:build !race

package markdown

// Under the race detector bodies are an eighth as long: goldmark is quadratic in them.
const (
	slow  = 1
	worst = Limit
)
