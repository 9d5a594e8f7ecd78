package dev.millrace.runtime.metrics;

import com.sun.net.httpserver.HttpServer;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.config.MillraceConfig;
import io.opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest;
import io.opentelemetry.proto.metrics.v1.Metric;
import io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** Takes what is sent to a collector of OpenTelemetry, and keeps it. */
public final class OtlpCollector implements AutoCloseable {
    private final List<Sent> sent = new CopyOnWriteArrayList<>();
    private final HttpServer server;

    /**
     * A request that the collector was sent.
     *
     * @param authorization its header; null without one
     */
    public record Sent(String authorization, ExportMetricsServiceRequest body) {
        /** By name; of several series the first. */
        public Map<String, Metric> metrics() {
            return body.getResourceMetrics(0).getScopeMetrics(0).getMetricsList().stream()
                    .collect(Collectors.toMap(Metric::getName, metric -> metric, (one, other) -> one));
        }
    }

    /** Listens on loopback. */
    public OtlpCollector() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/v1/metrics", exchange -> {
            sent.add(new Sent(
                    exchange.getRequestHeaders().getFirst("Authorization"),
                    ExportMetricsServiceRequest.parseFrom(exchange.getRequestBody())));
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
    }

    /** What sends to it when it is closed, and not before an hour has passed. */
    public MetricsConfig config() {
        return ConfigBinder.bind(
                        MillraceConfig.defaults(),
                        ConfigTree.parse(
                                "metrics: {otlp: {url: 'http://127.0.0.1:"
                                        + server.getAddress().getPort()
                                        + "/v1/metrics', headers: {Authorization: Bearer hunter2}, period_ms: 3600000}}",
                                "a test"))
                .metrics();
    }

    /** The newest request. */
    public Sent last() {
        return sent.get(sent.size() - 1);
    }

    /** Every series of a gauge in it. */
    public List<NumberDataPoint> series(String gauge) {
        return last().body().getResourceMetrics(0).getScopeMetrics(0).getMetricsList().stream()
                .filter(metric -> metric.getName().equals(gauge))
                .flatMap(metric -> metric.getGauge().getDataPointsList().stream())
                .toList();
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
