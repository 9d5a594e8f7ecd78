package dev.millrace.runtime.train;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.TreeMap;

/**
 * Reads the roles' meters and turns counters into rates over the last seconds.
 *
 * <p>Meters of a role are named {@code millrace.<role>.tokens} and {@code millrace.<role>.idle.seconds}. Used by
 * one thread.
 */
public final class Rates {
    private static final double WINDOW_SECONDS = 3;

    private record Sample(double atSeconds, Map<String, Double> tokens, Map<String, Double> idle) {}

    private final MeterRegistry meters;
    private final Deque<Sample> samples = new ArrayDeque<>();

    public Rates(MeterRegistry meters) {
        this.meters = meters;
    }

    public void sample(double atSeconds) {
        samples.addLast(new Sample(atSeconds, read(".tokens"), read(".idle.seconds")));
        while (samples.size() > 2 && atSeconds - samples.peekFirst().atSeconds() > WINDOW_SECONDS) {
            samples.removeFirst();
        }
    }

    public Map<String, Double> tokensPerSecond() {
        return rate(true);
    }

    /** Fraction of the time idle by role, in [0, 1]. */
    public Map<String, Double> idle() {
        Map<String, Double> idle = rate(false);
        idle.replaceAll((role, fraction) -> Math.max(0, Math.min(1, fraction)));
        return idle;
    }

    private Map<String, Double> rate(boolean tokens) {
        Map<String, Double> rates = new TreeMap<>();
        if (samples.size() < 2) {
            return rates;
        }
        Sample from = samples.peekFirst();
        Sample to = samples.peekLast();
        double seconds = to.atSeconds() - from.atSeconds();
        (tokens ? to.tokens() : to.idle()).forEach((role, value) -> {
            double before = (tokens ? from.tokens() : from.idle()).getOrDefault(role, 0.0);
            rates.put(role, seconds > 0 ? (value - before) / seconds : 0);
        });
        return rates;
    }

    private Map<String, Double> read(String suffix) {
        Map<String, Double> values = new TreeMap<>();
        for (Meter meter : meters.getMeters()) {
            String name = meter.getId().getName();
            if (meter instanceof Counter counter && name.startsWith("millrace.") && name.endsWith(suffix)) {
                values.merge(
                        name.substring("millrace.".length(), name.length() - suffix.length()),
                        counter.count(),
                        Double::sum);
            }
        }
        return values;
    }

    /** Version served by each role, from the gauges {@code millrace.policy.version}. */
    public Map<String, Long> serving() {
        Map<String, Long> versions = new TreeMap<>();
        for (Gauge gauge : meters.find("millrace.policy.version").gauges()) {
            String role = gauge.getId().getTag("role");
            if (role != null && gauge.value() >= 0) {
                versions.put(role, (long) gauge.value());
            }
        }
        return versions;
    }

    /** Seconds for which a server has not served what is published, of those that are an alarm. */
    public Map<String, Double> unserved() {
        Map<String, Double> unserved = new TreeMap<>();
        for (Gauge gauge : meters.find("millrace.serving.unserved.seconds").gauges()) {
            unserved.put(String.valueOf(gauge.getId().getTag("server")), gauge.value());
        }
        return unserved;
    }

    /** Records lost by reason, from the topology's counters. */
    public Map<String, Long> lost() {
        Map<String, Long> lost = new TreeMap<>();
        for (String name : new String[] {"millrace.topology.outcomes", "millrace.topology.dead.letters"}) {
            for (Counter counter : meters.find(name).counters()) {
                if (counter.count() > 0) {
                    lost.merge(String.valueOf(counter.getId().getTag("reason")), (long) counter.count(), Long::sum);
                }
            }
        }
        return lost;
    }
}
