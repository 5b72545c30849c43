package toolbay

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"toolbay/internal/jsontext"
)

// object is a JSON object that preserves the order of its members: a model
// reads the fields in the author's order, and a list of tools is the same
// each time.
type object []member

type member struct {
	name  string
	value any
}

// ordered returns the object of a map, sorted by name.
func ordered(members map[string]any) object {
	var sorted object
	for _, name := range slices.Sorted(maps.Keys(members)) {
		sorted = append(sorted, member{name, members[name]})
	}
	return sorted
}

func (o object) find(name string) (int, bool) {
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	return i, i >= 0
}

func (o object) has(name string) bool {
	_, has := o.find(name)
	return has
}

func (o object) get(name string) any {
	if i, has := o.find(name); has {
		return o[i].value
	}
	return nil
}

func (o *object) set(name string, value any) {
	if i, has := o.find(name); has {
		(*o)[i].value = value
		return
	}
	*o = append(*o, member{name, value})
}

// without returns the object without a member.
func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.name == name })
}

// isObject reports whether a schema accepts only objects.
func (o object) isObject() bool {
	return o.get("type") == "object"
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, member := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		name, err := json.Marshal(member.name)
		if err != nil {
			return nil, err
		}
		value, err := jsontext.Of(member.value)
		if err != nil {
			return nil, err
		}
		text.Write(name)
		text.WriteByte(':')
		text.Write(value)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
