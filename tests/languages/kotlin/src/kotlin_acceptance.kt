// The plugin with which the project's tests check that the Kotlin SDK implements the contract.

import kotlin.random.Random
import toolbay.*

class Text : Record() {
    val text by string("What to say.")
}

class Report : Record() {
    var units by string().orNull()
    var cancelled by boolean()
}

class Size : Record() {
    val blocks by int("How many blocks to answer.", minimum = 0)
    val bytes by int("How many bytes each has.", minimum = 0)
}

enum class Unit { m, km }

class Point : Record() {
    var x by double()
    var y by double("Upwards.").orElse(0.5)
}

class Everything : Record() {
    var long by long()
    var int by int().orElse(7)
    var unit by enum<Unit>().orNull()
    var points by list(record(::Point))
    var names by list(string(maxLength = 3)).orElse(emptyList())
}

class Overflow : Record() {
    var value by long()
}

val tools = listOf(
    tool("kotlin_echo", "Says it.", ::Text) { text(it.text) },
    tool("kotlin_boom", "Throws.", ::NoArguments) { throw IllegalStateException("kaboom: 42") },
    tool("kotlin_index", "Reads beyond the end of an array.", ::Text) { text("${IntArray(3)[it.text.length]}") },
    tool("kotlin_refuse", "Refuses.", ::NoArguments) { invalid("not today") },
    tool("kotlin_image", "A picture.", ::NoArguments) {
        val png = byteArrayOf(0x89.toByte(), 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
        blocks(image(png, "image/png"), text("a picture"))
    },
    tool("kotlin_report", "Uses the host.", ::NoArguments, ::Report) {
        info("working")
        progress(1.0, 2.0)
        progress(2.0, 2.0)
        Report().apply {
            units = config("units")
            cancelled = isCancelled()
        }
    },
    // Everything that allocates linear memory: the host, the SDK, Kotlin's library and the adapter for WASI.
    tool("kotlin_many", "Returns many blocks.", ::Size) { size ->
        val blocks = (0 until size.blocks).map { index ->
            val filling = ('a' + index % 26).toString().repeat(size.bytes)
            config("key$index")
            println(filling)
            Random.nextInt()
            if (index % 2 == 0) text(filling) else image(filling.encodeToByteArray(), "image/png")
        }
        blocks(*blocks.toTypedArray())
    },
    tool("kotlin_everything", "Returns its arguments.", ::Everything, ::Everything) { it },
    tool("kotlin_overflow", "Returns an integer that clients round.", ::NoArguments, ::Overflow) {
        Overflow().apply { value = MAX_EXACT_INTEGER + 1 }
    },
    tool("kotlin_unset", "Returns a record without its value.", ::NoArguments, ::Overflow) { Overflow() },
)
