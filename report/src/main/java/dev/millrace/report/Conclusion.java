package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * The conclusion of a report.
 *
 * @param answer a sentence without a full stop
 * @param figure on which the answer rests; null if none
 * @param sure confidence and its basis
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Conclusion(
        String asked,
        String answer,
        Health health,
        @Nullable KeyFigure figure,
        String sure) {

    public enum Health {
        OK,
        LOOK,
        ILL,
        NONE
    }

    /** A number with its unit and interval. */
    public record KeyFigure(String name, String shown) {}

    public static Conclusion of(String asked, String answer, Health health) {
        return new Conclusion(asked, answer, health, null, "");
    }

    public Conclusion resting(String name, String shown) {
        return new Conclusion(asked, answer, health, new KeyFigure(name, shown), sure);
    }

    public Conclusion sure(String how) {
        return new Conclusion(asked, answer, health, figure, how);
    }
}
