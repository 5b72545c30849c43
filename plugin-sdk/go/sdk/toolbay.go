// Package toolbay turns Go functions into MCP tools, and the program with these
// functions into a Toolbay plugin.
//
//	type AddArgs struct {
//		A float64 `json:"a" description:"The first number."`
//		B float64 `json:"b" description:"The second number."`
//	}
//
//	type Sum struct {
//		Sum float64 `json:"sum"`
//	}
//
//	func add(ctx *toolbay.Context, args AddArgs) (Sum, error) {
//		return Sum{args.A + args.B}, nil
//	}
//
//	func init() {
//		toolbay.Tool("add", "Adds two numbers.", add, toolbay.ReadOnly(true))
//	}
//
//	func main() {}
//
// Both schemas are generated from the types: see [Tool] for the types of
// arguments and results. If a function returns an error, the call fails, and the
// model reads the message. [InvalidArguments] returns an error about the
// arguments. A panic is also a failure.
//
// The packages toolbay/prompts and toolbay/resources offer prompts and
// resources, and toolbay/completion completes their arguments. [Ask] asks the
// user, the client's model, or the client.
//
// A program built with -buildmode=c-shared never runs its main. Offer tools in
// an init function.
package toolbay

import (
	"fmt"
	"reflect"

	"toolbay/internal/offer"
)

// Tool offers a function as a tool. Call it in an init function, once for each
// tool. It panics on an error in a name or in a type, with a message that states
// the solution.
//
// # Arguments
//
// A is a struct (struct{} for a tool without arguments) or a map with string
// keys. Its fields are named and left out by the rules of encoding/json, with
// these further tags:
//
//	description:"…"              the meaning of the field, for the model
//	default:"…"                  the value of a field that is left out
//	enum:"a,b,c"                 the allowed values
//	minimum:"0" maximum:"10"     bounds of a number
//	minLength:"1" maxLength:"9"  bounds of a text's length
//	pattern:"^[a-z]+$"           a pattern that a text must match
//	format:"uri"                 the format of a text
//	minItems:"1" maxItems:"9"    bounds of a list's length
//
// On a list, all but the last two apply to its items. The default of a text is
// written unchanged, any other default as JSON.
//
// A field is required unless it has a default, omitempty or omitzero, or is a
// pointer. A pointer may also be null. No other member is allowed. The host
// refuses invalid arguments before the function runs.
//
// # Results
//
//	string              a text
//	Content, []Content  an image, audio, a link, or several blocks: see Content
//	Output[T]           structured content of type T, with other content
//	any other type      structured content, with an output schema generated from
//	the type
//
// In structured content, a field is always present unless it has omitempty or
// omitzero. A nil pointer is null, and a nil slice is an empty list.
//
// A type with MarshalJSON describes its JSON with [Schemer].
func Tool[A, R any](name, description string, run func(*Context, A) (R, error), options ...Option) {
	definition := Definition{Name: name, Description: description}
	for _, option := range options {
		option(&definition)
	}
	arguments, result := reflect.TypeFor[A](), reflect.TypeFor[R]()
	register(&tool{
		describe: func() Definition {
			definition.InputSchema = inputSchema(name, arguments)
			definition.OutputSchema = outputSchema(name, result)
			return definition
		},
		call: func(ctx *Context, text string) (Reply, error) {
			args, err := decode[A](text)
			if err != nil {
				return Reply{}, err
			}
			value, err := run(ctx, args)
			if err != nil {
				return Reply{}, err
			}
			return replyOf(value)
		},
	}, name)
}

// Definition is a tool as clients receive it.
type Definition struct {
	// Name is the name that clients call.
	Name string
	// Title is a display name.
	Title string
	// Description states what the tool does and when to use it.
	Description string
	// InputSchema is the JSON Schema of the arguments.
	InputSchema string
	// OutputSchema is the JSON Schema of the structured content, or empty.
	OutputSchema string
	// Hints describe the effects of the tool.
	Hints Hints
	// Icons are the tool's icons.
	Icons []Icon
	// Meta has further members for the definition's _meta.
	Meta map[string]any
}

// Hints describe the effects of a tool. By them, a client decides whether to ask
// its user first. A nil hint is not sent.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Option sets a property of a tool.
type Option func(*Definition)

// Title sets a display name.
func Title(title string) Option {
	return func(d *Definition) { d.Title = title }
}

// ReadOnly sets whether the tool changes nothing.
func ReadOnly(yes bool) Option {
	return func(d *Definition) { d.Hints.ReadOnly = &yes }
}

// Destructive sets whether the tool may delete or overwrite data, not only
// add to it. Clients assume that it may.
func Destructive(yes bool) Option {
	return func(d *Definition) { d.Hints.Destructive = &yes }
}

// Idempotent sets whether repeating a call has no further effect.
func Idempotent(yes bool) Option {
	return func(d *Definition) { d.Hints.Idempotent = &yes }
}

// OpenWorld sets whether the tool interacts with external entities, such
// as the web. Clients assume that it does.
func OpenWorld(yes bool) Option {
	return func(d *Definition) { d.Hints.OpenWorld = &yes }
}

// Icons sets icons that a client can show with the tool.
func Icons(icons ...Icon) Option {
	return func(d *Definition) { d.Icons = append(d.Icons, icons...) }
}

// Meta has further members for the definition's _meta.
func Meta(members map[string]any) Option {
	return func(d *Definition) { d.Meta = members }
}

// Icon is an icon of a tool, a prompt or a resource.
type Icon struct {
	// Src is an https: or data: URI.
	Src string
	// MIMEType is the type, such as image/png, if Src does not imply it.
	MIMEType string
	// Sizes are the sizes at which it can be shown, such as 48x48, or any.
	Sizes []string
	// Theme is the background for which it is designed; zero means both.
	Theme Theme
}

// Theme is the background for which an icon is designed.
type Theme uint8

// The backgrounds.
const (
	Light Theme = iota + 1
	Dark
)

// Tools returns the definitions of all tools, in the order in which they were
// offered.
func Tools() []Definition {
	definitions := make([]Definition, 0, len(tools))
	for _, tool := range tools {
		definitions = append(definitions, tool.describe())
	}
	return definitions
}

// tool is one tool. Its schemas are generated only on request: each call of a
// plugin restarts the program, and needs none.
type tool struct {
	describe func() Definition
	call     func(ctx *Context, arguments string) (Reply, error)
}

var (
	tools  []*tool
	byName = map[string]*tool{}
)

func register(tool *tool, name string) {
	offer.CheckName("tool", name)
	if byName[name] != nil {
		panic(fmt.Sprintf("toolbay: there are two tools named %q: rename one", name))
	}
	if offer.Eager {
		tool.describe()
	}
	offer.Ready()
	tools = append(tools, tool)
	byName[name] = tool
}
