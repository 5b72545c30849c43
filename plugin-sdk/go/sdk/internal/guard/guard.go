// Package guard recovers from panics of an author's functions.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Run runs a function of the author. A panic becomes a failure of the
// function, and its location is logged. what is the kind of function, such as
// "tool".
func Run[R any](what string, logf func(format string, values ...any), run func() (R, error)) (result R, err error) {
	defer func() {
		if why := recover(); why != nil {
			var none R
			result, err = none, fmt.Errorf("the %s panicked: %v", what, why)
			logf("%v\n%s", err, debug.Stack())
		}
	}()
	return run()
}
