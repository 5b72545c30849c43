// Package prompts offers prompts: texts that a user chooses in the client, and
// that become the beginning of a conversation.
//
//	type ReviewArgs struct {
//		Code     string `json:"code" description:"The code to review."`
//		Language string `json:"language,omitempty" description:"Its language."`
//	}
//
//	func review(ctx *toolbay.Context, args ReviewArgs) (string, error) {
//		return "Review this code:\n\n" + args.Code, nil
//	}
//
//	func init() {
//		prompts.Add("review", "Reviews a piece of code.", review, prompts.Title("Review code"))
//	}
//
// A plugin that imports this package exports the interface of the contract for
// prompts. Other plugins do not.
package prompts

import (
	"encoding/json"
	"fmt"
	"reflect"

	"toolbay"
	"toolbay/internal/fields"
	"toolbay/internal/guard"
	"toolbay/internal/jsontext"
	"toolbay/internal/offer"
)

// Result is the set of types that the function of a prompt can return:
//
//	string             a text, as a message of the user
//	toolbay.Content    another block, as a message of the user
//	toolbay.Message    a message of the user or of the model
//	[]toolbay.Message  several messages
//	Output             several messages, with a description
type Result interface {
	string | toolbay.Content | toolbay.Message | []toolbay.Message | Output
}

// Output is a prompt with its arguments filled in.
type Output struct {
	// Description is the purpose of the prompt, if the arguments make it more
	// specific than the definition.
	Description string
	// Messages are the messages, in order.
	Messages []toolbay.Message
	// Meta has further members for the result's _meta.
	Meta map[string]any
}

// Add offers a function as a prompt. Call it in an init function, once for each
// prompt. It panics on an error in a name or in a type, with a message that
// states the solution.
//
// A is a struct whose fields are the arguments: struct{} if there are none.
// Clients give them as texts, so a field is a string, a number, a bool, or of a
// type with UnmarshalText. The tags are:
//
//	json:"code"         the name of the argument
//	title:"…"           a display name
//	description:"…"     the meaning of the argument
//	default:"…"         the value of an argument that is left out
//
// An argument is required unless it has a default, omitempty or omitzero, or is
// a pointer. The host refuses a request without it, and a request with unknown
// arguments. A text that cannot be converted to a field's type is refused before
// the function runs.
func Add[A any, R Result](name, description string, run func(*toolbay.Context, A) (R, error), options ...Option) {
	definition := Definition{Name: name, Description: description}
	target := offer.Target{Kind: offer.Prompt, Name: name}
	var completions []offer.Completion
	for _, option := range options {
		switch option := option.(type) {
		case setting:
			option(&definition)
		case offer.Completion:
			completions = append(completions, option)
		}
	}
	added := &prompt{
		describe: func() Definition {
			described := definition
			described.Arguments = arguments(target, reflect.TypeFor[A]())
			names := make([]string, 0, len(described.Arguments))
			for _, argument := range described.Arguments {
				names = append(names, argument.Name)
			}
			for _, completion := range completions {
				completion.Check(target, names)
			}
			return described
		},
		get: func(ctx *toolbay.Context, given map[string]string) (Output, error) {
			args, err := fields.FromTexts[A](given)
			if err != nil {
				return Output{}, toolbay.InvalidArguments("%w", err)
			}
			result, err := run(ctx, args)
			if err != nil {
				return Output{}, err
			}
			return outputOf(result), nil
		},
	}
	offer.CheckName("prompt", name)
	if byName[name] != nil {
		panic(fmt.Sprintf("toolbay: there are two prompts named %q: rename one", name))
	}
	if offer.Eager {
		added.describe()
	}
	offer.Ready()
	all = append(all, added)
	byName[name] = added
	for _, completion := range completions {
		completion.Register(target)
	}
}

