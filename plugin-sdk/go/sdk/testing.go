package toolbay

import "maps"

// Test replaces the host in tests, and records what a tool reports:
//
//	host := toolbay.Test{Config: map[string]string{"units": "metric"}}
//	sum, err := add(host.Context(), AddArgs{1, 2})
//	// host.Logs, host.Reports
type Test struct {
	// Config is what the operator configured.
	Config map[string]string
	// Cancelled: whether the client no longer wants the answer.
	Cancelled bool
	// Logs are the lines that the tool logged.
	Logs []LogLine
	// Reports are the tool's reports of progress.
	Reports []Report
}

// LogLine is one line that a tool logged.
type LogLine struct {
	Level   Level
	Message string
}

// Context is what a tool is called with.
func (t *Test) Context() *Context {
	return &Context{testHost{t}}
}

// Call calls a tool by its name as the host does, with the arguments as JSON.
// Nothing checks them against the schema.
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
