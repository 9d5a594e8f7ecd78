package dev.millrace.corrections.staleness;

import dev.millrace.corrections.TokenBatch;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Which version sampled which tokens of a batch: the version spans of every sequence, checked against the batch once.
 *
 * <p>Spans of a sequence are in order, do not overlap and end within it; every trained token is in one. Context
 * tokens may lie between spans. Immutable.
 */
public final class BatchVersions {
    private final TokenBatch batch;
    private final List<List<VersionSpan>> spans;

    /** @throws IllegalArgumentException naming sequence and span, or the trained token that no span covers */
    public BatchVersions(TokenBatch batch, List<List<VersionSpan>> spans) {
        if (spans.size() != batch.sequenceCount()) {
            throw new IllegalArgumentException("one list of version spans per sequence: lists=" + spans.size()
                    + ", sequences=" + batch.sequenceCount());
        }
        this.batch = batch;
        this.spans = spans.stream().map(List::copyOf).toList();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            check(s);
        }
    }

    public static BatchVersions wholeSequences(TokenBatch batch, long[] versions) {
        if (versions.length != batch.sequenceCount()) {
            throw new IllegalArgumentException(
                    "one version per sequence: versions=" + versions.length + ", sequences=" + batch.sequenceCount());
        }
        return new BatchVersions(
                batch,
                IntStream.range(0, versions.length)
                        .mapToObj(s -> List.of(new VersionSpan(versions[s], 0, batch.length(s))))
                        .toList());
    }

    private void check(int sequence) {
        int covered = 0;
        for (VersionSpan span : spans.get(sequence)) {
            if (span.start() < covered || span.end() > batch.length(sequence)) {
                throw new IllegalArgumentException("version spans must be in order, apart, and within the sequence:"
                        + " sequence=" + sequence + ", tokens=" + batch.length(sequence) + ", span=" + span);
            }
            requireContext(sequence, covered, span.start());
            covered = span.end();
        }
        requireContext(sequence, covered, batch.length(sequence));
    }

    private void requireContext(int sequence, int from, int to) {
        for (int t = from; t < to; t++) {
            if (batch.isTrained(batch.start(sequence) + t)) {
                throw new IllegalArgumentException(
                        "a trained token needs a version: no span covers sequence=" + sequence + ", token=" + t);
            }
        }
    }

    public TokenBatch batch() {
        return batch;
    }

    public List<VersionSpan> spans(int sequence) {
        return spans.get(sequence);
    }

    /**
     * Staleness of the tokens of a span, in versions.
     *
     * @throws IllegalArgumentException if the span is newer than {@code currentVersion}
     */
    public static long staleness(int sequence, VersionSpan span, long currentVersion) {
        if (span.version() > currentVersion) {
            throw new IllegalArgumentException("a token cannot be newer than the current version: sequence=" + sequence
                    + ", span=" + span + ", currentVersion=" + currentVersion);
        }
        return currentVersion - span.version();
    }

    int trainedTokens(int sequence, VersionSpan span) {
        if (span.start() == 0 && span.end() == batch.length(sequence)) {
            return batch.trainedTokens(sequence);
        }
        int trained = 0;
        for (int t = batch.start(sequence) + span.start(); t < batch.start(sequence) + span.end(); t++) {
            trained += batch.isTrained(t) ? 1 : 0;
        }
        return trained;
    }
}
