import kotlin.test.assertEquals
import toolbay.Host
import toolbay.call

private fun everything(arguments: String): String = tools.call("kotlin_everything", arguments).run { structured ?: failure!! }

fun main() {
    for ((json, text) in listOf(
        "" to "",
        "\\\" / \\\\ \\u0041 \\ud83d\\ude00 \\b\\f\\n\\r\\t" to "\" / \\ A 😀 \b\u000c\n\r\t",
        "naïve Ω 日本語 👩‍🚀" to "naïve Ω 日本語 👩‍🚀",
    )) {
        assertEquals(text, tools.call("kotlin_echo", " { \"text\" : \"$json\" } ").text)
    }
    assertEquals(
        """{"long":-1,"int":7,"unit":null,"points":[{"x":1.5,"y":0.5}],"names":[]}""",
        everything("""{"long":-1,"points":[{"x":1.5}]}"""),
    )
    for ((number, value) in listOf(
        "1.0" to 1L, "1e2" to 100L, "1.50e1" to 15L, "-0" to 0L, "0.0e9" to 0L, "1200e-2" to 12L,
        "9007199254740991" to 9007199254740991L, "9.007199254740991e15" to 9007199254740991L,
    )) {
        assertEquals(
            """{"long":$value,"int":7,"unit":"km","points":[],"names":["ä"]}""",
            everything("""{"long":$number,"unit":"km","points":[],"names":["ä"]}"""),
        )
    }
    for (number in listOf("1.5", "9007199254740992", "1e400", "1e-1", "1e99999999999", "\"1\"", "null", "123e-20")) {
        assertEquals(
            "/long: expected an integer from -9007199254740991 to 9007199254740991",
            everything("""{"long":$number,"points":[]}"""),
        )
    }
    assertEquals("/points/1/x: expected a number", everything("""{"long":1,"points":[{"x":1},{"x":"1"}]}"""))
    assertEquals("/points/0/x: expected a value", everything("""{"long":1,"points":[{}]}"""))
    assertEquals("/points/0/z: expected no such member", everything("""{"long":1,"points":[{"x":1,"z":1}]}"""))
    assertEquals("/unit: expected one of m, km", everything("""{"long":1,"points":[],"unit":"mi"}"""))
    assertEquals("/points/0/x: expected a number", everything("""{"long":1,"points":[{"x":1e999}]}"""))

    assertEquals("IllegalStateException: kaboom: 42", tools.call("kotlin_boom", "{}").failure)
    assertEquals(
        "IllegalArgumentException: `value`: 9007199254740992 is not within -9007199254740991 and 9007199254740991",
        tools.call("kotlin_overflow", "{}").failure,
    )
    assertEquals("IllegalStateException: `value` has no value", tools.call("kotlin_unset", "{}").failure)
    assertEquals("there is no tool \"no\"", tools.call("no", "{}").failure)
    for (broken in listOf("", "{", "{}x", "[1,]", "{\"a\" 1}", "{\"a\":01}", "{\"a\":\"\\x\"}", "{\"a\":-}", "{\"a\":1.}", "[".repeat(9_999))) {
        val failure = tools.call("kotlin_boom", broken).failure!!
        assert(failure.startsWith("IllegalArgumentException: invalid JSON at character")) { "$broken: $failure" }
    }

    Host.config = mapOf("units" to "metric")
    assertEquals("""{"units":"metric","cancelled":false}""", tools.call("kotlin_report", "{}").structured)
    println("The tests passed.")
}
