package toolbay

/** A number of a JSON text. It keeps its digits, so that conversions are exact. */
internal class JsonNumber(val text: String) {
    override fun toString() = text

    /** Returns the number as an integer, or null if it has a fraction or does not fit. `1.0` and `1e2` are integers. */
    fun toLongOrNull(): Long? {
        val mantissa = text.substringBefore('e').substringBefore('E')
        val exponent = text.drop(mantissa.length + 1).ifEmpty { "0" }.toIntOrNull()
        val negative = mantissa.startsWith('-')
        val whole = mantissa.removePrefix("-").substringBefore('.')
        val fraction = mantissa.substringAfter('.', "").trimEnd('0')
        val digits = (whole + fraction).trimStart('0')
        if (digits.isEmpty()) return 0
        val zeros = (exponent ?: return null).toLong() - fraction.length
        if (zeros > 19) return null
        val integer = if (zeros >= 0) {
            digits + "0".repeat(zeros.toInt())
        } else {
            val cut = -zeros
            if (cut >= digits.length) return null
            val (kept, dropped) = digits.dropLast(cut.toInt()) to digits.takeLast(cut.toInt())
            if (dropped.any { it != '0' }) return null
            kept
        }
        return (if (negative) "-$integer" else integer).toLongOrNull()
    }
}

/** Parses a JSON text into maps, lists, strings, [JsonNumber]s, booleans and null. */
internal fun parseJson(text: String): Any? = JsonParser(text).parse()

private class JsonParser(private val text: String) {
    private var position = 0

    fun parse(): Any? {
        val value = value(0)
        skipSpace()
        if (position < text.length) fail("the end")
        return value
    }

    private fun fail(expected: String): Nothing =
        throw IllegalArgumentException("invalid JSON at character $position: expected $expected")

    private fun skipSpace() {
        while (position < text.length && text[position] in " \t\r\n") position++
    }

    private fun peek(): Char = if (position < text.length) text[position] else '\u0000'

    private fun take(expected: String) {
        if (!text.startsWith(expected, position)) fail("`$expected`")
        position += expected.length
    }

    private fun value(depth: Int): Any? {
        if (depth > 512) fail("at most 512 levels")
        skipSpace()
        return when (peek()) {
            '{' -> {
                val members = LinkedHashMap<String, Any?>()
                items('}') {
                    skipSpace()
                    val name = string()
                    skipSpace()
                    take(":")
                    members[name] = value(depth + 1)
                }
                members
            }
            '[' -> {
                val items = ArrayList<Any?>()
                items(']') { items.add(value(depth + 1)) }
                items
            }
            '"' -> string()
            't' -> true.also { take("true") }
            'f' -> false.also { take("false") }
            'n' -> null.also { take("null") }
            else -> number()
        }
    }

    private inline fun items(end: Char, item: () -> Unit) {
        position++
        skipSpace()
        if (peek() == end) {
            position++
            return
        }
        while (true) {
            item()
            skipSpace()
            if (peek() == end) break
            take(",")
        }
        position++
    }

    private fun number(): JsonNumber {
        val start = position
        if (peek() == '-') position++
        if (peek() == '0') position++ else digits()
        if (peek() == '.') {
            position++
            digits()
        }
        if (peek() == 'e' || peek() == 'E') {
            position++
            if (peek() == '+' || peek() == '-') position++
            digits()
        }
        return JsonNumber(text.substring(start, position))
    }

    private fun digits() {
        if (peek() !in '0'..'9') fail("a value")
        while (peek() in '0'..'9') position++
    }

    private fun string(): String {
        take("\"")
        val out = StringBuilder()
        while (true) {
            val start = position
            while (position < text.length && text[position] != '"' && text[position] != '\\') position++
            out.append(text, start, position)
            if (position >= text.length) fail("`\"`")
            if (text[position++] == '"') return out.toString()
            when (val escape = peek().also { position++ }) {
                '"', '\\', '/' -> out.append(escape)
                'b' -> out.append('\b')
                'f' -> out.append('\u000c')
                'n' -> out.append('\n')
                'r' -> out.append('\r')
                't' -> out.append('\t')
                'u' -> {
                    val digits = text.substring(position, minOf(position + 4, text.length))
                    out.append((if (digits.length == 4) digits.toIntOrNull(16) else null)?.toChar() ?: fail("four hexadecimal digits"))
                    position += 4
                }
                else -> fail("an escape")
            }
        }
    }
}

/** Writes maps, lists, strings, numbers, booleans and null as JSON. */
internal fun writeJson(value: Any?): String = StringBuilder().also { write(value, it) }.toString()

private fun write(value: Any?, out: StringBuilder) {
    when (value) {
        null, is Boolean, is Int, is Long, is JsonNumber -> out.append(value.toString())
        is Double -> {
            require(value.isFinite()) { "$value is not a number in JSON" }
            out.append(value.toString())
        }
        is String -> writeString(value, out)
        is List<*> -> {
            out.append('[')
            value.forEachIndexed { index, item ->
                if (index > 0) out.append(',')
                write(item, out)
            }
            out.append(']')
        }
        is Map<*, *> -> {
            out.append('{')
            var separator = ""
            for ((name, member) in value) {
                out.append(separator)
                separator = ","
                writeString(name.toString(), out)
                out.append(':')
                write(member, out)
            }
            out.append('}')
        }
        else -> throw IllegalArgumentException("${value::class.simpleName} has no form in JSON")
    }
}

private fun writeString(text: String, out: StringBuilder) {
    out.append('"')
    for (char in text) {
        when {
            char == '"' || char == '\\' -> out.append('\\').append(char)
            char == '\n' -> out.append("\\n")
            char < ' ' -> out.append("\\u").append(char.code.toString(16).padStart(4, '0'))
            else -> out.append(char)
        }
    }
    out.append('"')
}
