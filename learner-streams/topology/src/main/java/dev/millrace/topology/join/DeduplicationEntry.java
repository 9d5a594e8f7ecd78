package dev.millrace.topology.join;

import dev.millrace.schemas.Rollout;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.state.CompactBytes;
import java.util.Arrays;
import java.util.BitSet;
import java.util.zip.CRC32;

/**
 * What is remembered of one group of samples: what they must have in common, and which of them have been there.
 *
 * <p>A sample's rollout and its partners leave one bit each, which stays after they have met. Mutable, confined to one task.
 */
final class DeduplicationEntry {
    private static final byte FORMAT = 2;
    private static final long UNKNOWN = -1;

    private long groupSize = UNKNOWN;
    private long ordinal = UNKNOWN;
    private long promptHash;
    private long touchedMs;
    /** By kind: the samples that have arrived. */
    private final BitSet[] been = new BitSet[JoinSide.values().length];

    DeduplicationEntry() {
        Arrays.setAll(been, kind -> new BitSet());
    }

    /**
     * What all rollouts of a group must agree on. An agent writes the prompts of its model itself, and may write today's time into
     * them, so that its rollouts need not agree on these: their hash is 0.
     */
    record Announcement(int groupSize, long ordinal, int promptHash) {

        static Announcement of(Rollout rollout) {
            if (rollout.getSampler() != null && rollout.getSampler().getAgent() != null) {
                return new Announcement(rollout.getGroupSize(), rollout.getOrdinal(), 0);
            }
            CRC32 prompt = new CRC32();
            prompt.update(rollout.getPromptTokens().duplicate());
            return new Announcement(rollout.getGroupSize(), rollout.getOrdinal(), (int) prompt.getValue());
        }

        @Override
        public String toString() {
            return "group_size " + groupSize + ", ordinal " + ordinal + ", prompt hash " + promptHash;
        }
    }

    /** True if no rollout of the group has said otherwise. */
    boolean agreesWith(Announcement announced) {
        return groupSize == UNKNOWN
                || groupSize == announced.groupSize()
                        && ordinal == announced.ordinal()
                        && promptHash == announced.promptHash();
    }

    /** What the group's first rollout announced. */
    Announcement announced() {
        return new Announcement((int) groupSize, ordinal, (int) promptHash);
    }

    /** True if something of this kind has been there for a sample. */
    boolean has(JoinSide kind, int sample) {
        return been[kind.ordinal()].get(sample);
    }

    void addRollout(int sample, Announcement announced) {
        groupSize = announced.groupSize();
        ordinal = announced.ordinal();
        promptHash = announced.promptHash();
        been[JoinSide.ROLLOUT.ordinal()].set(sample);
    }

    void addPartner(JoinSide kind, int sample) {
        been[kind.ordinal()].set(sample);
    }

    /** A partner turned out not to be this sample's: another may come. */
    void forgetPartner(JoinSide kind, int sample) {
        been[kind.ordinal()].clear(sample);
    }

    long touchedMs() {
        return touchedMs;
    }

    void touch(long nowMs) {
        touchedMs = nowMs;
    }

    byte[] toBytes() {
        int kinds = been.length;
        while (kinds > 0 && been[kinds - 1].isEmpty()) {
            kinds--;
        }
        CompactBytes.Writer writer = new CompactBytes.Writer(FORMAT)
                .number(groupSize)
                .number(ordinal)
                .number(promptHash)
                .number(touchedMs)
                .number(kinds);
        for (int kind = 0; kind < kinds; kind++) {
            writer.bytes(been[kind].toByteArray());
        }
        return writer.toByteArray();
    }

    static DeduplicationEntry fromBytes(byte[] value) {
        CompactBytes.Reader reader = new CompactBytes.Reader(value, FORMAT, JoinTask.SEEN);
        DeduplicationEntry memory = new DeduplicationEntry();
        memory.groupSize = reader.number();
        memory.ordinal = reader.number();
        memory.promptHash = reader.number();
        memory.touchedMs = reader.number();
        int kinds = (int) reader.number();
        for (int kind = 0; kind < kinds; kind++) {
            memory.been[kind].or(BitSet.valueOf(reader.bytes()));
        }
        return memory;
    }
}
