package fields

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()

// OfTexts returns the fields of a struct whose values are given as texts.
func OfTexts(t reflect.Type) ([]Field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s: arguments are a struct", t)
	}
	all, err := Of(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	for _, field := range all {
		if err := field.checkText(); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, field.Name, err)
		}
	}
	return all, nil
}

// checkText refuses a field that cannot be set from a text.
func (f Field) checkText() error {
	target := f.Type
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	if !fromText(target) {
		return fmt.Errorf("%s cannot be read from a text: make it a string, a number, a bool, or a type with UnmarshalText", f.Type)
	}
	for _, tag := range []string{"enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems"} {
		if _, has := f.Tag.Lookup(tag); has {
			return fmt.Errorf("nobody checks the tag %s here: check the value in the function", tag)
		}
	}
	if text, has := f.Tag.Lookup("default"); has {
		if err := setText(reflect.New(f.Type).Elem(), text); err != nil {
			return fmt.Errorf("the default %q %w", text, err)
		}
	}
	return nil
}

func fromText(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return true
	}
	return t.Kind() == reflect.String || t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
}

// FromTexts sets the fields of a struct. The error names the wrong value.
func FromTexts[A any](texts map[string]string) (A, error) {
	var args A
	err := eachText(reflect.ValueOf(&args).Elem(), texts, func(_ Field, wrong error) error { return wrong })
	return args, err
}

// FromSomeTexts sets the fields of a struct for which there is a valid text. It
// ignores values that are wrong or missing.
func FromSomeTexts[A any](texts map[string]string) A {
	var args A
	// A field that cannot be set has its zero value.
	_ = eachText(reflect.ValueOf(&args).Elem(), texts, func(Field, error) error { return nil })
	return args
}

// eachText sets each field. For a wrong value, it calls a function that decides
// how to continue.
func eachText(v reflect.Value, texts map[string]string, onWrong func(Field, error) error) error {
	all, err := Of(v.Type())
	if err != nil {
		return err
	}
	for _, field := range all {
		text, has := texts[field.Member]
		if !has {
			text, has = field.Tag.Lookup("default")
		}
		switch {
		case has:
			err = setText(fieldAt(v, field.Index), text)
			if err != nil {
				err = fmt.Errorf("argument %s: %q %w", field.Member, text, err)
			}
		case !field.Optional():
			err = fmt.Errorf("argument %s is missing", field.Member)
		}
		if err == nil {
			continue
		}
		if err = onWrong(field, err); err != nil {
			return err
		}
	}
	return nil
}

// fieldAt returns a field. It allocates embedded pointers that are nil.
func fieldAt(v reflect.Value, index []int) reflect.Value {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

// setText reads a value. The error is the end of a sentence that begins with
// the text. If there is one, v is unchanged.
func setText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		target := reflect.New(v.Type().Elem())
		if err := setText(target.Elem(), text); err != nil {
			return err
		}
		v.Set(target)
		return nil
	}
	if reader, reads := v.Addr().Interface().(encoding.TextUnmarshaler); reads {
		if err := reader.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("cannot be used: %w", err)
		}
		return nil
	}
	switch trimmed := strings.TrimSpace(text); v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if trimmed != "true" && trimmed != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(trimmed == "true")
	case reflect.Float32, reflect.Float64:
		number, err := strconv.ParseFloat(trimmed, v.Type().Bits())
		if err != nil {
			return errors.New("must be a number")
		}
		v.SetFloat(number)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		number, err := strconv.ParseUint(trimmed, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("must be a whole number from 0 to %d", ^uint64(0)>>(64-v.Type().Bits()))
		}
		v.SetUint(number)
	default:
		bits := v.Type().Bits()
		number, err := strconv.ParseInt(trimmed, 10, bits)
		if err != nil {
			most := int64(^uint64(0) >> (65 - bits))
			return fmt.Errorf("must be a whole number from %d to %d", -most-1, most)
		}
		v.SetInt(number)
	}
	return nil
}
