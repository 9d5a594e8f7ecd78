package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * What a report comes to, for one who reads no further.
 *
 * @param asked the question, as a person asks it
 * @param answer to it, in a sentence without a full stop
 * @param health what the answer means for whoever asked
 * @param figure the number that the answer rests on; null where it rests on none
 * @param sure how sure that is, and by what
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Conclusion(
        String asked,
        String answer,
        Health health,
        @Nullable KeyFigure figure,
        String sure) {

    /** What an answer means. */
    public enum Health {
        /** As it should be. */
        OK,
        /** Worth a look. */
        LOOK,
        /** Something is to be done. */
        ILL,
        /** It means neither good nor bad. */
        NONE
    }

    /**
     * A number with its interval.
     *
     * @param name what it is
     * @param shown the value, its unit, and its interval where there is one
     */
    public record KeyFigure(String name, String shown) {}

    /** An answer of which nothing more is said. */
    public static Conclusion of(String asked, String answer, Health health) {
        return new Conclusion(asked, answer, health, null, "");
    }

    /** The same with the number that it rests on. */
    public Conclusion resting(String name, String shown) {
        return new Conclusion(asked, answer, health, new KeyFigure(name, shown), sure);
    }

    /** The same with how sure it is. */
    public Conclusion sure(String how) {
        return new Conclusion(asked, answer, health, figure, how);
    }
}
