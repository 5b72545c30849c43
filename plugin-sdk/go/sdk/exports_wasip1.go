package toolbay

import (
	"unsafe"

	"toolbay/internal/abi"
)

// What every plugin exports: the interface tools of wit/plugin.wit in the
// canonical ABI. The packages prompts, resources and completion export the
// other interfaces. The host makes a component of it.

//go:wasmexport toolbay:plugin/tools@0.2.0#list-tools
func listTools() unsafe.Pointer {
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		return lendDefinitions(l, Tools())
	})
}

//go:wasmexport toolbay:plugin/tools@0.2.0#call-tool
func callTool(name unsafe.Pointer, nameLen uint32, arguments unsafe.Pointer, argumentsLen uint32) unsafe.Pointer {
	tool, text := abi.TextAt(name, nameLen), abi.TextAt(arguments, argumentsLen)
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		reply, err := call(&Context{newHost()}, tool, text)
		return lendReply(l, reply, err)
	})
}

// The host calls these when it has copied the answer.

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#list-tools
func listToolsDone(unsafe.Pointer) { abi.Answered() }

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#call-tool
func callToolDone(unsafe.Pointer) { abi.Answered() }

// HostContext is what the other packages of the SDK call functions with. Like
// all that is exported here, it takes what only they have.
func HostContext(*abi.Loan) *Context {
	return &Context{newHost()}
}
