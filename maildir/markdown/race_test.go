//go:build race

package markdown

const (
	slow  = 4 // the allowed CPU time is multiplied by this factor
	worst = Limit / 8
)
