// Package guard keeps a panic of an author's function from ending the plugin.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Run runs a function of the author's. A panic becomes its failure, and the
// log says where it was. what is what the function is, such as "tool".
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
