// Package abi has the canonical ABI of the component model, as far as the
// contract needs it: the memory that both sides use, lists and options in it,
// answers that the host reads, and calls whose results it writes.
package abi
