package tests

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"toolbay"
	"toolbay/completion"
	"toolbay/prompts"
)

var offeredPrompts int

// prompt offers a function as a prompt under a new name.
func prompt[A any, R prompts.Result](run func(*toolbay.Context, A) (R, error), options ...prompts.Option) string {
	offeredPrompts++
	name := fmt.Sprint("prompt_", offeredPrompts)
	prompts.Add(name, "Asks.", run, options...)
	return name
}

func promptDefinition(t *testing.T, name string) prompts.Definition {
	t.Helper()
	for _, definition := range prompts.All() {
		if definition.Name == name {
			return definition
		}
	}
	t.Fatalf("there is no prompt %q", name)
	return prompts.Definition{}
}

// filled returns the value that a function gets for a prompt's arguments.
func filled[A any](arguments map[string]string) (A, error) {
	var got A
	name := prompt(func(_ *toolbay.Context, args A) (string, error) { got = args; return "", nil })
	var host toolbay.Test
	_, err := prompts.Get(host.Context(), name, arguments)
	return got, err
}

// says returns the messages of a prompt whose function returns a value.
func says[R prompts.Result](result R) (prompts.Output, error) {
	name := prompt(func(*toolbay.Context, struct{}) (R, error) { return result, nil })
	var host toolbay.Test
	return prompts.Get(host.Context(), name, nil)
}

type common struct {
	Language *string `json:"language" title:"Language"`
}

type reviewArgs struct {
	common
	Code  string     `json:"code" description:"The code."`
	Depth int8       `json:"depth" default:"2"`
	Quick bool       `json:"quick,omitempty"`
	Limit float32    `json:"limit,omitzero"`
	From  netip.Addr `json:"from,omitzero"`
	Max   *uint16    `json:"max"`
}

func TestPromptDefinition(t *testing.T) {
	name := prompt(func(*toolbay.Context, reviewArgs) (string, error) { return "", nil },
		prompts.Title("Review"), prompts.Meta(map[string]any{"a": 1}), prompts.Icons(toolbay.Icon{Src: "data:,"}))
	definition := promptDefinition(t, name)
	same(t, text(definition.Arguments), `[{"Name":"language","Title":"Language","Description":"","Required":false},`+
		`{"Name":"code","Title":"","Description":"The code.","Required":true},`+
		`{"Name":"depth","Title":"","Description":"","Required":false},`+
		`{"Name":"quick","Title":"","Description":"","Required":false},`+
		`{"Name":"limit","Title":"","Description":"","Required":false},`+
		`{"Name":"from","Title":"","Description":"","Required":false},`+
		`{"Name":"max","Title":"","Description":"","Required":false}]`)
	same(t, line(definition.Title, definition.Description, definition.Meta, definition.Icons[0].Src), "Review Asks. map[a:1] data:,")
}

func TestPromptArguments(t *testing.T) {
	got, err := filled[reviewArgs](map[string]string{"code": " \n", "language": "Go", "depth": " -128 ", "quick": "true", "limit": "0.5", "from": "::1", "max": "65535"})
	same(t, fmt.Sprintf("%q %s %d %t %g %s %d %v", got.Code, *got.Language, got.Depth, got.Quick, got.Limit, got.From, *got.Max, err), `" \n" Go -128 true 0.5 ::1 65535 <nil>`)
	got, err = filled[reviewArgs](map[string]string{"code": ""})
	same(t, line(got.Language == nil, got.Depth, got.Quick, got.Max == nil, err), "true 2 false true <nil>")
}

