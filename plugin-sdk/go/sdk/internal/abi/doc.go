// Package abi implements the parts of the component model's canonical ABI
// that the contract needs: the memory that both sides use, lists and options
// in it, results that the host reads, and calls whose results it writes.
package abi
