package tests

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"toolbay"
)

func TestEveryKind(t *testing.T) {
	type kinds struct {
		Yes    bool
		Small  int8
		Byte   uint8
		Int    int
		Uint   uint64
		Float  float32
		Text   string
		Bytes  []byte
		List   []string
		Pair   [2]bool
		Map    map[string]int
		Any    any
		Raw    json.RawMessage
		Number json.Number
		Time   time.Time
		Addr   netip.Addr
		hidden chan int
		Skip   chan int `json:"-"`
	}
	same(t, input[kinds](t), `{"type":"object","properties":{`+
		`"Yes":{"type":"boolean"},`+
		`"Small":{"type":"integer","minimum":-128,"maximum":127},`+
		`"Byte":{"type":"integer","minimum":0,"maximum":255},`+
		`"Int":{"type":"integer"},`+
		`"Uint":{"type":"integer","minimum":0},`+
		`"Float":{"type":"number"},`+
		`"Text":{"type":"string"},`+
		`"Bytes":{"type":"string","contentEncoding":"base64"},`+
		`"List":{"type":"array","items":{"type":"string"}},`+
		`"Pair":{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2},`+
		`"Map":{"type":"object","additionalProperties":{"type":"integer"}},`+
		`"Any":{},"Raw":{},"Number":{"type":"number"},`+
		`"Time":{"type":"string","format":"date-time"},"Addr":{"type":"string"}},`+
		`"required":["Yes","Small","Byte","Int","Uint","Float","Text","Bytes","List","Pair","Map","Any","Raw","Number","Time","Addr"],`+
		`"additionalProperties":false}`)
	_ = kinds{hidden: nil}
}

func TestNoArguments(t *testing.T) {
	same(t, input[struct{}](t), `{"type":"object","properties":{},"additionalProperties":false}`)
	same(t, input[map[string]any](t), `{"type":"object","additionalProperties":{}}`)
}

type optional struct {
	Must    string  `json:"must"`
	Pointer *string `json:"pointer"`
	Omitted string  `json:"omitted,omitempty"`
	Zero    string  `json:"zero,omitzero"`
	Given   int     `json:"given" default:"7"`
}

func TestOptionalArguments(t *testing.T) {
	same(t, input[optional](t), `{"type":"object","properties":{"must":{"type":"string"},`+
		`"pointer":{"type":["string","null"]},"omitted":{"type":"string"},"zero":{"type":"string"},`+
		`"given":{"type":"integer","default":7}},"required":["must"],"additionalProperties":false}`)
}

func TestOptionalResults(t *testing.T) {
	type result struct {
		Must    string   `json:"must"`
		Pointer *string  `json:"pointer"`
		Left    *string  `json:"left,omitempty"`
		Zero    []string `json:"zero,omitzero"`
	}
	same(t, output[result](t), `{"type":"object","properties":{"must":{"type":"string"},`+
		`"pointer":{"type":["string","null"]},"left":{"type":"string"},`+
		`"zero":{"type":"array","items":{"type":"string"}}},"required":["must","pointer"],"additionalProperties":false}`)
}

func TestTags(t *testing.T) {
	type tagged struct {
		Unit  string   `json:"unit" enum:"metric,imperial" default:"metric" description:"The unit."`
		Level int      `json:"level" enum:"1,2" minimum:"1" maximum:"2"`
		Tags  []string `json:"tags" minItems:"1" maxItems:"3" minLength:"2" maxLength:"9" pattern:"^[a-z]+$" enum:"ab,cd"`
		Where *string  `json:"where" format:"uri" enum:"a"`
		Big   []int    `json:"big" minimum:"-1.5"`
	}
	same(t, input[tagged](t), `{"type":"object","properties":{`+
		`"unit":{"type":"string","enum":["metric","imperial"],"description":"The unit.","default":"metric"},`+
		`"level":{"type":"integer","enum":[1,2],"minimum":1,"maximum":2},`+
		`"tags":{"type":"array","items":{"type":"string","enum":["ab","cd"],"minLength":2,"maxLength":9,"pattern":"^[a-z]+$"},"minItems":1,"maxItems":3},`+
		`"where":{"type":["string","null"],"enum":["a",null],"format":"uri"},`+
		`"big":{"type":"array","items":{"type":"integer","minimum":-1.5}}},`+
		`"required":["level","tags","big"],"additionalProperties":false}`)
}

type named struct {
	Name string `json:"name"`
}

type Embedded struct {
	Name  string `json:"name"`
	Other int    `json:"other"`
}

func TestEmbedded(t *testing.T) {
	type outer struct {
		Embedded
		Name bool `json:"name"`
	}
	same(t, input[outer](t), `{"type":"object","properties":{"name":{"type":"boolean"},"other":{"type":"integer"}},`+
		`"required":["name","other"],"additionalProperties":false}`)
	type inside struct {
		E Embedded `json:"e"`
		named
	}
	same(t, input[inside](t), `{"type":"object","properties":{"e":{"type":"object","properties":{"name":{"type":"string"},"other":{"type":"integer"}},`+
		`"required":["name","other"],"additionalProperties":false},"name":{"type":"string"}},"required":["e","name"],"additionalProperties":false}`)
	type loose struct{ *Embedded }
	same(t, input[loose](t), `{"type":"object","properties":{"name":{"type":"string"},"other":{"type":"integer"}},"additionalProperties":false}`)
}

