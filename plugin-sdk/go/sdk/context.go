package toolbay

import (
	"encoding/json"
	"fmt"
)

// Context has the functions of the host that a tool, a prompt or a resource can
// call while it runs. None of them needs a permission. [Test] creates one for
// tests.
type Context struct {
	host host
}

// host implements the functions: Toolbay, or a Test.
type host interface {
	log(level Level, message string)
	progress(report Report)
	cancelled() bool
	config(key string) (string, bool)
	configAll() map[string]string
	ask(questions []AskedQuestion) ([]json.RawMessage, error)
	resourceUpdated(uri string)
}

// Report is one report of progress.
type Report struct {
	// Done is the progress so far.
	Done float64
	// Total is the value of Done at the end; 0 if it is unknown.
	Total float64
	// Message describes the current step; it may be empty.
	Message string
}

// Progress reports the progress of the call to the client: ctx.Progress(3, 10),
// or ctx.Progress(3, 0) if the total is unknown. A message can describe the
// current step. Each value must be greater than the last one. Progress has no
// effect if the client did not request it.
func (c *Context) Progress(done, total float64, message ...string) {
	report := Report{Done: done, Total: total}
	if len(message) > 0 {
		report.Message = message[0]
	}
	c.host.progress(report)
}

// Cancelled reports whether the client has cancelled the call. The host ends
// the call in any case. Use this method only if the tool has to clean up.
func (c *Context) Cancelled() bool {
	return c.host.cancelled()
}

// Config returns the value of a key in [config] of the operator's grant, and
// whether there is one: a string unchanged, any other value as JSON text.
func (c *Context) Config(key string) (string, bool) {
	return c.host.config(key)
}

// ConfigAll returns every key and value of [config].
func (c *Context) ConfigAll() map[string]string {
	return c.host.configAll()
}

// ConfigInto stores the value of a key in [config] in the variable that value
// points to: a string, or any type that can be read from JSON. It reports
// whether the key exists, and does not change the variable if it does not.
func (c *Context) ConfigInto(key string, value any) (bool, error) {
	text, has := c.host.config(key)
	if !has {
		return false, nil
	}
	if target, isString := value.(*string); isString {
		*target = text
		return true, nil
	}
	err := json.Unmarshal([]byte(text), value)
	if err != nil {
		// The host returns a string without its quotes. A type may be read from a
		// quoted one.
		if quoted, bad := json.Marshal(text); bad == nil && json.Unmarshal(quoted, value) == nil {
			return true, nil
		}
		return true, fmt.Errorf("the operator's config.%s cannot be used: %w", key, err)
	}
	return true, nil
}

// ResourceUpdated notifies the clients that subscribed to a resource of this
// plugin that its content changed.
func (c *Context) ResourceUpdated(uri string) {
	c.host.resourceUpdated(uri)
}

// Level is the severity of a log message.
type Level uint8

// The levels of RFC 5424, as in MCP.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

// Log writes a line to the host's log, and to the client if it requested logs.
func (c *Context) Log(level Level, message string) {
	c.host.log(level, message)
}

// Debugf logs a message for debugging. It formats like [fmt.Printf].
func (c *Context) Debugf(format string, values ...any) {
	c.host.log(LevelDebug, fmt.Sprintf(format, values...))
}

// Infof logs a normal event. It formats like [fmt.Printf].
func (c *Context) Infof(format string, values ...any) {
	c.host.log(LevelInfo, fmt.Sprintf(format, values...))
}

// Noticef logs a normal but rare event. It formats like [fmt.Printf].
func (c *Context) Noticef(format string, values ...any) {
	c.host.log(LevelNotice, fmt.Sprintf(format, values...))
}

// Warningf logs a possible problem. It formats like [fmt.Printf].
func (c *Context) Warningf(format string, values ...any) {
	c.host.log(LevelWarning, fmt.Sprintf(format, values...))
}

// Errorf logs an error. To end the call with a failure, return an error
// instead. It formats like [fmt.Printf].
func (c *Context) Errorf(format string, values ...any) {
	c.host.log(LevelError, fmt.Sprintf(format, values...))
}
