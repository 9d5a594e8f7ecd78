package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
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
 * Brings the few metrics of Kafka's clients that a person reads into the run's meters, whoever makes the client.
 *
 * <p>Kafka makes one object per client, by the setting {@code metric.reporters}, and closes it with the client; its
 * meters go with it. A metric {@code records-lag-max} becomes {@code millrace.kafka.records.lag.max} with the client's
 * id as tag; totals are counters.
 */
public final class ClientMeters implements MetricsReporter {
    /** The setting that holds the registry, an object. */
    static final String REGISTRY = "millrace.meter.registry";

    private static final Set<String> READ = Set.of(
            "records-lag-max",
            "records-consumed-rate",
            "bytes-consumed-rate",
            "fetch-latency-avg",
            "rebalance-total",
            "record-send-rate",
            "outgoing-byte-rate",
            "request-latency-avg",
            "record-error-total",
            "txn-commit-time-ns-total");

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
        // the same name stands again for each topic, partition and node, with more tags than the client's id
        if (!READ.contains(name.name()) || !name.tags().keySet().equals(Set.of("client-id"))) {
            return;
        }
        String meter =
                "millrace.kafka." + name.name().replaceFirst("-total$", "").replace('-', '.');
        String client = name.tags().getOrDefault("client-id", "");
        meters.put(
                name,
                name.name().endsWith("-total")
                        ? FunctionCounter.builder(meter, metric, ClientMeters::value)
                                .tag("client", client)
                                .description(name.description())
                                .register(registry)
                        : Gauge.builder(meter, metric, ClientMeters::value)
                                .tag("client", client)
                                .description(name.description())
                                .register(registry));
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
