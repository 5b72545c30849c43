//go:build !wasip1

package offer

// Eager: whether a mistake in a type is a panic when something is offered.
// Outside a plugin, which is in a test, it is.
const Eager = true

// Ready is called when something is offered.
func Ready() {}
