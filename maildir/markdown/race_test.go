//go:build race

package markdown

const (
	slow  = 4 // multiplies the allowed CPU time
	worst = Limit / 8
)
