package toolbay

// Bucket holds keys and values that outlive a call, if the operator's grant has
// [permissions.state]:
//
//	notes, err := toolbay.OpenBucket("notes")
//	err = notes.Set("milk", []byte("buy some"))
//
// In tests, it is stored in memory.
type Bucket struct {
	handle bucket
}

// bucket is the implementation: that of Toolbay, or that in a test's memory.
type bucket interface {
	get(key string) (value []byte, has bool, err error)
	set(key string, value []byte) error
	delete(key string) error
	exists(key string) (bool, error)
	// keys returns some keys, and the cursor at which to continue if there are
	// more.
	keys(cursor uint64, goOn bool) (keys []string, next uint64, more bool, err error)
	increment(key string, by uint64) (uint64, error)
	close()
}

// StateError is the reason why state cannot be used, with a message for the
// model.
type StateError struct {
	message string
	denied  bool
}

func (e *StateError) Error() string { return e.message }

// Denied reports whether the grant does not allow it.
func (e *StateError) Denied() bool { return e.denied }

// OpenBucket opens a bucket of the plugin. "default" is also a valid name.
func OpenBucket(name string) (*Bucket, error) {
	handle, err := openBucket(name)
	if err != nil {
		return nil, err
	}
	return &Bucket{handle}, nil
}

// Get returns the value of a key, and whether the key exists.
func (b *Bucket) Get(key string) (value []byte, has bool, err error) {
	return b.handle.get(key)
}

// Set sets the value of a key.
func (b *Bucket) Set(key string, value []byte) error {
	return b.handle.set(key, value)
}

// Delete removes a key, if it exists.
func (b *Bucket) Delete(key string) error {
	return b.handle.delete(key)
}

// Has reports whether a key exists.
func (b *Bucket) Has(key string) (bool, error) {
	return b.handle.exists(key)
}

// Increment adds to the number that a key has, which is initially 0, and
// returns the sum. The operation is atomic.
func (b *Bucket) Increment(key string, by uint64) (uint64, error) {
	return b.handle.increment(key, by)
}

// Keys returns all keys, in any order.
func (b *Bucket) Keys() ([]string, error) {
	var all []string
	cursor, more := uint64(0), false
	for {
		keys, next, goOn, err := b.handle.keys(cursor, more)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
		if !goOn {
			return all, nil
		}
		cursor, more = next, true
	}
}

// Close releases the bucket. Its values remain.
func (b *Bucket) Close() {
	b.handle.close()
}
