package dev.millrace.workloads.closed;

import com.sun.net.httpserver.HttpServer;
import dev.millrace.generator.gateway.HttpDefaults;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The engine without a gateway, over the same server: reads a call, waits, answers with as many tokens. */
final class DirectServer implements AutoCloseable {
    private final HttpServer server;
    private final ExecutorService threads;

    DirectServer(FixedLatencyEngine engine) throws IOException {
        HttpDefaults.apply();
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1024);
        threads = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task, "direct");
            thread.setDaemon(true);
            return thread;
        });
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            try (exchange) {
                exchange.getRequestBody().readAllBytes();
                engine.waited().join();
                byte[] body = ("{\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\",\"token_ids\":"
                                + Arrays.toString(engine.answer()) + "}]}")
                        .getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "application/json");
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            }
        });
        server.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
