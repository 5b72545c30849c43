@file:OptIn(ExperimentalWasmInterop::class, UnsafeWasmMemoryApi::class)

package toolbay

import kotlin.wasm.ExperimentalWasmInterop
import kotlin.wasm.WasmImport
import kotlin.wasm.unsafe.UnsafeWasmMemoryApi
import kotlin.wasm.unsafe.withScopedMemoryAllocator

@WasmImport("toolbay:plugin/host@0.2.0", "log")
private external fun hostLog(level: Int, message: Int, length: Int)

@WasmImport("toolbay:plugin/host@0.2.0", "progress")
private external fun hostProgress(
    done: Double,
    hasTotal: Int,
    total: Double,
    hasMessage: Int,
    message: Int,
    length: Int,
)

@WasmImport("toolbay:plugin/host@0.2.0", "cancelled")
private external fun hostCancelled(): Int

@WasmImport("toolbay:plugin/host@0.2.0", "config")
private external fun hostConfig(key: Int, length: Int, result: Int)

/** The functions of the host, in the canonical ABI. */
internal object Host {
    fun log(level: Int, message: String) = withText(message) { address, length -> hostLog(level, address, length) }

    fun progress(done: Double, total: Double?, message: String?) = withText(message.orEmpty()) { address, length ->
        hostProgress(done, if (total == null) 0 else 1, total ?: 0.0, if (message == null) 0 else 1, address, length)
    }

    fun isCancelled(): Boolean = hostCancelled() != 0

    fun config(key: String): String? {
        val bytes = key.encodeToByteArray()
        // The host allocates the value, so no scope may be open.
        val text = Memory.copyOf(bytes)
        val result = Memory.allocate(12)
        hostConfig(text.address.toInt(), bytes.size, result.address.toInt())
        return if (result.loadByte() == 0.toByte()) null else readString((result + 4).loadInt(), (result + 8).loadInt())
    }

    private inline fun withText(text: String, use: (Int, Int) -> Unit) {
        val bytes = text.encodeToByteArray()
        withScopedMemoryAllocator {
            val pointer = it.allocate(bytes.size)
            bytes.copyTo(pointer)
            use(pointer.address.toInt(), bytes.size)
        }
    }
}
