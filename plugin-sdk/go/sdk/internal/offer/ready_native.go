//go:build !wasip1

package offer

// Eager is true if an error in a type is a panic when an item is offered.
// Outside a plugin, that is, in a test, it is.
const Eager = true

// Ready is called when an item is offered.
func Ready() {}
