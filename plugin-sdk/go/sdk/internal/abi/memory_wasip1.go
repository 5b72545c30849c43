package abi

import (
	"runtime/debug"
	"sync"
	"unsafe"
)

// The host refers to memory by numbers, which the garbage collector does not
// follow. So each block stays reachable from one of the two lists below while
// the host may use it. Nothing needs to be pinned: Go never moves objects on its
// heap, and nothing on a stack is shared.

// received are the blocks that the host allocated and fills. The code that reads
// them converts them to Go values and empties the list.
var received []unsafe.Pointer

// lent are the blocks of the result that the host is reading.
var lent *Loan

// nothing is the address of empty blocks.
var nothing uint64

// reallocate allocates memory for the host's arguments and results.
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

// While the host fills memory, the plugin may not call imports (the component
// model traps), but a garbage collection does: it reads the clock. So
// collections are disabled whenever the host may allocate: from the first
// offered item to the start of a call, after the call, and while the plugin
// calls a function of the host that returns more than a number.

var (
	// forbidden is locked while collections are disabled.
	forbidden sync.Mutex
	// collectAt is the growth of the heap that starts a collection.
	collectAt = 100
)

// BeReady is called before the host can call.
var BeReady = sync.OnceFunc(func() {
	forbidden.Lock()
	collectAt = debug.SetGCPercent(-1)
})

// forbidCollection disables collections, and waits for one that is running.
func forbidCollection() {
	forbidden.Lock()
	debug.SetGCPercent(-1)
}

func allowCollection() {
	debug.SetGCPercent(collectAt)
	forbidden.Unlock()
}

// The adapter to WASI 0.2 that the host adds needs two pages of this memory when
// Go's runtime starts, before there is a heap. If it grew the memory instead,
// the runtime would treat the new pages as its own.
var (
	adapterMemory [2 * 65536 / unsafe.Sizeof(nothing)]uint64
	adapterUsed   uintptr
)

// reallocateForAdapter must be able to run before the runtime is ready: it may
// not grow the stack or use the heap.
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

// TextAt returns a text that the host wrote, without a copy.
func TextAt(piece unsafe.Pointer, size uint32) string {
	return unsafe.String((*byte)(piece), size)
}
