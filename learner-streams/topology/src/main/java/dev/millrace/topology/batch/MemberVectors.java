package dev.millrace.topology.batch;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.TrajectoryNotes;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.state.RecordTimestampExtractor;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Cache of the members' vectors per token, up to a number of bytes: masks and log-probs, 13 bytes a token, and the
 * other inputs of the algorithm. When it is full, newcomers stay on the log and are read again when their batch is cut.
 * So beyond this limit a backlog of any length takes only the heap of its {@link Member}s. Confined to one task.
 */
final class MemberVectors implements AutoCloseable {
    private static final int OBJECTS_BYTES = 160;
    private static final int BYTES_PER_TOKEN = 3 * Float.BYTES + 1;
    /** Records that are read again at once, at most. */
    private static final int STRETCH = 500;

    /**
     * One member's; not to be written to.
     *
     * @param mask the trajectory's own
     * @param withoutOld whether its old log-probs are missing
     * @param notes what else the algorithm reads
     */
    record Vectors(byte[] mask, MemberLogProbs logProbs, boolean withoutOld, TrajectoryNotes notes) {
        /** @param inputs that the algorithm reads */
        static Vectors of(Trajectory trajectory, Set<StageInput> inputs) {
            byte[] mask = PackedMask.toArray(trajectory.getMask());
            return new Vectors(
                    mask,
                    new MemberLogProbs(
                            PackedFloats.toArray(trajectory.getBehaviorLogProbs()),
                            MemberLogProbs.known(trajectory.getOldLogProbs(), mask.length),
                            PackedFloats.toArray(trajectory.getProximalLogProbs())),
                    trajectory.getOldLogProbs() == null,
                    TrajectoryNotes.of(trajectory, inputs));
        }

        long bytes() {
            return OBJECTS_BYTES + (long) BYTES_PER_TOKEN * mask.length + notes.bytes();
        }
    }

    private final TopicPartition trajectories;
    private final RecordFetcher fetcher;
    private final RecordReader<AssemblyArrival> reader;
    private final Set<StageInput> inputs;
    private final long cacheBytes;
    private final Map<String, Vectors> cached = new HashMap<>();
    private long cachedBytes;

    /**
     * @param inputs that the algorithm reads
     * @param cacheBytes heap for them
     */
    MemberVectors(
            TopicPartition trajectories,
            RecordFetcher fetcher,
            RecordReader<AssemblyArrival> reader,
            Set<StageInput> inputs,
            long cacheBytes) {
        this.inputs = inputs;
        this.trajectories = trajectories;
        this.fetcher = fetcher;
        this.reader = reader;
        this.cacheBytes = cacheBytes;
    }

    /** Keeps a member's if there is room. */
    void keep(Member member, Trajectory trajectory) {
        if (cachedBytes + OBJECTS_BYTES + (long) BYTES_PER_TOKEN * member.tokens() <= cacheBytes) {
            Vectors vectors = Vectors.of(trajectory, inputs);
            if (cachedBytes + vectors.bytes() <= cacheBytes) {
                cached.put(member.sample().rolloutId(), vectors);
                cachedBytes += vectors.bytes();
            }
        }
    }

    /** Evicts the vectors of a member. */
    void drop(Member member) {
        Vectors dropped = cached.remove(member.sample().rolloutId());
        if (dropped != null) {
            cachedBytes -= dropped.bytes();
        }
    }

    /** Those of the given members, from the log if need be; a member that the log no longer holds is missing. */
    Map<String, Vectors> of(List<Member> members) {
        Map<String, Vectors> found = new HashMap<>();
        List<Member> absent = new ArrayList<>();
        for (Member member : members) {
            Vectors vectors = cached.get(member.sample().rolloutId());
            if (vectors == null) {
                absent.add(member);
            } else {
                found.put(member.sample().rolloutId(), vectors);
            }
        }
        absent.sort(Comparator.comparingLong(member -> member.place().offset()));
        read(
                absent.stream().mapToLong(member -> member.place().offset()).toArray(),
                (arrival, completeMs) ->
                        found.put(arrival.trajectory().getRolloutId(), Vectors.of(arrival.trajectory(), inputs)));
        return found;
    }

    /**
     * Reads trajectories again that were accepted when they came.
     *
     * @param offsets ascending; those that the log no longer holds are passed over
     * @param action takes each, with when it was complete
     */
    void read(long[] offsets, BiConsumer<TrajectoryArrival, Long> action) {
        for (int from = 0; from < offsets.length; from += STRETCH) {
            long[] stretch = java.util.Arrays.copyOfRange(offsets, from, Math.min(offsets.length, from + STRETCH));
            for (ConsumerRecord<byte[], byte[]> record : fetcher.fetch(trajectories, stretch)) {
                long completeMs = RecordTimestampExtractor.of(record, record.timestamp());
                Record<byte[], byte[]> raw = new Record<>(record.key(), record.value(), completeMs, record.headers());
                try {
                    action.accept(
                            (TrajectoryArrival) reader.read(raw, record.partition(), record.offset())
                                    .orElseThrow(),
                            completeMs);
                } catch (RefusedException e) {
                    throw new IllegalStateException(
                            "the trajectory at " + record.topic() + "-" + record.partition() + "@" + record.offset()
                                    + " was accepted on arrival and is refused now: " + e.getMessage(),
                            e);
                }
            }
        }
    }

    @Override
    public void close() {
        fetcher.close();
    }
}
