@file:OptIn(ExperimentalWasmInterop::class, UnsafeWasmMemoryApi::class)

package toolbay

import kotlin.wasm.ExperimentalWasmInterop
import kotlin.wasm.WasmExport
import kotlin.wasm.unsafe.Pointer
import kotlin.wasm.unsafe.UnsafeWasmMemoryApi
import tools as pluginTools // Declare `val tools = listOf(…)` in a file of `src/` without a package.

// The records of the contract, `wit/plugin.wit`, in the canonical ABI.
private const val TOOL_SIZE = 84
private const val CONTENT_SIZE = 160
private const val ANSWER_SIZE = 36

@WasmExport("toolbay:plugin/tools@0.2.0#list-tools")
internal fun listTools(): Int {
    Memory.open()
    try {
        val list = Memory.allocate(8)
        val tools = Memory.allocate(pluginTools.size * TOOL_SIZE)
        list.storeList(tools, pluginTools.size)
        pluginTools.forEachIndexed { index, tool -> (tools + index * TOOL_SIZE).storeTool(tool) }
        return list.address.toInt()
    } catch (error: Throwable) {
        Host.log(4, "the tools cannot be listed: ${error.message}")
        throw error
    }
}

@WasmExport("toolbay:plugin/tools@0.2.0#call-tool")
internal fun callTool(name: Int, nameLength: Int, arguments: Int, argumentsLength: Int): Int {
    Memory.open()
    val outcome = pluginTools.call(readString(name, nameLength), readString(arguments, argumentsLength))
    val answer = Memory.allocate(ANSWER_SIZE)
    val failure = outcome.failure
    if (failure != null) {
        answer.storeByte(1)
        (answer + 4).storeByte(if (outcome.isInvalidArguments) 0 else 1)
        (answer + 8).storeString(failure)
    } else {
        val blocks = Memory.allocate(outcome.content.size * CONTENT_SIZE)
        (answer + 4).storeList(blocks, outcome.content.size)
        outcome.content.forEachIndexed { index, content -> (blocks + index * CONTENT_SIZE).storeContent(content) }
        (answer + 12).storeOptional(outcome.structured)
    }
    return answer.address.toInt()
}

private fun Pointer.storeTool(tool: Tool) {
    storeString(tool.name)
    (this + 8).storeOptional(tool.hints.title)
    (this + 20).storeOptional(tool.description)
    (this + 32).storeString(tool.inputSchema)
    (this + 40).storeOptional(tool.outputSchema)
    val hints = with(tool.hints) { listOf(readOnly, destructive, idempotent, openWorld) }
    if (hints.any { it != null }) (this + 52).storeByte(1)
    hints.forEachIndexed { index, hint ->
        if (hint != null) (this + 53 + 2 * index).storeByte(1)
        if (hint == true) (this + 54 + 2 * index).storeByte(1)
    }
    // There are no icons and no `meta`.
    (this + 64).storeList(this, 0)
}

private fun Pointer.storeContent(content: Content) {
    storeString(content.kind)
    (this + 8).storeOptional(content.text)
    (this + 20).storeOptional(content.data)
    (this + 32).storeOptional(content.mimeType)
    (this + 44).storeOptional(content.uri)
    (this + 56).storeOptional(content.name)
    // The audience is everyone.
    (this + 112).storeList(this, 0)
}

private fun Pointer.storeList(first: Pointer, length: Int) {
    storeInt(first.address.toInt())
    (this + 4).storeInt(length)
}

private fun Pointer.storeString(text: String) = storeBytes(text.encodeToByteArray())

private fun Pointer.storeBytes(bytes: ByteArray) = storeList(Memory.copyOf(bytes), bytes.size)

private fun Pointer.storeOptional(text: String?) = storeOptional(text?.encodeToByteArray())

private fun Pointer.storeOptional(bytes: ByteArray?) {
    if (bytes == null) return
    storeByte(1)
    (this + 4).storeBytes(bytes)
}
