//go:build !wasip1

package toolbay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// memory holds the buckets of tests.
var memory = struct {
	sync.Mutex
	buckets map[string]map[string][]byte
}{buckets: map[string]map[string][]byte{}}

// ForgetState empties every bucket. Use it at the beginning of a test. It does
// not exist in a plugin.
func ForgetState() {
	memory.Lock()
	defer memory.Unlock()
	clear(memory.buckets)
}

type memoryBucket string

func openBucket(name string) (bucket, error) {
	memory.Lock()
	defer memory.Unlock()
	if memory.buckets[name] == nil {
		memory.buckets[name] = map[string][]byte{}
	}
	return memoryBucket(name), nil
}

func (b memoryBucket) get(key string) ([]byte, bool, error) {
	memory.Lock()
	defer memory.Unlock()
	value, has := memory.buckets[string(b)][key]
	return bytes.Clone(value), has, nil
}

func (b memoryBucket) set(key string, value []byte) error {
	memory.Lock()
	defer memory.Unlock()
	memory.buckets[string(b)][key] = bytes.Clone(value)
	return nil
}

func (b memoryBucket) delete(key string) error {
	memory.Lock()
	defer memory.Unlock()
	delete(memory.buckets[string(b)], key)
	return nil
}

func (b memoryBucket) exists(key string) (bool, error) {
	_, has, err := b.get(key)
	return has, err
}

func (b memoryBucket) keys(uint64, bool) ([]string, uint64, bool, error) {
	memory.Lock()
	defer memory.Unlock()
	return slices.Sorted(maps.Keys(memory.buckets[string(b)])), 0, false, nil
}

func (b memoryBucket) increment(key string, by uint64) (uint64, error) {
	memory.Lock()
	defer memory.Unlock()
	sum := uint64(0)
	if value, has := memory.buckets[string(b)][key]; has {
		number, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil {
			return 0, &StateError{message: fmt.Sprintf("The state cannot be used: the value of %s is no number.", key)}
		}
		sum = number
	}
	sum += by
	memory.buckets[string(b)][key] = strconv.AppendUint(nil, sum, 10)
	return sum, nil
}

func (memoryBucket) close() {}
