package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.state.CompactBytes;

/**
 * A rollout that waits for its partners, or a partner that waits: all that is remembered of it, its payload aside.
 *
 * @param kind what it is
 * @param rolloutId the sample's name
 * @param groupId the sample's group
 * @param offset where it lies in its topic's partition
 * @param aboutOffset of a partner: where the rollout lies that it is about; of a rollout: its own offset
 * @param newestVersion of a rollout: newest version that sampled one of its tokens; of a partner: -1
 * @param timestampMs when it was written
 * @param payloadBytes heap that its payload takes
 * @param sinceMs since when it waits, on the task's activity clock
 */
record PendingRecord(
        JoinSide kind,
        String rolloutId,
        String groupId,
        long offset,
        long aboutOffset,
        long newestVersion,
        long timestampMs,
        long payloadBytes,
        long sinceMs) {

    private static final byte FORMAT = 2;

    static PendingRecord of(Arrival arrival, long sinceMs) {
        String rolloutId = arrival.name().rolloutId();
        String groupId = arrival.name().groupId();
        if (arrival instanceof RolloutArrival rollout) {
            return new PendingRecord(
                    JoinSide.ROLLOUT,
                    rolloutId,
                    groupId,
                    rollout.offset(),
                    rollout.offset(),
                    rollout.newestVersion(),
                    rollout.timestampMs(),
                    rollout.bytes(),
                    sinceMs);
        }
        PartnerArrival partner = (PartnerArrival) arrival;
        return new PendingRecord(
                partner.kind(),
                rolloutId,
                groupId,
                partner.offset(),
                partner.aboutOffset(),
                -1,
                partner.timestampMs(),
                partner.bytes(),
                sinceMs);
    }

    byte[] toBytes() {
        return new CompactBytes.Writer(FORMAT)
                .number(kind.ordinal())
                .number(offset)
                .number(aboutOffset - offset)
                .number(newestVersion)
                .number(timestampMs)
                .number(payloadBytes)
                .number(sinceMs)
                .toByteArray();
    }

    static PendingRecord fromBytes(String rolloutId, byte[] value) {
        CompactBytes.Reader reader = new CompactBytes.Reader(value, FORMAT, JoinTask.PENDING);
        JoinSide kind = JoinSide.values()[(int) reader.number()];
        long offset = reader.number();
        return new PendingRecord(
                kind,
                rolloutId,
                rolloutId.substring(0, rolloutId.lastIndexOf('/')),
                offset,
                offset + reader.number(),
                reader.number(),
                reader.number(),
                reader.number(),
                reader.number());
    }
}
