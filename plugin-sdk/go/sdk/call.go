package toolbay

import (
	"fmt"

	"toolbay/internal/guard"
)

// call runs a tool.
func call(ctx *Context, name, arguments string) (Reply, error) {
	tool := byName[name]
	if tool == nil {
		return Reply{}, fmt.Errorf("there is no tool named %q", name)
	}
	return guard.Run("tool", ctx.Debugf, func() (Reply, error) {
		return tool.call(ctx, arguments)
	})
}
