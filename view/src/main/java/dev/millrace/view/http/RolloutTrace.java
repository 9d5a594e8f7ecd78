package dev.millrace.view.http;

import dev.millrace.audit.trace.DeadLetter;
import dev.millrace.audit.trace.Found;
import dev.millrace.audit.trace.FoundEntry;
import dev.millrace.audit.trace.FoundEntry.FoundDeadLetter;
import dev.millrace.audit.trace.GroupTrace;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.view.follow.OpenRun;
import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/** Records of a rollout, fetched by indexed position; {@code millrace trace} finds the same by searching. */
final class RolloutTrace implements AutoCloseable {
    private final OpenRun run;
    private final RunTopics topics;
    private final RecordFetcher fetcher;

    private RolloutTrace(OpenRun run) {
        this.run = run;
        this.topics = run.recorded().topics();
        this.fetcher = run.recorded().fetcher();
    }

    static Optional<GroupTrace> of(OpenRun run, RunIndex index, String rolloutId) {
        try (RolloutTrace trace = new RolloutTrace(run)) {
            return trace.trace(index, rolloutId);
        }
    }

    /** Empty if it no longer exists. */
    static Optional<ConsumerRecord<byte[], byte[]>> fetch(OpenRun run, TopicPartition partition, long offset) {
        try (RecordFetcher fetcher = run.recorded().fetcher()) {
            return fetcher.fetch(partition, new long[] {offset}).stream().findFirst();
        }
    }

    private <T extends SpecificRecord> Optional<Found<T>> found(String topic, Place place, Class<T> type) {
        TopicPartition of = new TopicPartition(topic, place.partition());
        if (place.offset() < 0 || !run.recorded().partitions(topic).contains(of)) {
            return Optional.empty();
        }
        return fetcher.fetch(of, new long[] {place.offset()}).stream()
                .findFirst()
                .flatMap(record -> decoded(record, type));
    }

    private <T extends SpecificRecord> Optional<Found<T>> found(@Nullable LogCoordinates place, Class<T> type) {
        return place == null || !topics.all().contains(place.getTopic())
                ? Optional.empty()
                : found(place.getTopic(), new Place(place.getPartition(), place.getOffset()), type);
    }

    private <T extends SpecificRecord> Optional<Found<T>> decoded(
            ConsumerRecord<byte[], byte[]> record, Class<T> type) {
        try {
            return Optional.ofNullable(AvroSerde.of(type, run.recorded().registry())
                            .deserializer()
                            .deserialize(record.topic(), record.value()))
                    .map(value -> new Found<>(
                            value, record.topic(), record.partition(), record.offset(), record.timestamp()));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }

    /** An indexed position; -1 for none. */
    private record Place(int partition, long offset) {}

    private record Places(
            Place rollout, String group, int epoch, Place trajectory, long batch, int entry, Place outcome) {}

    private Optional<GroupTrace> trace(RunIndex index, String rolloutId) {
        List<Places> places = new ArrayList<>();
        index.read(
                "SELECT partition, offset, grp, coalesce(epoch, 0), coalesce(trajectory_partition, -1), coalesce(trajectory_offset, -1),"
                        + " coalesce(batch, -1), coalesce(entry, -1), coalesce(outcome_partition, -1), coalesce(outcome_offset, -1)"
                        + " FROM rollout WHERE id = ? ORDER BY partition, offset LIMIT 16",
                List.of(rolloutId),
                row -> places.add(new Places(
                        new Place(row.getInt(1), row.getLong(2)),
                        row.getString(3),
                        row.getInt(4),
                        new Place(row.getInt(5), row.getLong(6)),
                        row.getLong(7),
                        row.getInt(8),
                        new Place(row.getInt(9), row.getLong(10)))));
        if (places.isEmpty()) {
            return Optional.empty();
        }
        List<Found<Rollout>> rollouts = new ArrayList<>();
        List<Found<Score>> scores = new ArrayList<>();
        List<Found<Reward>> rewards = new ArrayList<>();
        List<Found<Trajectory>> trajectories = new ArrayList<>();
        List<FoundEntry> entries = new ArrayList<>();
        List<Found<TrainingStep>> steps = new ArrayList<>();
        List<Found<Outcome>> outcomes = new ArrayList<>();
        for (Places place : places) {
            found(topics.rollouts(), place.rollout(), Rollout.class).ifPresent(rollouts::add);
            found(topics.trajectories(), place.trajectory(), Trajectory.class).ifPresent(trajectory -> {
                trajectories.add(trajectory);
                Trajectory joined = trajectory.value();
                found(joined.getScoreSource(), Score.class).ifPresent(scores::add);
                found(joined.getReferenceSource(), Score.class).ifPresent(scores::add);
                found(joined.getTeacherSource(), Score.class).ifPresent(scores::add);
                found(joined.getRewardSource(), Reward.class).ifPresent(rewards::add);
            });
            found(topics.outcomes(), place.outcome(), Outcome.class).ifPresent(outcomes::add);
            if (place.batch() >= 0) {
                recordOf(index, "batch", topics.batches(), place.epoch(), place.batch(), LearnerBatch.class)
                        .filter(batch ->
                                place.entry() < batch.value().getEntries().size())
                        .ifPresent(batch -> entries.add(
                                new FoundEntry(batch.value().getEntries().get(place.entry()), place.entry(), batch)));
                recordOf(index, "step", topics.trainingLog(), place.epoch(), place.batch(), TrainingStep.class)
                        .ifPresent(steps::add);
            }
        }
        return Optional.of(new GroupTrace(
                places.get(0).group(),
                prompt(index, places.get(0)),
                new GroupTrace.Inputs(rollouts, scores, rewards, trajectories),
                new GroupTrace.Decisions(entries, steps, outcomes, letters(index, rolloutId)),
                List.of(),
                GroupTrace.Search.NONE));
    }

    private Optional<Found<PromptRequest>> prompt(RunIndex index, Places of) {
        Place[] place = {new Place(-1, -1)};
        index.read(
                "SELECT partition, offset FROM prompt WHERE grp = ? ORDER BY released_ms LIMIT 1",
                List.of(of.group()),
                row -> place[0] = new Place(row.getInt(1), row.getLong(2)));
        return found(topics.prompts(), place[0], PromptRequest.class);
    }

    private <T extends SpecificRecord> Optional<Found<T>> recordOf(
            RunIndex index, String table, String topic, int epoch, long batch, Class<T> type) {
        Place[] place = {new Place(-1, -1)};
        index.read(
                "SELECT partition, offset FROM " + table + " WHERE epoch = ? AND batch = ?",
                List.of(epoch, batch),
                row -> place[0] = new Place(row.getInt(1), row.getLong(2)));
        return found(topic, place[0], type);
    }

    private List<FoundDeadLetter> letters(RunIndex index, String rolloutId) {
        List<FoundDeadLetter> letters = new ArrayList<>();
        index.read(
                "SELECT partition, offset, redriven FROM letter WHERE rollout = ? LIMIT 16",
                List.of(rolloutId),
                row -> {
                    long redriven = row.getLong(3);
                    fetcher
                            .fetch(new TopicPartition(topics.deadLetters(), row.getInt(1)), new long[] {row.getLong(2)})
                            .stream()
                            .findFirst()
                            .flatMap(DeadLetter::of)
                            .ifPresent(letter -> letters.add(new FoundDeadLetter(letter, redriven)));
                });
        return letters;
    }

    @Override
    public void close() {
        fetcher.close();
    }
}
