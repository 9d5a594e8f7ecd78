package dev.millrace.audit.doctor;

import java.util.Locale;

/**
 * Something that a rule has to say about a run.
 *
 * @param weight how much it matters
 * @param subject what it is about, in a word or two
 * @param sentence what is so, with the numbers
 * @param advice what to do; empty if nothing
 */
public record Finding(Weight weight, String subject, String sentence, String advice) {

    /** How much a finding matters, most first. */
    public enum Weight {
        /** The run's own account of itself cannot be trusted. */
        BROKEN,
        /** The run does not get on, or trains on what it should not. */
        SICK,
        /** It costs efficiency or precision. */
        WEAK,
        /** Worth knowing. */
        NOTE
    }

    /** A sentence with numbers in it. */
    static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }

    /** Formats a count with its noun: "1 record", "2,000 records". */
    static String count(long many, String thing) {
        return say(many == 1 ? "%,d %s" : "%,d %ss", many, thing);
    }
}
