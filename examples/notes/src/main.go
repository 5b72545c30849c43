// Notes that persist between calls: the host stores them, within the quota of
// the grant.
package main

import (
	"slices"

	"toolbay"
)

type named struct {
	Title string `json:"title" minLength:"1" maxLength:"100" description:"The title of the note."`
}

type written struct {
	Title string `json:"title" minLength:"1" maxLength:"100" description:"The title of the note."`
	Text  string `json:"text" minLength:"1" maxLength:"10000" description:"What to remember."`
}

type titles struct {
	Titles []string `json:"titles"`
}

// notes opens the bucket, and calls use with it.
func notes[T any](use func(*toolbay.Bucket) (T, error)) (T, error) {
	bucket, err := toolbay.OpenBucket("notes")
	if err != nil {
		var none T
		return none, err
	}
	defer bucket.Close()
	return use(bucket)
}

func write(_ *toolbay.Context, args written) (string, error) {
	return notes(func(bucket *toolbay.Bucket) (string, error) {
		return "Noted.", bucket.Set(args.Title, []byte(args.Text))
	})
}

func read(_ *toolbay.Context, args named) (string, error) {
	return notes(func(bucket *toolbay.Bucket) (string, error) {
		text, has, err := bucket.Get(args.Title)
		if err == nil && !has {
			err = toolbay.InvalidArguments("there is no note %q: notes_list has the titles", args.Title)
		}
		return string(text), err
	})
}

func list(*toolbay.Context, struct{}) (titles, error) {
	return notes(func(bucket *toolbay.Bucket) (titles, error) {
		all, err := bucket.Keys()
		slices.Sort(all)
		return titles{all}, err
	})
}

func remove(_ *toolbay.Context, args named) (string, error) {
	return notes(func(bucket *toolbay.Bucket) (string, error) {
		return "There is no such note now.", bucket.Delete(args.Title)
	})
}

func init() {
	toolbay.Tool("notes_write", "Writes a note, or replaces the one with the same title.", write, toolbay.Idempotent(true))
	toolbay.Tool("notes_read", "Reads a note.", read, toolbay.ReadOnly(true))
	toolbay.Tool("notes_list", "Lists the titles of all notes.", list, toolbay.ReadOnly(true))
	toolbay.Tool("notes_delete", "Deletes a note.", remove, toolbay.Destructive(true), toolbay.Idempotent(true))
}

func main() {}
