package tests

import (
	"slices"
	"testing"

	"toolbay"
)

func TestABucketKeepsWhatItIsGiven(t *testing.T) {
	toolbay.ForgetState()
	bucket, err := toolbay.OpenBucket("a")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if _, has, err := bucket.Get("x"); has || err != nil {
		t.Fatal(has, err)
	}
	value := []byte("one")
	if err := bucket.Set("x", value); err != nil {
		t.Fatal(err)
	}
	// The bucket stores a copy.
	value[0] = 'X'
	if kept, has, err := bucket.Get("x"); string(kept) != "one" || !has || err != nil {
		t.Fatal(string(kept), has, err)
	}
	for _, expected := range []uint64{2, 4} {
		if sum, err := bucket.Increment("n", 2); sum != expected || err != nil {
			t.Fatal(sum, err)
		}
	}
	if _, err := bucket.Increment("x", 1); err == nil {
		t.Fatal("a text was counted")
	}
	keys, err := bucket.Keys()
	if slices.Sort(keys); err != nil || !slices.Equal(keys, []string{"n", "x"}) {
		t.Fatal(keys, err)
	}
	if err := bucket.Delete("x"); err != nil {
		t.Fatal(err)
	}
	if has, err := bucket.Has("x"); has || err != nil {
		t.Fatal(has, err)
	}
	other, err := toolbay.OpenBucket("b")
	if keys, _ := other.Keys(); err != nil || len(keys) > 0 {
		t.Fatal(keys, err)
	}
}
