package toolbay

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"toolbay/internal/fields"
	"toolbay/internal/jsontext"
)

// Output is structured content with other content. Output[any] has no schema,
// and no structured content if Structured is nil.
type Output[T any] struct {
	// Structured is the structured content.
	Structured T
	// Content has the other blocks. If none of them is a text, the host adds one
	// with the JSON of Structured.
	Content []Content
	// Meta has further members for the result's _meta.
	Meta map[string]any
}

// Reply is the result of a call, as the host receives it.
type Reply struct {
	// Content are the blocks.
	Content []Content
	// Structured is the structured content, or nil.
	Structured json.RawMessage
	// Meta is the result's _meta, or nil.
	Meta json.RawMessage
}

// outputs is the interface of every Output[T].
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

// structuredType returns the type of the structured content of a result, or
// nil.
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

// replyOf returns the reply for a result.
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

// fill replaces nil lists and maps, which encoding/json writes as null, by
// empty ones: the schema requires a list. fill changes v in place, but copies
// the values that it points to.
func fill(v reflect.Value, depth int) {
	// A value this deep contains itself. encoding/json has a good error for
	// that.
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
			// omitzero does not leave out an empty list.
			if field := v.Field(i); !field.IsZero() || !fields.JSONOf(v.Type().Field(i)).Omits {
				fill(field, depth)
			}
		}
	}
}

// filled returns a copy of a value without nil lists and maps.
func filled(v reflect.Value, depth int) reflect.Value {
	full := reflect.New(v.Type()).Elem()
	full.Set(v)
	fill(full, depth)
	return full
}

// asItself reports whether a type writes its own JSON.
func asItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(marshalerType) || pointer.Implements(textMarshalerType)
}

// isFlat reports whether no part of a type can be nil.
func isFlat(t reflect.Type) bool {
	return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String
}
