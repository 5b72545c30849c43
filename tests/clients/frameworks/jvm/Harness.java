import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * The conversation of every client on the JVM with the real server, in the folder with the most
 * unusual plugins.
 *
 * <p>{@code MAIN MODE TRANSPORT SERVER FOLDER CALLS CACHE NEWCOMER}, as in harness.mjs.
 */
public final class Harness {
    /** The timeout of each operation. */
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    /** The number of concurrent calls on one session. */
    private static final int AT_ONCE = 400;

    private static final ObjectMapper JSON = new ObjectMapper();

    private int passed;
    private int failed;

    /** The target of the connection: a command, or a URL. */
    public record Target(String transport, List<String> command, Map<String, String> environment, String url) {}

    /** The interface of a client. */
    public interface Framework extends AutoCloseable {
        /** Returns the tools that it lists. */
        Set<String> names() throws Exception;

        /** Returns the URIs of the resources that it lists. */
        Set<String> uris() throws Exception;

        /** Returns the result of a tool, as text. It throws the exceptions of the client. */
        String call(String name, JsonNode arguments) throws Exception;
    }

    /** Creates a client. It releases {@code changed} whenever it is notified of a new list. */
    public interface Connect {
        Framework to(Target target, Semaphore changed) throws Exception;
    }

    /** Has the conversation of the arguments, and ends the program. */
    public static void main(String[] args, Connect connect) throws Exception {
        Harness harness = new Harness();
        Path root = Files.createTempDirectory("toolbay-");
        try {
            harness.run(args, root, connect);
        } catch (Exception error) {
            error.printStackTrace();
            harness.check("the conversation goes on to its end", false, error);
        } finally {
            remove(root);
        }
        System.out.println(harness.passed + " passed, " + harness.failed + " failed");
        System.exit(harness.failed > 0 ? 1 : 0);
    }

    private void check(String what, boolean ok, Object otherwise) {
        if (ok) {
            passed++;
            System.out.println("ok      " + what);
        } else {
            failed++;
            System.out.println("FAILED  " + what + ": " + otherwise);
        }
    }

    private void run(String[] args, Path root, Connect connect) throws Exception {
        String transport = args[1];
        Path folder = root.resolve("plugins");
        Files.createDirectory(folder);
        try (var files = Files.list(Path.of(args[3]))) {
            for (Path file : files.toList()) {
                Files.copy(file, folder.resolve(file.getFileName()));
            }
        }
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.put("XDG_CACHE_HOME", args[5]);
        List<String> command = new ArrayList<>(List.of(args[2], "serve", "--no-config", "--plugins", folder.toString()));
        JsonNode calls = JSON.readTree(Path.of(args[4]).toFile());
        Path newcomer = Path.of(args[6]);
        if (transport.equals("stdio")) {
            command.addAll(List.of("--log", "warn"));
            converse(connect, new Target(transport, command, environment, null), calls, folder, newcomer);
            return;
        }
        command.addAll(List.of("--http", "127.0.0.1:0", "--sse"));
        ProcessBuilder builder = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        builder.environment().putAll(environment);
        Process server = builder.start();
        try {
            BufferedReader said = new BufferedReader(new InputStreamReader(server.getErrorStream()));
            String line = said.readLine();
            while (line != null && !line.contains("listening on ")) {
                line = said.readLine();
            }
            if (line == null) {
                throw new IOException("the server did not start");
            }
            // Read to its end, so that the server never blocks.
            Thread reader = new Thread(() -> said.lines().forEach(ignored -> {}));
            reader.setDaemon(true);
            reader.start();
            String url = line.substring(line.indexOf("http://", line.indexOf("listening on "))).trim();
            if (transport.equals("sse")) {
                url = url.replaceAll("/mcp$", "/sse");
            }
            converse(connect, new Target(transport, null, null, url), calls, folder, newcomer);
        } finally {
            server.destroy();
            check("the server ends well", server.waitFor() == 0, server.exitValue());
        }
    }

    private void converse(Connect connect, Target target, JsonNode calls, Path folder, Path newcomer) throws Exception {
        Semaphore changed = new Semaphore(0);
        try (Framework framework = connect.to(target, changed)) {
            Set<String> names = framework.names();
            List<String> missing = new ArrayList<>();
            calls.get("listed").forEach(name -> missing.add(name.asText()));
            int listed = missing.size();
            missing.removeAll(names);
            check("lists all " + listed + " tools", missing.isEmpty(), missing);
            for (JsonNode call : calls.get("calls")) {
                String name = call.get("tool").asText();
                String text = attempt(() -> framework.call(name, call.get("arguments")));
                check("calls " + name, fits(text, call.get("returns")), text);
            }
            Set<String> uris = framework.uris();
            List<String> unlisted = new ArrayList<>();
            calls.get("resources").forEach(uri -> unlisted.add(uri.asText()));
            unlisted.removeAll(uris);
            check("lists resources with every kind of URI", unlisted.isEmpty(), unlisted);
            many(framework);

            Path copy = folder.resolve("newcomer.wasm");
            Files.copy(newcomer, copy);
            until(framework, changed, true);
            String shouted = attempt(() -> framework.call("shout", JSON.createObjectNode().put("text", "hello")));
            check("is told of a new tool, and calls it", shouted.contains("HELLO"), shouted);
            Files.delete(copy);
            until(framework, changed, false);
            check("is told that it is gone", true, null);
        }
    }

    /** Makes concurrent calls on one session. */
    private void many(Framework framework) throws Exception {
        var threads = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<String>> calls = new ArrayList<>();
        for (int n = 0; n < AT_ONCE; n++) {
            JsonNode arguments = JSON.createObjectNode().put("a", n).put("b", 0.5);
            calls.add(threads.submit(() -> attempt(() -> framework.call("calculate_sum", arguments))));
        }
        String wrong = null;
        for (int n = 0; n < AT_ONCE; n++) {
            String text = calls.get(n).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            if (!fits(text, JSON.createObjectNode().put("sum", n + 0.5))) {
                wrong = text;
            }
        }
        threads.shutdown();
        check(AT_ONCE + " calls at once on one session", wrong == null, wrong);
    }

    /** Waits until the client was notified of a list that contains, or does not contain, the
     * newcomer. */
    private static void until(Framework framework, Semaphore changed, boolean there) throws Exception {
        while (framework.names().contains("shout") != there) {
            if (!changed.tryAcquire(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
                throw new IOException("the server says no more");
            }
        }
    }

    private static String attempt(Callable<String> call) {
        try {
            return call.call();
        } catch (Exception error) {
            return String.valueOf(error);
        }
    }

    /** Returns whether a text is the expected result of a tool. */
    private static boolean fits(String text, JsonNode expected) {
        if (expected.isTextual()) {
            return text.contains(expected.asText());
        }
        try {
            return JSON.readTree(text).equals(expected);
        } catch (IOException error) {
            return false;
        }
    }

    private static void remove(Path root) throws IOException {
        try (var paths = Files.walk(root)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private Harness() {}
}
