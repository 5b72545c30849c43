package offer

import "toolbay/internal/abi"

// Eager is true if an error in a type is a panic when an item is offered. In a
// plugin it is false: the host lists the items once, when it loads the file.
// Each call restarts the program, and does not need the check.
const Eager = false

// Ready is called when an item is offered, which is before the host can call.
func Ready() { abi.BeReady() }
