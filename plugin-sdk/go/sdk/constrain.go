package toolbay

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"toolbay/internal/fields"
)

// constrain adds the constraints that the tags of a field set.
func constrain(schema *object, t reflect.Type, tag reflect.StructTag) error {
	// Constraints of items belong to the schema of the items.
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

// literal parses a value in a tag: a text is unchanged, any other value is
// JSON.
func literal(t reflect.Type, text string) (any, error) {
	value, err := fields.Default(t, text)
	if err != nil {
		return nil, err
	}
	return value.Interface(), nil
}
