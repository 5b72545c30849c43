package toolbay

import kotlin.enums.EnumEntries
import kotlin.enums.enumEntries
import kotlin.properties.PropertyDelegateProvider
import kotlin.properties.ReadWriteProperty
import kotlin.reflect.KProperty

/** The largest integer that every client reads exactly: 2^53 - 1. */
const val MAX_EXACT_INTEGER: Long = 9_007_199_254_740_991

/** The arguments of a tool, or its structured result: an object whose members are declared with `by`. */
abstract class Record {
    internal val members = LinkedHashMap<String, Member<*>>()

    internal fun schema(): Map<String, Any?> = buildMap {
        put("type", "object")
        put("properties", members.mapValues { it.value.field.schema })
        val required = members.filterValues { it.field.default == null }.keys.toList()
        if (required.isNotEmpty()) put("required", required)
        put("additionalProperties", false)
    }

    internal fun readFrom(json: Any?, path: String): Record {
        val from = json as? Map<*, *> ?: mismatch(path, "an object")
        for ((name, member) in members) if (name in from) member.read(from[name], "$path/$name")
        for (name in from.keys) if (name !in members) mismatch("$path/$name", "no such member")
        for ((name, member) in members) if (!member.isSet && member.field.default == null) mismatch("$path/$name", "a value")
        return this
    }

    internal fun toJson(): Map<String, Any?> = members.mapValues { (name, member) -> member.write(name) }
}

/** A value of a record, with its current value. */
internal class Member<T>(val field: Field<T>) : ReadWriteProperty<Record, T> {
    private var value: T? = null
    var isSet = false
        private set

    override fun getValue(thisRef: Record, property: KProperty<*>): T = get(property.name)

    override fun setValue(thisRef: Record, property: KProperty<*>, value: T) {
        this.value = value
        isSet = true
    }

    private fun get(name: String): T {
        if (!isSet) {
            value = (field.default ?: throw IllegalStateException("`$name` has no value")).invoke()
            isSet = true
        }
        @Suppress("UNCHECKED_CAST")
        return value as T
    }

    fun read(json: Any?, path: String) {
        value = field.read(json, path)
        isSet = true
    }

    fun write(name: String): Any? = try {
        field.write(get(name))
    } catch (error: IllegalArgumentException) {
        throw IllegalArgumentException("`$name`: ${error.message}")
    }
}

/** The description of a member: its JSON Schema, and how it is read and written. */
class Field<T> internal constructor(
    internal val schema: Map<String, Any?>,
    internal val default: (() -> T)? = null,
    internal val write: (T) -> Any?,
    internal val read: (Any?, String) -> T,
) : PropertyDelegateProvider<Record, ReadWriteProperty<Record, T>> {
    /** Declares the member under the name of the property. */
    override fun provideDelegate(thisRef: Record, property: KProperty<*>): ReadWriteProperty<Record, T> =
        Member(this).also { thisRef.members[property.name] = it }

    /** The member can be omitted, and is then [value]. */
    fun orElse(value: T): Field<T> = Field(schema + ("default" to write(value)), { value }, write, read)

    /** The member can be omitted or null, and is then null. */
    fun orNull(): Field<T?> = Field(
        schema.filterKeys { it != "enum" && it != "type" } +
            ("type" to listOf(schema["type"], "null")) +
            (if ("enum" in schema) mapOf("enum" to (schema["enum"] as List<*>) + null) else emptyMap()),
        { null },
        { it?.let(write) },
        { json, path -> json?.let { read(it, path) } },
    )
}

internal class ArgumentMismatch(message: String) : Exception(message)

private fun mismatch(path: String, expected: String): Nothing = throw ArgumentMismatch("$path: expected $expected")

private fun schemaOf(type: String, description: String, vararg keywords: Pair<String, Any?>): Map<String, Any?> =
    (listOf("type" to type, "description" to description.ifEmpty { null }) + keywords).filter { it.second != null }.toMap()

/** A string. The lengths count code points. */
fun string(
    description: String = "",
    minLength: Int? = null,
    maxLength: Int? = null,
    pattern: String? = null,
    format: String? = null,
): Field<String> = Field(
    schemaOf(
        "string", description,
        "minLength" to minLength, "maxLength" to maxLength, "pattern" to pattern, "format" to format,
    ),
    write = { it },
) { json, path -> json as? String ?: mismatch(path, "a string") }

/** An integer of 32 bits. */
fun int(description: String = "", minimum: Int = Int.MIN_VALUE, maximum: Int = Int.MAX_VALUE): Field<Int> = Field(
    schemaOf("integer", description, "minimum" to minimum, "maximum" to maximum),
    write = { it },
) { json, path -> integer(json, path, minimum.toLong()..maximum.toLong()).toInt() }

/** An integer that every client reads exactly: at most 2^53 - 1 in either direction. Use a string for larger ones. */
fun long(
    description: String = "",
    minimum: Long = -MAX_EXACT_INTEGER,
    maximum: Long = MAX_EXACT_INTEGER,
): Field<Long> {
    require(minimum >= -MAX_EXACT_INTEGER && maximum <= MAX_EXACT_INTEGER) { "the bounds of a long are at most 2^53 - 1" }
    return Field(
        schemaOf("integer", description, "minimum" to minimum, "maximum" to maximum),
        write = { it.also { require(it in minimum..maximum) { "$it is not within $minimum and $maximum" } } },
    ) { json, path -> integer(json, path, minimum..maximum) }
}

private fun integer(json: Any?, path: String, range: LongRange): Long =
    (json as? JsonNumber)?.toLongOrNull()?.takeIf { it in range }
        ?: mismatch(path, "an integer from ${range.first} to ${range.last}")

/** A number. NaN and the infinities are not numbers in JSON. */
fun double(description: String = "", minimum: Double? = null, maximum: Double? = null): Field<Double> = Field(
    schemaOf("number", description, "minimum" to minimum, "maximum" to maximum),
    write = { it },
) { json, path -> (json as? JsonNumber)?.text?.toDouble()?.takeIf { it.isFinite() } ?: mismatch(path, "a number") }

/** True or false. */
fun boolean(description: String = ""): Field<Boolean> =
    Field(schemaOf("boolean", description), write = { it }) { json, path -> json as? Boolean ?: mismatch(path, "true or false") }

/** One of the names of an enum class. */
inline fun <reified E : Enum<E>> enum(description: String = ""): Field<E> = enumOf(enumEntries<E>(), description)

@PublishedApi
internal fun <E : Enum<E>> enumOf(entries: EnumEntries<E>, description: String): Field<E> {
    val names = entries.map { it.name }
    return Field(schemaOf("string", description, "enum" to names), write = { it.name }) { json, path ->
        entries.find { it.name == json } ?: mismatch(path, "one of ${names.joinToString()}")
    }
}

/** A list of [items]. */
fun <T> list(items: Field<T>, description: String = "", minItems: Int? = null, maxItems: Int? = null): Field<List<T>> = Field(
    schemaOf("array", description, "items" to items.schema, "minItems" to minItems, "maxItems" to maxItems),
    write = { list -> list.map(items.write) },
) { json, path ->
    val list = json as? List<*> ?: mismatch(path, "a list")
    list.mapIndexed { index, item -> items.read(item, "$path/$index") }
}

/** An object that is a record itself, such as `record(::Point)`. */
fun <R : Record> record(create: () -> R, description: String = ""): Field<R> = Field(
    create().schema() + (if (description.isEmpty()) emptyMap() else mapOf("description" to description)),
    write = { it.toJson() },
) { json, path -> create().also { it.readFrom(json, path) } }
