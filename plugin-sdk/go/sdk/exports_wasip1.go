package toolbay

import "unsafe"

// What a plugin exports: the interface tools of wit/plugin.wit in the canonical
// ABI of the component model. The host makes a component of it.

// eager: the host asks for the schemas once, when it loads the file.
const eager = false

//go:wasmexport toolbay:plugin/tools@0.2.0#list-tools
func listTools() unsafe.Pointer {
	beReady()
	allowCollection()
	defer forbidCollection()
	return lend(func(l *loan) unsafe.Pointer {
		return l.definitions(Tools())
	})
}

//go:wasmexport toolbay:plugin/tools@0.2.0#call-tool
func callTool(name unsafe.Pointer, nameLen uint32, arguments unsafe.Pointer, argumentsLen uint32) unsafe.Pointer {
	tool, text := textAt(name, nameLen), textAt(arguments, argumentsLen)
	received = nil
	beReady()
	allowCollection()
	defer forbidCollection()
	reply, err := call(&Context{newHost()}, tool, text)
	return lend(func(l *loan) unsafe.Pointer {
		return l.outcome(reply, err)
	})
}

// The host calls these when it has copied the answer.

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#list-tools
func listToolsDone(unsafe.Pointer) { lent = nil }

//go:wasmexport cabi_post_toolbay:plugin/tools@0.2.0#call-tool
func callToolDone(unsafe.Pointer) { lent = nil }
