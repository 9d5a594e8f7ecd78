package dev.millrace.generator.admission;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What admission must not forget: which request is next, how many samples were asked for, how many of them were lost.
 *
 * <p>It is kept as the metadata of admission's committed offsets, in the transaction that releases the prompts. So it is
 * exact after a crash at any moment, and stays so when old records are deleted.
 *
 * @param nextOrdinal ordinal of the next request
 * @param released samples asked for, lost ones included; begins at what the policy had consumed before the run
 * @param lost samples that will never reach a batch; below 0 where one that was lost before this counts was put back
 */
record AdmissionState(long nextOrdinal, long released, long lost) {
    private static final Pattern TEXT = Pattern.compile("ordinal=(\\d{1,18}) released=(\\d{1,18}) lost=(-?\\d{1,18})");

    AdmissionState releasing(long groups, int groupSize) {
        return new AdmissionState(nextOrdinal + groups, released + groups * groupSize, lost);
    }

    AdmissionState losing(long samples) {
        return new AdmissionState(nextOrdinal, released, lost + samples);
    }

    String text() {
        return "ordinal=" + nextOrdinal + " released=" + released + " lost=" + lost;
    }

    /** @throws IllegalArgumentException if the text was not written by {@link #text()} */
    static AdmissionState parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("not the state of an admission: '" + text + "'");
        }
        return new AdmissionState(Long.parseLong(matcher.group(1)), Long.parseLong(matcher.group(2)),
                Long.parseLong(matcher.group(3)));
    }
}
