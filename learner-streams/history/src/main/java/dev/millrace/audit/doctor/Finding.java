package dev.millrace.audit.doctor;

import java.util.Locale;

/**
 * A finding about a run.
 *
 * @param advice empty if nothing is to be done
 */
public record Finding(Weight weight, String subject, String sentence, String advice) {

    /** Most severe first. */
    public enum Weight {
        BROKEN,
        CRITICAL,
        WARNING,
        NOTE
    }

    static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }

    /** Such as "1 record", "2,000 records". */
    static String count(long many, String thing) {
        return say(many == 1 ? "%,d %s" : "%,d %ss", many, thing);
    }
}
