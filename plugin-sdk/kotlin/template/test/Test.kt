import kotlin.test.assertEquals
import toolbay.call

/** Tests the tools on this machine, without a host. */
fun main() {
    assertEquals("Hello, Ada.", tools.call("{{ident}}_greet", """{"name":"Ada"}""").text)
    assertEquals("HELLO, ADA!", tools.call("{{ident}}_greet", """{"name":"Ada","excited":true}""").text)

    val refused = tools.call("{{ident}}_greet", """{"name":" "}""")
    assertEquals("name is empty: say who to greet", refused.failure)
    assertEquals(true, refused.isInvalidArguments)

    val counted = tools.call("{{ident}}_count", """{"text":"two words\nand 👋\n"}""")
    assertEquals("""{"characters":16,"words":4,"lines":3}""", counted.structured)
    println("The tests passed.")
}
