// Package toolbay makes MCP tools out of Go functions, and a Toolbay plugin
// out of the program that has them.
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
// Both schemas come from the types: see [Tool] for the arguments and for what
// a function may return. An error that it returns is a failure whose message
// the model reads; [InvalidArguments] makes one that blames the arguments. A
// panic is a failure as well.
//
// The packages toolbay/prompts and toolbay/resources offer prompts and
// resources, and toolbay/completion completes their arguments. [Ask] asks the
// user, the client's model, or the client.
//
// A program built with -buildmode=c-shared never runs its main: tools are
// offered in an init function.
package toolbay

import (
	"fmt"
	"reflect"

	"toolbay/internal/offer"
)

// Tool offers a function as a tool. Call it in an init function, once for each
// tool; a mistake in a name or in a type is a panic that says what to write
// instead.
//
// # Arguments
//
// A is a struct (struct{} for a tool without arguments) or a map with string
// keys. Its fields are named and left out as in encoding/json, with these
// further tags:
//
//	description:"…"              what the field is, for the model
//	default:"…"                  the value of a field that is left out
//	enum:"a,b,c"                 the values that are allowed
//	minimum:"0" maximum:"10"     bounds of a number
//	minLength:"1" maxLength:"9"  bounds of a text's length
//	pattern:"^[a-z]+$"           what a text must match
//	format:"uri"                 what a text is
//	minItems:"1" maxItems:"9"    bounds of a list's length
//
// On a list, all but the last two are about its items. A default is a text as
// it stands, or any other value as JSON.
//
// A field must be given unless it has a default, omitempty or omitzero, or is
// a pointer; a pointer may be null too. No other member is allowed. The host
// refuses arguments that do not fit before the function runs.
//
// # Results
//
//	string              a text
//	Content, []Content  an image, audio, a link, or several blocks: see Content
//	Output[T]           structured content of type T, with other content beside it
//	any other type      structured content, with an output schema made of the type
//
// In structured content, a field is always there unless it has omitempty or
// omitzero; a nil pointer is null, a nil slice an empty list.
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

// Definition is a tool as clients see it.
type Definition struct {
	// Name is what clients call.
	Name string
	// Title is a display name.
	Title string
	// Description is what the tool does and when to use it.
	Description string
	// InputSchema is the JSON Schema of the arguments.
	InputSchema string
	// OutputSchema is the JSON Schema of the structured content, or empty.
	OutputSchema string
	// Hints say what the tool does to the world.
	Hints Hints
	// Icons are the tool's icons.
	Icons []Icon
	// Meta has further members for the definition's _meta.
	Meta map[string]any
}

// Hints say what a tool does to the world, for the client that decides whether
// to ask its user first. A nil hint is not sent.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Option sets a property of a tool.
type Option func(*Definition)

// Title is a display name.
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
	// MIMEType is the type, such as image/png, if Src does not say.
	MIMEType string
	// Sizes are the sizes that it is for, such as 48x48, or any.
	Sizes []string
	// Theme is the background for which it is made; zero means both.
	Theme Theme
}

// Theme is the background for which an icon is made.
type Theme uint8

// The backgrounds.
const (
	Light Theme = iota + 1
	Dark
)

// Tools are the definitions of all tools, in the order in which they were
// offered.
func Tools() []Definition {
	definitions := make([]Definition, 0, len(tools))
	for _, tool := range tools {
		definitions = append(definitions, tool.describe())
	}
	return definitions
}

// tool is one tool. Its schemas are made when somebody asks: each call of a
// plugin starts the program anew, and needs none.
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
