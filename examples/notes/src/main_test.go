package main

import (
	"strings"
	"testing"

	"toolbay"
)

func TestNotesAreKept(t *testing.T) {
	toolbay.ForgetState()
	host := toolbay.Test{}
	for _, title := range []string{"milk", "bread"} {
		if _, err := write(host.Context(), written{title, "buy " + title}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := read(host.Context(), named{"milk"})
	if err != nil || text != "buy milk" {
		t.Fatal(text, err)
	}
	all, err := list(host.Context(), struct{}{})
	if err != nil || strings.Join(all.Titles, " ") != "bread milk" {
		t.Fatal(all, err)
	}
	if _, err := remove(host.Context(), named{"milk"}); err != nil {
		t.Fatal(err)
	}
	if _, err = read(host.Context(), named{"milk"}); err == nil || !toolbay.IsInvalidArguments(err) {
		t.Fatal(err)
	}
}