func TestPromptArgumentsThatDoNotFit(t *testing.T) {
	for name, wrong := range map[string]struct{ text, message string }{
		"depth": {"128", `argument depth: "128" must be a whole number from -128 to 127`},
		"quick": {"yes", `argument quick: "yes" must be true or false`},
		"limit": {"much", `argument limit: "much" must be a number`},
		"max":   {"-1", `argument max: "-1" must be a whole number from 0 to 65535`},
		"from":  {"here", `argument from: "here" cannot be used: ParseAddr`},
	} {
		_, err := filled[reviewArgs](map[string]string{"code": "", name: wrong.text})
		contains(t, fmt.Sprint(err), wrong.message)
		same(t, line(toolbay.IsInvalidArguments(err)), "true")
	}
	_, err := filled[reviewArgs](nil)
	same(t, line(err), "argument code is missing")
	type wide struct {
		N int64
		U uint64
	}
	_, err = filled[wide](map[string]string{"N": "9223372036854775808"})
	contains(t, fmt.Sprint(err), "from -9223372036854775808 to 9223372036854775807")
	_, err = filled[wide](map[string]string{"N": "0", "U": "-1"})
	contains(t, fmt.Sprint(err), "from 0 to 18446744073709551615")
}

func TestPromptResults(t *testing.T) {
	output, err := says("a")
	same(t, text(output.Messages)+fmt.Sprint(err), text([]toolbay.Message{toolbay.UserText("a")})+"<nil>")
	output, _ = says(toolbay.Image([]byte{1}, "image/png"))
	same(t, line(output.Messages[0].Role == toolbay.User, output.Messages[0].Content.Kind), "true image")
	output, _ = says(toolbay.AssistantText("b"))
	same(t, line(output.Messages[0].Role == toolbay.Assistant, output.Messages[0].Content.Text), "true b")
	output, _ = says([]toolbay.Message{toolbay.UserText("a"), toolbay.AssistantText("b")})
	same(t, line(len(output.Messages)), "2")
	output, _ = says(prompts.Output{Description: "d", Messages: []toolbay.Message{toolbay.UserText("a")}})
	same(t, output.Description+output.Messages[0].Content.Text, "da")
}

func TestPromptFailures(t *testing.T) {
	fail := func(run func() error) error {
		name := prompt(func(*toolbay.Context, struct{}) (string, error) { return "", run() })
		var host toolbay.Test
		_, err := prompts.Get(host.Context(), name, nil)
		return err
	}
	cause := errors.New("cause")
	same(t, line(errors.Is(fail(func() error { return cause }), cause)), "true")
	same(t, line(fail(func() error { panic("kaboom") })), "the prompt panicked: kaboom")
	var host toolbay.Test
	_, err := prompts.Get(host.Context(), "missing", nil)
	same(t, line(err), `there is no prompt named "missing"`)
}

func TestAPromptCanAsk(t *testing.T) {
	name := prompt(func(ctx *toolbay.Context, _ struct{}) (string, error) {
		roots, err := toolbay.Ask(ctx, "roots", toolbay.Roots{})
		return fmt.Sprint(len(roots)), err
	})
	host := toolbay.Test{Answers: map[string]any{"roots": []toolbay.Root{{URI: "file:///a"}}}}
	output, err := prompts.Get(host.Context(), name, nil)
	same(t, line(output.Messages[0].Content.Text, err), "1 <nil>")
}

func TestPromptsThatCannotBe(t *testing.T) {
	contains(t, refused(t, func() { prompts.Add("a b", "", func(*toolbay.Context, struct{}) (string, error) { return "", nil }) }),
		`"a b" cannot be the name of a prompt`)
	name := prompt(func(*toolbay.Context, struct{}) (string, error) { return "", nil })
	contains(t, refused(t, func() { prompts.Add(name, "", func(*toolbay.Context, struct{}) (string, error) { return "", nil }) }),
		fmt.Sprintf("there are two prompts named %q", name))
	bad := func(add func()) string {
		t.Helper()
		return refused(t, add)
	}
	contains(t, bad(func() { prompt(func(*toolbay.Context, map[string]string) (string, error) { return "", nil }) }), "map[string]string: arguments are a struct")
	contains(t, bad(func() { prompt(func(*toolbay.Context, struct{ List []string }) (string, error) { return "", nil }) }),
		"List: []string cannot be read from a text")
	type chosen struct {
		Style string `json:"style" enum:"a,b"`
	}
	contains(t, bad(func() { prompt(func(*toolbay.Context, chosen) (string, error) { return "", nil }) }), "Style: nobody checks the tag enum here")
	type defaulted struct {
		N int `json:"n" default:"x"`
	}
	contains(t, bad(func() { prompt(func(*toolbay.Context, defaulted) (string, error) { return "", nil }) }), `N: the default "x" must be a whole number`)
	type named struct {
		N int `json:"a b"`
	}
	contains(t, bad(func() { prompt(func(*toolbay.Context, named) (string, error) { return "", nil }) }), `"a b" cannot be the name of an argument`)
}

