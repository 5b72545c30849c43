package toolbay

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"toolbay/internal/fields"
	"toolbay/internal/jsontext"
)

// Output is structured content with other content beside it. Output[any] has
// no schema, and nothing structured if Structured is nil.
type Output[T any] struct {
	// Structured is the structured content.
	Structured T
	// Content are the blocks beside it. When none of them is a text, the host
	// adds one with the JSON of Structured.
	Content []Content
	// Meta has further members for the result's _meta.
	Meta map[string]any
}

// Reply is what a call answers, as the host gets it.
type Reply struct {
	// Content are the blocks.
	Content []Content
	// Structured is the structured content, or nil.
	Structured json.RawMessage
	// Meta is the result's _meta, or nil.
	Meta json.RawMessage
}

// outputs is what every Output[T] is.
type outputs interface {
	structuredType() reflect.Type
	reply() (Reply, error)
}

func (Output[T]) structuredType() reflect.Type {
	return reflect.TypeFor[T]()
}

func (o Output[T]) reply() (Reply, error) {
	reply := Reply{Content: o.Content}
	structured := reflect.ValueOf(&o.Structured).Elem()
	var err error
	if structured.Kind() != reflect.Interface || !structured.IsNil() {
		if reply.Structured, err = structuredJSON(structured); err != nil {
			return Reply{}, err
		}
	}
	if o.Meta != nil {
		if reply.Meta, err = jsontext.Of(o.Meta); err != nil {
			return Reply{}, fmt.Errorf("the meta cannot be written as JSON: %w", err)
		}
	}
	return reply, nil
}

// structuredType is the type of what is structured in a result, or nil.
func structuredType(result reflect.Type) reflect.Type {
	switch result {
	case reflect.TypeFor[string](), reflect.TypeFor[Content](), reflect.TypeFor[[]Content]():
		return nil
	}
	if result.Implements(reflect.TypeFor[outputs]()) && result.Kind() == reflect.Struct {
		result = reflect.Zero(result).Interface().(outputs).structuredType()
		if result.Kind() == reflect.Interface {
			return nil
		}
	}
	if result.Kind() == reflect.Pointer {
		result = result.Elem()
	}
	return result
}

// replyOf is the reply that a result makes.
func replyOf(result any) (Reply, error) {
	switch result := result.(type) {
	case string:
		return Reply{Content: []Content{Text(result)}}, nil
	case Content:
		return Reply{Content: []Content{result}}, nil
	case []Content:
		return Reply{Content: result}, nil
	case outputs:
		return result.reply()
	}
	structured, err := structuredJSON(reflect.ValueOf(result))
	return Reply{Structured: structured}, err
}

func structuredJSON(value reflect.Value) (json.RawMessage, error) {
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("the tool returned nil: it must return a result or an error")
	}
	text, err := jsontext.Of(filled(value, 0).Interface())
	if err != nil {
		return nil, fmt.Errorf("the result cannot be written as JSON: %w", err)
	}
	return text, nil
}

// fill puts empty lists and maps in the place of nil ones, which encoding/json
// writes as null: the schema promises a list. v is the caller's to change;
// what it points to is copied first.
func fill(v reflect.Value, depth int) {
	// Deeper than any sensible value: it contains itself, and encoding/json
	// has a good error for that.
	const deepest = 1000
	if depth > deepest || asItself(v.Type()) || !v.CanSet() && v.Kind() != reflect.Struct {
		return
	}
	depth++
	switch v.Kind() {
	case reflect.Slice:
		if !v.IsNil() && isFlat(v.Type().Elem()) {
			return
		}
		items := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(items, v)
		for i := range items.Len() {
			fill(items.Index(i), depth)
		}
		v.Set(items)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth)
		}
	case reflect.Map:
		entries := reflect.MakeMapWithSize(v.Type(), v.Len())
		for old := v.MapRange(); old.Next(); {
			entries.SetMapIndex(old.Key(), filled(old.Value(), depth))
		}
		v.Set(entries)
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(filled(v.Elem(), depth).Addr())
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(filled(v.Elem(), depth))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			// An empty list would not be left out by omitzero.
			if field := v.Field(i); !field.IsZero() || !fields.JSONOf(v.Type().Field(i)).Omits {
				fill(field, depth)
			}
		}
	}
}

// filled is a copy of a value without nil lists and maps.
func filled(v reflect.Value, depth int) reflect.Value {
	full := reflect.New(v.Type()).Elem()
	full.Set(v)
	fill(full, depth)
	return full
}

// asItself: whether a type writes its own JSON.
func asItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(marshalerType) || pointer.Implements(textMarshalerType)
}

// isFlat: whether there is nothing in a type that could be nil.
func isFlat(t reflect.Type) bool {
	return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String
}
