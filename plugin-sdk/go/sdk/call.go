package toolbay

import (
	"fmt"
	"runtime/debug"
)

// call runs a tool. A panic becomes its failure, and the log says where it was.
func call(ctx *Context, name, arguments string) (reply Reply, err error) {
	tool := byName[name]
	if tool == nil {
		return Reply{}, fmt.Errorf("there is no tool named %q", name)
	}
	defer func() {
		if why := recover(); why != nil {
			reply, err = Reply{}, fmt.Errorf("the tool panicked: %v", why)
			ctx.Debugf("%v\n%s", err, debug.Stack())
		}
	}()
	return tool.call(ctx, arguments)
}
