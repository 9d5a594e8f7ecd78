package dev.millrace.learner.batch;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How far the batches of a policy are consumed. It is kept as the metadata of the learner's committed offset, in the
 * transaction that commits a step: a starved batch makes no version that could tell.
 *
 * @param batchId the last that was consumed; -1 if none was
 * @param rolloutsConsumed in all batches up to it
 */
public record BatchProgress(long batchId, long rolloutsConsumed) {
    private static final Pattern TEXT = Pattern.compile("batch=(\\d{1,18}) rollouts=(\\d{1,18})");

    String text() {
        return "batch=" + batchId + " rollouts=" + rolloutsConsumed;
    }

    /** Empty if the text was not written by {@link #text()}, as where another trainer has committed the offset. */
    static Optional<BatchProgress> parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Optional.of(new BatchProgress(Long.parseLong(matcher.group(1)), Long.parseLong(matcher.group(2))))
                : Optional.empty();
    }
}
