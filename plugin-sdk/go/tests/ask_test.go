package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"toolbay"
)

type colour string

type titled string

func (titled) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "oneOf": []any{map[string]any{"const": "s", "title": "Small"}}}
}

type details struct {
	Name    string    `json:"name" title:"Name" description:"The user's name." minLength:"1"`
	Mail    string    `json:"mail,omitempty" format:"email"`
	Age     *uint8    `json:"age"`
	Score   float64   `json:"score" default:"0.5" maximum:"1"`
	Sure    bool      `json:"sure" default:"true"`
	Colour  colour    `json:"colour" enum:"red,blue"`
	Colours []string  `json:"colours,omitempty" enum:"red,blue" maxItems:"2"`
	Size    titled    `json:"size,omitempty"`
	When    time.Time `json:"when,omitzero"`
}

// asked returns the parameters of the only question that was asked.
func asked(t *testing.T, host *toolbay.Test) string {
	t.Helper()
	if len(host.Asked) != 1 {
		t.Fatalf("%d questions were asked", len(host.Asked))
	}
	return string(host.Asked[0].Params)
}

func TestAFormHasOnlyWhatClientsCanShow(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{"who": toolbay.Decline()}}
	answer, err := toolbay.Ask(host.Context(), "who", toolbay.Form[details]{Message: "Who <are> you?"})
	same(t, line(answer.Action, err), "decline <nil>")
	same(t, asked(t, &host), `{"message":"Who <are> you?","requestedSchema":{"type":"object","properties":{`+
		`"name":{"type":"string","minLength":1,"title":"Name","description":"The user's name."},`+
		`"mail":{"type":"string","format":"email"},`+
		`"age":{"type":"integer","minimum":0,"maximum":255},`+
		`"score":{"type":"number","maximum":1,"default":0.5},`+
		`"sure":{"type":"boolean","default":true},`+
		`"colour":{"type":"string","enum":["red","blue"]},`+
		`"colours":{"type":"array","items":{"type":"string","enum":["red","blue"]},"maxItems":2},`+
		`"size":{"oneOf":[{"const":"s","title":"Small"}],"type":"string"},`+
		`"when":{"type":"string","format":"date-time"}},`+
		`"required":["name","colour"]}}`)
	same(t, line(host.Asked[0].Key, host.Asked[0].Kind == toolbay.FormQuestion, host.Asked[0].Required), "who true true")
}

func TestAFormIsAcceptedDeclinedOrCancelled(t *testing.T) {
	ask := func(answer any) (toolbay.Elicited[details], error) {
		host := toolbay.Test{Answers: map[string]any{"who": answer}}
		return toolbay.Ask(host.Context(), "who", toolbay.Form[details]{Message: "Who?"})
	}
	answer, err := ask(json.RawMessage(`{"action": "accept", "content": {"name": "Ada", "colour": "red", "age": 36.0}}`))
	same(t, line(answer.Action == toolbay.Accepted, answer.Content.Name, *answer.Content.Age, answer.Content.Score, answer.Content.Sure, err),
		"true Ada 36 0.5 true <nil>")
	answer, err = ask(toolbay.Accept(details{Name: "Ada", Colours: []string{"blue"}}))
	same(t, line(answer.Content.Name, answer.Content.Colours, answer.Content.Sure, err), "Ada [blue] false <nil>")
	answer, err = ask(toolbay.Cancel())
	same(t, line(answer.Action == toolbay.Cancelled, err), "true <nil>")
	for result, message := range map[string]string{
		`{"action": "accept", "content": {"age": 256}}`: `the answer to question "who"`,
		`{"action": "accept"}`:                          `the answer to question "who"`,
		`{"action": "perhaps"}`:                         `its action is "perhaps"`,
		`7`:                                             `the answer to question "who"`,
	} {
		_, err := ask(json.RawMessage(result))
		contains(t, fmt.Sprint(err), message)
	}
}

func TestAFormCanHaveASchemaOfItsOwn(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{"which": toolbay.Accept(map[string]any{"file": "b"})}}
	schema := map[string]any{"type": "object", "properties": map[string]any{"file": map[string]any{"type": "string", "enum": []string{"a", "b"}}}}
	answer, err := toolbay.Ask(host.Context(), "which", toolbay.Form[map[string]any]{Message: "Which?", Schema: schema})
	same(t, line(answer.Content["file"], err), "b <nil>")
	same(t, asked(t, &host), `{"message":"Which?","requestedSchema":{"properties":{"file":{"enum":["a","b"],"type":"string"}},"type":"object"}}`)
}

func notAForm[T any](t *testing.T) string {
	t.Helper()
	return refused(t, func() {
		var host toolbay.Test
		_, _ = toolbay.Ask(host.Context(), "a", toolbay.Form[T]{Message: "m"})
	})
}

