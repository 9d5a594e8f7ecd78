package dev.millrace.runtime.metrics;

import com.sun.net.httpserver.HttpExchange;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.gateway.HttpListener;
import dev.millrace.gateway.RequestThreads;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.log.registry.RegistryHttpApi;
import dev.millrace.runtime.RefusedRequestException;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Serves {@code /metrics} and the schemas' read side to callers that {@link HttpListener} admits, and {@code /livez} and {@code /readyz} to
 * every caller: 200, or 503 with a line that says why.
 *
 * <p>{@link RequestThreads} answer, at most {@value #MOST_REQUESTS} at once. Requests time out after {@value
 * #LIMIT_SECONDS} s of sending or answering.
 */
public final class HttpEndpoint implements AutoCloseable {
    private static final int MOST_REQUESTS = 1024;
    private static final int LIMIT_SECONDS = 10;

    private final @Nullable HttpListener listener;
    private volatile @Nullable Probes probes;

    private HttpEndpoint(@Nullable HttpListener listener) {
        this.listener = listener;
    }

    /**
     * Opens the port and starts to answer.
     *
     * @param option names the port in messages
     * @param port 1 to 65535; 0 takes any free one
     * @throws RefusedRequestException if the port is taken, or the token or certificate cannot be used
     */
    public static HttpEndpoint open(HttpConfig http, String option, int port, PrometheusMeterRegistry metrics) {
        return open(http, option, port, metrics, MOST_REQUESTS, Duration.ofSeconds(LIMIT_SECONDS));
    }

    /** @param limit of each request */
    static HttpEndpoint open(
            HttpConfig http, String option, int port, PrometheusMeterRegistry metrics, int most, Duration limit) {
        HttpListener listener;
        try {
            listener = HttpListener.open(http, port, option, new RequestThreads("http", most, limit));
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        HttpEndpoint endpoint = new HttpEndpoint(listener);
        listener.serve(
                "/metrics",
                exchange -> send(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", metrics.scrape()));
        listener.serveEveryone("/livez", exchange -> endpoint.probe(exchange, Probes::whyDead, Optional.empty()));
        listener.serveEveryone(
                "/readyz",
                exchange -> endpoint.probe(exchange, Probes::whyUnready, Optional.of("the process is starting")));
        listener.start();
        return endpoint;
    }

    /**
     * Opens the configured port.
     *
     * @param port -1 opens none
     */
    public static HttpEndpoint openIfWanted(HttpConfig http, int port, PrometheusMeterRegistry metrics) {
        return port < 0 ? new HttpEndpoint(null) : open(http, "--metrics-port", port, metrics);
    }

    /**
     * Answers {@code /livez} and {@code /readyz} for these roles from now on; until then the process is live and not
     * ready.
     */
    public void answer(Probes roles) {
        probes = roles;
    }

    /** @param before state while there are no roles */
    private void probe(HttpExchange exchange, Function<Probes, Optional<String>> question, Optional<String> before)
            throws IOException {
        Probes known = probes;
        Optional<String> why = known == null ? before : question.apply(known);
        send(exchange, why.isEmpty() ? 200 : 503, "text/plain; charset=utf-8", why.orElse("ok") + "\n");
    }

    private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        try (exchange) {
            exchange.getResponseHeaders().set("Content-Type", type);
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
        }
    }

    /** Answers for schemas too, if the port is open and they are on the log. */
    public void serve(Optional<RegistryContents> schemas) {
        if (listener != null) {
            schemas.ifPresent(contents -> new RegistryHttpApi(contents).mount(listener::serve));
        }
    }

    /** Base URL without a trailing slash; empty if no port is open. */
    public Optional<String> url() {
        return Optional.ofNullable(listener).map(HttpListener::url);
    }

    @Override
    public void close() {
        if (listener != null) {
            listener.close();
        }
    }
}
