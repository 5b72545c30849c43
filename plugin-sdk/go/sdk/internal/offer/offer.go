// Package offer has what the packages that offer something have in common.
package offer

import (
	"fmt"
	"strings"
)

const (
	nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
	longestName = 128
)

// IsName: whether a text can be a name in the contract.
func IsName(name string) bool {
	return name != "" && len(name) <= longestName && strings.Trim(name, nameLetters) == ""
}

// CheckName refuses a name that what is offered, such as a tool, cannot have.
func CheckName(what, name string) {
	if !IsName(name) {
		panic(fmt.Sprintf("toolbay: %q cannot be the name of a %s: it has 1 to 128 of A-Z a-z 0-9 _ - .", name, what))
	}
}

// Kind is what has arguments to complete. Its values are those of the contract.
type Kind uint8

// What has arguments to complete.
const (
	Prompt Kind = iota
	Template
)

// Target is a prompt, by its name, or a template, by its text.
type Target struct {
	Kind Kind
	Name string
}

// String names the target for messages.
func (t Target) String() string {
	if t.Kind == Template {
		return fmt.Sprintf("resource template %q", t.Name)
	}
	return fmt.Sprintf("prompt %q", t.Name)
}

// Completion completes an argument of what it is an option of.
type Completion interface {
	// Register offers the completion. Natively, it is checked at once.
	Register(Target)
	// Check refuses a completion that the target cannot have.
	Check(target Target, arguments []string)
}

// Option is the parameter of the methods that mark options: nobody else can
// make types with such methods.
type Option struct{}
