package toolbay

import (
	"encoding/json"
	"fmt"
	"maps"

	"toolbay/internal/jsontext"
)

// Test replaces the host in tests, and records the reports and questions of a
// tool, a prompt or a resource:
//
//	host := toolbay.Test{Config: map[string]string{"units": "metric"}}
//	sum, err := add(host.Context(), AddArgs{1, 2})
//	// host.Logs, host.Reports
type Test struct {
	// Config is the operator's configuration.
	Config map[string]string
	// Answers are the answers to questions, by key: [Accept], [Decline] or
	// [Cancel] for a Form or a Visit, a Sampled, a []Root, an error such as
	// ErrUnsupported, or any value with the JSON of the client's result.
	Answers map[string]any
	// Cancelled is true if the client has cancelled the call.
	Cancelled bool
	// Logs are the lines that the tool logged.
	Logs []LogLine
	// Reports are the tool's reports of progress.
	Reports []Report
	// Asked are the questions that the tool asked.
	Asked []AskedQuestion
	// Updated are the resources that the tool reported as updated.
	Updated []string
}

// LogLine is one line that a tool logged.
type LogLine struct {
	Level   Level
	Message string
}

// Context returns the context for the call of a function.
func (t *Test) Context() *Context {
	return &Context{testHost{t}}
}

// Call calls a tool by its name like the host, with the arguments as JSON. It
// does not check them against the schema.
func (t *Test) Call(name, arguments string) (Reply, error) {
	return call(t.Context(), name, arguments)
}

type testHost struct{ *Test }

func (t testHost) log(level Level, message string) {
	t.Logs = append(t.Logs, LogLine{level, message})
}

func (t testHost) progress(report Report) {
	t.Reports = append(t.Reports, report)
}

func (t testHost) cancelled() bool {
	return t.Cancelled
}

func (t testHost) config(key string) (string, bool) {
	value, has := t.Config[key]
	return value, has
}

func (t testHost) configAll() map[string]string {
	return maps.Clone(t.Config)
}

func (t testHost) resourceUpdated(uri string) {
	t.Updated = append(t.Updated, uri)
}

func (t testHost) ask(questions []AskedQuestion) ([]json.RawMessage, error) {
	keys := map[string]bool{}
	for _, question := range questions {
		if err := checkKey(question.Key); err != nil {
			return nil, err
		}
		if keys[question.Key] {
			return nil, fmt.Errorf("two questions have the key %q", question.Key)
		}
		keys[question.Key] = true
	}
	t.Asked = append(t.Asked, questions...)
	results := make([]json.RawMessage, 0, len(questions))
	for _, question := range questions {
		answer, has := t.Answers[question.Key]
		if !has {
			return nil, fmt.Errorf("the test has no answer to the question %q: add it to Answers of toolbay.Test", question.Key)
		}
		if why, fails := answer.(error); fails {
			return nil, why
		}
		result, err := jsontext.Of(resultOf(answer))
		if err != nil {
			return nil, fmt.Errorf("the test's answer to the question %q cannot be written as JSON: %w", question.Key, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// resultOf returns the client's result for an answer of a test.
func resultOf(answer any) any {
	switch answer := answer.(type) {
	case []Root:
		return rootsResult{answer}
	case Sampled:
		if answer.Result != nil {
			return answer.Result
		}
		result := object{{"role", "assistant"}, {"content", object{{"type", "text"}, {"text", answer.Text}}}, {"model", answer.Model}}
		if answer.StopReason != "" {
			result.set("stopReason", answer.StopReason)
		}
		return result
	}
	return answer
}

// Accept returns the answer of a user who fills in a form, for Answers of
// [Test]:
// content has its values, such as the struct of the form. It is nil for a page
// to visit.
func Accept(content any) any {
	result := object{{"action", Accepted.String()}}
	if content != nil {
		result.set("content", content)
	}
	return result
}

// Decline returns the answer of a user who refuses, for Answers of [Test].
func Decline() any {
	return object{{"action", Declined.String()}}
}

// Cancel returns the answer of a user who closes a form without a decision,
// for Answers of [Test].
func Cancel() any {
	return object{{"action", Cancelled.String()}}
}
