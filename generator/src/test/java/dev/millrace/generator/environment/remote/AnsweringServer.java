package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** A loopback server that answers requests with a function and records them. */
public final class AnsweringServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Its answer. */
    public record Said(int status, String body) {
        public static Said ok(String body) {
            return new Said(200, body);
        }
    }

    public final List<ObjectNode> asked = new CopyOnWriteArrayList<>();
    public final List<String> keys = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpServer server;

    public AnsweringServer(Function<ObjectNode, Said> answer) {
        try {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        server.setExecutor(threads);
        server.createContext("/", exchange -> answer(exchange, answer));
        server.start();
    }

    private void answer(HttpExchange exchange, Function<ObjectNode, Said> answer) throws IOException {
        try (exchange) {
            ObjectNode question = (ObjectNode) JSON.readTree(exchange.getRequestBody());
            asked.add(question);
            keys.add(exchange.getRequestHeaders().getFirst("Idempotency-Key"));
            Said said = answer.apply(question);
            byte[] body = said.body().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(said.status(), body.length);
            exchange.getResponseBody().write(body);
        }
    }

    public String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort() + "/verify";
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
