package dev.millrace.cli.replay;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.cli.replay.ParquetFile.Field;
import dev.millrace.cli.replay.ParquetFile.Kind;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RunExport;
import dev.millrace.report.Column;
import dev.millrace.report.Format;
import dev.millrace.runtime.report.StepColumns;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.view.http.RolloutRows;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Writes a recorded run as three Parquet tables: rollouts, their response tokens, and learner steps.
 *
 * <p>Outcomes come from the page's index, built in a temporary folder. Rollouts are in the order of their batches, those
 * without a batch first. Holds the records of one batch, or of {@value #MOST_TOKENS} tokens without one.
 */
final class ParquetExport {
    static final String ROLLOUTS = "rollouts.parquet";
    static final String TOKENS = "tokens.parquet";
    static final String STEPS = "steps.parquet";

    private static final int MOST_TOKENS = 1 << 20;
    private static final int RECORDS_AT_ONCE = 4000;

    private static final String SELECT = "SELECT rollout.partition, rollout.offset, trajectory_partition,"
            + " trajectory_offset, rollout.batch, entry, batch.partition, batch.offset, tokens,"
            + " CASE WHEN redriven IS NOT NULL THEN 'redriven' ELSE " + RolloutRows.STATE + " END, "
            + RolloutRows.REASON + ", " + RolloutRows.STALENESS + ", trained_tokens" + RolloutRows.FROM
            + " LEFT JOIN batch ON batch.epoch = rollout.epoch AND batch.batch = rollout.batch"
            + " WHERE tokens IS NOT NULL AND rollout.epoch = ?"
            + " ORDER BY rollout.batch, entry, rollout.partition, rollout.offset";

    private final RecordedRun run;
    private final RunTopics topics;
    private final @Nullable Tokenizer tokenizer;
    private final LongAdder passed = new LongAdder();
    private final Map<Class<?>, Deserializer<?>> deserializers = new HashMap<>();

    /** @param tokenizer for texts; without one they are null */
    ParquetExport(RecordedRun run, Optional<Tokenizer> tokenizer) {
        this.run = run;
        this.topics = run.topics();
        this.tokenizer = tokenizer.orElse(null);
    }

    /** Rows of each table. */
    record Written(long rollouts, long tokens, long steps) {}

    private record Place(int partition, long offset) {}

    private record End(
            String outcome,
            @Nullable String reason,
            @Nullable Long staleness,
            @Nullable Integer trainedTokens) {}

    private record Indexed(
            Place place,
            @Nullable Place trajectory,
            @Nullable Long batchId,
            int entry,
            @Nullable Place batch,
            int tokens,
            End end) {

        static Indexed of(ResultSet row) throws SQLException {
            Number batch = (Number) row.getObject(5);
            Number staleness = (Number) row.getObject(12);
            Number trained = (Number) row.getObject(13);
            return new Indexed(
                    new Place(row.getInt(1), row.getLong(2)),
                    row.getObject(4) == null ? null : new Place(row.getInt(3), row.getLong(4)),
                    batch == null ? null : batch.longValue(),
                    row.getInt(6),
                    row.getObject(8) == null ? null : new Place(row.getInt(7), row.getLong(8)),
                    row.getInt(9),
                    new End(
                            row.getString(10),
                            row.getString(11),
                            staleness == null ? null : staleness.longValue(),
                            trained == null ? null : trained.intValue()));
        }
    }

    /** A rollout with its records. */
    private record RolloutRow(
            Indexed at,
            Rollout rollout,
            @Nullable Trajectory trajectory,
            @Nullable BatchEntry entry,
            long[] versions) {

        RolloutRow(Indexed at, Rollout rollout, @Nullable Trajectory trajectory, @Nullable BatchEntry entry) {
            this(at, rollout, trajectory, entry, versions(rollout));
        }

        /** The version of each response token; -1 where no span covers it. */
        private static long[] versions(Rollout rollout) {
            long[] versions = new long[PackedInts.length(rollout.getResponseTokens())];
            Arrays.fill(versions, -1);
            for (VersionSpan span : rollout.getVersionSpans()) {
                int from = Math.max(0, span.getStart());
                int to = Math.min(versions.length, span.getEnd());
                if (from < to) {
                    Arrays.fill(versions, from, to, span.getVersion());
                }
            }
            return versions;
        }

        <T> @Nullable T joined(Function<Trajectory, @Nullable T> field) {
            return trajectory == null ? null : field.apply(trajectory);
        }

        boolean isRewardJoined() {
            return trajectory != null && trajectory.getRewardSource() != null;
        }
    }

    /** One response token of a rollout. */
    private record TokenRow(RolloutRow of, int position) {
        @Nullable
        Float joined(Function<Trajectory, @Nullable ByteBuffer> vector) {
            return at(of.joined(vector));
        }

        /** The element of this token; null if a refused record has none. */
        @Nullable
        Float at(@Nullable ByteBuffer vector) {
            return vector == null || vector.remaining() < (position + 1) * Float.BYTES
                    ? null
                    : Float.valueOf(PackedFloats.get(vector, position));
        }

        @Nullable
        Integer mask(@Nullable ByteBuffer mask) {
            return mask == null || position >= PackedMask.length(mask)
                    ? null
                    : Integer.valueOf(PackedMask.get(mask, position));
        }

        @Nullable
        Number advantage() {
            if (of.entry() == null) {
                return null;
            }
            ByteBuffer own = of.entry().getCredit() == null
                    ? null
                    : of.entry().getCredit().getTokenLevelAdvantages();
            return own == null ? (Number) of.entry().getAdvantage() : at(own);
        }
    }

    private List<Field<RolloutRow>> rolloutFields() {
        return List.of(
                new Field<>("rollout_id", Kind.TEXT, row -> row.rollout().getRolloutId()),
                new Field<>("group_id", Kind.TEXT, row -> row.rollout().getGroupId()),
                new Field<>("sample_index", Kind.INT, row -> row.rollout().getSampleIndex()),
                new Field<>("ordinal", Kind.LONG, row -> row.rollout().getOrdinal()),
                new Field<>(
                        "rollout_partition", Kind.INT, row -> row.at().place().partition()),
                new Field<>("rollout_offset", Kind.LONG, row -> row.at().place().offset()),
                new Field<>("generator_id", Kind.TEXT, row -> row.rollout().getGeneratorId()),
                new Field<>("environment", Kind.TEXT, row -> row.rollout().getEnvironment()),
                new Field<>("prompt", Kind.TEXT, row -> text(row.rollout().getPromptTokens())),
                new Field<>("response", Kind.TEXT, row -> text(row.rollout().getResponseTokens())),
                new Field<>(
                        "prompt_tokens",
                        Kind.INTS,
                        row -> PackedInts.toArray(row.rollout().getPromptTokens())),
                new Field<>(
                        "response_tokens",
                        Kind.INTS,
                        row -> PackedInts.toArray(row.rollout().getResponseTokens())),
                new Field<>(
                        "trainable_tokens",
                        Kind.INT,
                        row -> PackedMask.count(row.rollout().getMask())),
                new Field<>("trained_tokens", Kind.INT, row -> row.at().end().trainedTokens()),
                new Field<>(
                        "reward",
                        Kind.DOUBLE,
                        row -> row.isRewardJoined()
                                ? row.joined(Trajectory::getReward)
                                : (Double) row.rollout().getReward()),
                new Field<>(
                        "reward_components",
                        Kind.NUMBERS,
                        row -> row.isRewardJoined()
                                ? row.joined(Trajectory::getRewardComponents)
                                : row.rollout().getRewardComponents()),
                new Field<>(
                        "advantage",
                        Kind.DOUBLE,
                        row -> row.entry() == null ? null : (Double) row.entry().getAdvantage()),
                new Field<>(
                        "temperature",
                        Kind.DOUBLE,
                        row -> row.rollout().getSampling().getTemperature()),
                new Field<>("finish_reason", Kind.TEXT, row -> row.rollout().getFinishReason()),
                new Field<>("error", Kind.TEXT, row -> row.rollout().getError()),
                new Field<>("admitted_version", Kind.LONG, row -> row.rollout().getAdmittedVersion()),
                new Field<>(
                        "oldest_version",
                        Kind.LONG,
                        row -> row.rollout().getVersionSpans().stream()
                                .map(VersionSpan::getVersion)
                                .min(Long::compare)
                                .orElse(null)),
                new Field<>(
                        "newest_version",
                        Kind.LONG,
                        row -> row.rollout().getVersionSpans().stream()
                                .map(VersionSpan::getVersion)
                                .max(Long::compare)
                                .orElse(null)),
                new Field<>("proximal_version", Kind.LONG, row -> row.joined(Trajectory::getProximalVersion)),
                new Field<>("batch_id", Kind.LONG, row -> row.at().batchId()),
                new Field<>("staleness", Kind.LONG, row -> row.at().end().staleness()),
                new Field<>("outcome", Kind.TEXT, row -> row.at().end().outcome()),
                new Field<>("reason", Kind.TEXT, row -> row.at().end().reason()),
                new Field<>("started_at_ms", Kind.LONG, row -> row.rollout().getStartedAtMs()),
                new Field<>("finished_at_ms", Kind.LONG, row -> row.rollout().getFinishedAtMs()),
                new Field<>("scored_at_ms", Kind.LONG, row -> row.joined(Trajectory::getScoredAtMs)));
    }

    private static List<Field<TokenRow>> tokenFields() {
        return List.of(
                new Field<>("rollout_id", Kind.TEXT, row -> row.of().rollout().getRolloutId()),
                new Field<>(
                        "rollout_partition",
                        Kind.INT,
                        row -> row.of().at().place().partition()),
                new Field<>(
                        "rollout_offset",
                        Kind.LONG,
                        row -> row.of().at().place().offset()),
                new Field<>("position", Kind.INT, TokenRow::position),
                new Field<>(
                        "token_id",
                        Kind.INT,
                        row -> PackedInts.get(row.of().rollout().getResponseTokens(), row.position())),
                new Field<>(
                        "version",
                        Kind.LONG,
                        row -> row.of().versions()[row.position()] < 0
                                ? null
                                : (Long) row.of().versions()[row.position()]),
                new Field<>("mask", Kind.INT, row -> row.mask(row.of().rollout().getMask())),
                new Field<>(
                        "batch_mask",
                        Kind.INT,
                        row -> row.of().entry() == null
                                ? null
                                : row.mask(
                                        row.of().entry().getMask() == null
                                                ? row.of().rollout().getMask()
                                                : row.of().entry().getMask())),
                new Field<>(
                        "behavior_log_prob",
                        Kind.FLOAT,
                        row -> row.at(row.of().rollout().getBehaviorLogProbs())),
                new Field<>("old_log_prob", Kind.FLOAT, row -> row.joined(Trajectory::getOldLogProbs)),
                new Field<>("proximal_log_prob", Kind.FLOAT, row -> row.joined(Trajectory::getProximalLogProbs)),
                new Field<>("reference_log_prob", Kind.FLOAT, row -> row.joined(Trajectory::getReferenceLogProbs)),
                new Field<>("teacher_log_prob", Kind.FLOAT, row -> row.joined(Trajectory::getTeacherLogProbs)),
                new Field<>("entropy", Kind.FLOAT, row -> row.joined(Trajectory::getProximalEntropies)),
                new Field<>("advantage", Kind.DOUBLE, TokenRow::advantage),
                new Field<>(
                        "weight",
                        Kind.FLOAT,
                        row -> row.of().entry() == null
                                ? null
                                : row.at(row.of().entry().getWeights())));
    }

    /** The columns of steps.csv, unrounded, after the batch id. */
    private static List<Field<StepRow>> stepFields(List<StepRow> rows) {
        List<Field<StepRow>> fields = new ArrayList<>();
        fields.add(new Field<>("batch_id", Kind.LONG, row -> row.step() - 1));
        for (Column<StepRow> column : StepColumns.of(rows)) {
            Format.Kind kind = column.heading().format().kind();
            fields.add(new Field<>(
                    column.heading().key(),
                    kind == Format.Kind.TEXT ? Kind.TEXT : kind == Format.Kind.COUNT ? Kind.LONG : Kind.DOUBLE,
                    row -> number(column.value().apply(row))));
        }
        return fields;
    }

    private static @Nullable Object number(@Nullable Object value) {
        if (value instanceof Boolean truth) {
            return truth ? 1 : 0;
        }
        return value instanceof Double number && !Double.isFinite(number) ? null : value;
    }

    private @Nullable String text(ByteBuffer tokens) {
        try {
            return tokenizer == null ? null : tokenizer.text(PackedInts.toArray(tokens));
        } catch (IllegalArgumentException e) {
            return null; // an id outside the vocabulary, which the topology refuses
        }
    }

    /** Offsets processed so far; from any thread. */
    long passed() {
        return passed.sum();
    }

    /** Offsets in total. */
    long toPass() {
        return partitions()
                .mapToLong(at -> run.range(at).end() - run.range(at).from())
                .sum();
    }

    private Stream<TopicPartition> partitions() {
        return Stream.of(
                        topics.trainingLog(),
                        topics.deadLetters(),
                        topics.batches(),
                        topics.rollouts(),
                        topics.outcomes(),
                        topics.trajectories())
                .flatMap(topic -> run.partitions(topic).stream());
    }

    /**
     * Writes the tables.
     *
     * @param folder new or empty
     * @throws ArchiveException if the folder is not empty, or cannot be written
     */
    Written to(Path folder) {
        try {
            RunExport.requireEmpty(folder);
            Path scratch = Files.createTempDirectory("millrace-export");
            try (RunIndex index = RunIndex.open(scratch);
                    RecordFetcher fetcher = run.fetcher()) {
                index(index);
                long steps = steps(folder.resolve(STEPS), index, fetcher);
                try (ParquetFile<RolloutRow> rollouts = new ParquetFile<>(folder.resolve(ROLLOUTS), rolloutFields());
                        ParquetFile<TokenRow> tokens = new ParquetFile<>(folder.resolve(TOKENS), tokenFields())) {
                    rollouts(index, fetcher, rollouts, tokens);
                    return new Written(rollouts.rows(), tokens.rows(), steps);
                }
            } finally {
                delete(scratch);
            }
        } catch (IOException | UncheckedIOException e) {
            throw new ArchiveException("cannot write to " + folder + ": " + e.getMessage(), e);
        }
    }

    private void index(RunIndex index) {
        RecordIndexer indexer = new RecordIndexer(topics, run.run().runId(), run.registry(), Optional.empty());
        partitions().forEach(partition -> {
            long position = run.range(partition).from();
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            try (RecordCursor cursor = run.read(partition, position)) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    records.add(next.get());
                    passed.add(next.get().offset() + 1 - position);
                    position = next.get().offset() + 1;
                    if (records.size() == RECORDS_AT_ONCE) {
                        indexer.take(index, records, false);
                        records.clear();
                    }
                }
            }
            indexer.take(index, records, false);
            passed.add(run.range(partition).end() - position);
        });
    }

    private long steps(Path file, RunIndex index, RecordFetcher fetcher) throws IOException {
        List<Place> places = new ArrayList<>();
        index.read(
                "SELECT partition, offset FROM step WHERE epoch = ? ORDER BY batch",
                List.of(run.run().epoch()),
                row -> places.add(new Place(row.getInt(1), row.getLong(2))));
        Map<Place, TrainingStep> found = fetch(fetcher, topics.trainingLog(), places, TrainingStep.class);
        List<StepRow> rows = places.stream()
                .map(found::get)
                .map(Objects::requireNonNull)
                .map(StepRow::new)
                .toList();
        try (ParquetFile<StepRow> steps = new ParquetFile<>(file, stepFields(rows))) {
            for (StepRow row : rows) {
                steps.write(row);
            }
        }
        return rows.size();
    }

    private void rollouts(
            RunIndex index, RecordFetcher fetcher, ParquetFile<RolloutRow> rollouts, ParquetFile<TokenRow> tokens)
            throws IOException {
        List<Indexed> together = new ArrayList<>();
        long[] held = new long[1];
        index.read(SELECT, List.of(run.run().epoch()), row -> {
            Indexed next = Indexed.of(row);
            if (!together.isEmpty()
                    && (held[0] > MOST_TOKENS || !Objects.equals(together.get(0).batchId(), next.batchId()))) {
                write(together, fetcher, rollouts, tokens);
                together.clear();
                held[0] = 0;
            }
            together.add(next);
            held[0] += next.tokens();
        });
        write(together, fetcher, rollouts, tokens);
    }

    /** @param together rollouts of one batch, or without one */
    private void write(
            List<Indexed> together,
            RecordFetcher fetcher,
            ParquetFile<RolloutRow> rollouts,
            ParquetFile<TokenRow> tokens) {
        Map<Place, Rollout> sampled = fetch(
                fetcher,
                topics.rollouts(),
                together.stream().map(Indexed::place).toList(),
                Rollout.class);
        Map<Place, Trajectory> joined = fetch(
                fetcher,
                topics.trajectories(),
                together.stream()
                        .map(Indexed::trajectory)
                        .filter(Objects::nonNull)
                        .toList(),
                Trajectory.class);
        Map<Place, LearnerBatch> batches = fetch(
                fetcher,
                topics.batches(),
                together.stream()
                        .map(Indexed::batch)
                        .filter(Objects::nonNull)
                        .distinct()
                        .toList(),
                LearnerBatch.class);
        try {
            for (Indexed at : together) {
                Rollout rollout = sampled.get(at.place());
                if (rollout == null) {
                    continue; // retention has deleted it since it was indexed
                }
                LearnerBatch batch = at.batch() == null ? null : batches.get(at.batch());
                RolloutRow row = new RolloutRow(
                        at,
                        rollout,
                        at.trajectory() == null ? null : joined.get(at.trajectory()),
                        batch == null ? null : batch.getEntries().get(at.entry()));
                rollouts.write(row);
                for (int position = 0; position < row.versions().length; position++) {
                    tokens.write(new TokenRow(row, position));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private <T extends SpecificRecord> Map<Place, T> fetch(
            RecordFetcher fetcher, String topic, List<Place> places, Class<T> type) {
        Deserializer<?> deserializer = deserializers.computeIfAbsent(
                type, unseen -> AvroSerde.of(type, run.registry()).deserializer());
        Map<Integer, List<Long>> offsets = new HashMap<>();
        places.forEach(place -> offsets.computeIfAbsent(place.partition(), unseen -> new ArrayList<>())
                .add(place.offset()));
        Map<Place, T> found = new HashMap<>();
        offsets.forEach((partition, wanted) -> fetcher.fetch(
                        new TopicPartition(topic, partition),
                        wanted.stream().mapToLong(Long::longValue).sorted().toArray())
                .forEach(record -> found.put(
                        new Place(partition, record.offset()),
                        type.cast(deserializer.deserialize(topic, record.value())))));
        return found;
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }
}
