package dev.millrace.runtime.report;

import dev.millrace.report.Column;
import dev.millrace.report.Column.Heading;
import dev.millrace.report.Format;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A figure of a step: its names and meaning for every output. {@link KnownFigures} has all of them.
 *
 * @param key its name in steps.csv; of what the training log has among its metrics, its name there too
 * @param unit what it counts in; empty if it is a bare number
 * @param value of a row: a number, a boolean or a text; null or not finite where it was not computed
 */
public record StepFigure(
        String key, String unit, String meaning, Format format, Function<StepRow, ? extends @Nullable Object> value) {

    Column<StepRow> column() {
        return new Column<>(new Heading(key, key, "", format), value);
    }

    public Optional<String> verlName() {
        return VerlFigures.name(key);
    }

    /** True for a text, which has neither a meter nor a curve. */
    public boolean isText() {
        return format.kind() == Format.Kind.TEXT;
    }

    /** Its value as a number, with 1 for true; NaN for a text or if not computed. */
    public double number(StepRow row) {
        Object read = value.apply(row);
        if (read instanceof Boolean truth) {
            return truth ? 1 : 0;
        }
        return read instanceof Number number ? number.doubleValue() : Double.NaN;
    }
}
