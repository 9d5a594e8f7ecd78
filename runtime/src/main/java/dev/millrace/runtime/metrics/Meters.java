package dev.millrace.runtime.metrics;

import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.config.OtlpConfig;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.config.MeterFilterReply;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.micrometer.registry.otlp.OtlpMeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The registry that all roles report to. */
public final class Meters implements AutoCloseable {
    /** The meters of Kafka Streams that help to find what is slow; for clients see {@link ClientMeters}. */
    private static final Set<String> STREAMS = Set.of(
            "kafka.stream.alive.stream.threads",
            "kafka.stream.failed.stream.threads",
            "kafka.stream.thread.commit.rate",
            "kafka.stream.thread.poll.rate",
            "kafka.stream.thread.process.rate",
            "kafka.stream.thread.process.total",
            "kafka.stream.thread.process.latency.avg",
            "kafka.stream.thread.commit.latency.avg",
            "kafka.stream.thread.poll.latency.avg",
            "kafka.stream.task.dropped.records.total",
            "kafka.stream.state.restore.records.total");

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final JvmGcMetrics collector = new JvmGcMetrics();
    /** Kept here: its counters refer to it weakly. */
    private final ProcessorTime processor = new ProcessorTime();

    private final Optional<OtlpMirror> otlp;

    /**
     * A registry with the JVM's meters and a selection of Kafka's; the series of each meter are bounded.
     *
     * @throws dev.millrace.runtime.config.ConfigException if a secret of the collector cannot be resolved
     */
    public Meters(MetricsConfig config, String runId) {
        registry.config().meterFilter(new MeterFilter() {
            @Override
            public MeterFilterReply accept(Meter.Id id) {
                return id.getName().startsWith("kafka.stream.") && !STREAMS.contains(id.getName())
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
        processor.bindTo(registry);
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

    /**
     * Sends the meters of a registry to an OpenTelemetry collector, under their dotted names. Each meter has a mirror
     * that reads it at every push. If the collector does not answer, only a log line is written. Thread-safe.
     */
    static final class OtlpMirror implements AutoCloseable {
        private static final Logger LOG = LoggerFactory.getLogger(OtlpMirror.class);

        private final OtlpMeterRegistry otlp;
        private final Map<Meter.Id, Meter> mirrored = new ConcurrentHashMap<>();

        private OtlpMirror(OtlpMeterRegistry otlp) {
            this.otlp = otlp;
        }

        /** Sends what is registered from now on. */
        static OtlpMirror of(MeterRegistry meters, OtlpConfig config, Map<String, String> resource) {
            OtlpMirror mirror = new OtlpMirror(new OtlpMeterRegistry(exporter(config, resource), Clock.SYSTEM));
            meters.config().onMeterAdded(mirror::add).onMeterRemoved(mirror::remove);
            return mirror;
        }

        private static io.micrometer.registry.otlp.OtlpConfig exporter(
                OtlpConfig config, Map<String, String> resource) {
            String url = config.address();
            Map<String, String> headers = config.secretHeaders();
            return new io.micrometer.registry.otlp.OtlpConfig() {
                @Override
                public @Nullable String get(String key) {
                    return null; // ignores system properties
                }

                @Override
                public String url() {
                    return url;
                }

                @Override
                public Map<String, String> headers() {
                    return headers;
                }

                @Override
                public Duration step() {
                    return Duration.ofMillis(config.periodMs());
                }

                @Override
                public Map<String, String> resourceAttributes() {
                    return resource;
                }
            };
        }

        private void add(Meter meter) {
            Meter.Id id = meter.getId();
            if (meter instanceof Gauge gauge) {
                mirrored.put(
                        id,
                        Gauge.builder(id.getName(), gauge, Gauge::value)
                                .tags(id.getTags())
                                .baseUnit(id.getBaseUnit())
                                .description(id.getDescription())
                                .strongReference(true)
                                .register(otlp));
            } else if (meter instanceof Counter counter) {
                count(FunctionCounter.builder(id.getName(), counter, Counter::count), id);
            } else if (meter instanceof FunctionCounter counter) {
                count(FunctionCounter.builder(id.getName(), counter, FunctionCounter::count), id);
            } else if (meter instanceof Timer timer) {
                mirrored.put(
                        id,
                        FunctionTimer.builder(
                                        id.getName(),
                                        timer,
                                        Timer::count,
                                        of -> of.totalTime(TimeUnit.SECONDS),
                                        TimeUnit.SECONDS)
                                .tags(id.getTags())
                                .description(id.getDescription())
                                .register(otlp));
            } else {
                LOG.warn("meter {} is not sent to the collector: it is a {}", id.getName(), id.getType());
            }
        }

        /** @param reading of the counter, held weakly */
        private void count(FunctionCounter.Builder<?> reading, Meter.Id id) {
            mirrored.put(
                    id,
                    reading.tags(id.getTags())
                            .baseUnit(id.getBaseUnit())
                            .description(id.getDescription())
                            .register(otlp));
        }

        private void remove(Meter meter) {
            Meter mirror = mirrored.remove(meter.getId());
            if (mirror != null) {
                otlp.remove(mirror);
            }
        }

        /** Sends the last values. */
        @Override
        public void close() {
            otlp.close();
        }
    }

    /**
     * Limits each meter name to {@value #MOST} series. It refuses further series, logs the name once and counts them in
     * {@code millrace.meters.refused}; a removed series makes room. Thread-safe.
     */
    static final class SeriesBound implements MeterFilter {
        /** Series of one name. */
        static final int MOST = 512;

        private static final String REFUSED = "millrace.meters.refused";
        private static final Logger LOG = LoggerFactory.getLogger(SeriesBound.class);

        private final Map<String, AtomicInteger> series = new ConcurrentHashMap<>();
        private final Set<String> named = ConcurrentHashMap.newKeySet();
        private final AtomicLong refused = new AtomicLong();

        private SeriesBound() {}

        /** Limits meters registered from now on. */
        static void on(MeterRegistry registry) {
            SeriesBound bound = new SeriesBound();
            registry.config()
                    .meterFilter(bound)
                    .onMeterAdded(meter -> bound.count(meter).incrementAndGet())
                    .onMeterRemoved(meter -> bound.count(meter).decrementAndGet());
            FunctionCounter.builder(REFUSED, bound.refused, AtomicLong::get)
                    .description("series dropped because their meter reached its limit")
                    .register(registry);
        }

        private AtomicInteger count(Meter meter) {
            return series.computeIfAbsent(meter.getId().getName(), name -> new AtomicInteger());
        }

        @Override
        public MeterFilterReply accept(Meter.Id id) {
            AtomicInteger count = series.get(id.getName());
            if (count == null || count.get() < MOST) {
                return MeterFilterReply.NEUTRAL;
            }
            if (named.add(id.getName())) {
                LOG.warn("meter {} has {} series; drops {} and further new series", id.getName(), MOST, id.getTags());
            }
            refused.incrementAndGet();
            return MeterFilterReply.DENY;
        }
    }
}
