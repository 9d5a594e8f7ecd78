package dev.millrace.topology.join;

import dev.millrace.schemas.Rollout;
import dev.millrace.topology.state.CompactBytes;
import java.util.BitSet;
import java.util.zip.CRC32;

/**
 * What is remembered of one group of samples: what they must have in common, and which of them have been there.
 *
 * <p>A sample's rollout and its score leave one bit each, which stays after the two have met. Mutable, confined to one task.
 */
final class GroupMemory {
    private static final byte FORMAT = 1;
    private static final long UNKNOWN = -1;

    private long groupSize = UNKNOWN;
    private long ordinal = UNKNOWN;
    private long promptHash;
    private long touchedMs;
    private final BitSet rollouts;
    private final BitSet scores;

    GroupMemory() {
        this(new BitSet(), new BitSet());
    }

    private GroupMemory(BitSet rollouts, BitSet scores) {
        this.rollouts = rollouts;
        this.scores = scores;
    }

    /** What all rollouts of a group must agree on. */
    record Announcement(int groupSize, long ordinal, int promptHash) {

        static Announcement of(Rollout rollout) {
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
        return groupSize == UNKNOWN || groupSize == announced.groupSize() && ordinal == announced.ordinal()
            && promptHash == announced.promptHash();
    }

    /** What the group's first rollout announced. */
    Announcement announced() {
        return new Announcement((int) groupSize, ordinal, (int) promptHash);
    }

    boolean hasRollout(int sample) {
        return rollouts.get(sample);
    }

    boolean hasScore(int sample) {
        return scores.get(sample);
    }

    void addRollout(int sample, Announcement announced) {
        groupSize = announced.groupSize();
        ordinal = announced.ordinal();
        promptHash = announced.promptHash();
        rollouts.set(sample);
    }

    void addScore(int sample) {
        scores.set(sample);
    }

    /** The score turned out not to be this sample's: another may come. */
    void forgetScore(int sample) {
        scores.clear(sample);
    }

    long touchedMs() {
        return touchedMs;
    }

    void touch(long nowMs) {
        touchedMs = nowMs;
    }

    byte[] toBytes() {
        return new CompactBytes.Writer(FORMAT)
            .number(groupSize)
            .number(ordinal)
            .number(promptHash)
            .number(touchedMs)
            .bytes(rollouts.toByteArray())
            .bytes(scores.toByteArray())
            .toByteArray();
    }

    static GroupMemory fromBytes(byte[] value) {
        CompactBytes.Reader reader = new CompactBytes.Reader(value, FORMAT, JoinTask.SEEN);
        long groupSize = reader.number();
        long ordinal = reader.number();
        long promptHash = reader.number();
        long touchedMs = reader.number();
        GroupMemory memory = new GroupMemory(BitSet.valueOf(reader.bytes()), BitSet.valueOf(reader.bytes()));
        memory.groupSize = groupSize;
        memory.ordinal = ordinal;
        memory.promptHash = promptHash;
        memory.touchedMs = touchedMs;
        return memory;
    }
}
