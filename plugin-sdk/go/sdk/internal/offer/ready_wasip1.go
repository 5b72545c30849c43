package offer

import "toolbay/internal/abi"

// Eager: whether a mistake in a type is a panic when something is offered. In a
// plugin, the host asks once, when it loads the file, and each call of it
// starts the program anew and needs none of that.
const Eager = false

// Ready is called before the host can call: when something is offered.
func Ready() { abi.BeReady() }
