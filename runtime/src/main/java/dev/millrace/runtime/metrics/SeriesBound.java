package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.config.MeterFilterReply;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounds how many series a meter may have: at most {@value #MOST} with the same name. Whatever would be one more is left out, named
 * once in the log, and counted in {@code millrace.meters.refused}; when others go, there is room again. Thread-safe.
 */
final class SeriesBound implements MeterFilter {
    /** Series of one name. */
    static final int MOST = 512;

    private static final String REFUSED = "millrace.meters.refused";
    private static final Logger LOG = LoggerFactory.getLogger(SeriesBound.class);

    private final Map<String, AtomicInteger> series = new ConcurrentHashMap<>();
    private final Set<String> named = ConcurrentHashMap.newKeySet();
    private final AtomicLong refused = new AtomicLong();

    private SeriesBound() {}

    /** Bounds what is registered from now on. */
    static void on(MeterRegistry registry) {
        SeriesBound bound = new SeriesBound();
        registry.config()
                .meterFilter(bound)
                .onMeterAdded(meter -> bound.count(meter).incrementAndGet())
                .onMeterRemoved(meter -> bound.count(meter).decrementAndGet());
        FunctionCounter.builder(REFUSED, bound.refused, AtomicLong::get)
                .description("series that were left out, since their meter has as many as it may")
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
            LOG.warn(
                    "meter {} has {} series; {} and whatever else is new is left out",
                    id.getName(),
                    MOST,
                    id.getTags());
        }
        refused.incrementAndGet();
        return MeterFilterReply.DENY;
    }
}
