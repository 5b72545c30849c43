package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"toolbay"
)

func TestArguments(t *testing.T) {
	type inner struct {
		Depth int `json:"depth" default:"3"`
	}
	type args struct {
		Name  string   `json:"name"`
		Count *int     `json:"count" default:"5"`
		Units string   `json:"units" default:"metric"`
		Tags  []string `json:"tags" default:"[\"a\"]"`
		In    inner    `json:"in,omitzero"`
	}
	got, err := given[args](`{"name": "\u0001\"é😀"}`)
	same(t, text(got)+fmt.Sprint(err), `{"name":"\u0001\"é😀","count":5,"units":"metric","tags":["a"],"in":{"depth":3}}<nil>`)
	got, err = given[args](`{"name": "n", "count": null, "units": "", "tags": [], "in": {"depth": 0}}`)
	same(t, text(got)+fmt.Sprint(err), `{"name":"n","count":null,"units":"","tags":[]}<nil>`)
}

func TestWholeNumbers(t *testing.T) {
	type args struct {
		N []int64 `json:"n"`
		F float64 `json:"f"`
	}
	got, err := given[args](`{"n": [2.0, -3e2, 9007199254740993, 0.0], "f": 1.5}`)
	same(t, text(got)+fmt.Sprint(err), `{"n":[2,-300,9007199254740993,0],"f":1.5}<nil>`)
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	type args struct {
		N    int64     `json:"n"`
		Time time.Time `json:"time"`
		Data []byte    `json:"data"`
	}
	for arguments, message := range map[string]string{
		`{"n": 99999999999999999999}`: "argument n: the number 99999999999999999999 is not int64",
		`{"n": 1.5}`:                  "argument n: the number 1.5 is not int64",
		`{"time": "noon"}`:            "cannot parse",
		`{"data": "?"}`:               "base64",
	} {
		_, err := given[args](arguments)
		if !toolbay.IsInvalidArguments(err) {
			t.Errorf("%s: got %v", arguments, err)
			continue
		}
		contains(t, err.Error(), message)
	}
}

func TestNilIsEmpty(t *testing.T) {
	type inner struct {
		List []int          `json:"list"`
		Map  map[string]any `json:"map"`
	}
	type result struct {
		inner
		Inner   inner            `json:"inner"`
		Pointer *inner           `json:"pointer"`
		Nil     *inner           `json:"nil"`
		Many    []inner          `json:"many"`
		Lists   [][]int          `json:"lists"`
		Maps    map[string][]int `json:"maps"`
		Any     any              `json:"any"`
		Bytes   []byte           `json:"bytes"`
		Left    []int            `json:"left,omitempty"`
		Zero    []int            `json:"zero,omitzero"`
		Time    time.Time        `json:"time"`
		Raw     json.RawMessage  `json:"raw"`
	}
	own := inner{}
	reply, err := answer(result{Pointer: &own, Many: []inner{{}}, Lists: [][]int{nil}, Maps: map[string][]int{"a": nil}, Any: inner{}})
	const empty = `{"list":[],"map":{}}`
	same(t, string(reply.Structured)+fmt.Sprint(err), `{"list":[],"map":{},"inner":`+empty+`,"pointer":`+empty+`,"nil":null,"many":[`+empty+`],`+
		`"lists":[[]],"maps":{"a":[]},"any":`+empty+`,"bytes":"","time":"0001-01-01T00:00:00Z","raw":null}<nil>`)
	if own.List != nil {
		t.Error("the tool's own value was changed")
	}
}

func TestResults(t *testing.T) {
	reply, err := answer("a")
	same(t, text(reply.Content[0].Text)+fmt.Sprint(err), `"a"<nil>`)
	reply, err = answer(toolbay.Image([]byte{1}, "image/png"))
	same(t, reply.Content[0].MIMEType+fmt.Sprint(err), "image/png<nil>")
	reply, err = answer([]toolbay.Content{toolbay.Text("a"), toolbay.Link("b:", "b")})
	same(t, fmt.Sprint(len(reply.Content), err), "2 <nil>")
	reply, err = answer(toolbay.Output[map[string]string]{Structured: map[string]string{"<": "&"}, Meta: map[string]any{"a": 1}})
	same(t, string(reply.Structured)+string(reply.Meta)+fmt.Sprint(err), `{"<":"&"}{"a":1}<nil>`)
	reply, err = answer(toolbay.Output[any]{})
	same(t, fmt.Sprint(reply.Structured == nil, err), "true <nil>")
	reply, err = answer(&named{"n"})
	same(t, string(reply.Structured)+fmt.Sprint(err), `{"name":"n"}<nil>`)
}

