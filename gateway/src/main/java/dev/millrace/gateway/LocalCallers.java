package dev.millrace.gateway;

import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Admits calls to a port without a token only if {@code Host} and {@code Origin} name this machine, so that pages of
 * other sites cannot use the port (DNS rebinding).
 */
public final class LocalCallers extends Filter {
    private static final Set<String> LOOPBACK = Set.of("127.0.0.1", "localhost", "[::1]");

    private final Set<String> names = new HashSet<>(LOOPBACK);

    /** @param names further host names without port */
    public LocalCallers(String... names) {
        for (String name : names) {
            this.names.add(
                    (name.contains(":") && !name.startsWith("[") ? "[" + name + "]" : name).toLowerCase(Locale.ROOT));
        }
    }

    @Override
    public String description() {
        return "refuses calls with a foreign Host header";
    }

    @Override
    public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
        if (isLocal(exchange)) {
            chain.doFilter(exchange);
            return;
        }
        try (exchange) {
            byte[] body = ("this port answers only as 127.0.0.1:"
                            + exchange.getLocalAddress().getPort() + ", not to pages of other hosts\n")
                    .getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/plain");
            exchange.sendResponseHeaders(403, body.length);
            exchange.getResponseBody().write(body);
        }
    }

    private boolean isLocal(HttpExchange exchange) {
        List<String> hosts = exchange.getRequestHeaders().getOrDefault("Host", List.of());
        return hosts.size() == 1
                && names.contains(withoutPort(hosts.get(0)))
                && exchange.getRequestHeaders().getOrDefault("Origin", List.of()).stream()
                        .allMatch(this::isLocalOrigin);
    }

    private boolean isLocalOrigin(String origin) {
        try {
            String host = URI.create(origin).getHost();
            return host != null && names.contains(host.toLowerCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    private static String withoutPort(String host) {
        int port = host.lastIndexOf(':');
        return (port < 0 || host.endsWith("]") ? host : host.substring(0, port)).toLowerCase(Locale.ROOT);
    }
}
