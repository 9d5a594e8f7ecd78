package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.jspecify.annotations.Nullable;

/**
 * Brings the few metrics of Kafka's clients that a person reads into the run's meters, whoever makes the client.
 *
 * <p>Kafka makes one object per client, by the setting {@code metric.reporters}, and closes it with the client; its
 * meters go with it. A metric {@code records-lag-max} becomes {@code millrace.kafka.records.lag.max} with the client's
 * id and kind (consumer, producer, admin) as tags; totals are counters, times are in seconds.
 */
public final class ClientMeters implements MetricsReporter {
    /** The setting that holds the registry, an object. */
    static final String REGISTRY = "millrace.meter.registry";

    private static final double NONE = 1;
    private static final double MILLISECONDS = 1e-3;
    private static final double NANOSECONDS = 1e-9;

    /** By Kafka's name: what a value is multiplied with to be in seconds, or 1. */
    private static final Map<String, Double> READ = Map.ofEntries(
            Map.entry("records-lag-max", NONE),
            Map.entry("records-consumed-rate", NONE),
            Map.entry("bytes-consumed-rate", NONE),
            Map.entry("fetch-latency-avg", MILLISECONDS),
            Map.entry("fetch-throttle-time-avg", MILLISECONDS),
            Map.entry("poll-idle-ratio-avg", NONE),
            Map.entry("commit-latency-avg", MILLISECONDS),
            Map.entry("rebalance-total", NONE),
            Map.entry("record-send-rate", NONE),
            Map.entry("record-queue-time-avg", MILLISECONDS),
            Map.entry("produce-throttle-time-avg", MILLISECONDS),
            Map.entry("outgoing-byte-rate", NONE),
            Map.entry("request-latency-avg", MILLISECONDS),
            Map.entry("record-retry-total", NONE),
            Map.entry("record-error-total", NONE),
            Map.entry("txn-commit-time-ns-total", NANOSECONDS));

    private final Map<MetricName, Meter> meters = new ConcurrentHashMap<>();
    private MeterRegistry registry;

    /** The client settings with this reporter in them. */
    public static Map<String, Object> reportingTo(MeterRegistry registry, Map<String, String> settings) {
        Map<String, Object> with = new HashMap<>(settings);
        with.putIfAbsent("metric.reporters", JmxReporter.class.getName()); // Kafka's default, which ours joins
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
        Double factor = READ.get(name.name());
        // the same name stands again for each topic, partition and node, with more tags than the client's id
        if (factor != null && name.tags().keySet().equals(Set.of("client-id"))) {
            meters.put(name, meter(metric, factor));
        }
    }

    private Meter meter(KafkaMetric metric, double factor) {
        MetricName name = metric.metricName();
        boolean isTotal = name.name().endsWith("-total");
        String meter = "millrace.kafka."
                + name.name().replaceFirst("(-ns)?(-total)?$", "").replace('-', '.');
        // a role's consumer and its producer may have one id
        Tags tags = Tags.of(
                "client",
                name.tags().getOrDefault("client-id", ""),
                "kind",
                name.group().replaceFirst("-.*", ""));
        @Nullable String unit = factor == NONE ? null : "seconds";
        return isTotal
                ? FunctionCounter.builder(meter, metric, of -> value(of) * factor)
                        .tags(tags)
                        .baseUnit(unit)
                        .description(name.description())
                        .register(registry)
                : Gauge.builder(meter, metric, of -> value(of) * factor)
                        .tags(tags)
                        .baseUnit(unit)
                        .description(name.description())
                        .register(registry);
    }

    private static double value(KafkaMetric metric) {
        return metric.metricValue() instanceof Number number ? number.doubleValue() : Double.NaN;
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        Meter meter = meters.remove(metric.metricName());
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
