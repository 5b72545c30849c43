package toolbay

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"toolbay/internal/fields"
)

// Schemer is implemented by types that describe their JSON. A type with a
// MarshalJSON or an UnmarshalJSON must implement it. Any other type may.
type Schemer interface {
	// JSONSchema returns the JSON Schema of every value of the type.
	JSONSchema() map[string]any
}

var (
	schemerType         = reflect.TypeFor[Schemer]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func inputSchema(tool string, t reflect.Type) string {
	return schemaText(&schemas{what: toolNamed(tool)}, t)
}

// outputSchema returns the schema of the structured content of a result, or
// empty.
func outputSchema(tool string, result reflect.Type) string {
	structured := structuredType(result)
	if structured == nil {
		return ""
	}
	return schemaText(&schemas{what: toolNamed(tool), output: true}, structured)
}

func toolNamed(name string) string {
	return fmt.Sprintf("tool %q", name)
}

func schemaText(s *schemas, root reflect.Type) string {
	s.root = root
	s.open = map[reflect.Type]bool{}
	s.names = map[reflect.Type]string{}
	schema := s.of(root, root.String())
	if !s.output && !schema.isObject() {
		s.refuse(root.String(), "arguments are a struct, or a map with string keys")
	}
	if len(s.definitions) > 0 {
		schema.set("$defs", s.definitions)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		s.refuse(root.String(), err.Error())
	}
	return string(text)
}

// schemas generates the schema of a type and of all types within it.
type schemas struct {
	// what names the owner of the schema, for messages.
	what string
	// output is true for a value that is written, not read.
	output bool
	// form is true for a form, in which null is not allowed.
	form bool
	// root is the type that "#" names.
	root reflect.Type
	// open has the structs that are being described. If one occurs again, the
	// type is recursive, and needs a name.
	open        map[reflect.Type]bool
	names       map[reflect.Type]string
	definitions object
	// apart counts the slices, maps and pointers around the current type, in
	// which defaults are not allowed.
	apart int
}

func (s *schemas) refuse(where, why string) {
	panic(fmt.Sprintf("toolbay: %s: %s: %s", s.what, where, why))
}

// of returns the schema of a type. where names the location for messages.
func (s *schemas) of(t reflect.Type, where string) object {
	if schema, special := s.special(t, where); special {
		return schema
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (t.Bits() - 1)
		return object{{"type", "integer"}, {"minimum", -limit}, {"maximum", limit - 1}}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return object{{"type", "integer"}, {"minimum", 0}, {"maximum", uint64(1)<<t.Bits() - 1}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint, reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{{"type", "string"}, {"contentEncoding", "base64"}}
		}
		return object{{"type", "array"}, {"items", s.within(t.Elem(), where+"[]")}}
	case reflect.Array:
		n := t.Len()
		return object{{"type", "array"}, {"items", s.within(t.Elem(), where+"[]")}, {"minItems", n}, {"maxItems", n}}
	case reflect.Map:
		if t.Key().Kind() != reflect.String || t.Key().Implements(textMarshalerType) {
			s.refuse(where, "the keys of a map must be strings")
		}
		return object{{"type", "object"}, {"additionalProperties", s.within(t.Elem(), where+"[]")}}
	case reflect.Pointer:
		return nullable(s.within(t.Elem(), where))
	case reflect.Struct:
		return s.structure(t, where)
	case reflect.Interface:
		if s.output || t.NumMethod() == 0 {
			return object{}
		}
	}
	s.refuse(where, fmt.Sprintf("%s has no form in JSON", t))
	return nil
}

// within returns the schema of the element of a slice, a map or a pointer.
func (s *schemas) within(t reflect.Type, where string) object {
	s.apart++
	defer func() { s.apart-- }()
	return s.of(t, where)
}

// special returns the schema of a type that does not follow from its kind.
func (s *schemas) special(t reflect.Type, where string) (object, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}, true
	case reflect.TypeFor[json.RawMessage]():
		return object{}, true
	case reflect.TypeFor[json.Number]():
		return object{{"type", "number"}}, true
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil, false
	}
	if pointer := reflect.PointerTo(t); pointer.Implements(schemerType) {
		return ordered(reflect.New(t).Interface().(Schemer).JSONSchema()), true
	}
	asJSON, asText := unmarshalerType, textUnmarshalerType
	if s.output {
		asJSON, asText = marshalerType, textMarshalerType
	}
	if reflect.PointerTo(t).Implements(asJSON) {
		s.refuse(where, fmt.Sprintf("%s has JSON of its own: use a type with a method JSONSchema() map[string]any", t))
	}
	if reflect.PointerTo(t).Implements(asText) {
		return object{{"type", "string"}}, true
	}
	return nil, false
}

