package abi

import (
	"runtime/debug"
	"sync"
	"unsafe"
)

// Memory that the host sees, it sees as bare numbers. The collector does not,
// so each piece stays reachable from one of the two lists below for as long as
// the host may use it. Nothing needs to be pinned: Go never moves what is on
// its heap, and nothing on a stack is shared.

// received are the pieces that the host asked for and fills; whoever reads
// them makes them Go values and empties the list.
var received []unsafe.Pointer

// lent are the pieces of the answer that the host is reading.
var lent *Loan

// nothing is where the pieces without a byte are.
var nothing uint64

// reallocate gives the host memory for arguments and for what it returns.
//
//go:wasmexport cabi_realloc
func reallocate(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(&nothing)
	}
	// In words, which satisfies every alignment of the contract.
	const word = unsafe.Sizeof(nothing)
	piece := unsafe.Pointer(unsafe.SliceData(make([]uint64, (uintptr(size)+word-1)/word)))
	if oldSize > 0 {
		copy(unsafe.Slice((*byte)(piece), size), unsafe.Slice((*byte)(old), oldSize))
	}
	received = append(received, piece)
	return piece
}

// While the host fills memory, the plugin may call nothing outside (the
// component model traps it), and a garbage collection does: it reads the clock.
// So collections are forbidden whenever the host may allocate: from the first
// thing that is offered to the start of a call, after the call, and where the
// plugin calls a function of the host that returns more than a number.

var (
	// forbidden is held while collections are.
	forbidden sync.Mutex
	// collectAt is the growth of the heap that starts a collection.
	collectAt = 100
)

// BeReady is called before the host can call.
var BeReady = sync.OnceFunc(func() {
	forbidden.Lock()
	collectAt = debug.SetGCPercent(-1)
})

// forbidCollection waits for the end of a collection that is under way.
func forbidCollection() {
	forbidden.Lock()
	debug.SetGCPercent(-1)
}

func allowCollection() {
	debug.SetGCPercent(collectAt)
	forbidden.Unlock()
}

// The adapter to WASI 0.2 that the host adds needs two pages of this memory,
// and needs them as soon as Go's runtime starts, before there is a heap. Were it
// to grow the memory instead, the runtime would take the new pages for its own.
var (
	adapterMemory [2 * 65536 / unsafe.Sizeof(nothing)]uint64
	adapterUsed   uintptr
)

// reallocateForAdapter must run before the runtime is ready: no stack to grow,
// no heap.
//
//go:wasmexport cabi_realloc_adapter
//go:nosplit
func reallocateForAdapter(_ unsafe.Pointer, _, _, size uint32) unsafe.Pointer {
	piece := unsafe.Add(unsafe.Pointer(&adapterMemory), adapterUsed)
	const word = unsafe.Sizeof(nothing)
	adapterUsed += (uintptr(size) + word - 1) &^ (word - 1)
	if adapterUsed > unsafe.Sizeof(adapterMemory) {
		panic("toolbay: the adapter to WASI 0.2 needs more than two pages of memory")
	}
	return piece
}

// TextAt is a text that the host wrote, without a copy.
func TextAt(piece unsafe.Pointer, size uint32) string {
	return unsafe.String((*byte)(piece), size)
}
