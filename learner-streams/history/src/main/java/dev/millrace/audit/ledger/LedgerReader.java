package dev.millrace.audit.ledger;

import dev.millrace.audit.ledger.Ledger.RecordDigest;
import dev.millrace.audit.ledger.Ledger.RolloutPlace;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Reads a run's topics once up to a {@link ConsistentCut} and adds them up. Reads committed records without a consumer
 * group, so it can run next to a live run or after a kill.
 *
 * <p>Order: dead letters first, since a refusal is no decision, then decisions before rollouts (see {@link Ledger}).
 * Memory is one byte per rollout offset, one more per rollout that the learner decided again, and one record per step.
 * Covers all epochs; rollouts in flight of an older epoch are superseded. Records of other runs count only if the
 * topology refused them.
 */
public final class LedgerReader {
    private final RunRecords records;
    private final RunTopics topics;

    public LedgerReader(RunRecords records) {
        this.records = records;
        this.topics = records.topics();
    }

    private <T extends SpecificRecord> AvroRecordDeserializer<T> deserializer(Class<T> type) {
        return AvroSerde.of(type, records.registry()).deserializer();
    }

    /**
     * @param patience longest wait without records
     * @throws dev.millrace.log.scan.ScanException if it is exceeded before the end
     */
    public Account read(Duration patience) {
        try (TopicScan scan = records.scan(patience)) {
            // effects before causes: see ConsistentCut
            ConsistentCut cut = scan.cut(List.of(
                    topics.trainingLog(),
                    topics.batches(),
                    topics.outcomes(),
                    topics.deadLetters(),
                    topics.trajectories(),
                    topics.scores(),
                    topics.rollouts()));
            RefusedPlaces refused = RefusedPlaces.read(
                    scan,
                    cut,
                    topics.deadLetters(),
                    Set.of(topics.trainingLog(), topics.batches(), topics.outcomes(), topics.scores()));
            Reading reading = new Reading(cut, refused);
            scan.read(topics.trainingLog(), cut, reading::step);
            scan.read(topics.batches(), cut, reading::batch);
            scan.read(topics.outcomes(), cut, reading::outcome);
            if (reading.strays.areSuspected()) {
                scan.read(topics.outcomes(), cut, reading::strayOutcome);
                if (reading.strays.areLeft()) {
                    scan.read(topics.trajectories(), cut, reading::trajectory);
                }
                reading.strays.settle(bare(topics.outcomes()), bare(topics.trajectories()));
            }
            scan.read(topics.deadLetters(), cut, reading::deadLetter);
            scan.read(topics.scores(), cut, reading::score);
            reading.decisionsEnd();
            scan.read(topics.rollouts(), cut, reading::rollout);
            return reading.account(scan.keptFrom(cut.partitions(topics.rollouts())));
        }
    }

    private String bare(String topic) {
        return topic.substring(topics.prefix().length());
    }

    private final class Reading {
        private final AvroRecordDeserializer<Rollout> rollouts = deserializer(Rollout.class);
        private final AvroRecordDeserializer<Score> scores = deserializer(Score.class);
        private final AvroRecordDeserializer<Trajectory> trajectories = deserializer(Trajectory.class);
        private final AvroRecordDeserializer<LearnerBatch> batches = deserializer(LearnerBatch.class);
        private final AvroRecordDeserializer<TrainingStep> steps = deserializer(TrainingStep.class);
        private final AvroRecordDeserializer<Outcome> outcomes = deserializer(Outcome.class);
        private final ConsistentCut cut;
        private final RefusedPlaces refused;
        private final Ledger ledger;
        private final TrainedBatches trained;
        private final StrayOutcomes strays;
        /** Time of the first kept record of each truncated partition. */
        private final Map<TopicPartition, Long> keptSince = new HashMap<>();

        private final List<String> gaps = new ArrayList<>();
        private long generatedTokens;
        private long scoredTokens;

