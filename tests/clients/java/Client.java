import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ClientCapabilities;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The official Java SDK against the real server.
 *
 * <p>{@code Client MODE TRANSPORT SERVER PLUGINS NEWCOMER}: MODE is {@code legacy}, because this SDK has only sessions;
 * TRANSPORT is {@code stdio}, {@code http} or {@code sse}; SERVER is the binary; PLUGINS a folder with the sample
 * plugins; NEWCOMER a further plugin, with the tool {@code shout}, which the test adds later.
 */
final class Client {
    /** The timeout of each operation. */
    private static final Duration PATIENCE = Duration.ofMinutes(3);

    /** The number of concurrent calls on one session. */
    private static final int AT_ONCE = 400;

    private static final String UNLIMITED = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n";

    private int passed;
    private int failed;
    private final BlockingQueue<Boolean> changed = new LinkedBlockingQueue<>();
    private final BlockingQueue<Double> progress = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> log = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> asked = new LinkedBlockingQueue<>();

    private void check(String what, boolean ok, Object otherwise) {
        if (ok) {
            passed++;
            System.out.println("ok      " + what);
        } else {
            failed++;
            System.out.println("FAILED  " + what + ": " + otherwise);
        }
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 5) {
            System.err.println("usage: Client MODE TRANSPORT SERVER PLUGINS NEWCOMER");
            System.exit(2);
        }
        Client client = new Client();
        Path root = Files.createTempDirectory("toolbay-");
        try {
            client.run(root, args[1], args[2], Path.of(args[3]), Path.of(args[4]));
        } catch (Exception | AssertionError error) {
            client.check("the conversation goes on to its end", false, error);
        } finally {
            try (var files = Files.walk(root)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
        System.out.println(client.passed + " passed, " + client.failed + " failed");
        System.exit(client.failed == 0 ? 0 : 1);
    }

    private void run(Path root, String transport, String server, Path plugins, Path newcomer) throws Exception {
        Path folder = Files.createDirectory(root.resolve("plugins"));
        Files.copy(plugins.resolve("calculator.wasm"), folder.resolve("calculator.wasm"));
        Files.copy(newcomer.resolveSibling("conformance.wasm"), folder.resolve("conformance.wasm"));
        Files.writeString(folder.resolve("calculator.toml"), UNLIMITED);
        Map<String, String> cache = Map.of("XDG_CACHE_HOME", root.resolve("cache").toString());
        // So that all tools are available immediately, even on a slow machine.
        ProcessBuilder compile = new ProcessBuilder(server, "compile", "--plugins", folder.toString()).inheritIO();
        compile.environment().putAll(cache);
        if (compile.start().waitFor() != 0) {
            throw new IllegalStateException("toolbay compile failed");
        }
        Process served = null;
        McpClientTransport way;
        if (transport.equals("stdio")) {
            ServerParameters parameters = ServerParameters.builder(server)
                .args("serve", "--log", "warn", "--plugins", folder.toString()).env(cache).build();
            way = new StdioClientTransport(parameters, McpJsonDefaults.getMapper());
        } else {
            ProcessBuilder serve =
                new ProcessBuilder(server, "serve", "--http", "127.0.0.1:0", "--sse", "--plugins", folder.toString());
            serve.environment().putAll(cache);
            served = serve.start();
            String base = base(served);
            way = transport.equals("sse")
                ? HttpClientSseClientTransport.builder(base).sseEndpoint("/sse").build()
                : HttpClientStreamableHttpTransport.builder(base).endpoint("/mcp").openConnectionOnStartup(true).build();
        }
        try (McpSyncClient client = client(way)) {
            converse(client, folder, newcomer, transport.equals("sse"));
        }
        if (served != null) {
            served.destroy();
            check("the server ends well", served.waitFor(30, TimeUnit.SECONDS) && served.exitValue() == 0, served);
        }
    }

    /** Returns the address of a server that listens. */
    private static String base(Process served) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(served.getErrorStream()));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int at = line.indexOf("listening on ");
            if (at >= 0) {
                // Read to its end, so that the server never blocks.
                Thread drain = new Thread(() -> {
                    try {
                        while (lines.readLine() != null) {}
                    } catch (IOException closed) {
                        // The server has ended.
                    }
                });
                drain.setDaemon(true);
                drain.start();
                return line.substring(at + "listening on ".length()).strip().replaceFirst("/mcp$", "");
            }
        }
        throw new IllegalStateException("the server did not start");
    }

    private McpSyncClient client(McpClientTransport way) {
        return McpClient.sync(way)
            .clientInfo(new Implementation("toolbay-tests", "0"))
            .requestTimeout(PATIENCE)
            .initializationTimeout(PATIENCE)
            .capabilities(ClientCapabilities.builder().roots(true).sampling().elicitation().build())
            .roots(new McpSchema.Root("file:///home/ada", "home"))
            .elicitation(question -> {
                asked.add("elicitation/create");
                return new ElicitResult(
                    ElicitResult.Action.ACCEPT, Map.of("username", "ada", "email", "ada@example.com"));
            })
            .sampling(question -> {
                asked.add("sampling/createMessage");
                return CreateMessageResult.builder(McpSchema.Role.ASSISTANT, "Paris.", "a model").build();
            })
            .toolsChangeConsumer(tools -> changed.add(true))
            .progressConsumer(step -> progress.add(step.progress()))
            .loggingConsumer(line -> log.add(line.level().toString()))
            .build();
    }

    private void converse(McpSyncClient client, Path folder, Path newcomer, boolean sse) throws Exception {
        String revision = client.initialize().protocolVersion();
        // With the transport of 2024, this SDK uses the revision of 2024, without forms and structured content.
        boolean old = revision.equals("2024-11-05");
        check("connects, with revision " + revision, old == sse, revision);
        List<String> names = names(client);
        check("lists tools", names.containsAll(List.of("calculate_sum", "test_tool_with_progress")), names);
        CallToolResult sum = call(client, "calculate_sum", Map.of("a", 1, "b", 2.5));
        check("calls a tool", isSum(sum, 3.5), sum);
        check("a failure is a result", call(client, "test_error_handling", Map.of()).isError(), "no error");
        try {
            check("an unknown tool is error -32602", false, call(client, "no_such_tool", Map.of()));
        } catch (McpError error) {
            check("an unknown tool is error -32602", error.getJsonRpcError().code() == -32602, error);
        }

        client.callTool(CallToolRequest.builder("test_tool_with_progress").arguments(Map.of()).progressToken("p").build());
        for (double expected : new double[] {0, 50, 100}) {
            Double step = next(progress);
            check("progress " + expected + " comes as it is made", step == expected, step);
        }
        client.setLoggingLevel(McpSchema.LoggingLevel.INFO);
        call(client, "test_tool_with_logging", Map.of());
        check("log messages come", next(log) != null, "none");

        if (!old) {
            answers(client, "test_elicitation", Map.of("message", "Who?"), "elicitation/create", "action=accept");
        }
        answers(client, "test_sampling", Map.of("prompt", "The capital of France?"), "sampling/createMessage", "Paris");
        answers(client, "test_input_required_result_list_roots", Map.of(), null, "file:///home/ada");
        many(client);

        Path target = folder.resolve("newcomer.wasm");
        Files.copy(newcomer, target);
        told(client, true);
        CallToolResult shouted = call(client, "shout", Map.of("text", "hello"));
        check("is told of a new tool, and calls it", text(shouted).contains("HELLO"), shouted);
        Files.delete(target);
        told(client, false);
        check("is told that it is gone", true, null);
    }

    /** Makes a plugin ask, and answers. */
    private void answers(
        McpSyncClient client, String tool, Map<String, Object> arguments, String method, String answer
    ) throws InterruptedException {
        CallToolResult result = call(client, tool, arguments);
        check("answers what " + tool + " asks", text(result).contains(answer), result);
        if (method != null) {
            String question = next(asked);
            check("is asked with " + method, method.equals(question), question);
        }
    }

    /** Makes concurrent calls on one session. */
    private void many(McpSyncClient client) throws Exception {
        var threads = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<CallToolResult>> calls = new ArrayList<>();
        for (int n = 0; n < AT_ONCE; n++) {
            int a = n;
            calls.add(threads.submit(() -> enqueued(client, "calculate_sum", Map.of("a", a, "b", 0.5))));
        }
        Object wrong = null;
        for (int n = 0; n < AT_ONCE; n++) {
            CallToolResult result = calls.get(n).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            if (!isSum(result, n + 0.5)) {
                wrong = result;
            }
        }
        threads.shutdown();
        check(AT_ONCE + " calls at once on one session", wrong == null, wrong);
    }

    /** Calls a tool as soon as the SDK sends no other message: over standard input, it refuses concurrent messages. */
    private static CallToolResult enqueued(McpSyncClient client, String name, Map<String, Object> arguments) {
        while (true) {
            try {
                return call(client, name, arguments);
            } catch (RuntimeException error) {
                if (!String.valueOf(error.getMessage()).contains("Failed to enqueue message")) {
                    throw error;
                }
                Thread.yield();
            }
        }
    }

    /** Waits until the client was notified of a list that contains, or does not contain, the newcomer. */
    private void told(McpSyncClient client, boolean listed) throws InterruptedException {
        do {
            next(changed);
        } while (names(client).contains("shout") != listed);
    }

    private static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        T next = queue.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        if (next == null) {
            throw new IllegalStateException("the server says no more");
        }
        return next;
    }

    private static List<String> names(McpSyncClient client) {
        return client.listTools().tools().stream().map(McpSchema.Tool::name).toList();
    }

    private static CallToolResult call(McpSyncClient client, String name, Map<String, Object> arguments) {
        return client.callTool(new CallToolRequest(name, arguments));
    }

    /** Returns whether a result is this sum, which every revision has as text. */
    private static boolean isSum(CallToolResult result, double sum) {
        Object structured = result.structuredContent();
        return text(result).equals("{\"sum\":" + sum + "}") && (structured == null || structured.equals(Map.of("sum", sum)));
    }

    private static String text(CallToolResult result) {
        StringBuilder text = new StringBuilder();
        for (McpSchema.Content block : result.content()) {
            if (block instanceof TextContent words) {
                text.append(words.text());
            }
        }
        return text.toString();
    }
}