// arguments returns the arguments that the fields of a struct describe.
func arguments(target offer.Target, t reflect.Type) []Argument {
	found, err := fields.OfTexts(t)
	if err != nil {
		panic(fmt.Sprintf("toolbay: %s: %v", target, err))
	}
	described := make([]Argument, 0, len(found))
	for _, field := range found {
		if !offer.IsName(field.Member) {
			panic(fmt.Sprintf("toolbay: %s: %s.%s: %q cannot be the name of an argument: it has 1 to 128 of A-Z a-z 0-9 _ - .",
				target, t, field.Name, field.Member))
		}
		described = append(described, Argument{
			Name:        field.Member,
			Title:       field.Tag.Get("title"),
			Description: field.Tag.Get("description"),
			Required:    !field.Optional(),
		})
	}
	return described
}

func outputOf(result any) Output {
	switch result := result.(type) {
	case string:
		return Output{Messages: []toolbay.Message{toolbay.UserText(result)}}
	case toolbay.Content:
		return Output{Messages: []toolbay.Message{{Role: toolbay.User, Content: result}}}
	case toolbay.Message:
		return Output{Messages: []toolbay.Message{result}}
	case []toolbay.Message:
		return Output{Messages: result}
	}
	return result.(Output)
}

// Definition is a prompt as clients receive it.
type Definition struct {
	// Name is the name by which clients get it.
	Name string
	// Title is a display name.
	Title string
	// Description is the purpose of the prompt.
	Description string
	// Arguments are in the order of the fields.
	Arguments []Argument
	// Icons are the prompt's icons.
	Icons []toolbay.Icon
	// Meta has further members for the definition's _meta.
	Meta map[string]any
}

// Argument is an argument of a prompt, as clients receive it.
type Argument struct {
	Name        string
	Title       string
	Description string
	Required    bool
}

// Option sets a property of a prompt, or completes an argument of it:
// completion.Of and completion.Among of package toolbay/completion.
type Option interface {
	// ForPrompt excludes options of other items.
	ForPrompt(offer.Option)
}

type setting func(*Definition)

func (setting) ForPrompt(offer.Option) {}

// Title sets a display name.
func Title(title string) Option {
	return setting(func(d *Definition) { d.Title = title })
}

// Icons sets icons that a client can show with the prompt.
func Icons(icons ...toolbay.Icon) Option {
	return setting(func(d *Definition) { d.Icons = append(d.Icons, icons...) })
}

// Meta has further members for the definition's _meta.
func Meta(members map[string]any) Option {
	return setting(func(d *Definition) { d.Meta = members })
}

// All returns the definitions of all prompts, in the order in which they were
// offered.
func All() []Definition {
	definitions := make([]Definition, 0, len(all))
	for _, prompt := range all {
		definitions = append(definitions, prompt.describe())
	}
	return definitions
}

// Get fills in a prompt by its name, like the host:
//
//	var host toolbay.Test
//	output, err := prompts.Get(host.Context(), "review", map[string]string{"code": "…"})
func Get(ctx *toolbay.Context, name string, arguments map[string]string) (Output, error) {
	prompt := byName[name]
	if prompt == nil {
		return Output{}, fmt.Errorf("there is no prompt named %q", name)
	}
	return guard.Run("prompt", ctx.Debugf, func() (Output, error) {
		return prompt.get(ctx, arguments)
	})
}

// meta returns the _meta of a result.
func (o Output) meta() (json.RawMessage, error) {
	if o.Meta == nil {
		return nil, nil
	}
	text, err := jsontext.Of(o.Meta)
	if err != nil {
		return nil, fmt.Errorf("the meta cannot be written as JSON: %w", err)
	}
	return text, nil
}

// prompt is one prompt. It is described only on request: each call of a plugin
// restarts the program, and needs no description.
type prompt struct {
	describe func() Definition
	get      func(ctx *toolbay.Context, arguments map[string]string) (Output, error)
}

var (
	all    []*prompt
	byName = map[string]*prompt{}
)
