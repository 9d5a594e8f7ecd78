package dev.millrace.generator.staleness;

import dev.millrace.schemas.ReleasedGroup;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.BitSet;

/** One released request and what has become of its samples. Mutable, confined to admission's thread. */
final class AdmittedGroup {
    private final String groupId;
    private final int samples;
    private final long admittedVersion;
    private final BitSet underWay = new BitSet();
    private final BitSet refused = new BitSet();
    private long releasedAtMs;
    private int releases = 1;
    private int partition = -1;
    private long offset = -1;

    AdmittedGroup(String groupId, int samples, long admittedVersion, long releasedAtMs) {
        this.groupId = groupId;
        this.samples = samples;
        this.admittedVersion = admittedVersion;
        this.releasedAtMs = releasedAtMs;
        underWay.set(0, samples);
    }

    AdmittedGroup(ReleasedGroup kept) {
        this(
                kept.getGroupId(),
                PackedMask.length(kept.getUnderWay()),
                kept.getAdmittedVersion(),
                kept.getReleasedAtMs());
        underWay.clear();
        unpack(kept.getUnderWay(), underWay);
        unpack(kept.getRefused(), refused);
        releases = kept.getReleases();
        partition = kept.getPartition();
        offset = kept.getOffset();
    }

    private static void unpack(ByteBuffer packed, BitSet into) {
        for (int i = 0; i < PackedMask.length(packed); i++) {
            into.set(i, PackedMask.get(packed, i) != 0);
        }
    }

    private ByteBuffer pack(BitSet bits) {
        byte[] mask = new byte[samples];
        bits.stream().filter(i -> i < samples).forEach(i -> mask[i] = 1);
        return PackedMask.of(mask);
    }

    ReleasedGroup record() {
        return new ReleasedGroup(
                groupId, pack(underWay), pack(refused), admittedVersion, releasedAtMs, releases, partition, offset);
    }

    String groupId() {
        return groupId;
    }

    int samples() {
        return samples;
    }

    /** Samples that were released and not settled; to be changed by {@link ReleasedSamples} alone. */
    BitSet underWay() {
        return underWay;
    }

    /** Samples that count as lost because a record of theirs was refused; to be changed likewise. */
    BitSet refused() {
        return refused;
    }

    /** Whether nothing about it can change any more. */
    boolean isOver() {
        return underWay.isEmpty() && refused.isEmpty();
    }

    long releasedAtMs() {
        return releasedAtMs;
    }

    int releases() {
        return releases;
    }

    /** It is released once more under its name. */
    void releasedAgain(long atMs) {
        releases++;
        releasedAtMs = atMs;
        partition = -1;
        offset = -1;
    }

    void lies(int onPartition, long atOffset) {
        partition = onPartition;
        offset = atOffset;
    }

    /** Partition of its newest request; -1 where not known. */
    int partition() {
        return partition;
    }

    /** Offset of its newest request; -1 where not known. */
    long offset() {
        return offset;
    }
}
