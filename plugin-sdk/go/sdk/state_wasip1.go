package toolbay

import (
	"unsafe"

	"toolbay/internal/abi"
)

// wasi:keyvalue in the canonical ABI.

//go:wasmimport wasi:keyvalue/store@0.2.0-draft open
func storeOpen(name string, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.get
func bucketGet(bucket uint32, key string, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.set
func bucketSet(bucket uint32, key string, value unsafe.Pointer, size uint32, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.delete
func bucketDelete(bucket uint32, key string, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.exists
func bucketExists(bucket uint32, key string, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [method]bucket.list-keys
func bucketListKeys(bucket, some uint32, cursor uint64, result unsafe.Pointer)

//go:wasmimport wasi:keyvalue/store@0.2.0-draft [resource-drop]bucket
func dropBucket(bucket uint32)

//go:wasmimport wasi:keyvalue/atomics@0.2.0-draft increment
func bucketIncrement(bucket uint32, key string, by uint64, result unsafe.Pointer)

// kept is a bucket of the host.
type kept uint32

func openBucket(name string) (bucket, error) {
	handle := kept(0)
	err := stateOf(4, func(result unsafe.Pointer) { storeOpen(abi.Valid(name), result) }, func() {
		handle = kept(abi.ResultWord(4))
	})
	return handle, err
}

// stateOf calls a function of the host whose result has its payload at this
// offset: a value, which use reads, or the variant error.
func stateOf(at uintptr, call func(result unsafe.Pointer), use func()) (err error) {
	abi.Ask(call, func() {
		if abi.ResultByte(0) == 0 {
			use()
			return
		}
		switch abi.ResultByte(at) {
		case 0:
			err = &StateError{message: "There is no such bucket."}
		case 1:
			err = &StateError{message: "Keeping state is denied.", denied: true}
		default:
			err = &StateError{message: "The state cannot be used: " + string(abi.ResultBytes(at+4)) + "."}
		}
	})
	return err
}

func (b kept) get(key string) (value []byte, has bool, err error) {
	err = stateOf(4, func(result unsafe.Pointer) { bucketGet(uint32(b), abi.Valid(key), result) }, func() {
		if has = abi.ResultByte(4) == 1; has {
			value = abi.ResultBytes(8)
		}
	})
	return value, has, err
}

func (b kept) set(key string, value []byte) error {
	return stateOf(4, func(result unsafe.Pointer) {
		list := abi.ListOf(&abi.Loan{}, value)
		bucketSet(uint32(b), abi.Valid(key), list.At(), list.Size, result)
	}, func() {})
}

func (b kept) delete(key string) error {
	return stateOf(4, func(result unsafe.Pointer) { bucketDelete(uint32(b), abi.Valid(key), result) }, func() {})
}

func (b kept) exists(key string) (has bool, err error) {
	err = stateOf(4, func(result unsafe.Pointer) { bucketExists(uint32(b), abi.Valid(key), result) }, func() {
		has = abi.ResultByte(4) == 1
	})
	return has, err
}

func (b kept) keys(cursor uint64, goOn bool) (keys []string, next uint64, more bool, err error) {
	// The cursor aligns the record to eight bytes.
	err = stateOf(8, func(result unsafe.Pointer) {
		bucketListKeys(uint32(b), uint32(abi.Bit(goOn)), cursor, result)
	}, func() {
		list := abi.ResultList(8)
		for _, key := range unsafe.Slice((*abi.List)(list.At()), list.Size) {
			keys = append(keys, string([]byte(key.Text())))
		}
		more, next = abi.ResultByte(16) == 1, abi.ResultLong(24)
	})
	return keys, next, more, err
}

func (b kept) increment(key string, by uint64) (sum uint64, err error) {
	err = stateOf(8, func(result unsafe.Pointer) { bucketIncrement(uint32(b), abi.Valid(key), by, result) }, func() {
		sum = abi.ResultLong(8)
	})
	return sum, err
}

func (b kept) close() { dropBucket(uint32(b)) }
