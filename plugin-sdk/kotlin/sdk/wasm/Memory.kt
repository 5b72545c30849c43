@file:OptIn(ExperimentalWasmInterop::class, UnsafeWasmMemoryApi::class)

package toolbay

import kotlin.wasm.ExperimentalWasmInterop
import kotlin.wasm.WasmExport
import kotlin.wasm.unsafe.MemoryAllocator
import kotlin.wasm.unsafe.Pointer
import kotlin.wasm.unsafe.UnsafeWasmMemoryApi
import kotlin.wasm.unsafe.withScopedMemoryAllocator

/** The size of a page of linear memory. */
private const val PAGE_SIZE = 65_536

/** The pages that the host's adapter for WASI 0.1 allocates: its state and its stack. */
private const val ADAPTER_PAGES = 4

/**
 * Linear memory. Kotlin's objects are not in it. Kotlin's allocator assumes that all of it is free outside its scopes, so
 * the adapter and the host get theirs from a scope that never ends. An instance serves one call, so nothing is freed.
 */
internal object Memory {
    private var arena: MemoryAllocator? = null
    private var adapterPage = 0
    private var adapterEnd = 0

    /** Opens the scope. Every export must do this first, before a scope of somebody else is open. */
    fun open(): MemoryAllocator = arena ?: iterator {
        withScopedMemoryAllocator { while (true) yield(it) }
    }.next().also {
        arena = it
        adapterPage = it.allocate(ADAPTER_PAGES * PAGE_SIZE).address.toInt()
        adapterEnd = adapterPage + ADAPTER_PAGES * PAGE_SIZE
    }

    fun allocateForAdapter(size: Int): Int {
        check(arena != null) { "the plugin uses WASI before its first export is called" }
        val page = adapterPage
        check(size >= 0 && size <= adapterEnd - page) { "the adapter for WASI needs more memory than is reserved" }
        adapterPage += (size + 7) and -8
        return page
    }

    /** Allocates a block of zeros. */
    fun allocate(size: Int): Pointer {
        val block = open().allocate(size)
        for (offset in 0 until size) (block + offset).storeByte(0)
        return block
    }

    fun copyOf(bytes: ByteArray): Pointer = open().allocate(bytes.size).also { bytes.copyTo(it) }
}

internal fun ByteArray.copyTo(pointer: Pointer) {
    for (index in indices) (pointer + index).storeByte(this[index])
}

/** Reads a string of the canonical ABI. */
internal fun readString(address: Int, length: Int): String {
    val start = Pointer(address.toUInt())
    return ByteArray(length) { (start + it).loadByte() }.decodeToString()
}

@WasmExport("cabi_realloc_adapter")
internal fun reallocateForAdapter(old: Int, oldSize: Int, alignment: Int, size: Int): Int {
    check(old == 0 && oldSize == 0 && alignment <= 8) { "unexpected allocation of the adapter for WASI" }
    return Memory.allocateForAdapter(size)
}

@WasmExport("cabi_realloc")
internal fun reallocate(old: Int, oldSize: Int, alignment: Int, size: Int): Int {
    check(alignment <= 8) { "unexpected alignment $alignment" }
    val block = Memory.open().allocate(size)
    val from = Pointer(old.toUInt())
    for (offset in 0 until minOf(oldSize, size)) (block + offset).storeByte((from + offset).loadByte())
    return block.address.toInt()
}
