//go:build !race

package markdown

// With the race detector, bodies have an eighth of the length, because goldmark takes quadratic time.
const (
	slow  = 1
	worst = Limit
)
