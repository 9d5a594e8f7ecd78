package dev.millrace.runtime.metrics;

import dev.millrace.runtime.config.OtlpConfig;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.registry.otlp.OtlpMeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the meters of a registry to a collector of OpenTelemetry, under the names that they have, with dots. Roles know nothing of
 * it: each meter has one beside it that reads it when something is sent. A collector that does not answer costs a line in the log,
 * and nothing else. Thread-safe.
 */
final class OtlpMirror implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(OtlpMirror.class);

    private final OtlpMeterRegistry otlp;
    private final Map<Meter.Id, Meter> mirrored = new ConcurrentHashMap<>();

    private OtlpMirror(OtlpMeterRegistry otlp) {
        this.otlp = otlp;
    }

    /**
     * Sends what is registered from now on.
     *
     * @param resource what the collector is told of this process
     */
    static OtlpMirror of(MeterRegistry meters, OtlpConfig config, Map<String, String> resource) {
        OtlpMirror mirror = new OtlpMirror(new OtlpMeterRegistry(exporter(config, resource), Clock.SYSTEM));
        meters.config().onMeterAdded(mirror::add).onMeterRemoved(mirror::remove);
        return mirror;
    }

    private static io.micrometer.registry.otlp.OtlpConfig exporter(OtlpConfig config, Map<String, String> resource) {
        String url = config.address();
        Map<String, String> headers = config.secretHeaders();
        return new io.micrometer.registry.otlp.OtlpConfig() {
            @Override
            public @Nullable String get(String key) {
                return null; // nothing is taken from system properties
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

    /** @param reading of the counter, which its own registry holds: this one holds it weakly */
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