        Reading(ConsistentCut cut, RefusedPlaces refused) {
            this.cut = cut;
            this.refused = refused;
            this.ledger =
                    new Ledger(cut.ranges(topics.rollouts()), records.run().epoch());
            this.strays = new StrayOutcomes(ledger);
            this.trained = new TrainedBatches(
                    ledger,
                    bare(topics.trainingLog()),
                    hasLost(topics.trainingLog()),
                    bare(topics.batches()),
                    hasLost(topics.batches()));
        }

        private boolean ours(String runId) {
            return records.run().runId().equals(runId);
        }

        private void noteFirst(ConsumerRecord<byte[], byte[]> record) {
            keptSince.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.timestamp());
        }

        /** Empty for a refused record, which decides nothing, and for a malformed one, which a dead letter accounts for. */
        private <T extends SpecificRecord> Optional<T> decoded(
                ConsumerRecord<byte[], byte[]> record, AvroRecordDeserializer<T> deserializer) {
            return refused.has(record) ? Optional.empty() : TopicScan.readable(deserializer, record);
        }

        void step(ConsumerRecord<byte[], byte[]> record) {
            noteFirst(record);
            decoded(record, steps)
                    .filter(step -> ours(step.getRunId()))
                    .ifPresent(step -> trained.step(step, RecordDigest.of(record.value())));
        }

        void batch(ConsumerRecord<byte[], byte[]> record) {
            noteFirst(record);
            decoded(record, batches)
                    .filter(batch -> ours(batch.getRunId()))
                    .ifPresent(batch -> trained.batch(batch, at(record), RecordDigest.of(record.value())));
        }

        private boolean hasLost(String topic) {
            return cut.partitions(topic).stream()
                    .anyMatch(partition -> cut.of(partition).begin() > 0);
        }

        void outcome(ConsumerRecord<byte[], byte[]> record) {
            noteFirst(record);
            decoded(record, outcomes)
                    .filter(outcome -> ours(outcome.getRunId()))
                    .ifPresent(outcome -> {
                        LogCoordinates source = outcome.getSource();
                        if (!source.getTopic().equals(topics.rollouts())) {
                            return;
                        }
                        RolloutPlace place = RolloutPlace.of(source);
                        if (ledger.isDecided(place)) {
                            strays.suspect(place);
                        } else {
                            ledger.dropped(place.partition(), place.offset(), outcome.getReason());
                        }
                    });
        }

        /** Second pass, once the rollouts with several outcomes are known. */
        void strayOutcome(ConsumerRecord<byte[], byte[]> record) {
            decoded(record, outcomes)
                    .filter(outcome -> ours(outcome.getRunId())
                            && outcome.getSource().getTopic().equals(topics.rollouts()))
                    .ifPresent(outcome -> strays.outcome(
                            RolloutPlace.of(outcome.getSource()),
                            outcome.getReason(),
                            RecordDigest.of(record.value())));
        }

        void trajectory(ConsumerRecord<byte[], byte[]> record) {
            decoded(record, trajectories)
                    .filter(trajectory -> ours(trajectory.getRunId()))
                    .ifPresent(trajectory -> strays.trajectory(RolloutPlace.of(trajectory.getRolloutSource())));
        }