// structure returns the schema of a struct, or a reference to it if it
// contains itself.
func (s *schemas) structure(t reflect.Type, where string) object {
	if s.open[t] {
		return object{{"$ref", s.reference(t)}}
	}
	if name := s.names[t]; name != "" && t != s.root {
		return object{{"$ref", s.reference(t)}}
	}
	s.open[t] = true
	schema := s.members(t, where)
	delete(s.open, t)
	if t == s.root || s.names[t] == "" {
		return schema
	}
	s.definitions.set(s.names[t], schema)
	return object{{"$ref", s.reference(t)}}
}

// reference returns a reference to a struct that contains itself.
func (s *schemas) reference(t reflect.Type) string {
	if t == s.root {
		return "#"
	}
	name := s.names[t]
	if name == "" {
		name = strings.Map(func(r rune) rune {
			if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
				return r
			}
			return '_'
		}, t.Name())
		for s.named(name) {
			name += "_"
		}
		s.names[t] = name
	}
	return "#/$defs/" + name
}

func (s *schemas) named(name string) bool {
	for _, other := range s.names {
		if other == name {
			return true
		}
	}
	return false
}

func (s *schemas) members(t reflect.Type, where string) object {
	properties := object{}
	required := []string{}
	for _, field := range s.fields(t, where) {
		place := where + "." + field.Name
		if field.Quoted {
			s.refuse(place, `the option "string" of the tag json is not supported: make the field a string`)
		}
		schema := s.field(field, place)
		properties.set(field.Member, schema)
		if s.output && !field.Omits || !s.output && !field.Optional() {
			required = append(required, field.Member)
		}
	}
	schema := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		schema.set("required", required)
	}
	schema.set("additionalProperties", false)
	return schema
}

func (s *schemas) field(field fields.Field, where string) object {
	t, pointer := field.Type, false
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	var schema object
	if pointer {
		schema = s.within(t, where)
	} else {
		schema = s.of(t, where)
	}
	if err := constrain(&schema, t, field.Tag); err != nil {
		s.refuse(where, err.Error())
	}
	// A value that is left out when it is nil is never written as null.
	if pointer && !s.form && !(s.output && field.Omits) {
		schema = nullable(schema)
	}
	if s.form {
		s.checkFormField(schema, where)
		if text := field.Tag.Get("title"); text != "" {
			schema.set("title", text)
		}
	}
	if text := field.Tag.Get("description"); text != "" {
		schema.set("description", text)
	}
	if text, has := field.Tag.Lookup("default"); has && !s.output {
		if s.apart > 0 || field.Loose {
			s.refuse(where, "a default has no effect in a list, a map or behind a pointer: set the value in the function")
		}
		value, err := fields.Default(field.Type, text)
		if err != nil {
			s.refuse(where, err.Error())
		}
		schema.set("default", value.Interface())
	}
	return schema
}

func (s *schemas) fields(t reflect.Type, where string) []fields.Field {
	found, err := fields.Of(t)
	if err != nil {
		s.refuse(where, err.Error())
	}
	return found
}

// nullable returns a schema that also allows null.
func nullable(schema object) object {
	if len(schema) == 0 {
		return schema
	}
	kind, plain := schema.get("type").(string)
	values, listed := schema.get("enum").([]any)
	if !plain || schema.has("const") || schema.has("enum") && !listed {
		return object{{"anyOf", []object{schema, {{"type", "null"}}}}}
	}
	wider := append(object{}, schema...)
	wider.set("type", []string{kind, "null"})
	if listed {
		wider.set("enum", append(append([]any{}, values...), nil))
	}
	return wider
}
