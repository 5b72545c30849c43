// Package jsontext writes JSON that people also read.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// Of is like json.Marshal, without the escapes for HTML.
func Of(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// Meta returns the _meta of a definition, or nil. It panics if a value cannot
// be written as JSON. where names the definition in the panic's message.
func Meta(where string, members map[string]any) json.RawMessage {
	if members == nil {
		return nil
	}
	text, err := Of(members)
	if err != nil {
		panic("toolbay: " + where + ": the meta cannot be written as JSON: " + err.Error())
	}
	return text
}