type tree struct {
	Value    int    `json:"value"`
	Children []tree `json:"children"`
	Left     *tree  `json:"left"`
}

func TestRecursion(t *testing.T) {
	same(t, output[tree](t), `{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#"}},`+
		`"left":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["value","children","left"],"additionalProperties":false}`)
	type forest struct {
		A tree `json:"a"`
		B tree `json:"b"`
	}
	same(t, input[forest](t), `{"type":"object","properties":{"a":{"$ref":"#/$defs/tree"},"b":{"$ref":"#/$defs/tree"}},"required":["a","b"],"additionalProperties":false,`+
		`"$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/tree"}},`+
		`"left":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["value","children"],"additionalProperties":false}}}`)
}

type color struct{ r, g, b uint8 }

func (color) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^#[0-9a-f]{6}$"}
}

func (c color) MarshalJSON() ([]byte, error) { return []byte(`"#000000"`), nil }

type size string

func (size) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"s", "m"}}
}

func TestSchemer(t *testing.T) {
	same(t, output[[]*size](t), `{"type":"array","items":{"anyOf":[{"enum":["s","m"],"type":"string"},{"type":"null"}]}}`)
	same(t, output[[]color](t), `{"type":"array","items":{"pattern":"^#[0-9a-f]{6}$","type":"string"}}`)
}

func TestResultsThatAreNotStructured(t *testing.T) {
	same(t, output[string](t), "")
	same(t, output[toolbay.Content](t), "")
	same(t, output[[]toolbay.Content](t), "")
	same(t, output[toolbay.Output[any]](t), "")
	same(t, output[toolbay.Output[[]int]](t), `{"type":"array","items":{"type":"integer"}}`)
	same(t, output[*named](t), output[named](t))
	same(t, output[float64](t), `{"type":"number"}`)
}

func TestOptions(t *testing.T) {
	run := func(*toolbay.Context, struct{}) (string, error) { return "", nil }
	d := definition(t, offer(run, toolbay.Title("T"), toolbay.ReadOnly(true), toolbay.OpenWorld(false), toolbay.Meta(map[string]any{"a": 1}),
		toolbay.Icons(toolbay.Icon{Src: "https://example.com/a.png"})))
	same(t, text(d.Hints), `{"ReadOnly":true,"Destructive":null,"Idempotent":null,"OpenWorld":false}`)
	same(t, d.Title, "T")
	same(t, text(d.Meta), `{"a":1}`)
	same(t, d.Icons[0].Src, "https://example.com/a.png")
}

type selfMade struct{}

func (selfMade) UnmarshalJSON([]byte) error { return nil }

type itself struct{ *itself }

func TestWhatIsRefused(t *testing.T) {
	type channel struct{ C struct{ Deep chan int } }
	contains(t, refused(t, func() { input[channel](t) }), "tests.channel.C.Deep: chan int has no form in JSON")
	contains(t, refused(t, func() { input[string](t) }), "arguments are a struct")
	contains(t, refused(t, func() { input[map[int]string](t) }), "the keys of a map must be strings")
	contains(t, refused(t, func() { input[struct{ F selfMade }](t) }), "JSONSchema() map[string]any")
	contains(t, refused(t, func() {
		input[struct {
			X int
			B int `json:"X"`
		}](t)
	}), `two fields are named "X"`)
	contains(t, refused(t, func() {
		input[struct {
			A int `json:",string"`
		}](t)
	}), "make the field a string")
	contains(t, refused(t, func() {
		input[struct {
			A int `default:"many"`
		}](t)
	}), `"many" is no int`)
	contains(t, refused(t, func() {
		input[struct {
			A []struct {
				B int `default:"1"`
			}
		}](t)
	}), "set the value in the function")
	contains(t, refused(t, func() {
		input[struct {
			A string `minimum:"1"`
		}](t)
	}), "bounded by a number")
	contains(t, refused(t, func() {
		input[struct {
			A string `minLength:"-1"`
		}](t)
	}), "a whole number")
	contains(t, refused(t, func() {
		input[struct {
			A int `enum:"1,x"`
		}](t)
	}), `"x" is no int`)
	contains(t, refused(t, func() { input[itself](t) }), "embeds itself")
	run := func(*toolbay.Context, struct{}) (string, error) { return "", nil }
	contains(t, refused(t, func() { toolbay.Tool("a b", "", run) }), "cannot be the name of a tool")
	toolbay.Tool("twice", "", run)
	contains(t, refused(t, func() { toolbay.Tool("twice", "", run) }), "two tools named")
}
