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
 * @param version the newest version then; -1 if the metadata does not say
 */
public record BatchProgress(long batchId, long rolloutsConsumed, long version) {
    private static final Pattern TEXT =
            Pattern.compile("batch=(\\d{1,18}) rollouts=(\\d{1,18})(?: version=(\\d{1,18}))?");

    /** Where it does not matter which version was the newest. */
    public BatchProgress(long batchId, long rolloutsConsumed) {
        this(batchId, rolloutsConsumed, -1);
    }

    /** As metadata of a committed offset. */
    public String text() {
        return "batch=" + batchId + " rollouts=" + rolloutsConsumed + (version < 0 ? "" : " version=" + version);
    }

    /** The same with the version that is the newest after it. */
    public BatchProgress at(long newest) {
        return new BatchProgress(batchId, rolloutsConsumed, newest);
    }

    /** Empty if the text was not written by {@link #text()}, as where another trainer has committed the offset. */
    public static Optional<BatchProgress> parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Optional.of(new BatchProgress(
                        Long.parseLong(matcher.group(1)),
                        Long.parseLong(matcher.group(2)),
                        matcher.group(3) == null ? -1 : Long.parseLong(matcher.group(3))))
                : Optional.empty();
    }
}
