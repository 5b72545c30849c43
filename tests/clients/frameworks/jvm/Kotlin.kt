// The official Kotlin SDK (`kotlin-sdk-client`) against the real server: see Harness.

import com.fasterxml.jackson.databind.JsonNode
import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.sse.SSE
import io.modelcontextprotocol.kotlin.sdk.client.Client
import io.modelcontextprotocol.kotlin.sdk.client.SseClientTransport
import io.modelcontextprotocol.kotlin.sdk.client.StdioClientTransport
import io.modelcontextprotocol.kotlin.sdk.client.StreamableHttpClientTransport
import io.modelcontextprotocol.kotlin.sdk.shared.RequestOptions
import io.modelcontextprotocol.kotlin.sdk.types.CallToolRequest
import io.modelcontextprotocol.kotlin.sdk.types.CallToolRequestParams
import io.modelcontextprotocol.kotlin.sdk.types.Implementation
import io.modelcontextprotocol.kotlin.sdk.types.Method
import io.modelcontextprotocol.kotlin.sdk.types.TextContent
import io.modelcontextprotocol.kotlin.sdk.types.ToolListChangedNotification
import java.util.concurrent.Semaphore
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.runBlocking
import kotlinx.io.asSink
import kotlinx.io.asSource
import kotlinx.io.buffered
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.jsonObject

/** What a call may take: all of them wait for two cores. */
private val options = RequestOptions(timeout = 2.minutes)

fun main(args: Array<String>) = Harness.main(args, ::connect)

private fun connect(target: Harness.Target, changed: Semaphore): Harness.Framework = runBlocking {
    val client = Client(Implementation("client", "1"))
    client.setNotificationHandler<ToolListChangedNotification>(Method.Defined.NotificationsToolsListChanged) {
        changed.release()
        CompletableDeferred(Unit)
    }
    val http = HttpClient(CIO) {
        install(SSE)
        install(HttpTimeout) { requestTimeoutMillis = null }
        // Its own default is far below the calls that are made at once.
        engine { endpoint.maxConnectionsPerRoute = 500 }
    }
    var program: Process? = null
    val transport = when (target.transport()) {
        "stdio" -> {
            val builder = ProcessBuilder(target.command()).redirectError(ProcessBuilder.Redirect.DISCARD)
            builder.environment().putAll(target.environment())
            val started = builder.start()
            program = started
            StdioClientTransport(
                input = started.inputStream.asSource().buffered(),
                output = started.outputStream.asSink().buffered(),
            )
        }
        "http" -> StreamableHttpClientTransport(http, target.url())
        else -> SseClientTransport(http, target.url())
    }
    client.connect(transport)
    object : Harness.Framework {
        override fun names() = runBlocking { client.listTools(options = options).tools.map { it.name }.toSet() }

        override fun uris() = runBlocking { client.listResources(options = options).resources.map { it.uri }.toSet() }

        override fun call(name: String, arguments: JsonNode) = runBlocking {
            val given = Json.parseToJsonElement(arguments.toString()).jsonObject
            val result = client.callTool(CallToolRequest(CallToolRequestParams(name, given)), options)
            result.content.filterIsInstance<TextContent>().joinToString("") { it.text }
        }

        override fun close() {
            runBlocking { client.close() }
            http.close()
            program?.waitFor()
        }
    }
}