        void deadLetter(ConsumerRecord<byte[], byte[]> record) {
            noteFirst(record);
            Optional<RedriveMark> mark = RedriveMark.of(record);
            if (mark.isPresent()) {
                redriven(mark.get());
                return;
            }
            String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
            String reason = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON);
            Optional<RolloutPlace> place = RolloutPlace.parse(RedriveMark.place(
                    DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_PARTITION),
                    DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_OFFSET)));
            if (source.equals(topics.rollouts()) && place.isPresent()) {
                if (!ledger.deadLettered(place.get().partition(), place.get().offset(), reason)) {
                    ledger.copy(bare(topics.deadLetters()));
                }
            } else if (!source.isEmpty()) {
                ledger.otherDeadLetter(source);
                if (source.equals(topics.trajectories())) {
                    decoded(record, trajectories)
                            .map(Trajectory::getRolloutSource)
                            .ifPresent(rollout ->
                                    ledger.trajectoryDeadLettered(rollout.getPartition(), rollout.getOffset(), reason));
                }
            }
        }

        private void redriven(RedriveMark mark) {
            if (mark.source().getTopic().equals(topics.rollouts())) {
                ledger.redriven(mark.source().getPartition(), mark.source().getOffset(), mark.newOffset());
            } else {
                ledger.otherRedriven(mark.source().getTopic());
                RolloutPlace.parse(mark.rolloutPlace())
                        .ifPresent(place -> ledger.trajectoryRedriven(place.partition(), place.offset()));
            }
        }

        void score(ConsumerRecord<byte[], byte[]> record) {
            decoded(record, scores).filter(score -> ours(score.getRunId())).ifPresent(score -> {
                LogCoordinates source = score.getRolloutSource();
                if (source.getTopic().equals(topics.rollouts())) {
                    ledger.scored(source.getPartition(), source.getOffset());
                }
            });
        }

        /** All decisions are read; missing ones are now known. */
        void decisionsEnd() {
            for (String topic :
                    List.of(topics.trainingLog(), topics.batches(), topics.outcomes(), topics.deadLetters())) {
                for (TopicPartition partition : cut.partitions(topic)) {
                    OffsetRange range = cut.of(partition);
                    if (range.begin() > 0) {
                        Long since = keptSince.get(partition);
                        gaps.add(partition + " begins at offset " + range.begin()
                                + (since == null
                                        ? " and is empty"
                                        : ", " + Instant.ofEpochMilli(since).truncatedTo(ChronoUnit.SECONDS))
                                + "; earlier decisions are deleted");
                        ledger.decisionsKeptSince(since == null ? Long.MAX_VALUE : since);
                    }
                }
            }
            for (TopicPartition partition : cut.partitions(topics.rollouts())) {
                if (cut.of(partition).begin() > 0) {
                    gaps.add(partition + " begins at offset "
                            + cut.of(partition).begin() + "; earlier rollouts are deleted");
                }
            }
            trained.check();
            gaps.addAll(trained.gaps());
        }

        void rollout(ConsumerRecord<byte[], byte[]> record) {
            Optional<Rollout> read = decoded(record, rollouts).filter(rollout -> ours(rollout.getRunId()));
            if (read.isEmpty()) {
                ledger.rollout(record.partition(), record.offset(), RolloutOrigin.NOT_OURS, "", record.timestamp());
                return;
            }
            Rollout rollout = read.get();
            long newest = rollout.getVersionSpans().stream()
                    .mapToLong(VersionSpan::getVersion)
                    .max()
                    .orElse(-1);
            boolean scored = ledger.rollout(
                    record.partition(),
                    record.offset(),
                    newest < 0 || rollout.getEpoch() < 0
                            ? RolloutOrigin.NOT_OURS
                            : new RolloutOrigin(rollout.getEpoch(), newest),
                    rollout.getRolloutId(),
                    record.timestamp());
            int tokens = ones(rollout.getMask());
            generatedTokens += tokens;
            scoredTokens += scored ? tokens : 0;
        }

        Account account(Map<TopicPartition, Long> keptFrom) {
            Map<Integer, Long> kept = new HashMap<>();
            keptFrom.forEach((partition, offset) -> kept.put(partition.partition(), offset));
            List<TrainingStep> inOrder = trained.steps();
            long trainedTokens =
                    inOrder.stream().mapToLong(TrainingStep::getTokensTrained).sum();
            return new Account(ledger.balance(kept, gaps), generatedTokens, scoredTokens, trainedTokens, inOrder);
        }
    }

    private static String at(ConsumerRecord<?, ?> record) {
        return record.topic() + "-" + record.partition() + "@" + record.offset();
    }

    private static int ones(ByteBuffer mask) {
        int ones = 0;
        for (int i = mask.position(); i < mask.limit(); i++) {
            ones += mask.get(i) == 1 ? 1 : 0;
        }
        return ones;
    }

    /**
     * Separates repeated outcomes of a rollout into copies and contradictions.
     *
     * <p>A byte-equal outcome is a copy. A different one may be about a copied trajectory whose group, already
     * decided, stayed short; then the rollout has two trajectories. With one trajectory the topology decided twice: it
     * lost its offsets and called the record that it read again a duplicate. The first decision holds. Memory is
     * proportional to such outcomes; only they cause a second read. Not thread-safe.
     */
    static final class StrayOutcomes {
        private static final class Suspect {
            private final Set<RecordDigest> seen = new HashSet<>();
            private final List<String> reasons = new ArrayList<>();
            private boolean isDecidedAsDuplicate;
            private int trajectories;
        }

        /** Reason for a record read again, or with another record's name. */
        private static final String DUPLICATE = "duplicate";

        private final Ledger ledger;
        private final Map<RolloutPlace, Suspect> suspects = new HashMap<>();
        private long copies;

        StrayOutcomes(Ledger ledger) {
            this.ledger = ledger;
        }

        void suspect(RolloutPlace place) {
            suspects.computeIfAbsent(place, unseen -> new Suspect());
        }

        boolean areSuspected() {
            return !suspects.isEmpty();
        }

        /** Every outcome of a rollout, again in log order. */
        void outcome(RolloutPlace place, String reason, RecordDigest digest) {
            Suspect suspect = suspects.get(place);
            if (suspect == null) {
                return;
            }
            boolean isTheDecision = suspect.seen.isEmpty() && ledger.isDropped(place);
            if (!suspect.seen.add(digest)) {
                copies++;
            } else if (!isTheDecision) {
                suspect.reasons.add(reason);
            } else {
                suspect.isDecidedAsDuplicate = reason.equals(DUPLICATE);
            }
        }

        /** True if the trajectories have to be counted. */
        boolean areLeft() {
            return suspects.values().stream().anyMatch(suspect -> !suspect.reasons.isEmpty());
        }

        void trajectory(RolloutPlace rollout) {
            Suspect suspect = suspects.get(rollout);
            if (suspect != null) {
                suspect.trajectories++;
            }
        }

        /** Reports to the ledger. */
        void settle(String outcomes, String trajectories) {
            for (long i = 0; i < copies; i++) {
                ledger.copy(outcomes);
            }
            suspects.forEach((place, suspect) -> {
                for (String reason : suspect.reasons) {
                    if (suspect.trajectories > 1) {
                        ledger.copy(trajectories);
                    } else if (reason.equals(DUPLICATE)) {
                        ledger.copy(outcomes);
                    } else if (suspect.isDecidedAsDuplicate) {
                        ledger.copy(outcomes);
                        ledger.droppedAfterAll(place.partition(), place.offset(), reason);
                        suspect.isDecidedAsDuplicate = false;
                    } else {
                        ledger.dropped(place.partition(), place.offset(), reason);
                    }
                }
            });
        }
    }

    /**
     * Matches batches and steps: every batch once and without gap, every step on an existing batch with as many
     * rollouts. Reports contradictions and rollouts to the ledger. Call order: steps, batches, {@link #check}.
     *
     * <p>Copies are equal records, batches or steps before the first kept one, and batches without a step whose
     * rollouts are all in earlier batches.
     */
    static final class TrainedBatches {
        private final Ledger ledger;
        private final boolean lostSteps;
        private final boolean lostBatches;
        private final PackedSteps packed = new PackedSteps();
        private final Map<Name, TrainingStep> trained = new HashMap<>();
        private final Map<Name, StepWords> words = new HashMap<>();
        private final Map<Name, Integer> assembled = new HashMap<>();
        /** Of the first record of each name. */
        private final Map<Name, RecordDigest> stepDigests = new HashMap<>();

        private final Map<Name, RecordDigest> batchDigests = new HashMap<>();
        /** First kept step of each epoch, in log order. */
        private final Map<Integer, Long> firstSteps = new HashMap<>();

        private final Map<Integer, Long> lastSteps = new HashMap<>();
        /** Batches whose step is lost, in log order. */
        private final List<Name> lostInBetween = new ArrayList<>();

        private final Map<Integer, Long> firstBatches = new HashMap<>();
        private final String stepTopic;
        private final String batchTopic;

        private record Name(int epoch, long batchId) {
            @Override
            public String toString() {
                return batchId + (epoch == 0 ? "" : " of epoch " + epoch);
            }
        }

        /**
         * @param lostSteps the log deleted its first steps
         * @param lostBatches the log deleted its first batches
         */
        TrainedBatches(Ledger ledger, String stepTopic, boolean lostSteps, String batchTopic, boolean lostBatches) {
            this.ledger = ledger;
            this.stepTopic = stepTopic;
            this.batchTopic = batchTopic;
            this.lostSteps = lostSteps;
            this.lostBatches = lostBatches;
        }

        void step(TrainingStep step, RecordDigest digest) {
            Name name = new Name(step.getEpoch(), step.getBatchId());
            RecordDigest before = stepDigests.putIfAbsent(name, digest);
            if (digest.equals(before) || isBefore(firstSteps, name) && lostSteps) {
                ledger.copy(stepTopic);
                return;
            }
            if (trained.putIfAbsent(name, packed.pack(step)) != null) {
                ledger.contradict("batch " + name + " was trained on twice, to version "
                        + trained.get(name).getVersion() + " and to version " + step.getVersion());
                return;
            }
            lastSteps.merge(name.epoch(), name.batchId(), Math::max);
            if (step.getEntries() != null) {
                words.put(name, StepWords.of(step.getEntries()));
            }
        }

        /** True if the log begins with a later one. */
        private static boolean isBefore(Map<Integer, Long> firsts, Name name) {
            Long first = firsts.putIfAbsent(name.epoch(), name.batchId());
            return first != null && name.batchId() < first;
        }

        void batch(LearnerBatch batch, String at, RecordDigest digest) {
            Name name = new Name(batch.getEpoch(), batch.getBatchId());
            RecordDigest before = batchDigests.putIfAbsent(name, digest);
            if (digest.equals(before) || isBefore(firstBatches, name) && lostBatches) {
                ledger.copy(batchTopic);
                return;
            }
            if (!trained.containsKey(name) && !assembled.containsKey(name) && isWhollyOfOthers(batch)) {
                ledger.copy(batchTopic); // under its own id: the learner refuses it
                return;
            }
            if (assembled.putIfAbsent(name, batch.getEntries().size()) != null) {
                ledger.contradict("there are two batches " + name + ", the second at " + at);
            }
            if (isSkipped(name)) {
                return; // outcomes decide its rollouts
            }
            boolean isStepLost = !trained.containsKey(name) && wasPassed(name);
            if (isStepLost) {
                lostInBetween.add(name);
            }
            boolean stepped = trained.containsKey(name) || isStepLost || wasTrainedBeforeTheLogBegins(name);
            StepWords anew = words.get(name);
            for (int i = 0; i < batch.getEntries().size(); i++) {
                BatchEntry entry = batch.getEntries().get(i);
                String maskedBy =
                        entry.getTrainedTokens() > 0 ? null : entry.getMaskedBy() == null ? "" : entry.getMaskedBy();
                if (anew != null && i < anew.size()) {
                    maskedBy = anew.maskedBy(i); // the learner's outcome wins
                }
                ledger.batched(
                        entry.getRolloutPartition(), entry.getRolloutOffset(), batch.getBatchId(), maskedBy, stepped);
            }
        }

        /** True if earlier batches have all of its rollouts. */
        private boolean isWhollyOfOthers(LearnerBatch batch) {
            return !batch.getEntries().isEmpty()
                    && batch.getEntries().stream()
                            .allMatch(entry -> ledger.isBatched(entry.getRolloutPartition(), entry.getRolloutOffset()));
        }

        /** Batches are trained in order: one before a later step of its epoch was trained, and its step is lost. */
        private boolean wasPassed(Name name) {
            return name.batchId() < lastSteps.getOrDefault(name.epoch(), Long.MIN_VALUE)
                    && name.batchId() >= firstSteps.getOrDefault(name.epoch(), Long.MIN_VALUE);
        }

        /** Missing steps, as sentences. */
        List<String> gaps() {
            return lostInBetween.stream()
                    .map(name -> "the step on batch " + name
                            + " is lost, and later ones are there; its rollouts count as the batch says")
                    .toList();
        }

        /** Batches are trained in order: one before the first kept step was trained. */
        private boolean wasTrainedBeforeTheLogBegins(Name name) {
            return lostSteps
                    && trained.keySet().stream()
                            .filter(step -> step.epoch() == name.epoch())
                            .allMatch(step -> step.batchId() > name.batchId());
        }

        /** Call after all steps and batches. */
        void check() {
            trained.forEach((name, step) -> {
                Integer entries = assembled.get(name);
                int inStep = step.getRolloutsTrained() + step.getRolloutsMasked();
                if (entries == null) {
                    if (!lostBatches && !isSkipped(name)) {
                        ledger.contradict("version " + step.getVersion() + " was made from batch " + name
                                + ", which is not on the log");
                    }
                } else if (entries != inStep && !isSkipped(name)) {
                    ledger.contradict(
                            "batch " + name + " has " + entries + " rollouts, and the step on it counted " + inStep);
                }
            });
            Map<Integer, Long> firsts = new HashMap<>();
            assembled.keySet().forEach(name -> firsts.merge(name.epoch(), name.batchId(), Math::min));
            for (Name name : assembled.keySet()) {
                if (name.batchId() > Objects.requireNonNull(firsts.get(name.epoch()))
                        && !assembled.containsKey(new Name(name.epoch(), name.batchId() - 1))
                        && !isSkipped(new Name(name.epoch(), name.batchId() - 1))) {
                    ledger.contradict("batch " + name + " is on the log, and the one before it is not");
                }
            }
        }

        /** True if the batch was given up because its data was lost, which leaves a starved step. */
        private boolean isSkipped(Name name) {
            TrainingStep step = trained.get(name);
            return step != null && step.getStarved() && step.getRolloutsTrained() + step.getRolloutsMasked() == 0;
        }

        /** In order, without entries. */
        List<TrainingStep> steps() {
            List<TrainingStep> inOrder = new ArrayList<>(trained.values());
            inOrder.sort(Comparator.comparingInt(TrainingStep::getEpoch).thenComparingLong(TrainingStep::getBatchId));
            return inOrder;
        }

        /**
         * One byte per batch entry.
         *
         * @param codes 0 for a trained entry, else 1 + index in {@code stages}
         * @param stages that masked an entry's last token; empty for an entry without trainable tokens
         */
        record StepWords(byte[] codes, List<String> stages) {
            private static final int MOST_STAGES = 126;
            private static final String OTHER = "other";

            static StepWords of(List<StepEntry> entries) {
                byte[] codes = new byte[entries.size()];
                List<String> stages = new ArrayList<>();
                for (int i = 0; i < codes.length; i++) {
                    if (entries.get(i).getTrainedTokens() == 0) {
                        String stage = entries.get(i).getMaskedBy() == null
                                ? ""
                                : entries.get(i).getMaskedBy();
                        String named = stages.contains(stage) || stages.size() < MOST_STAGES ? stage : OTHER;
                        if (!stages.contains(named)) {
                            stages.add(named);
                        }
                        codes[i] = (byte) (1 + stages.indexOf(named));
                    }
                }
                return new StepWords(codes, List.copyOf(stages));
            }

            int size() {
                return codes.length;
            }

            /** Empty if it had no trainable token; null if it was trained on. */
            @Nullable
            String maskedBy(int entry) {
                return codes[entry] == 0 ? null : stages.get(codes[entry] - 1);
            }
        }
    }
}