func TestWhatIsNoForm(t *testing.T) {
	contains(t, notAForm[string](t), "toolbay: form: string: a form is a struct, or has a Schema")
	contains(t, notAForm[struct{}](t), "a form has at least one field")
	contains(t, notAForm[struct{ In struct{ A int } }](t), ".In: a form has texts, numbers, bools, choices, and lists of choices only")
	contains(t, notAForm[struct{ Any any }](t), ".Any: a form has texts")
	contains(t, notAForm[struct{ Bytes []byte }](t), ".Bytes: a form has no bytes")
	contains(t, notAForm[struct{ List []string }](t), ".List: a list in a form is one of texts with choices")
	contains(t, notAForm[struct {
		N int `enum:"1,2"`
	}](t), ".N: the choices of a form are texts")
	contains(t, notAForm[struct {
		A string `pattern:"a+"`
	}](t), ".A: clients do not know patterns in forms")
	contains(t, notAForm[struct {
		A string `format:"regex"`
	}](t), ".A: clients do not know the format regex in forms")
	contains(t, notAForm[struct {
		N int `default:"x"`
	}](t), `.N: "x" is no int`)
}

func TestAVisit(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{"pay": toolbay.Accept(nil)}}
	action, err := toolbay.Ask(host.Context(), "pay", toolbay.Visit{Message: "Pay.", URL: "https://example.com/?a&b"})
	same(t, line(action, err), "accept <nil>")
	same(t, asked(t, &host), `{"message":"Pay.","url":"https://example.com/?a&b"}`)
	same(t, line(host.Asked[0].Kind == toolbay.VisitQuestion), "true")
}

func TestASampling(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{"poem": toolbay.Sampled{Text: "Drip.", Model: "m", StopReason: "endTurn"}}}
	sampling := toolbay.Sampling{
		Messages: []toolbay.Message{
			toolbay.UserText("Write."), toolbay.AssistantText("What?"),
			{Role: toolbay.User, Content: toolbay.Image([]byte{1}, "image/png")},
		},
		MaxTokens: 5, System: "Be brief.", Params: map[string]any{"temperature": 0.5}, Optional: true,
	}
	poem, err := toolbay.Ask(host.Context(), "poem", sampling)
	same(t, line(poem.Text, poem.Model, poem.StopReason, err), "Drip. m endTurn <nil>")
	same(t, asked(t, &host), `{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"Write."}},`+
		`{"role":"assistant","content":{"type":"text","text":"What?"}},`+
		`{"role":"user","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}],"systemPrompt":"Be brief.","temperature":0.5}`)
	same(t, line(host.Asked[0].Kind == toolbay.SamplingQuestion, host.Asked[0].Required), "true false")
	host.Answers["poem"] = json.RawMessage(`{"content": [{"type": "text", "text": "x"}, {"type": "image"}, {"type": "text", "text": "y"}]}`)
	poem, err = toolbay.Ask(host.Context(), "poem", sampling)
	same(t, text(poem.Text)+fmt.Sprint(err), `"x\ny"<nil>`)
	contains(t, string(poem.Result), `"image"`)
	_, err = toolbay.Ask(host.Context(), "poem", toolbay.Sampling{Messages: []toolbay.Message{{Content: toolbay.Link("a:", "a")}}})
	contains(t, fmt.Sprint(err), `question "poem": a message has a block of the kind resource-link`)
}

func TestSeveralQuestionsAtOnce(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{
		"sure":  toolbay.Accept(map[string]any{"name": "Ada", "colour": "red"}),
		"roots": []toolbay.Root{{URI: "file:///w", Name: "w"}},
	}}
	var sure toolbay.Elicited[details]
	var roots []toolbay.Root
	questions := []toolbay.Asking{
		toolbay.Into("sure", toolbay.Form[details]{Message: "Sure?"}, &sure),
		toolbay.Into("roots", toolbay.Roots{}, &roots),
	}
	err := host.Context().AskAll(questions...)
	same(t, line(sure.Content.Name, roots, err), "Ada [{file:///w w}] <nil>")
	same(t, host.Asked[1].Key+string(host.Asked[1].Params), "roots{}")
	contains(t, fmt.Sprint(host.Context().AskAll(questions[0], questions[0])), `two questions have the key "sure"`)
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	host := toolbay.Test{Answers: map[string]any{"roots": toolbay.ErrUnsupported}}
	_, err := toolbay.Ask(host.Context(), "roots", toolbay.Roots{Optional: true})
	same(t, line(errors.Is(err, toolbay.ErrUnsupported)), "true")
	_, err = toolbay.Ask(host.Context(), "other", toolbay.Roots{})
	same(t, line(err), `the test has no answer to the question "other": add it to Answers of toolbay.Test`)
	for _, key := range []string{"", "a b", fmt.Sprintf("%065d", 0)} {
		_, err = toolbay.Ask(host.Context(), key, toolbay.Roots{})
		contains(t, fmt.Sprint(err), "cannot be the key of a question")
	}
}

func TestUpdatedResources(t *testing.T) {
	var host toolbay.Test
	host.Context().ResourceUpdated("notes://1")
	host.Context().ResourceUpdated("notes://2")
	same(t, line(host.Updated), "[notes://1 notes://2]")
}
