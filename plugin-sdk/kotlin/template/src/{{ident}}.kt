import toolbay.*

class Greeting : Record() {
    val name by string("Who to greet.")
    val excited by boolean("Whether to shout.").orElse(false)
}

class Text : Record() {
    val text by string("The text to count.")
}

class Counts : Record() {
    var characters by int("Unicode code points.")
    var words by int("What white space separates.")
    var lines by int("What line feeds separate.")
}

val tools = listOf(
    tool("{{ident}}_greet", "Greets somebody by name.", ::Greeting, hints(readOnly = true)) { greeting ->
        if (greeting.name.isBlank()) invalid("name is empty: say who to greet")
        text(if (greeting.excited) "HELLO, ${greeting.name.uppercase()}!" else "Hello, ${greeting.name}.")
    },
    tool(
        "{{ident}}_count",
        "Counts the characters, words and lines of a text.",
        ::Text,
        ::Counts,
        hints(readOnly = true),
    ) { arguments ->
        val text = arguments.text
        Counts().apply {
            characters = text.count { !it.isLowSurrogate() }
            words = text.indices.count { !text[it].isWhitespace() && (it == 0 || text[it - 1].isWhitespace()) }
            lines = if (text.isEmpty()) 0 else text.count { it == '\n' } + 1
        }
    },
)
