package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;

/**
 * Registers the Kafka client metrics that dashboards query as meters of the run, for every client of the process, with the names,
 * values and types of Micrometer's {@code KafkaClientMetrics}.
 *
 * <p>Kafka makes one object per client, by the setting {@code metric.reporters}, and closes it with the client; its meters go with
 * it. A metric {@code records-lag-max} of {@code consumer-fetch-manager-metrics} becomes
 * {@code kafka.consumer.fetch.manager.records.lag.max} with the tag {@code client.id}; {@code records-lag} has topic and partition too.
 */
public final class ClientMeters implements MetricsReporter {
    /** The setting that holds the registry, an object. */
    static final String REGISTRY = "millrace.meter.registry";

    private static final String PER_PARTITION = "records-lag";

    /** By Kafka's names, for all kinds of clients. */
    private static final Set<String> READ = Set.of(
            "assigned-partitions",
            "batch-size-avg",
            "buffer-available-bytes",
            "bytes-consumed-rate",
            "bytes-consumed-total",
            "commit-latency-avg",
            "connection-count",
            "fetch-latency-avg",
            "fetch-rate",
            "fetch-throttle-time-avg",
            "incoming-byte-rate",
            "last-heartbeat-seconds-ago",
            "outgoing-byte-rate",
            "poll-idle-ratio-avg",
            "produce-throttle-time-avg",
            "rebalance-latency-avg",
            "rebalance-total",
            "record-error-total",
            "record-queue-time-avg",
            "record-retry-total",
            "record-send-rate",
            "record-send-total",
            "records-consumed-rate",
            "records-consumed-total",
            "records-lag-max",
            "records-per-request-avg",
            "request-latency-avg",
            "request-rate",
            "request-total",
            "requests-in-flight",
            "time-between-poll-avg",
            "txn-commit-time-ns-total");

    private final Map<MetricName, Meter> meters = new ConcurrentHashMap<>();
    private MeterRegistry registry;

    /** The client settings with this reporter in them. */
    public static Map<String, Object> reportingTo(MeterRegistry registry, Map<String, String> settings) {
        Map<String, Object> with = new HashMap<>(settings);
        with.putIfAbsent("metric.reporters", JmxReporter.class.getName()); // Kafka's default, kept next to ours
        with.merge("metric.reporters", ClientMeters.class.getName(), (given, ours) -> given + "," + ours);
        with.put(REGISTRY, registry);
        return with;
    }

    @Override
    public void configure(Map<String, ?> settings) {
        if (!(settings.get(REGISTRY) instanceof MeterRegistry given)) {
            throw new IllegalArgumentException(REGISTRY + " must hold the registry that client meters go to");
        }
        registry = given;
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        metrics.forEach(this::metricChange);
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        MetricName name = metric.metricName();
        Set<String> tags = name.tags().keySet();
        // the same name exists per topic, partition and node, with more tags than the client's id
        if (READ.contains(name.name()) && tags.equals(Set.of("client-id"))) {
            meters.put(name, meter(metric));
        } else if (name.name().equals(PER_PARTITION) && tags.equals(Set.of("client-id", "topic", "partition"))) {
            meters.keySet().stream().filter(other -> isDeprecated(other, name)).forEach(this::remove);
            if (meters.keySet().stream().noneMatch(other -> isDeprecated(name, other))) {
                meters.put(name, meter(metric));
            }
        }
    }

    /**
     * Returns whether a partition metric duplicates another one with underscores for the topic's periods (KIP-1109).
     */
    private static boolean isDeprecated(MetricName name, MetricName other) {
        Map<String, String> tags = new HashMap<>(other.tags());
        return tags.computeIfPresent("topic", (tag, topic) -> topic.replace('.', '_')) != null
                && name.name().equals(other.name())
                && !name.equals(other)
                && name.tags().equals(tags);
    }

    private Meter meter(KafkaMetric metric) {
        MetricName name = metric.metricName();
        String meter = ("kafka." + name.group() + "." + name.name())
                .replace("-metrics", "")
                .replace('-', '.');
        List<Tag> tags = name.tags().entrySet().stream()
                .map(tag -> Tag.of(tag.getKey().replace('-', '.'), tag.getValue()))
                .toList();
        return name.name().endsWith("-total")
                ? FunctionCounter.builder(meter, metric, ClientMeters::value)
                        .tags(tags)
                        .description(name.description())
                        .register(registry)
                : Gauge.builder(meter, metric, ClientMeters::value)
                        .tags(tags)
                        .description(name.description())
                        .register(registry);
    }

    private static double value(KafkaMetric metric) {
        return metric.metricValue() instanceof Number number ? number.doubleValue() : Double.NaN;
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        remove(metric.metricName());
    }

    private void remove(MetricName name) {
        Meter meter = meters.remove(name);
        if (meter != null) {
            registry.remove(meter);
        }
    }

    @Override
    public void close() {
        meters.values().forEach(meter -> registry.remove(meter));
        meters.clear();
    }
}
