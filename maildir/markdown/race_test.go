//go:build race

package markdown

const (
	slow  = 4 // times
	worst = Limit / 8
)
