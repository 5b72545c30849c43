package toolbay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"toolbay/internal/jsontext"
	"toolbay/internal/offer"
)

// Ask asks the caller a question, and returns the answer:
//
//	type Confirmation struct {
//		Yes bool `json:"yes" description:"Really delete it?"`
//	}
//
//	sure, err := toolbay.Ask(ctx, "sure", toolbay.Form[Confirmation]{Message: "This deletes everything."})
//	if err != nil {
//		return "", err
//	}
//	if sure.Action != toolbay.Accepted || !sure.Content.Yes {
//		return "nothing was deleted", nil
//	}
//
// The key identifies the question within the call: 1 to 64 of A-Z a-z 0-9 _ - .
//
// A plugin does not wait for the user: the call ends at this point, and starts
// again in a new instance when the host has the answer. Then Ask returns
// immediately. So the code before it runs again, and deferred functions do not
// run when the call ends. The host ensures that HTTP requests other than GET and
// HEAD, and operations on buckets, happen only once. Ask before you change files.
//
// If the client cannot answer, the host ends the call, unless the question is
// Optional: then the error is [ErrUnsupported].
func Ask[A any](ctx *Context, key string, question Question[A]) (A, error) {
	var answer A
	err := ctx.AskAll(Into(key, question, &answer))
	return answer, err
}

// Question is a question to the caller, whose answer is an A: a [Form], a
// [Visit], a [Sampling] or [Roots].
type Question[A any] interface {
	asked() (AskedQuestion, error)
	read(result json.RawMessage) (A, error)
}

// AskAll asks several questions at once:
//
//	var sure toolbay.Elicited[Confirmation]
//	var roots []toolbay.Root
//	err := ctx.AskAll(
//		toolbay.Into("sure", toolbay.Form[Confirmation]{Message: "This deletes everything."}, &sure),
//		toolbay.Into("roots", toolbay.Roots{}, &roots))
//
// It returns like [Ask]. If there is an error, no answer is valid.
func (c *Context) AskAll(questions ...Asking) error {
	all := make([]AskedQuestion, 0, len(questions))
	for _, question := range questions {
		asked, err := question.asked()
		if err != nil {
			return fmt.Errorf("question %q: %w", question.key, err)
		}
		asked.Key = question.key
		all = append(all, asked)
	}
	results, err := c.host.ask(all)
	if err != nil {
		return err
	}
	if len(results) != len(questions) {
		return fmt.Errorf("there are %d answers to %d questions", len(results), len(questions))
	}
	for i, question := range questions {
		if err := question.read(results[i]); err != nil {
			return fmt.Errorf("the answer to question %q: %w", question.key, err)
		}
	}
	return nil
}

// Asking is one of several questions: see [Into].
type Asking struct {
	key   string
	asked func() (AskedQuestion, error)
	read  func(result json.RawMessage) error
}

// Into returns a question for [Context.AskAll], which stores its answer in the
// value that answer points to.
func Into[A any](key string, question Question[A], answer *A) Asking {
	return Asking{key, question.asked, func(result json.RawMessage) error {
		value, err := question.read(result)
		if err == nil {
			*answer = value
		}
		return err
	}}
}

// ErrUnsupported is the error of an optional question that the client cannot
// answer: errors.Is(err, toolbay.ErrUnsupported).
var ErrUnsupported = errors.New("the client cannot answer this kind of question")

// askError is the reason why there is no answer, as the host states it.
type askError struct {
	message     string
	unsupported bool
}

func (e *askError) Error() string { return e.message }

func (e *askError) Is(target error) bool {
	return e.unsupported && target == ErrUnsupported
}

// AskedQuestion is a question as the host gets it. [Test] records them.
type AskedQuestion struct {
	Key  string
	Kind QuestionKind
	// Params are those of MCP's elicitation/create or sampling/createMessage.
	Params json.RawMessage
	// Required is true if the call cannot continue without an answer.
	Required bool
}

// QuestionKind is the kind of a question.
type QuestionKind uint8

// The kinds of questions.
const (
	FormQuestion QuestionKind = iota
	VisitQuestion
	SamplingQuestion
	RootsQuestion
)

// Action is the user's reaction to a form, or to a page to visit.
type Action uint8

// The user's possible actions.
const (
	// Accepted means that the user filled in the form, or agreed to open the page.
	Accepted Action = iota + 1
	// Declined means that the user refused.
	Declined
	// Cancelled means that the user closed it without a decision.
	Cancelled
)

var actions = map[string]Action{"accept": Accepted, "decline": Declined, "cancel": Cancelled}

