package dev.millrace.runtime.metrics;

import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.gateway.HttpDefaults;
import dev.millrace.gateway.LocalCallers;
import dev.millrace.gateway.RequestThreads;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.log.registry.RegistryHttpApi;
import dev.millrace.runtime.RefusedRequestException;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Millrace's HTTP port on loopback, for {@link LocalCallers}: {@code /metrics} for Prometheus, and what else is mounted.
 *
 * <p>{@link RequestThreads} answer, at most {@value #MOST_REQUESTS} at once. A request that takes longer than {@value #LIMIT_SECONDS} s to
 * be sent or to be answered is given up.
 */
public final class HttpEndpoint implements AutoCloseable {
    private static final int MOST_REQUESTS = 1024;
    private static final int LIMIT_SECONDS = 10;

    private final @Nullable HttpServer server;
    private final @Nullable RequestThreads threads;

    private HttpEndpoint(@Nullable HttpServer server, @Nullable RequestThreads threads) {
        this.server = server;
        this.threads = threads;
    }

    /**
     * Opens the port and answers from then on.
     *
     * @param port 1 to 65535; 0 takes any free one
     * @param mounts further handlers
     * @throws RefusedRequestException if the port is taken
     */
    public static HttpEndpoint open(int port, PrometheusMeterRegistry metrics, Consumer<HttpServer> mounts) {
        return open(port, metrics, mounts, MOST_REQUESTS, Duration.ofSeconds(LIMIT_SECONDS));
    }

    /**
     * @param most requests at once
     * @param limit of each request
     */
    static HttpEndpoint open(
            int port, PrometheusMeterRegistry metrics, Consumer<HttpServer> mounts, int most, Duration limit) {
        HttpDefaults.apply();
        HttpServer server;
        try {
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        } catch (BindException e) {
            throw new RefusedRequestException(
                    "port " + port + " on loopback is taken; give --metrics-port another one, or 0 for any free one",
                    e);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot open port " + port + " on loopback: " + e.getMessage(), e);
        }
        RequestThreads threads = new RequestThreads("http", most, limit);
        server.setExecutor(threads);
        HttpContext scrapes = server.createContext("/metrics", exchange -> {
            byte[] body = metrics.scrape().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        scrapes.getFilters().addAll(List.of(threads.filter(), new LocalCallers()));
        mounts.accept(server);
        server.start();
        return new HttpEndpoint(server, threads);
    }

    /**
     * Opens the configured port.
     *
     * @param port -1 opens none
     */
    public static HttpEndpoint openIfWanted(int port, PrometheusMeterRegistry metrics) {
        return port < 0 ? new HttpEndpoint(null, null) : open(port, metrics, server -> {});
    }

    /** Answers for schemas too, if the port is open and they are on the log. */
    public void serve(Optional<RegistryContents> schemas) {
        if (server != null && threads != null) {
            schemas.ifPresent(contents -> new RegistryHttpApi(contents)
                    .mount(server)
                    .forEach(context -> context.getFilters().addAll(List.of(threads.filter(), new LocalCallers()))));
        }
    }

    /** The port that is open; -1 if none is. */
    public int port() {
        return server == null ? -1 : server.getAddress().getPort();
    }

    @Override
    public void close() {
        if (server != null && threads != null) {
            server.stop(0);
            threads.close();
        }
    }
}
