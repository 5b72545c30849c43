package abi

import (
	"sync"
	"unsafe"
)

// Answer makes the answer to a call of the host, which lasts until the host
// has read it and calls Answered. What the host gave as arguments must be Go
// values by now.
func Answer(answer func(*Loan) unsafe.Pointer) unsafe.Pointer {
	received = nil
	BeReady()
	allowCollection()
	defer forbidCollection()
	lent = &Loan{}
	return answer(lent)
}

// Answered is called when the host has copied the answer.
func Answered() { lent = nil }

// result is where the host writes what a function returns, while it allocates:
// it may not be on a stack, which moves when it grows. One call at a time has
// it.
var (
	result    [8]uint64
	resultsTo sync.Mutex
)

// Ask calls a function of the host that writes to result, and lets use read it.
// No garbage is collected meanwhile, because the host may allocate.
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

// ResultByte is the byte of the result at an offset.
func ResultByte(at uintptr) uint8 {
	return *(*uint8)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultWord is the number of 32 bits of the result at an offset.
func ResultWord(at uintptr) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultLong is the number of 64 bits of the result at an offset.
func ResultLong(at uintptr) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(&result), at))
}

// ResultList is the list of the result at an offset.
func ResultList(at uintptr) List {
	return List{Address: ResultWord(at), Size: ResultWord(at + 4)}
}

// ResultBytes is a copy of the bytes of the result at an offset.
func ResultBytes(at uintptr) []byte {
	list := ResultList(at)
	return []byte(list.Text())
}
