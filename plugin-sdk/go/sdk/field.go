package toolbay

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is a field of a struct as encoding/json sees it.
type field struct {
	reflect.StructField
	tag
	// loose: of an embedded struct that may be nil.
	loose bool
	// depth is the number of structs that the field is embedded in.
	depth int
}

// tag is what the tag json of a field says.
type tag struct {
	// name is the member's, if it is not the field's.
	name string
	// omits: left out of the output when it is empty.
	omits bool
	// quoted: written as a string.
	quoted bool
	// ignored: not in the JSON at all.
	ignored bool
}

func jsonTag(f reflect.StructField) tag {
	text := f.Tag.Get("json")
	name, options, _ := strings.Cut(text, ",")
	found := tag{name: name, ignored: text == "-"}
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			found.omits = true
		case "string":
			found.quoted = true
		}
	}
	return found
}

// optional: whether the field may be left out of the arguments.
func (f field) optional() bool {
	_, hasDefault := f.Tag.Lookup("default")
	return f.omits || hasDefault || f.loose || f.Type.Kind() == reflect.Pointer
}

// fieldsOf are the fields of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	if err := collect(t, nil, false, &all, nil); err != nil {
		return nil, err
	}
	return all, nil
}

func collect(t reflect.Type, index []int, loose bool, all *[]field, within []reflect.Type) error {
	for _, outer := range within {
		if outer == t {
			return fmt.Errorf("%s embeds itself", t)
		}
	}
	for i := range t.NumField() {
		found := field{StructField: t.Field(i), loose: loose, depth: len(index)}
		found.Index = append(append([]int{}, index...), i)
		tag := jsonTag(found.StructField)
		if tag.ignored {
			continue
		}
		if embedded := found.Type; found.Anonymous && tag.name == "" {
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
		if found.tag = tag; tag.name == "" {
			found.name = found.Name
		}
		if err := insert(all, found); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a field, unless an outer struct has one of that name.
func insert(all *[]field, found field) error {
	for i, other := range *all {
		switch {
		case other.name != found.name:
		case other.depth < found.depth:
			return nil
		case other.depth > found.depth:
			(*all)[i] = found
			return nil
		default:
			return fmt.Errorf("two fields are named %q in JSON: give one another tag json", found.name)
		}
	}
	*all = append(*all, found)
	return nil
}

// constrain adds what the tags of a field say about its values.
func constrain(schema *object, t reflect.Type, tag reflect.StructTag) error {
	// What is about items belongs to them.
	values, of := schema, t
	if items, isList := schema.get("items").(object); isList {
		values, of = &items, t.Elem()
		defer func() { schema.set("items", *values) }()
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if text, has := tag.Lookup("enum"); has {
		var allowed []any
		for _, choice := range strings.Split(text, ",") {
			value, err := literal(of, choice)
			if err != nil {
				return fmt.Errorf("the tag enum: %w", err)
			}
			allowed = append(allowed, value)
		}
		values.set("enum", allowed)
	}
	for _, keyword := range []string{"minimum", "maximum"} {
		if text, has := tag.Lookup(keyword); has {
			if _, err := strconv.ParseFloat(text, 64); err != nil || !isNumber(of) {
				return fmt.Errorf("the tag %s:%q: a number is bounded by a number", keyword, text)
			}
			values.set(keyword, json.Number(text))
		}
	}
	for _, keyword := range []string{"minLength", "maxLength", "minItems", "maxItems"} {
		if text, has := tag.Lookup(keyword); has {
			target := values
			if strings.HasSuffix(keyword, "Items") {
				target = schema
			}
			length, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return fmt.Errorf("the tag %s:%q: write a whole number", keyword, text)
			}
			target.set(keyword, length)
		}
	}
	for _, keyword := range []string{"pattern", "format"} {
		if text := tag.Get(keyword); text != "" {
			values.set(keyword, text)
		}
	}
	return nil
}

func isNumber(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// literal is a value in a tag: a text as it stands, anything else as JSON.
func literal(t reflect.Type, text string) (any, error) {
	value, err := defaultValue(t, text)
	if err != nil {
		return nil, err
	}
	return value.Interface(), nil
}

// defaultValue is the value that a tag gives to a field.
func defaultValue(t reflect.Type, text string) (reflect.Value, error) {
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

// setDefaults gives the fields of a struct the values of their tags.
func setDefaults(v reflect.Value) error {
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		text, has := f.Tag.Lookup("default")
		switch {
		case !f.IsExported() && !f.Anonymous:
		case has:
			value, err := defaultValue(f.Type, text)
			if err != nil {
				return fmt.Errorf("the default of %s: %w", f.Name, err)
			}
			v.Field(i).Set(value)
		default:
			if err := setDefaults(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
