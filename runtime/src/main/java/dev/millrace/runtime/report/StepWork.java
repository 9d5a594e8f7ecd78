package dev.millrace.runtime.report;

import dev.millrace.runtime.metrics.BrokerMeters;
import dev.millrace.runtime.metrics.ProcessorTime;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * What a step costs its process, by the process's meters: means per step. A part without a value is absent.
 *
 * @param steps of the means
 * @param processorMs processor time by threads, as in {@value ProcessorTime#METER}
 * @param requests of Kafka clients by role
 * @param commitMs time of producers in commits of transactions by role
 * @param broker requests to the embedded broker by Kafka's name, and {@code flushes}
 */
public record StepWork(
        long steps,
        Map<String, Double> processorMs,
        Map<String, Double> requests,
        Map<String, Double> commitMs,
        Map<String, Double> broker) {

    private enum Part {
        PROCESSOR_MS,
        REQUESTS,
        COMMIT_MS,
        BROKER
    }

    /** @param tag that the values are by; a client's id stands for its role */
    private record Source(Part part, String tag, double unit) {
        String of(Meter.Id id) {
            String value = id.getTag(tag);
            return value == null ? tag : tag.equals("client.id") ? ProcessorTime.group("", value) : value;
        }
    }

    private static final Map<String, Source> SOURCES = Map.of(
            ProcessorTime.METER,
            new Source(Part.PROCESSOR_MS, "threads", 1e3),
            "kafka.consumer.request.total",
            new Source(Part.REQUESTS, "client.id", 1),
            "kafka.producer.request.total",
            new Source(Part.REQUESTS, "client.id", 1),
            "kafka.admin.client.request.total",
            new Source(Part.REQUESTS, "client.id", 1),
            "kafka.producer.txn.commit.time.ns.total",
            new Source(Part.COMMIT_MS, "client.id", 1e-6),
            BrokerMeters.REQUESTS,
            new Source(Part.BROKER, "request", 1),
            BrokerMeters.FLUSHES,
            new Source(Part.BROKER, "flushes", 1));

    /**
     * Meters at a time. A client that has ended keeps its last values.
     *
     * @param steps made so far
     */
    public record Reading(long steps, Map<Meter.Id, Double> values) {
        public static final Reading NONE = new Reading(0, Map.of());

        /** Reads the meters after this reading. */
        public Reading next(long now, MeterRegistry meters) {
            Map<Meter.Id, Double> read = new HashMap<>(values);
            for (Meter meter : meters.getMeters()) {
                if (meter instanceof FunctionCounter counter
                        && SOURCES.containsKey(meter.getId().getName())) {
                    read.put(meter.getId(), counter.count());
                }
            }
            return new Reading(now, read);
        }
    }

    /** Means between two readings, with a step at least. */
    public static StepWork between(Reading from, Reading to) {
        long steps = to.steps() - from.steps();
        Map<Part, Map<String, Double>> parts = new HashMap<>();
        to.values().forEach((id, value) -> {
            Source source = Optional.ofNullable(SOURCES.get(id.getName())).orElseThrow();
            double more = value - from.values().getOrDefault(id, 0.0);
            if (more > 0) {
                parts.computeIfAbsent(source.part(), unseen -> new TreeMap<>())
                        .merge(source.of(id), more * source.unit() / steps, Double::sum);
            }
        });
        return new StepWork(
                steps,
                parts.getOrDefault(Part.PROCESSOR_MS, Map.of()),
                parts.getOrDefault(Part.REQUESTS, Map.of()),
                parts.getOrDefault(Part.COMMIT_MS, Map.of()),
                parts.getOrDefault(Part.BROKER, Map.of()));
    }
}
