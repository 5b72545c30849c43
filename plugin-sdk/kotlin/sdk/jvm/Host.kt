package toolbay

/** The host in tests: logs go to standard error, and [config] is the grant's `[config]`. */
object Host {
    /** The values of `[config]` in the grant. */
    var config: Map<String, String> = emptyMap()

    internal fun log(level: Int, message: String) = System.err.println("[$level] $message")

    internal fun progress(done: Double, total: Double?, message: String?) =
        System.err.println("progress $done of ${total ?: "?"} ${message.orEmpty()}")

    internal fun isCancelled(): Boolean = false

    internal fun config(key: String): String? = config[key]
}
