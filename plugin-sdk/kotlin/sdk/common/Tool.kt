package toolbay

/** What a tool returns. */
sealed interface Result

/** A block of a result. */
class Content internal constructor(
    internal val kind: String,
    internal val text: String? = null,
    internal val data: ByteArray? = null,
    internal val mimeType: String? = null,
    internal val uri: String? = null,
    internal val name: String? = null,
) : Result

/** Several blocks. */
class Blocks internal constructor(internal val blocks: List<Content>) : Result

/** A block of text. */
fun text(text: String): Content = Content("text", text = text)

/** A picture, such as one of type `image/png`. */
fun image(data: ByteArray, mimeType: String): Content = Content("image", data = data, mimeType = mimeType)

/** A sound, such as one of type `audio/wav`. */
fun audio(data: ByteArray, mimeType: String): Content = Content("audio", data = data, mimeType = mimeType)

/** A link to a resource that the client can fetch. */
fun link(uri: String, name: String): Content = Content("resource-link", uri = uri, name = name)

/** Several blocks, in reading order. */
fun blocks(vararg blocks: Content): Result = Blocks(blocks.toList())

/** A failure that the model reads. */
class Failure internal constructor(val isInvalidArguments: Boolean, override val message: String) : Exception(message)

/** The outcome of a call: either [content] and [structured], or a [failure]. */
class Outcome internal constructor(
    internal val content: List<Content> = emptyList(),
    /** The structured result, as JSON. */
    val structured: String? = null,
    /** The message of the failure. */
    val failure: String? = null,
    /** True if the failure says that the arguments are wrong. */
    val isInvalidArguments: Boolean = false,
) {
    /** The text of the result. */
    val text: String
        get() = content.mapNotNull { it.text }.joinToString("\n")
}

/** The running call: the host's functions. */
class Call internal constructor() {
    /** Ends the call: the arguments match the schema, but make no sense. Say why, and what to send instead. */
    fun invalid(message: String): Nothing = throw Failure(true, message)

    /** Ends the call: the tool cannot do its work. Say why. */
    fun fail(message: String): Nothing = throw Failure(false, message)

    /** Writes a line to the host's log. */
    fun debug(message: String) = Host.log(0, message)

    /** Writes a line to the host's log. */
    fun info(message: String) = Host.log(1, message)

    /** Writes a line to the host's log. */
    fun warn(message: String) = Host.log(3, message)

    /** Writes a line to the host's log. */
    fun error(message: String) = Host.log(4, message)

    /** Reports the progress of the call. [done] must increase from one report to the next. */
    fun progress(done: Double, total: Double? = null, message: String? = null) = Host.progress(done, total, message)

    /** Returns whether the client has cancelled the call. The host ends it in any case. */
    fun isCancelled(): Boolean = Host.isCancelled()

    /** Returns a value of `[config]` in the grant: a string unchanged, any other value as JSON. */
    fun config(key: String): String? = Host.config(key)
}

/** A tool. Create one with [tool]. */
class Tool internal constructor(
    internal val name: String,
    internal val description: String,
    internal val hints: Hints,
    private val arguments: () -> Record,
    private val result: (() -> Record)?,
    private val run: Call.(Record) -> Any,
) {
    internal val inputSchema: String
        get() = writeJson(arguments().schema())

    internal val outputSchema: String?
        get() = result?.let { writeJson(it().schema()) }

    internal fun call(json: String): Outcome = try {
        val arguments = arguments().readFrom(parseJson(json), "")
        when (val result = Call().run(arguments)) {
            is Content -> Outcome(listOf(result))
            is Blocks -> Outcome(result.blocks)
            else -> Outcome(structured = writeJson((result as Record).toJson()))
        }
    } catch (failure: Failure) {
        Outcome(failure = failure.message, isInvalidArguments = failure.isInvalidArguments)
    } catch (mismatch: ArgumentMismatch) {
        Outcome(failure = mismatch.message, isInvalidArguments = true)
    } catch (error: Throwable) {
        Host.log(0, error.stackTraceToString())
        Outcome(failure = "${error::class.simpleName}: ${error.message ?: "no message"}")
    }
}

/** Hints for clients. They are not enforced. */
class Hints internal constructor(
    internal val title: String?,
    internal val readOnly: Boolean?,
    internal val destructive: Boolean?,
    internal val idempotent: Boolean?,
    internal val openWorld: Boolean?,
)

/** Options of a tool: a title, and hints for clients, which are not enforced. */
fun hints(
    title: String? = null,
    readOnly: Boolean? = null,
    destructive: Boolean? = null,
    idempotent: Boolean? = null,
    openWorld: Boolean? = null,
): Hints = Hints(title, readOnly, destructive, idempotent, openWorld)

/** A tool that returns content, such as `text("…")`. */
fun <A : Record> tool(
    name: String,
    description: String,
    arguments: () -> A,
    hints: Hints = hints(),
    run: Call.(A) -> Result,
): Tool = Tool(name, description, hints, arguments, null) {
    @Suppress("UNCHECKED_CAST")
    run(it as A)
}

/** A tool that returns structured content: a record of the type that [result] creates. */
fun <A : Record, R : Record> tool(
    name: String,
    description: String,
    arguments: () -> A,
    result: () -> R,
    hints: Hints = hints(),
    run: Call.(A) -> R,
): Tool = Tool(name, description, hints, arguments, result) {
    @Suppress("UNCHECKED_CAST")
    run(it as A)
}

/** The arguments of a tool without arguments. */
class NoArguments : Record()

/** Calls a tool with a JSON object, as the host does after it has checked the object against the schema. */
fun List<Tool>.call(name: String, arguments: String): Outcome =
    (find { it.name == name } ?: return Outcome(failure = "there is no tool \"$name\"")).call(arguments)
