// Package resources offers resources, which clients read by URI.
//
//	func rules(*toolbay.Context, struct{}) (string, error) {
//		return "There are none.", nil
//	}
//
//	type Player struct {
//		Name string `json:"name"`
//	}
//
//	func cards(_ *toolbay.Context, player Player) (string, error) {
//		if player.Name != "Ada" {
//			return "", resources.ErrNotFound
//		}
//		return "four aces", nil
//	}
//
//	func init() {
//		resources.Add("game://rules", "rules", "The rules of the game.", rules, resources.MIMEType("text/plain"))
//		resources.Add("game://players/{name}/cards", "cards", "What a player has.", cards)
//	}
//
// A plugin that imports this package exports the interface of the contract for
// resources. Other plugins do not.
package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"toolbay"
	"toolbay/internal/fields"
	"toolbay/internal/guard"
	"toolbay/internal/jsontext"
	"toolbay/internal/offer"
	"toolbay/internal/uri"
)

// ErrNotFound is the error of a function whose resource does not exist.
var ErrNotFound = errors.New("there is no such resource")

// Result is the set of types that the function of a resource can return:
//
//	string      a text
//	[]byte      bytes
//	Contents    either, with its own MIME type or URI: see Text, Bytes and JSON
//	[]Contents  several items; none means that there is no such resource
type Result interface {
	string | []byte | Contents | []Contents
}

// Contents is one item of a resource. Create one with [Text], [Bytes] or [JSON],
// and set further fields if needed:
//
//	picture := resources.Bytes(png)
//	picture.MIMEType, picture.URI = "image/png", "sky://now/picture"
//	return []resources.Contents{resources.Text("blue"), picture}, nil
type Contents struct {
	// URI is the URI of an item below the one that was read. If it is empty, the
	// item has the URI that was read.
	URI string
	// MIMEType is the MIME type of the item. If it is empty, the item has that of
	// the definition.
	MIMEType string
	// Text is the content, if it is text.
	Text string
	// Data is the content in bytes, if it is not nil: not base64.
	Data []byte
	// Meta has further members for the item's _meta.
	Meta map[string]any
}

// Text returns an item with a text.
func Text(text string) Contents {
	return Contents{Text: text}
}

// Bytes returns an item with bytes.
func Bytes(data []byte) Contents {
	if data == nil {
		data = []byte{}
	}
	return Contents{Data: data}
}

// JSON returns an item with a value as JSON: return resources.JSON(value).
func JSON(value any) (Contents, error) {
	text, err := jsontext.Of(value)
	if err != nil {
		return Contents{}, fmt.Errorf("the resource cannot be written as JSON: %w", err)
	}
	return Contents{Text: string(text), MIMEType: "application/json"}, nil
}

// Add offers a function as a resource. Call it in an init function, once for
// each resource. It panics on an error in a URI, a name or a type, with a message
// that states the solution.
//
// The URI is fixed, or a template: {name} stands for one or more characters
// other than /, ? and #, and {+name} for any. A is a struct with a field for
// each variable: struct{} if there are none. A field is a string, a number, a
// bool, or of a type with UnmarshalText. Its tag json is the name of the variable.
// The value of {name} is decoded: %20 is a space. That of {+name} is not decoded.
//
// The function of a fixed URI takes precedence. Otherwise, the first template
// that matches reads the resource. The host refuses other URIs.
func Add[A any, R Result](uriOrTemplate, name, description string, run func(*toolbay.Context, A) (R, error), options ...Option) {
	definition := Definition{URI: uriOrTemplate, Name: name, Description: description}
	var completions []offer.Completion
	for _, option := range options {
		switch option := option.(type) {
		case setting:
			option(&definition)
		case offer.Completion:
			completions = append(completions, option)
		}
	}
	add(&resource{definition: definition, arguments: reflect.TypeFor[A](), completions: completions,
		read: func(ctx *toolbay.Context, values map[string]string) ([]Contents, error) {
			args, err := fields.FromTexts[A](values)
			if err != nil {
				return nil, toolbay.InvalidArguments("%w", err)
			}
			result, err := run(ctx, args)
			if err != nil {
				return nil, err
			}
			return itemsOf(result), nil
		}})
}

func itemsOf(result any) []Contents {
	switch result := result.(type) {
	case string:
		return []Contents{Text(result)}
	case []byte:
		return []Contents{Bytes(result)}
	case Contents:
		return []Contents{result}
	}
	return result.([]Contents)
}

// add adds a resource, unless it has an error.
func add(added *resource) {
	definition := added.definition
	target := offer.Target{Kind: offer.Template, Name: definition.URI}
	template, err := uri.Parse(definition.URI)
	if err != nil {
		panic(fmt.Sprintf("toolbay: the URI %q of a resource %v", definition.URI, err))
	}
	added.template, added.isTemplate = template, len(template.Variables()) > 0
	if definition.Name == "" {
		added.refuse("it has no name")
	}
	for _, other := range all {
		if other.definition.URI == definition.URI {
			added.refuse("there are two resources with this URI: change one")
		}
		if added.isTemplate && other.isTemplate && other.definition.Name == definition.Name {
			added.refuse(fmt.Sprintf("there are two templates named %q: rename one", definition.Name))
		}
	}
	if offer.Eager {
		added.check()
	}
	offer.Ready()
	all = append(all, added)
	for _, completion := range added.completions {
		completion.Register(target)
	}
}

func (r *resource) refuse(why string) {
	panic(fmt.Sprintf("toolbay: resource %q: %s", r.definition.URI, why))
}

