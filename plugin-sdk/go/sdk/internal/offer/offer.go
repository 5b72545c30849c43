// Package offer has the code that the packages for tools, prompts, resources
// and completions share.
package offer

import (
	"fmt"
	"strings"
)

const (
	nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
	longestName = 128
)

// IsName reports whether a text can be a name in the contract.
func IsName(name string) bool {
	return name != "" && len(name) <= longestName && strings.Trim(name, nameLetters) == ""
}

// CheckName refuses a name that an offered item, such as a tool, cannot have.
func CheckName(what, name string) {
	if !IsName(name) {
		panic(fmt.Sprintf("toolbay: %q cannot be the name of a %s: it has 1 to 128 of A-Z a-z 0-9 _ - .", name, what))
	}
}

// Kind is a kind of item whose arguments can be completed. Its values are those
// of the contract.
type Kind uint8

// The kinds of items whose arguments can be completed.
const (
	Prompt Kind = iota
	Template
)

// Target is a prompt, by its name, or a template, by its text.
type Target struct {
	Kind Kind
	Name string
}

// String returns the target's name for messages.
func (t Target) String() string {
	if t.Kind == Template {
		return fmt.Sprintf("resource template %q", t.Name)
	}
	return fmt.Sprintf("prompt %q", t.Name)
}

// Completion is an option of a prompt or a template that completes one of its
// arguments.
type Completion interface {
	// Register offers the completion. Outside a plugin, it is checked immediately.
	Register(Target)
	// Check refuses a completion that the target cannot have.
	Check(target Target, arguments []string)
}

// Option is the parameter of the methods that mark options. Because the package
// is internal, no other module can define types with such methods.
type Option struct{}
