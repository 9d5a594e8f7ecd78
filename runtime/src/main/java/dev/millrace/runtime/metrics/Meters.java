package dev.millrace.runtime.metrics;

import dev.millrace.runtime.config.MetricsConfig;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.config.MeterFilterReply;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The registry that all roles report to. */
public final class Meters implements AutoCloseable {
    /** Of the hundreds of meters of Kafka Streams, those that a person reads when something is slow; clients': {@link ClientMeters}. */
    private static final Set<String> STREAMS = Set.of(
            "kafka.stream.thread.process.rate",
            "kafka.stream.thread.process.latency.avg",
            "kafka.stream.thread.commit.latency.avg",
            "kafka.stream.thread.poll.latency.avg",
            "kafka.stream.task.dropped.records.total",
            "kafka.stream.state.restore.records.total");

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final JvmGcMetrics collector = new JvmGcMetrics();

    private final Optional<OtlpMirror> otlp;

    /**
     * With the JVM's meters; Kafka's get in only as far as a person reads them, and no meter grows without bound.
     *
     * @param config where else they go
     * @param runId whose they are
     * @throws dev.millrace.runtime.config.ConfigException if a secret of the collector's leads nowhere
     */
    public Meters(MetricsConfig config, String runId) {
        registry.config().meterFilter(new MeterFilter() {
            @Override
            public MeterFilterReply accept(Meter.Id id) {
                return id.getName().startsWith("kafka.") && !STREAMS.contains(id.getName())
                        ? MeterFilterReply.DENY
                        : MeterFilterReply.NEUTRAL;
            }
        });
        otlp = config.otlp().url().isEmpty()
                ? Optional.empty()
                : Optional.of(OtlpMirror.of(registry, config.otlp(), resource(runId)));
        SeriesBound.on(registry);
        new JvmMemoryMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        collector.bindTo(registry);
    }

    private static Map<String, String> resource(String runId) {
        return Map.of(
                "service.name",
                "millrace",
                "service.instance.id",
                runId + "-" + ProcessHandle.current().pid(),
                "millrace.run.id",
                runId);
    }

    /** Where roles register their meters. */
    public PrometheusMeterRegistry registry() {
        return registry;
    }

    @Override
    public void close() {
        otlp.ifPresent(OtlpMirror::close);
        collector.close();
        registry.close();
    }
}
