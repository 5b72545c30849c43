package main

import (
	"testing"

	"toolbay"
)

func TestGreet(t *testing.T) {
	var host toolbay.Test
	for _, test := range []struct {
		args GreetArgs
		want string
	}{
		{GreetArgs{Name: "Ada"}, "Hello, Ada."},
		{GreetArgs{Name: "Ada", Excited: true}, "HELLO, ADA!"},
	} {
		got, err := greet(host.Context(), test.args)
		if err != nil || got != test.want {
			t.Errorf("greet(%+v) = %q, %v; want %q", test.args, got, err, test.want)
		}
	}
}

func TestGreetNobody(t *testing.T) {
	var host toolbay.Test
	if _, err := greet(host.Context(), GreetArgs{Name: " "}); !toolbay.IsInvalidArguments(err) {
		t.Errorf("got %v; want invalid arguments", err)
	}
}

func TestCount(t *testing.T) {
	var host toolbay.Test
	for text, want := range map[string]Count{
		"":               {0, 0, 0},
		"one":            {3, 1, 1},
		"one two\nthree": {13, 3, 2},
		"né\n":           {3, 1, 2},
	} {
		if got, err := count(host.Context(), CountArgs{Text: text}); err != nil || got != want {
			t.Errorf("count(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// Calls the tool like the host: with JSON.
func TestCall(t *testing.T) {
	var host toolbay.Test
	reply, err := host.Call("{{ident}}_greet", `{"name": "Ada"}`)
	if err != nil || len(reply.Content) != 1 || reply.Content[0].Text != "Hello, Ada." {
		t.Errorf("got %+v, %v", reply, err)
	}
}
