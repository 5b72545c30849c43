import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.agent.tool.ToolSpecification;
import dev.langchain4j.mcp.client.DefaultMcpClient;
import dev.langchain4j.mcp.client.McpClient;
import dev.langchain4j.mcp.client.McpClientListener;
import dev.langchain4j.mcp.client.McpResource;
import dev.langchain4j.mcp.client.transport.McpTransport;
import dev.langchain4j.mcp.client.transport.http.HttpMcpTransport;
import dev.langchain4j.mcp.client.transport.http.StreamableHttpMcpTransport;
import dev.langchain4j.mcp.client.transport.stdio.StdioMcpTransport;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.stream.Collectors;

/** LangChain4j's client ({@code langchain4j-mcp}) against the real server: see Harness. */
public final class LangChain4j {
    /** The timeout of a call: all of them share two cores. */
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    public static void main(String[] args) throws Exception {
        Harness.main(args, LangChain4j::connect);
    }

    private static Harness.Framework connect(Harness.Target target, Semaphore changed) {
        McpClient client = new DefaultMcpClient.Builder()
            .transport(transport(target))
            .initializationTimeout(PATIENCE)
            .toolExecutionTimeout(PATIENCE)
            .addListener(new McpClientListener() {
                @Override
                public void onNotificationToolsListChanged() {
                    changed.release();
                }
            })
            .build();
        return new Harness.Framework() {
            @Override
            public Set<String> names() {
                return client.listTools().stream().map(ToolSpecification::name).collect(Collectors.toSet());
            }

            @Override
            public Set<String> uris() {
                return client.listResources().stream().map(McpResource::uri).collect(Collectors.toSet());
            }

            @Override
            public String call(String name, JsonNode arguments) {
                var request = ToolExecutionRequest.builder().name(name).arguments(arguments.toString()).build();
                return client.executeTool(request).resultText();
            }

            @Override
            public void close() throws Exception {
                client.close();
            }
        };
    }

    /** Returns the transport to a target. All of its transports are tested, including deprecated ones. */
    @SuppressWarnings({"deprecation", "removal"})
    private static McpTransport transport(Harness.Target target) {
        return switch (target.transport()) {
            case "stdio" ->
                new StdioMcpTransport.Builder().command(target.command()).environment(target.environment()).build();
            case "http" ->
                new StreamableHttpMcpTransport.Builder().url(target.url()).timeout(PATIENCE).subsidiaryChannel(true).build();
            default -> new HttpMcpTransport.Builder().sseUrl(target.url()).timeout(PATIENCE).build();
        };
    }

    private LangChain4j() {}
}
