// Package lazy postpones work until its result is needed. A process that serves a hook or a command runs the
// initializers of the whole program, so they must be cheap.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the compiled expression. The first call compiles it, and panics if it is
// invalid. The function is safe for concurrent use.
func Regexp(source string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}