// check refuses types and options that contradict each other.
func (r *resource) check() {
	variables := r.template.Variables()
	found, err := fields.OfTexts(r.arguments)
	if err != nil {
		r.refuse(err.Error())
	}
	names := make([]string, 0, len(found))
	for _, field := range found {
		if !slices.Contains(variables, field.Member) {
			r.refuse(fmt.Sprintf("%s.%s: the URI has no variable {%s}", r.arguments, field.Name, field.Member))
		}
		names = append(names, field.Member)
	}
	for _, variable := range variables {
		if !slices.Contains(names, variable) {
			r.refuse(fmt.Sprintf("%s has no field for the variable {%s}: add one with the tag json:%q", r.arguments, variable, variable))
		}
	}
	if r.isTemplate && (r.definition.Size > 0 || r.definition.LastModified != "") {
		r.refuse("a template has no Size and no LastModified: leave them out")
	}
	for _, completion := range r.completions {
		completion.Check(offer.Target{Kind: offer.Template, Name: r.definition.URI}, variables)
	}
}

// Definition is a resource, or a template of resources, as clients receive it.
type Definition struct {
	// URI is the URI or the template.
	URI string
	// Name is its name.
	Name string
	// Title is a display name.
	Title string
	// Description describes it for the model.
	Description string
	// MIMEType is the type of its content, if it is known.
	MIMEType string
	// Size is the size of its content in bytes, if it is known. A template has
	// none.
	Size uint64
	// Audience is its audience; empty means everyone.
	Audience []toolbay.Role
	// Priority is its importance, from 0.0 (optional) to 1.0 (required), if it is
	// set.
	Priority *float64
	// LastModified is the time when it was last modified, in ISO 8601:
	// "2026-01-12T15:00:58Z". A template has none.
	LastModified string
	// Icons are its icons.
	Icons []toolbay.Icon
	// Meta has further members for the definition's _meta.
	Meta map[string]any
}

// Option sets a property of a resource, or completes a variable of its URI:
// completion.Of and completion.Among of package toolbay/completion.
type Option interface {
	// ForResource excludes options of other items.
	ForResource(offer.Option)
}

type setting func(*Definition)

func (setting) ForResource(offer.Option) {}

// Title sets a display name.
func Title(title string) Option {
	return setting(func(d *Definition) { d.Title = title })
}

// MIMEType sets the type of the content. Contents without their own type also
// have it.
func MIMEType(mimeType string) Option {
	return setting(func(d *Definition) { d.MIMEType = mimeType })
}

// Size sets the size of the content in bytes.
func Size(bytes uint64) Option {
	return setting(func(d *Definition) { d.Size = bytes })
}

// For sets the audience of the resource.
func For(audience ...toolbay.Role) Option {
	return setting(func(d *Definition) { d.Audience = audience })
}

// Priority sets the importance of the resource, from 0.0 (optional) to 1.0
// (required).
func Priority(priority float64) Option {
	return setting(func(d *Definition) { d.Priority = &priority })
}

// LastModified sets the time when the content was last modified, in ISO 8601:
// "2026-01-12T15:00:58Z".
func LastModified(when string) Option {
	return setting(func(d *Definition) { d.LastModified = when })
}

// Icons sets icons that a client can show with the resource.
func Icons(icons ...toolbay.Icon) Option {
	return setting(func(d *Definition) { d.Icons = append(d.Icons, icons...) })
}

// Meta has further members for the definition's _meta.
func Meta(members map[string]any) Option {
	return setting(func(d *Definition) { d.Meta = members })
}

// All returns the definitions of the resources whose URIs are fixed, in the order
// in which they were offered.
func All() []Definition {
	return definitions(false)
}

// Templates returns the definitions of the templates, in the order in which they
// were offered.
func Templates() []Definition {
	return definitions(true)
}

func definitions(templates bool) []Definition {
	found := []Definition{}
	for _, resource := range all {
		if resource.isTemplate == templates {
			resource.check()
			found = append(found, resource.definition)
		}
	}
	return found
}

// Read reads a resource by its URI, like the host:
//
//	var host toolbay.Test
//	contents, err := resources.Read(host.Context(), "game://players/Ada/cards")
//
// contents is empty if there is no such resource.
func Read(ctx *toolbay.Context, uri string) ([]Contents, error) {
	for _, templates := range []bool{false, true} {
		for _, resource := range all {
			if resource.isTemplate != templates {
				continue
			}
			values, fits := resource.template.Values(uri)
			if fits {
				return resource.contents(ctx, uri, values)
			}
		}
	}
	return nil, nil
}

// contents returns the items, and sets the members that the author left out.
func (r *resource) contents(ctx *toolbay.Context, uri string, values map[string]string) ([]Contents, error) {
	read, err := guard.Run("resource", ctx.Debugf, func() ([]Contents, error) {
		return r.read(ctx, values)
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	items := slices.Clone(read)
	for i := range items {
		if items[i].URI == "" {
			items[i].URI = uri
		}
		if items[i].MIMEType == "" {
			items[i].MIMEType = r.definition.MIMEType
		}
		if items[i].Data != nil && items[i].Text != "" {
			return nil, fmt.Errorf("item %s of the resource has a text and bytes: leave one out", items[i].URI)
		}
	}
	return items, nil
}

// meta returns the _meta of an item.
func (c Contents) meta() (json.RawMessage, error) {
	if c.Meta == nil {
		return nil, nil
	}
	text, err := jsontext.Of(c.Meta)
	if err != nil {
		return nil, fmt.Errorf("the meta of %s cannot be written as JSON: %w", c.URI, err)
	}
	return text, nil
}

// resource is one resource or template. Its types are checked only when it is
// listed: each call of a plugin restarts the program, and needs no check.
type resource struct {
	definition  Definition
	template    uri.Template
	isTemplate  bool
	arguments   reflect.Type
	completions []offer.Completion
	read        func(ctx *toolbay.Context, values map[string]string) ([]Contents, error)
}

var all []*resource
