// Package completion suggests values for an argument of a prompt, or for a
// variable of a resource template, while the user types. A completion is an
// option of the prompt or of the template:
//
//	func cities(ctx *toolbay.Context, typed string, given TravelArgs) ([]string, error) {
//		return completion.BeginningWith(typed, citiesOf[given.Country]...), nil
//	}
//
//	func init() {
//		prompts.Add("travel", "Plans a journey.", travel,
//			completion.Among("country", "France", "Italy"),
//			completion.Of("city", cities))
//	}
//
// A plugin that imports this package exports the interface of the contract that
// completes arguments; other plugins do not.
package completion

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"toolbay"
	"toolbay/internal/fields"
	"toolbay/internal/guard"
	"toolbay/internal/offer"
)

// Result is the set of types that a completing function can return: values, best
// first, or Values, which can state that there are more.
type Result interface {
	[]string | Values
}

// Values are suggestions for the value of an argument.
type Values struct {
	// Values are the suggestions, best first. A client gets the first hundred.
	Values []string
	// Total is the total number of values; 0 if it is unknown.
	Total uint32
	// HasMore is true if there are more values than those in Values.
	HasMore bool
}

// Completion is an option of a prompt or of a resource template.
type Completion struct {
	argument string
	given    reflect.Type
	complete func(ctx *toolbay.Context, typed string, given map[string]string) (Values, error)
}

// Of completes an argument with a function, which gets what the user has typed
// so far, and the arguments that are complete. G is a map[string]string, or a
// struct with fields for some or all of the arguments, such as the one that the
// prompt itself takes. In a struct, an argument that is not complete, or whose
// text cannot be converted, has its default or its zero value.
//
// The function cannot ask the user questions.
func Of[G any, R Result](argument string, complete func(ctx *toolbay.Context, typed string, given G) (R, error)) Completion {
	return Completion{argument, reflect.TypeFor[G](), func(ctx *toolbay.Context, typed string, given map[string]string) (Values, error) {
		var known G
		if texts, isMap := any(&known).(*map[string]string); isMap {
			*texts = given
		} else {
			known = fields.FromSomeTexts[G](given)
		}
		result, err := complete(ctx, typed, known)
		if err != nil {
			return Values{}, err
		}
		if values, isList := any(result).([]string); isList {
			return Values{Values: values}, nil
		}
		return any(result).(Values), nil
	}}
}

// Among completes an argument with the values that begin with the text that the
// user has typed, ignoring case.
func Among(argument string, values ...string) Completion {
	return Of(argument, func(_ *toolbay.Context, typed string, _ map[string]string) ([]string, error) {
		return BeginningWith(typed, values...), nil
	})
}

// BeginningWith returns the values that begin with the text that the user has
// typed, ignoring case.
func BeginningWith(typed string, values ...string) []string {
	typed = strings.ToLower(typed)
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		return !strings.HasPrefix(strings.ToLower(value), typed)
	})
}

// ForPrompt makes it an option of a prompt.
func (Completion) ForPrompt(offer.Option) {}

// ForResource makes it an option of a resource template.
func (Completion) ForResource(offer.Option) {}

// Check returns an error if the target cannot have the completion. The SDK calls
// it.
func (c Completion) Check(target offer.Target, arguments []string) {
	refuse := func(why string) {
		panic(fmt.Sprintf("toolbay: %s: the completion of %q: %s", target, c.argument, why))
	}
	known := "there are no arguments"
	if len(arguments) > 0 {
		known = "the arguments are " + strings.Join(arguments, ", ")
	}
	if !slices.Contains(arguments, c.argument) {
		refuse("there is no such argument: " + known)
	}
	if c.given == reflect.TypeFor[map[string]string]() {
		return
	}
	given, err := fields.OfTexts(c.given)
	if err != nil {
		refuse(fmt.Sprintf("its last parameter is a map[string]string, or a struct of arguments: %v", err))
	}
	for _, field := range given {
		if !slices.Contains(arguments, field.Member) {
			refuse(fmt.Sprintf("%s.%s: there is no argument %q: %s", c.given, field.Name, field.Member, known))
		}
	}
}

// Register offers the completion. The SDK calls it.
func (c Completion) Register(target offer.Target) {
	where := place{target, c.argument}
	if _, twice := all[where]; twice {
		panic(fmt.Sprintf("toolbay: %s: there are two completions of %q: leave one out", target, c.argument))
	}
	all[where] = c
}

// place is an argument of a prompt or of a template.
type place struct {
	target   offer.Target
	argument string
}

var all = map[place]Completion{}

// Request is an argument that a user is typing: see [Complete].
type Request struct {
	// Prompt is the name of the prompt that has the argument, or empty.
	Prompt string
	// Template is the resource template that has the argument, or empty.
	Template string
	// Argument is the name of the argument.
	Argument string
	// Typed is the text that the user has typed so far.
	Typed string
	// Given are the arguments that are complete.
	Given map[string]string
}

// Complete completes an argument as the host does:
//
//	var host toolbay.Test
//	values, err := completion.Complete(host.Context(), completion.Request{Prompt: "travel", Argument: "country", Typed: "F"})
//
// An argument without a completion has no values.
func Complete(ctx *toolbay.Context, request Request) (Values, error) {
	target := offer.Target{Kind: offer.Prompt, Name: request.Prompt}
	if request.Template != "" {
		target = offer.Target{Kind: offer.Template, Name: request.Template}
	}
	completion, has := all[place{target, request.Argument}]
	if !has {
		return Values{}, nil
	}
	return guard.Run("completion", ctx.Debugf, func() (Values, error) {
		return completion.complete(ctx, request.Typed, request.Given)
	})
}
