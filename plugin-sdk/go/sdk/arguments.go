package toolbay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"toolbay/internal/fields"
)

// decode reads the arguments of a call. The host has checked them against the
// schema. decode refuses values that a schema cannot exclude, such as a
// number that does not fit in 64 bits.
func decode[A any](text string) (A, error) {
	args, err := readValues[A](text)
	if err != nil {
		err = InvalidArguments("%w", err)
	}
	return args, err
}

// readValues reads the arguments of a call, or the fields of a form.
func readValues[A any](text string) (A, error) {
	args, err := read[A]([]byte(text))
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && strings.HasPrefix(mismatch.Value, "number ") {
		if plain, fixed := wholeNumbers(text); fixed == nil {
			args, err = read[A](plain)
		}
	}
	if errors.As(err, &mismatch) {
		wanted := mismatch.Type.String()
		if wanted == "[]uint8" {
			wanted = "base64 text"
		}
		return args, fmt.Errorf("argument %s: the %s is not %s", mismatch.Field, mismatch.Value, wanted)
	}
	if err != nil {
		return args, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return args, nil
}

func read[A any](text []byte) (A, error) {
	var args A
	if err := fields.SetDefaults(reflect.ValueOf(&args).Elem()); err != nil {
		return args, err
	}
	err := json.Unmarshal(text, &args)
	return args, err
}

// wholeNumbers writes 2.0 and 2e0 as 2: they are integers in JSON Schema, but
// not in encoding/json.
func wholeNumbers(text string) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	return json.Marshal(whole(value))
}

func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = whole(member)
		}
	case []any:
		for i, item := range value {
			value[i] = whole(item)
		}
	case json.Number:
		// Up to this bound, a float64 represents every whole number exactly.
		const exact = 1 << 53
		number, err := value.Float64()
		if err == nil && number == math.Trunc(number) && math.Abs(number) <= exact && strings.ContainsAny(string(value), ".eE") {
			return json.Number(strconv.FormatInt(int64(number), 10))
		}
	}
	return value
}