// String returns the action's name in MCP.
func (a Action) String() string {
	for name, action := range actions {
		if action == a {
			return name
		}
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// elicited is the client's result of elicitation/create.
type elicited struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

func readAction(result json.RawMessage) (Action, json.RawMessage, error) {
	var said elicited
	if err := json.Unmarshal(result, &said); err != nil {
		return 0, nil, err
	}
	action := actions[said.Action]
	if action == 0 {
		return 0, nil, fmt.Errorf("its action is %q, which must be accept, decline or cancel", said.Action)
	}
	return action, said.Content, nil
}

// Form is a form for the user to fill in. T is a struct with the tags of
// [Tool], and title:"…" for the display name of a field. Its fields are texts,
// numbers, bools, texts with the tag enum, and lists of such texts. One that
// may be left empty is a pointer, or has a default, omitempty or omitzero.
//
// Do not ask for secrets: the client shows what the user types.
type Form[T any] struct {
	// Message states the purpose of the form.
	Message string
	// Optional makes Ask fail with ErrUnsupported if the client does not support
	// forms. Without it, the host ends the call.
	Optional bool
	// Schema replaces the schema of T. Use it for fields that are known only at
	// run time: T is then map[string]any.
	Schema map[string]any
}

// Elicited is the user's response to a form.
type Elicited[T any] struct {
	Action Action
	// Content has the values of the fields, if the form was accepted.
	Content T
}

func (f Form[T]) asked() (AskedQuestion, error) {
	var schema any = f.Schema
	if f.Schema == nil {
		schema = formSchema(reflect.TypeFor[T]())
	}
	return asked(FormQuestion, f.Optional, object{{"message", f.Message}, {"requestedSchema", schema}})
}

func (Form[T]) read(result json.RawMessage) (answer Elicited[T], err error) {
	action, content, err := readAction(result)
	if err != nil {
		return answer, err
	}
	answer.Action = action
	if action == Accepted {
		answer.Content, err = readValues[T](string(content))
	}
	return answer, err
}

func asked(kind QuestionKind, optional bool, params any) (AskedQuestion, error) {
	text, err := jsontext.Of(params)
	if err != nil {
		return AskedQuestion{}, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return AskedQuestion{Kind: kind, Params: text, Required: !optional}, nil
}

// Visit is a page for the user to open, such as one to sign in or to pay. The
// answer states whether the user agreed to open it, not what happened on the
// page. Query the service behind it for that.
type Visit struct {
	// Message states the purpose of the page.
	Message string
	// URL begins with https://.
	URL string
	// Optional is as in Form.
	Optional bool
}

func (v Visit) asked() (AskedQuestion, error) {
	return asked(VisitQuestion, v.Optional, object{{"message", v.Message}, {"url", v.URL}})
}

func (Visit) read(result json.RawMessage) (Action, error) {
	action, _, err := readAction(result)
	return action, err
}

// Sampling is a text for the client's model to write:
//
//	poem, err := toolbay.Ask(ctx, "poem", toolbay.Sampling{
//		Messages:  []toolbay.Message{toolbay.UserText("Write a haiku about rain.")},
//		MaxTokens: 200,
//	})
//	// poem.Text
type Sampling struct {
	// Messages are texts, images and audio.
	Messages []Message
	// MaxTokens is the maximum number of tokens that the model may write.
	MaxTokens int
	// System is the system prompt. It may be empty.
	System string
	// Params are any other parameters of MCP's sampling/createMessage, such as
	// temperature, modelPreferences or tools.
	Params map[string]any
	// Optional is as in Form.
	Optional bool
}

func (s Sampling) asked() (AskedQuestion, error) {
	messages := make([]any, 0, len(s.Messages))
	for _, message := range s.Messages {
		block, err := samplingBlock(message.Content)
		if err != nil {
			return AskedQuestion{}, err
		}
		role := "user"
		if message.Role == Assistant {
			role = "assistant"
		}
		messages = append(messages, object{{"role", role}, {"content", block}})
	}
	params := map[string]any{"messages": messages, "maxTokens": s.MaxTokens}
	if s.System != "" {
		params["systemPrompt"] = s.System
	}
	maps.Copy(params, s.Params)
	return asked(SamplingQuestion, s.Optional, params)
}

func samplingBlock(content Content) (any, error) {
	switch content.Kind {
	case TextKind:
		return object{{"type", "text"}, {"text", content.Text}}, nil
	case ImageKind, AudioKind:
		data := content.Data
		if data == nil {
			data = []byte{}
		}
		return object{{"type", content.Kind.String()}, {"data", data}, {"mimeType", content.MIMEType}}, nil
	}
	return nil, fmt.Errorf("a message has a block of the kind %s: the client's model gets texts, images and audio", content.Kind)
}

// Sampled is the text that the client's model wrote.
type Sampled struct {
	// Text is its text. Several blocks are joined by line feeds.
	Text string
	// Model is the model that wrote it.
	Model string
	// StopReason is the reason why it stopped, such as endTurn or maxTokens, if
	// the client states it.
	StopReason string
	// Result is the whole result, as in MCP.
	Result json.RawMessage
}

func (Sampling) read(result json.RawMessage) (Sampled, error) {
	var said struct {
		Content    json.RawMessage `json:"content"`
		Model      string          `json:"model"`
		StopReason string          `json:"stopReason"`
	}
	if err := json.Unmarshal(result, &said); err != nil {
		return Sampled{}, err
	}
	type block struct {
		Text *string `json:"text"`
	}
	var blocks []block
	if json.Unmarshal(said.Content, &blocks) != nil {
		blocks = make([]block, 1)
		if err := json.Unmarshal(said.Content, &blocks[0]); err != nil {
			return Sampled{}, fmt.Errorf("its content: %w", err)
		}
	}
	var texts []string
	for _, block := range blocks {
		if block.Text != nil {
			texts = append(texts, *block.Text)
		}
	}
	return Sampled{strings.Join(texts, "\n"), said.Model, said.StopReason, result}, nil
}

// Roots are the folders that the user works in. The answer is only information:
// the operator decides which folders a plugin can open.
type Roots struct {
	// Optional is as in Form.
	Optional bool
}

// Root is a folder that the user works in.
type Root struct {
	// URI begins with file://.
	URI string `json:"uri"`
	// Name is for people; it may be empty.
	Name string `json:"name,omitempty"`
}

func (r Roots) asked() (AskedQuestion, error) {
	return asked(RootsQuestion, r.Optional, object{})
}

func (Roots) read(result json.RawMessage) ([]Root, error) {
	var said rootsResult
	err := json.Unmarshal(result, &said)
	return said.Roots, err
}

// rootsResult is the client's result of roots/list.
type rootsResult struct {
	Roots []Root `json:"roots"`
}

// formSchema returns the schema of a form's fields. It panics if the type cannot
// be a form, as Tool does for its types.
func formSchema(t reflect.Type) object {
	s := &schemas{what: "form", form: true, root: t, open: map[reflect.Type]bool{}, names: map[reflect.Type]string{}}
	if t.Kind() != reflect.Struct {
		s.refuse(t.String(), "a form is a struct, or has a Schema")
	}
	schema := s.members(t, t.String())
	if len(schema.get("properties").(object)) == 0 {
		s.refuse(t.String(), "a form has at least one field")
	}
	return schema.without("additionalProperties")
}

// checkFormField refuses fields that clients cannot show.
func (s *schemas) checkFormField(schema object, where string) {
	kind, _ := schema.get("type").(string)
	switch {
	case kind == "string" && schema.has("contentEncoding"):
		s.refuse(where, "a form has no bytes")
	case kind == "string", kind == "boolean", kind == "number", kind == "integer":
	case kind == "array":
		items, _ := schema.get("items").(object)
		if items.get("type") != "string" && !items.has("anyOf") || !items.has("enum") && !items.has("anyOf") {
			s.refuse(where, "a list in a form is one of texts with choices: []string with the tag enum")
		}
	default:
		s.refuse(where, "a form has texts, numbers, bools, choices, and lists of choices only")
	}
	if schema.has("enum") && kind != "string" {
		s.refuse(where, "the choices of a form are texts")
	}
	if schema.has("pattern") {
		s.refuse(where, "clients do not know patterns in forms: check the value in the function")
	}
	if format := schema.get("format"); format != nil && !formFormats[fmt.Sprint(format)] {
		s.refuse(where, fmt.Sprintf("clients do not know the format %v in forms: they know date, date-time, email and uri", format))
	}
}

var formFormats = map[string]bool{"date": true, "date-time": true, "email": true, "uri": true}

// checkKey checks the key of a question like the host.
func checkKey(key string) error {
	const longest = 64
	if !offer.IsName(key) || len(key) > longest {
		return fmt.Errorf("%q cannot be the key of a question: it has 1 to %d of A-Z a-z 0-9 _ - .", key, longest)
	}
	return nil
}
