// Package fields lists the fields of structs by the rules of encoding/json, and
// reads their values from texts.
package fields

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Field is a field of a struct by the rules of encoding/json.
type Field struct {
	reflect.StructField
	JSON
	// Loose is true for a field of an embedded struct that may be nil.
	Loose bool
	// depth is the number of structs that the field is embedded in.
	depth int
}

// JSON is the parsed tag json of a field.
type JSON struct {
	// Member is the name in JSON.
	Member string
	// Omits is true if the field is left out of the output when it is empty.
	Omits bool
	// Quoted is true if the value is written as a string.
	Quoted bool
	// ignored is true if the field is not in the JSON.
	ignored bool
}

// JSONOf reads the tag json of a field.
func JSONOf(f reflect.StructField) JSON {
	text := f.Tag.Get("json")
	name, options, _ := strings.Cut(text, ",")
	found := JSON{Member: name, ignored: text == "-"}
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			found.Omits = true
		case "string":
			found.Quoted = true
		}
	}
	return found
}

// Optional reports whether the field may be left out of the arguments.
func (f Field) Optional() bool {
	_, hasDefault := f.Tag.Lookup("default")
	return f.Omits || hasDefault || f.Loose || f.Type.Kind() == reflect.Pointer
}

// Of returns the fields of a struct, including those of embedded structs.
func Of(t reflect.Type) ([]Field, error) {
	var all []Field
	if err := collect(t, nil, false, &all, nil); err != nil {
		return nil, err
	}
	return all, nil
}

func collect(t reflect.Type, index []int, loose bool, all *[]Field, within []reflect.Type) error {
	for _, outer := range within {
		if outer == t {
			return fmt.Errorf("%s embeds itself", t)
		}
	}
	for i := range t.NumField() {
		found := Field{StructField: t.Field(i), Loose: loose, depth: len(index)}
		found.Index = append(append([]int{}, index...), i)
		tag := JSONOf(found.StructField)
		if tag.ignored {
			continue
		}
		if embedded := found.Type; found.Anonymous && tag.Member == "" {
			pointer := embedded.Kind() == reflect.Pointer
			if pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				err := collect(embedded, found.Index, loose || pointer, all, append(within, t))
				if err != nil {
					return err
				}
				continue
			}
		}
		if !found.IsExported() {
			continue
		}
		if found.JSON = tag; tag.Member == "" {
			found.Member = found.Name
		}
		if err := insert(all, found); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a field, unless an outer struct has a field with this name.
func insert(all *[]Field, found Field) error {
	for i, other := range *all {
		switch {
		case other.Member != found.Member:
		case other.depth < found.depth:
			return nil
		case other.depth > found.depth:
			(*all)[i] = found
			return nil
		default:
			return fmt.Errorf("two fields are named %q in JSON: give one another tag json", found.Member)
		}
	}
	*all = append(*all, found)
	return nil
}

// Default returns the value that a tag sets for a field.
func Default(t reflect.Type, text string) (reflect.Value, error) {
	value := reflect.New(t)
	encoded := []byte(text)
	err := json.Unmarshal(encoded, value.Interface())
	if err != nil || isText(t) {
		quoted, _ := json.Marshal(text)
		if json.Unmarshal(quoted, value.Interface()) == nil {
			err = nil
		}
	}
	if err != nil {
		return value.Elem(), fmt.Errorf("%q is no %s", text, t)
	}
	return value.Elem(), nil
}

func isText(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.String
}

// SetDefaults sets the fields of a struct to the values of their tags.
func SetDefaults(v reflect.Value) error {
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		text, has := f.Tag.Lookup("default")
		switch {
		case !f.IsExported() && !f.Anonymous:
		case has:
			value, err := Default(f.Type, text)
			if err != nil {
				return fmt.Errorf("the default of %s: %w", f.Name, err)
			}
			v.Field(i).Set(value)
		default:
			if err := SetDefaults(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
