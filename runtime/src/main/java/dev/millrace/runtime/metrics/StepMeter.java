package dev.millrace.runtime.metrics;

import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import io.micrometer.core.instrument.Meter;
import io.micrometer.prometheusmetrics.PrometheusNamingConvention;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Gauge name of a figure: {@code millrace.} and verl's name where verl has the same figure, otherwise {@code
 * millrace.step.} and its key. Times are in seconds, with the unit as suffix.
 *
 * @param unit base unit that Prometheus appends to the name; empty for none
 * @param factor from the figure's unit to the gauge's
 */
public record StepMeter(String name, String unit, double factor) {
    private static final String OURS = "millrace.step.";
    private static final Map<String, StepMeter> OF = known();

    /** The gauge of a figure by its key; empty if it is a text, or no known figure. */
    public static Optional<StepMeter> of(String key) {
        return Optional.ofNullable(OF.get(key));
    }

    /** Its name on a scrape. */
    public String scraped() {
        return new PrometheusNamingConvention().name(name, Meter.Type.GAUGE, unit.isEmpty() ? null : unit);
    }

    private static Map<String, StepMeter> known() {
        Map<String, StepMeter> known = new TreeMap<>();
        for (StepFigure figure : KnownFigures.all()) {
            if (!figure.isText()) {
                known.put(figure.key(), of(figure));
            }
        }
        return known;
    }

    private static StepMeter of(StepFigure figure) {
        if (figure.verlName().isPresent()) {
            return new StepMeter("millrace." + figure.verlName().get().replace('/', '.'), "", 1);
        }
        return switch (figure.unit()) {
            case "milliseconds" -> new StepMeter(OURS + figure.key().replace("_at_ms", ".timestamp"), "seconds", 1e-3);
            case "seconds" -> new StepMeter(OURS + withoutSeconds(figure.key()), "seconds", 1);
            default -> new StepMeter(OURS + figure.key(), "", 1);
        };
    }

    private static String withoutSeconds(String key) {
        return key.equals("seconds") ? "duration" : key.replaceFirst("^seconds_|_seconds$", "");
    }
}
