package toolbay

import (
	"unsafe"

	"toolbay/internal/abi"
)

// The exports of every plugin: the interface tools of wit/plugin.wit in the
// canonical ABI. The packages prompts, resources and completion export the
// other interfaces. The host converts the module to a component.

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

// The host calls these functions after it has copied the result.

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#list-tools
func listToolsDone(unsafe.Pointer) { abi.Answered() }

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#call-tool
func callToolDone(unsafe.Pointer) { abi.Answered() }

// HostContext returns the context with which the other packages of the SDK
// call functions. Like all exports of this file, it requires a value that
// only these packages have.
func HostContext(*abi.Loan) *Context {
	return &Context{newHost()}
}
