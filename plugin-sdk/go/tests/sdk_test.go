// Package tests has the tests of the SDK. They are separate from it, because
// every project has a copy of the SDK.
package tests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"toolbay"
)

var tools int

// offer offers a function under a new name.
func offer[A, R any](run func(*toolbay.Context, A) (R, error), options ...toolbay.Option) string {
	tools++
	name := fmt.Sprint("tool_", tools)
	toolbay.Tool(name, "", run, options...)
	return name
}

func definition(t *testing.T, name string) toolbay.Definition {
	t.Helper()
	for _, definition := range toolbay.Tools() {
		if definition.Name == name {
			return definition
		}
	}
	t.Fatalf("there is no tool %q", name)
	return toolbay.Definition{}
}

// input returns the schema of arguments.
func input[A any](t *testing.T) string {
	t.Helper()
	return definition(t, offer(func(*toolbay.Context, A) (string, error) { return "", nil })).InputSchema
}

// output returns the schema of a result.
func output[R any](t *testing.T) string {
	t.Helper()
	return definition(t, offer(func(_ *toolbay.Context, _ struct{}) (r R, err error) { return r, err })).OutputSchema
}

// answer returns the reply of a tool that returns a value.
func answer[R any](result R) (toolbay.Reply, error) {
	name := offer(func(*toolbay.Context, struct{}) (R, error) { return result, nil })
	var host toolbay.Test
	return host.Call(name, "{}")
}

// given returns the value that a function gets for arguments.
func given[A any](arguments string) (A, error) {
	var got A
	name := offer(func(_ *toolbay.Context, args A) (string, error) { got = args; return "", nil })
	var host toolbay.Test
	_, err := host.Call(name, arguments)
	return got, err
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// refused returns the message of a panic.
func refused(t *testing.T, what func()) (message string) {
	t.Helper()
	defer func() {
		why := recover()
		if why == nil {
			t.Error("nothing was refused")
		}
		message = fmt.Sprint(why)
	}()
	what()
	return ""
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in %q", part, text)
	}
}

// line returns values with spaces between them.
func line(values ...any) string {
	return strings.TrimSuffix(fmt.Sprintln(values...), "\n")
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
