//go:build !wasip1

package toolbay

// Outside a plugin, which is in a test, there is no host but Test.

// eager: a type without a schema is a panic at once.
const eager = true

func beReady() {}
