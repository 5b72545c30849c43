package toolbay

import (
	"encoding/json"
	"fmt"
)

// Context is what a tool, a prompt or a resource may ask of the host while it
// runs. None of it needs a permission. [Test] makes one for tests.
type Context struct {
	host host
}

// host is who answers: Toolbay, or a Test.
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
	// Done is how far the call is.
	Done float64
	// Total is how far it will be in the end; 0 if that is unknown.
	Total float64
	// Message describes the current step; it may be empty.
	Message string
}

// Progress tells the client how far the call is: ctx.Progress(3, 10), or
// ctx.Progress(3, 0) if the end is unknown. A message may say what happens at
// the moment. Each value must be greater than the last. Does nothing if the
// client did not ask.
func (c *Context) Progress(done, total float64, message ...string) {
	report := Report{Done: done, Total: total}
	if len(message) > 0 {
		report.Message = message[0]
	}
	c.host.progress(report)
}

// Cancelled: whether the client no longer wants the answer. The host stops the
// call in any case: ask only if there is something to put in order.
func (c *Context) Cancelled() bool {
	return c.host.cancelled()
}

// Config is the value of a key in [config] of the operator's grant, and whether
// there is one: a string as it is, any other value as JSON text.
func (c *Context) Config(key string) (string, bool) {
	return c.host.config(key)
}

// ConfigAll is every key and value of [config].
func (c *Context) ConfigAll() map[string]string {
	return c.host.configAll()
}

// ConfigInto stores the value of a key in [config] in what value points to: a
// string, or whatever else can be read from JSON. It tells whether there is
// one, and leaves value alone if there is none.
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
		// A string comes without its quotes; a type may be read from one.
		if quoted, bad := json.Marshal(text); bad == nil && json.Unmarshal(quoted, value) == nil {
			return true, nil
		}
		return true, fmt.Errorf("the operator's config.%s cannot be used: %w", key, err)
	}
	return true, nil
}

// ResourceUpdated tells the clients that subscribed to a resource of this
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

// Log writes a line to the host's log, and to the client if it asked for logs.
func (c *Context) Log(level Level, message string) {
	c.host.log(level, message)
}

// Debugf logs what helps to find a mistake. It formats as [fmt.Printf] does.
func (c *Context) Debugf(format string, values ...any) {
	c.host.log(LevelDebug, fmt.Sprintf(format, values...))
}

// Infof logs what happens. It formats as [fmt.Printf] does.
func (c *Context) Infof(format string, values ...any) {
	c.host.log(LevelInfo, fmt.Sprintf(format, values...))
}

// Noticef logs what happens seldom. It formats as [fmt.Printf] does.
func (c *Context) Noticef(format string, values ...any) {
	c.host.log(LevelNotice, fmt.Sprintf(format, values...))
}

// Warningf logs what may be wrong. It formats as [fmt.Printf] does.
func (c *Context) Warningf(format string, values ...any) {
	c.host.log(LevelWarning, fmt.Sprintf(format, values...))
}

// Errorf logs what is wrong; to fail, return an error. It formats as
// [fmt.Printf] does.
func (c *Context) Errorf(format string, values ...any) {
	c.host.log(LevelError, fmt.Sprintf(format, values...))
}