func TestCompletion(t *testing.T) {
	cities := map[string][]string{"Italy": {"Milan", "Rome"}}
	type travel struct {
		Country string `json:"country"`
		City    string `json:"city"`
		Days    int    `json:"days" default:"3"`
	}
	name := prompt(func(*toolbay.Context, travel) (string, error) { return "", nil },
		completion.Among("country", "France", "Finland", "Italy"),
		completion.Of("city", func(_ *toolbay.Context, typed string, given travel) ([]string, error) {
			return completion.BeginningWith(typed, append(cities[given.Country], fmt.Sprint("M", given.Days))...), nil
		}),
		completion.Of("days", func(_ *toolbay.Context, typed string, given map[string]string) (completion.Values, error) {
			if given["country"] == "" {
				return completion.Values{}, errors.New("where to?")
			}
			return completion.Values{Values: []string{typed + "0"}, Total: 7, HasMore: true}, nil
		}))
	complete := func(argument, typed string, given map[string]string) string {
		var host toolbay.Test
		values, err := completion.Complete(host.Context(), completion.Request{Prompt: name, Argument: argument, Typed: typed, Given: given})
		return line(values, err)
	}
	same(t, complete("country", "f", nil), "{[France Finland] 0 false} <nil>")
	same(t, complete("country", "x", nil), "{[] 0 false} <nil>")
	same(t, complete("city", "m", map[string]string{"country": "Italy"}), "{[Milan M3] 0 false} <nil>")
	// A value that cannot be converted yet is left out.
	same(t, complete("city", "m", map[string]string{"country": "Italy", "days": "many"}), "{[Milan M0] 0 false} <nil>")
	same(t, complete("days", "1", map[string]string{"country": "Italy"}), "{[10] 7 true} <nil>")
	same(t, complete("days", "1", nil), "{[] 0 false} where to?")
	same(t, complete("other", "1", nil), "{[] 0 false} <nil>")
}

func TestCompletionsThatCannotBe(t *testing.T) {
	type args struct {
		Style string `json:"style,omitempty"`
	}
	with := func(options ...prompts.Option) string {
		t.Helper()
		return refused(t, func() { prompt(func(*toolbay.Context, args) (string, error) { return "", nil }, options...) })
	}
	contains(t, with(completion.Among("stlye")), `the completion of "stlye": there is no such argument: the arguments are style`)
	contains(t, with(completion.Among("style"), completion.Among("style")), `there are two completions of "style"`)
	type other struct {
		Tone string `json:"tone"`
	}
	contains(t, with(completion.Of("style", func(*toolbay.Context, string, other) ([]string, error) { return nil, nil })),
		`other.Tone: there is no argument "tone": the arguments are style`)
	contains(t, with(completion.Of("style", func(*toolbay.Context, string, []string) ([]string, error) { return nil, nil })),
		"its last parameter is a map[string]string, or a struct of arguments")
	contains(t, refused(t, func() {
		prompt(func(*toolbay.Context, struct{}) (string, error) { return "", nil }, completion.Among("style"))
	}), "there are no arguments")
}