func TestKinds(t *testing.T) {
	blocks := []toolbay.Content{
		toolbay.Text("a"), toolbay.Image(nil, "image/png"), toolbay.Audio(nil, "audio/wav"), toolbay.Link("a:", "a"),
		toolbay.TextResource("a:", "b", ""),
	}
	same(t, fmt.Sprint(blocks[0].Kind, blocks[1].Kind, blocks[2].Kind), "text image audio")
	same(t, fmt.Sprint(blocks[3].Kind, blocks[4].Kind), "resource-link embedded-resource")
	same(t, fmt.Sprint(toolbay.BinaryResource("a:", nil, "").Kind), "embedded-resource")
	// Another kind needs a block above.
	same(t, fmt.Sprint(toolbay.Kind(len(blocks))), "kind 5")
}

func TestResultsThatCannotBe(t *testing.T) {
	_, err := answer[*named](nil)
	contains(t, fmt.Sprint(err), "the tool returned nil")
	_, err = answer(math.NaN())
	contains(t, fmt.Sprint(err), "the result cannot be written as JSON")
	type cycle struct{ Next *cycle }
	round := &cycle{}
	round.Next = round
	_, err = answer(*round)
	contains(t, fmt.Sprint(err), "the result cannot be written as JSON")
}

func TestFailures(t *testing.T) {
	fail := func(failure error) error {
		name := offer(func(*toolbay.Context, struct{}) (string, error) { return "", failure })
		var host toolbay.Test
		_, err := host.Call(name, "{}")
		return err
	}
	cause := errors.New("cause")
	same(t, fmt.Sprint(toolbay.IsInvalidArguments(fail(cause))), "false")
	invalid := toolbay.InvalidArguments("%d: %w", 1, cause)
	same(t, fmt.Sprint(invalid, errors.Is(invalid, cause)), "1: cause true")
	same(t, fmt.Sprint(toolbay.IsInvalidArguments(fail(fmt.Errorf("outer: %w", invalid)))), "true")
	var host toolbay.Test
	_, err := host.Call("missing", "{}")
	contains(t, fmt.Sprint(err), `no tool named "missing"`)
}

func TestPanic(t *testing.T) {
	var host toolbay.Test
	name := offer(func(*toolbay.Context, struct{}) (int, error) { return []int{}[tools], nil })
	_, err := host.Call(name, "{}")
	contains(t, fmt.Sprint(err), "the tool panicked: runtime error: index out of range")
	contains(t, host.Logs[0].Message, "TestPanic")
	same(t, fmt.Sprint(host.Logs[0].Level == toolbay.LevelDebug), "true")
}

func TestContext(t *testing.T) {
	host := toolbay.Test{Config: map[string]string{"units": "metric", "port": "80", "hosts": `["a"]`, "wait": "2006-01-02T15:04:05Z"}, Cancelled: true}
	ctx := host.Context()
	ctx.Infof("%d", 1)
	ctx.Log(toolbay.LevelWarning, "100%")
	ctx.Progress(1, 0)
	ctx.Progress(2, 3, "reading")
	same(t, text(host.Logs), `[{"Level":1,"Message":"1"},{"Level":3,"Message":"100%"}]`)
	same(t, text(host.Reports), `[{"Done":1,"Total":0,"Message":""},{"Done":2,"Total":3,"Message":"reading"}]`)
	same(t, fmt.Sprint(ctx.Cancelled(), len(ctx.ConfigAll())), "true 4")

	var units string
	var port int
	var hosts []string
	var wait time.Time
	for key, into := range map[string]any{"units": &units, "port": &port, "hosts": &hosts, "wait": &wait} {
		if has, err := ctx.ConfigInto(key, into); !has || err != nil {
			t.Error(key, has, err)
		}
	}
	same(t, fmt.Sprint(units, port, hosts, wait.Year()), "metric80 [a] 2006")
	has, err := ctx.ConfigInto("units", &port)
	same(t, fmt.Sprint(has), "true")
	contains(t, fmt.Sprint(err), "the operator's config.units cannot be used")
	has, err = ctx.ConfigInto("absent", &port)
	same(t, fmt.Sprint(has, err, port), "false <nil> 80")
}
