package dev.millrace.workloads.topology;

import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Distributions counted in a recorded run, each independently.
 *
 * @param versionsBehind over scored rollouts: oldest sampling version to current version at scoring
 * @param unscoredShare including rollouts that waited for a score at the end
 */
public record RecordedShape(
        int groupSize,
        Distribution promptTokens,
        Distribution responseTokens,
        Distribution versionsBehind,
        double unscoredShare,
        double garbageShare,
        int rollouts) {

    /** @throws LoadException without a scored rollout, or with several group sizes */
    public static RecordedShape of(RecordedRun run) {
        Map<String, Long> oldest = new HashMap<>(); // by rollout id
        List<Long> prompts = new ArrayList<>();
        List<Long> responses = new ArrayList<>();
        Set<Integer> groups = new TreeSet<>();
        int garbage = each(
                run,
                run.topics().rollouts(),
                AvroSerde.of(Rollout.class, run.registry()).deserializer(),
                rollout -> {
                    long version = rollout.getVersionSpans().stream()
                            .mapToLong(VersionSpan::getVersion)
                            .min()
                            .orElse(0);
                    if (oldest.putIfAbsent(rollout.getRolloutId(), version) == null) {
                        groups.add(rollout.getGroupSize());
                        prompts.add((long) PackedInts.length(rollout.getPromptTokens()));
                        responses.add((long) PackedInts.length(rollout.getResponseTokens()));
                    }
                });
        List<Long> behind = new ArrayList<>();
        Map<String, Long> unscored = new HashMap<>(oldest);
        each(
                run,
                run.topics().scores(),
                AvroSerde.of(Score.class, run.registry()).deserializer(),
                score -> {
                    Optional<LogProbVector> current = score.getVectors().stream()
                            .filter(vector -> vector.getPolicy() == PolicyRole.PROXIMAL)
                            .findFirst();
                    Long version = unscored.get(score.getRolloutId());
                    if (version != null
                            && current.isPresent()
                            && !current.get().getVersionSpans().isEmpty()) {
                        unscored.remove(score.getRolloutId());
                        behind.add(Math.max(
                                0, current.get().getVersionSpans().get(0).getVersion() - version));
                    }
                });
        if (behind.isEmpty()) {
            throw new LoadException(
                    "run " + run.run().runId() + " has no rollout with a score, so there is nothing to draw from; "
                            + oldest.size() + " rollouts were found");
        }
        if (groups.size() > 1) {
            throw new LoadException("run " + run.run().runId() + " has groups of several sizes " + groups
                    + ", and a load has one; state the shape of its rollouts in place of rollouts.from");
        }
        return new RecordedShape(
                groups.iterator().next(),
                counted(prompts),
                counted(responses),
                counted(behind),
                (double) unscored.size() / oldest.size(),
                (double) garbage / (oldest.size() + garbage),
                oldest.size());
    }

    private static Distribution counted(List<Long> numbers) {
        return Distribution.counted(numbers.stream().mapToLong(Long::longValue).toArray());
    }

    /** Passes every record of a topic; returns the number of undecodable ones. */
    private static <T> int each(RecordedRun run, String topic, Deserializer<T> deserializer, Consumer<T> visitor) {
        int garbage = 0;
        for (TopicPartition partition : run.partitions(topic)) {
            try (RecordCursor cursor = run.read(partition, run.range(partition).from())) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    try {
                        visitor.accept(
                                deserializer.deserialize(topic, next.get().value()));
                    } catch (MalformedRecordException e) {
                        garbage++; // it is counted, and published again as such
                    }
                }
            }
        }
        return garbage;
    }
}
