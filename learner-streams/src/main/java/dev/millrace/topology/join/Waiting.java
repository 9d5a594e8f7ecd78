package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import dev.millrace.topology.state.CompactBytes;

/**
 * A rollout or a score that waits for its partner: all that is remembered of it, its payload aside.
 *
 * @param kind which of the two
 * @param rolloutId the sample's name
 * @param groupId the sample's group
 * @param offset where it lies in its topic's partition
 * @param scoredOffset of a score: where the rollout lies that it scores; of a rollout: its own offset
 * @param newestVersion of a rollout: newest version that sampled one of its tokens; of a score: -1
 * @param timestampMs when it was written
 * @param payloadBytes heap that its payload takes
 * @param sinceMs since when it waits, on the task's activity clock
 */
record Waiting(Kind kind, String rolloutId, String groupId, long offset, long scoredOffset, long newestVersion,
    long timestampMs, long payloadBytes, long sinceMs) {

    private static final byte FORMAT = 1;

    enum Kind { ROLLOUT, SCORE }

    static Waiting of(Arrival arrival, long sinceMs) {
        String rolloutId = arrival.name().rolloutId();
        String groupId = arrival.name().groupId();
        if (arrival instanceof RolloutArrival rollout) {
            return new Waiting(Kind.ROLLOUT, rolloutId, groupId, rollout.offset(), rollout.offset(), rollout.newestVersion(),
                rollout.timestampMs(), rollout.bytes(), sinceMs);
        }
        ScoreArrival score = (ScoreArrival) arrival;
        return new Waiting(Kind.SCORE, rolloutId, groupId, score.offset(), score.scoredOffset(), -1, score.timestampMs(),
            score.bytes(), sinceMs);
    }

    byte[] toBytes() {
        return new CompactBytes.Writer(FORMAT)
            .number(kind.ordinal())
            .number(offset)
            .number(scoredOffset - offset)
            .number(newestVersion)
            .number(timestampMs)
            .number(payloadBytes)
            .number(sinceMs)
            .toByteArray();
    }

    static Waiting fromBytes(String rolloutId, byte[] value) {
        CompactBytes.Reader reader = new CompactBytes.Reader(value, FORMAT, JoinTask.PENDING);
        Kind kind = Kind.values()[(int) reader.number()];
        long offset = reader.number();
        return new Waiting(kind, rolloutId, rolloutId.substring(0, rolloutId.lastIndexOf('/')), offset,
            offset + reader.number(), reader.number(), reader.number(), reader.number(), reader.number());
    }
}
