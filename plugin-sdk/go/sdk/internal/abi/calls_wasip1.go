package abi

import (
	"sync"
	"unsafe"
)

// Answer creates the result of a call from the host. The result is valid until
// the host has read it and calls Answered. The host's arguments must have been
// converted to Go values before.
func Answer(answer func(*Loan) unsafe.Pointer) unsafe.Pointer {
	received = nil
	BeReady()
	allowCollection()
	defer forbidCollection()
	lent = &Loan{}
	return answer(lent)
}

// Answered is called after the host has copied the result.
func Answered() { lent = nil }

// result is the buffer to which the host writes the result of a function, while
// it allocates. It cannot be on a stack, which moves when it grows. One call at
// a time uses it.
var (
	result    [8]uint64
	resultsTo sync.Mutex
)

// Ask calls a function of the host that writes to result, and lets use read it.
// Garbage collection is disabled during this time, because the host may
// allocate.
func Ask(call func(result unsafe.Pointer), use func()) {
	resultsTo.Lock()
	defer resultsTo.Unlock()
	clear(result[:])
	forbidCollection()
	call(unsafe.Pointer(&result))
	allowCollection()
	use()
	received = nil
}

// ResultByte returns the byte of the result at an offset.
func ResultByte(at uintptr) uint8 {
	return *(*uint8)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultWord returns the 32-bit number of the result at an offset.
func ResultWord(at uintptr) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultLong returns the 64-bit number of the result at an offset.
func ResultLong(at uintptr) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultList returns the list of the result at an offset.
func ResultList(at uintptr) List {
	return List{Address: ResultWord(at), Size: ResultWord(at + 4)}
}

// ResultBytes returns a copy of the bytes of the result at an offset.
func ResultBytes(at uintptr) []byte {
	list := ResultList(at)
	return []byte(list.Text())
}
