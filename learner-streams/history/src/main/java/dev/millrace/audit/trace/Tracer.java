package dev.millrace.audit.trace;

import dev.millrace.audit.trace.FoundEntry.FoundDeadLetter;
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
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;

/**
 * Finds the records of a group's rollouts.
 *
 * <p>Avoids full scans: records lie in the group's partition, prompts are found by bisection, and a batch points at
 * its rollouts and trajectories. Other topics are read from the group's time until the records are found; undecided
 * rollouts are searched to the end. {@code whole} scans everything, for rollouts that a ledger found twice. Not
 * thread-safe.
 */
public final class Tracer {
    /** Tolerated difference of clocks and of record order. */
    private static final long CLOCKS_MS = 60_000;

    private final RunRecords records;
    private final RunTopics topics;
    private final Duration patience;

    /** @param patience longest wait without records */
    public Tracer(RunRecords records, Duration patience) {
        this.records = records;
        this.topics = records.topics();
        this.patience = patience;
    }

    private <T extends SpecificRecord> AvroRecordDeserializer<T> deserializer(Class<T> type) {
        return AvroSerde.of(type, records.registry()).deserializer();
    }

    /**
     * @param rolloutId empty for the whole group
     * @param whole read every topic completely
     * @throws dev.millrace.log.scan.ScanException if nothing arrives for too long
     */
    public GroupTrace trace(String groupId, String rolloutId, boolean whole) {
        try (TopicScan scan = records.scan(patience)) {
            return new Search(scan, groupId, rolloutId, whole).run();
        }
    }

    /**
     * The group of a rollout whose id does not say it, as another system's ids do not. Reads the batches.
     *
     * @throws dev.millrace.log.scan.ScanException if nothing arrives for too long
     */
    public Optional<String> groupOf(String rolloutId) {
        AtomicReference<String> group = new AtomicReference<>();
        AvroRecordDeserializer<LearnerBatch> batches = deserializer(LearnerBatch.class);
        try (TopicScan scan = records.scan(patience)) {
            ConsistentCut cut = scan.cut(List.of(topics.batches()));
            scan.readWhile(beginnings(cut, cut.partitions(topics.batches())), cut, record -> {
                TopicScan.readable(batches, record)
                        .flatMap(batch -> batch.getEntries().stream()
                                .filter(entry -> entry.getRolloutId().equals(rolloutId))
                                .findFirst())
                        .ifPresent(entry -> group.set(entry.getGroupId()));
                return group.get() == null;
            });
        }
        return Optional.ofNullable(group.get());
    }

    private static Map<TopicPartition, Long> beginnings(ConsistentCut cut, List<TopicPartition> partitions) {
        Map<TopicPartition, Long> beginnings = new HashMap<>();
        partitions.forEach(
                partition -> beginnings.put(partition, cut.of(partition).begin()));
        return beginnings;
    }

    /** Epochs may share batch numbers. */
    private record StepName(int epoch, long batchId) {}

    private final class Search {
        private final AvroRecordDeserializer<PromptRequest> prompts = deserializer(PromptRequest.class);
        private final AvroRecordDeserializer<Rollout> rollouts = deserializer(Rollout.class);
        private final AvroRecordDeserializer<Score> scores = deserializer(Score.class);
        private final AvroRecordDeserializer<Reward> rewards = deserializer(Reward.class);
        private final AvroRecordDeserializer<Trajectory> trajectories = deserializer(Trajectory.class);
        private final AvroRecordDeserializer<LearnerBatch> batches = deserializer(LearnerBatch.class);
        private final AvroRecordDeserializer<TrainingStep> steps = deserializer(TrainingStep.class);
        private final AvroRecordDeserializer<Outcome> outcomes = deserializer(Outcome.class);

        private final TopicScan scan;
        private final ConsistentCut cut;
        private final String groupId;
        private final byte[] key;
        private final String rolloutId;
        private final boolean whole;

        private Optional<Found<PromptRequest>> prompt = Optional.empty();
        private long sinceMs = Long.MIN_VALUE;
        private final Findings found;
        private final RefusedPlaces refused =
                new RefusedPlaces(Set.of(topics.batches(), topics.outcomes(), topics.trainingLog()));

        Search(TopicScan scan, String groupId, String rolloutId, boolean whole) {
            this.scan = scan;
            this.cut = scan.cut(List.of(
                    topics.trainingLog(),
                    topics.batches(),
                    topics.outcomes(),
                    topics.deadLetters(),
                    topics.trajectories(),
                    topics.scores(),
                    topics.rewards(),
                    topics.referenceScores(),
                    topics.teacherScores(),
                    topics.rollouts(),
                    topics.prompts()));
            this.groupId = groupId;
            this.key = groupId.getBytes(StandardCharsets.UTF_8);
            this.rolloutId = rolloutId;
            this.whole = whole;
            this.found = new Findings(topics);
        }

        GroupTrace run() {
            prompt = new PromptSearch(scan, cut, ofGroup(topics.prompts()), prompts).find(groupId);
            if (!whole) {
                prompt.ifPresent(it -> sinceMs = it.value().getReleasedAtMs() - CLOCKS_MS);
            }
            readLetters();
            readRollouts();
            if (found.isEmpty() && !whole) {
                return found.trace(groupId, prompt, newestGroup(), scan);
            }
            readDecisions();
            readTrajectories();
            readScores();
            readSteps();
            return found.trace(groupId, prompt, "", scan);
        }

        /** Producers partition by group, as the join requires. */
        private TopicPartition ofGroup(String topic) {
            return new TopicPartition(
                    topic,
                    Utils.toPositive(Utils.murmur2(key)) % cut.partitions(topic).size());
        }

        private Map<TopicPartition, Long> since(List<TopicPartition> partitions, long timestampMs) {
            if (timestampMs == Long.MIN_VALUE) {
                return beginnings(cut, partitions);
            }
            return scan.since(cut, partitions, timestampMs);
        }

        private <T extends SpecificRecord> Optional<T> decoded(
                AvroRecordDeserializer<T> deserializer, ConsumerRecord<byte[], byte[]> record) {
            return refused.has(record) // it decides nothing
                    ? Optional.empty()
                    : TopicScan.readable(deserializer, record);
        }

        private boolean isOfGroup(ConsumerRecord<byte[], byte[]> record) {
            return Arrays.equals(key, record.key());
        }

        private boolean isMeant(String id) {
            return rolloutId.isEmpty() || rolloutId.equals(id);
        }

        /** To the end, since a mark follows its letter later. */
        private void readLetters() {
            scan.readWhile(since(cut.partitions(topics.deadLetters()), sinceMs), cut, record -> {
                refused.add(record);
                RedriveMark.of(record).ifPresent(found::mark);
                DeadLetter.of(record)
                        .filter(letter -> letter.rolloutId().isEmpty()
                                ? isOfGroup(record)
                                : letter.rolloutId().startsWith(groupId + "/") && isMeant(letter.rolloutId()))
                        .ifPresent(found.letters::add);
                return true;
            });
        }

        private void readRollouts() {
            Set<Integer> samples = new HashSet<>();
            int[] expected = {
                rolloutId.isEmpty() ? prompt.map(it -> it.value().getSamples()).orElse(Integer.MAX_VALUE) : 1
            };
            scan.readWhile(since(List.of(ofGroup(topics.rollouts())), sinceMs), cut, record -> {
                if (isOfGroup(record)) {
                    decoded(rollouts, record)
                            .filter(rollout -> isMeant(rollout.getRolloutId()))
                            .ifPresent(rollout -> {
                                found.rollouts.add(Found.of(rollout, record));
                                samples.add(rollout.getSampleIndex());
                                expected[0] = Math.min(expected[0], rollout.getGroupSize());
                            });
                }
                return whole || samples.size() < expected[0];
            });
            for (DeadLetter letter : found.letters) {
                long newOffset = found.newOffset(letter);
                if (letter.sourceTopic().equals(topics.rollouts())) {
                    add(letter.sourcePartition(), letter.sourceOffset());
                    if (newOffset >= 0) {
                        add(letter.sourcePartition(), newOffset);
                    }
                }
            }
        }

        private void add(int partition, long offset) {
            if (!found.hasRollout(partition, offset)) {
                scan.at(cut, new TopicPartition(topics.rollouts(), partition), offset)
                        .ifPresent(record -> decoded(rollouts, record)
                                .filter(rollout -> isMeant(rollout.getRolloutId()))
                                .ifPresent(rollout -> found.rollouts.add(Found.of(rollout, record))));
            }
        }

        private long firstWrittenMs() {
            return whole ? Long.MIN_VALUE : found.firstRolloutMs().orElse(sinceMs + CLOCKS_MS) - CLOCKS_MS;
        }

        /** Outcomes, which are few, then batches, until all is decided. */
        private void readDecisions() {
            if (!whole && !found.rollouts.isEmpty() && found.allDecided()) {
                return;
            }
            boolean[] decided = {false};
            scan.readWhile(since(List.of(ofGroup(topics.outcomes())), firstWrittenMs()), cut, record -> {
                decided[0] |= isOfGroup(record) && outcome(record);
                return whole || !decided[0];
            });
            if (whole || !decided[0]) {
                scan.readWhile(since(cut.partitions(topics.batches()), firstWrittenMs()), cut, record -> {
                    decided[0] |= batch(record);
                    return whole || !decided[0];
                });
            }
        }

        private boolean batch(ConsumerRecord<byte[], byte[]> record) {
            Optional<LearnerBatch> batch = decoded(batches, record);
            if (batch.isEmpty() || !batch.get().getRunId().equals(records.run().runId())) {
                return false;
            }
            boolean any = false;
            for (int i = 0; i < batch.get().getEntries().size(); i++) {
                BatchEntry entry = batch.get().getEntries().get(i);
                if (entry.getGroupId().equals(groupId) && isMeant(entry.getRolloutId())) {
                    found.entry(new FoundEntry(entry, i, Found.of(batch.get(), record)));
                    any = true;
                }
            }
            return any && found.allDecided();
        }

        private boolean outcome(ConsumerRecord<byte[], byte[]> record) {
            Optional<Outcome> outcome = decoded(outcomes, record).filter(it -> isMeant(it.getRolloutId()));
            outcome.ifPresent(it -> found.add(found.outcomes, Found.of(it, record)));
            return outcome.isPresent() && found.allDecided();
        }

        /** By the batch's references; others lie between rollout and outcome. */
        private void readTrajectories() {
            for (FoundEntry inBatch : found.entries) {
                scan.at(
                                cut,
                                new TopicPartition(
                                        topics.trajectories(), inBatch.entry().getPartition()),
                                inBatch.entry().getOffset())
                        .ifPresent(record -> decoded(trajectories, record)
                                .ifPresent(it -> found.trajectories.add(Found.of(it, record))));
            }
            long untilMs = found.lastOutcomeMs().orElse(Long.MAX_VALUE - CLOCKS_MS) + CLOCKS_MS;
            if (!whole && found.allJoinedOrRefused()) {
                return;
            }
            scan.readWhile(since(cut.partitions(topics.trajectories()), firstWrittenMs()), cut, record -> {
                if (isOfGroup(record) && !found.hasTrajectory(record.partition(), record.offset())) {
                    decoded(trajectories, record)
                            .filter(it -> isMeant(it.getRolloutId()))
                            .ifPresent(it -> found.trajectories.add(Found.of(it, record)));
                }
                return whole || record.timestamp() <= untilMs && !found.allJoined();
            });
        }

        private void readScores() {
            if (!whole) {
                for (Found<Trajectory> trajectory : found.trajectories) {
                    LogCoordinates source = trajectory.value().getScoreSource();
                    TopicPartition partition = new TopicPartition(source.getTopic(), source.getPartition());
                    if (cut.has(partition)) {
                        scan.at(cut, partition, source.getOffset()).ifPresent(this::score);
                    }
                }
            }
            if (whole || found.rollouts.isEmpty() || !found.allScored()) {
                scan.readWhile(since(List.of(ofGroup(topics.scores())), firstWrittenMs()), cut, record -> {
                    if (isOfGroup(record)) {
                        score(record);
                    }
                    return whole || !found.allScored();
                });
            }
            for (String topic : List.of(topics.rewards(), topics.referenceScores(), topics.teacherScores())) {
                if (!cut.has(topic)) {
                    continue; // the run's topology does not join this partner
                }
                scan.readWhile(since(List.of(ofGroup(topic)), firstWrittenMs()), cut, record -> {
                    if (isOfGroup(record)) {
                        partner(record);
                    }
                    return whole
                            || record.timestamp()
                                    <= found.lastDecidedMs().orElse(Long.MAX_VALUE - CLOCKS_MS) + CLOCKS_MS;
                });
            }
        }

        private void partner(ConsumerRecord<byte[], byte[]> record) {
            if (record.topic().equals(topics.rewards())) {
                decoded(rewards, record)
                        .filter(reward -> isMeant(reward.getRolloutId()))
                        .ifPresent(reward -> found.rewards.add(Found.of(reward, record)));
            } else {
                score(record);
            }
        }

        private void score(ConsumerRecord<byte[], byte[]> record) {
            if (!found.hasScore(record.topic(), record.partition(), record.offset())) {
                decoded(scores, record)
                        .filter(score -> isMeant(score.getRolloutId()))
                        .ifPresent(score -> found.scores.add(Found.of(score, record)));
            }
        }

        private void readSteps() {
            Set<StepName> open = new HashSet<>();
            found.entries.forEach(inBatch -> open.add(new StepName(
                    inBatch.batch().value().getEpoch(), inBatch.batch().value().getBatchId())));
            if (open.isEmpty()) {
                return;
            }
            long fromMs = whole
                    ? Long.MIN_VALUE
                    : found.entries.stream()
                                    .mapToLong(inBatch -> inBatch.batch().timestampMs())
                                    .min()
                                    .orElseThrow()
                            - CLOCKS_MS;
            Set<StepName> wanted = Set.copyOf(open);
            scan.readWhile(since(cut.partitions(topics.trainingLog()), fromMs), cut, record -> {
                decoded(steps, record)
                        .filter(step -> wanted.contains(new StepName(step.getEpoch(), step.getBatchId()))
                                && step.getRunId().equals(records.run().runId()))
                        .ifPresent(step -> {
                            found.add(found.steps, Found.of(step, record));
                            open.remove(new StepName(step.getEpoch(), step.getBatchId()));
                        });
                return whole || !open.isEmpty();
            });
        }

        /** Last prompt by ordinal, as a hint after a typo. */
        private String newestGroup() {
            List<PromptRequest> last = new ArrayList<>();
            for (TopicPartition partition : cut.partitions(topics.prompts())) {
                long end = cut.of(partition).end();
                scan.readWhile(Map.of(partition, Math.max(cut.of(partition).begin(), end - 50)), cut, record -> {
                    decoded(prompts, record).ifPresent(last::add);
                    return true;
                });
            }
            return last.stream()
                    .max(Comparator.comparingInt(PromptRequest::getEpoch).thenComparingLong(PromptRequest::getOrdinal))
                    .map(PromptRequest::getGroupId)
                    .orElse("");
        }
    }

    /**
     * Finds a group's prompt in its partition.
     *
     * <p>Groups are named {@code epoch-ordinal} and released in order, so the position is bisected down to {@value
     * #NEAR} offsets. Falls back to the whole partition for other names and redriven prompts.
     */
    static final class PromptSearch {
        private static final int NEAR = 2048;
        private static final Pattern NAME = Pattern.compile("(\\d{1,9})-(\\d{1,18})");

        private final TopicScan scan;
        private final ConsistentCut cut;
        private final TopicPartition partition;
        private final AvroRecordDeserializer<PromptRequest> prompts;

        PromptSearch(
                TopicScan scan,
                ConsistentCut cut,
                TopicPartition partition,
                AvroRecordDeserializer<PromptRequest> prompts) {
            this.scan = scan;
            this.cut = cut;
            this.partition = partition;
            this.prompts = prompts;
        }

        Optional<Found<PromptRequest>> find(String groupId) {
            OffsetRange all = cut.of(partition);
            Matcher name = NAME.matcher(groupId);
            if (name.matches() && all.end() - all.begin() > NEAR) {
                OffsetRange near = near(Integer.parseInt(name.group(1)), Long.parseLong(name.group(2)), all);
                Optional<Found<PromptRequest>> found = within(near, groupId);
                if (found.isPresent()) {
                    return found;
                }
            }
            return within(all, groupId);
        }

        /** Narrows the range; its beginning stays at or before the prompt. */
        private OffsetRange near(int epoch, long ordinal, OffsetRange all) {
            long low = all.begin();
            long high = all.end();
            while (high - low > NEAR) {
                long middle = low + (high - low) / 2;
                Optional<Found<PromptRequest>> there = first(middle);
                if (there.isEmpty() || there.get().offset() >= high) {
                    high = middle;
                    continue;
                }
                PromptRequest prompt = there.get().value();
                boolean before =
                        prompt.getEpoch() != epoch ? prompt.getEpoch() < epoch : prompt.getOrdinal() <= ordinal;
                if (before) {
                    low = there.get().offset();
                } else {
                    high = middle;
                }
            }
            return new OffsetRange(low, Math.min(all.end(), high + NEAR));
        }

        /** First prompt at or after the offset. */
        private Optional<Found<PromptRequest>> first(long offset) {
            AtomicReference<Found<PromptRequest>> found = new AtomicReference<>();
            scan.readWhile(Map.of(partition, offset), cut, record -> {
                TopicScan.readable(prompts, record).ifPresent(prompt -> found.set(Found.of(prompt, record)));
                return found.get() == null;
            });
            return Optional.ofNullable(found.get());
        }

        private Optional<Found<PromptRequest>> within(OffsetRange range, String groupId) {
            byte[] key = groupId.getBytes(StandardCharsets.UTF_8);
            AtomicReference<Found<PromptRequest>> found = new AtomicReference<>();
            scan.readWhile(Map.of(partition, range.begin()), cut, record -> {
                if (Arrays.equals(key, record.key())) {
                    TopicScan.readable(prompts, record).ifPresent(prompt -> found.set(Found.of(prompt, record)));
                }
                return found.get() == null && record.offset() < range.end();
            });
            return Optional.ofNullable(found.get());
        }
    }

    /** Findings of a search, which decide where it may stop. */
    private static final class Findings {
        private final RunTopics topics;
        private final List<Found<Rollout>> rollouts = new ArrayList<>();
        private final List<Found<Score>> scores = new ArrayList<>();
        private final List<Found<Reward>> rewards = new ArrayList<>();
        private final List<Found<Trajectory>> trajectories = new ArrayList<>();
        private final List<FoundEntry> entries = new ArrayList<>();
        private final List<Found<TrainingStep>> steps = new ArrayList<>();
        private final List<Found<Outcome>> outcomes = new ArrayList<>();
        private final List<String> copies = new ArrayList<>();

        private final List<DeadLetter> letters = new ArrayList<>();
        /** Redriven offset by letter position. */
        private final Map<String, Long> marks = new HashMap<>();

        Findings(RunTopics topics) {
            this.topics = topics;
        }

        void entry(FoundEntry entry) {
            if (entries.stream()
                    .anyMatch(known ->
                            known.index() == entry.index() && known.batch().isCopiedBy(entry.batch()))) {
                copy(entry.batch());
            } else {
                entries.add(entry);
            }
        }

        /** Adds a record to those of its kind, or notes that it is a copy of one. */
        <T> void add(List<Found<T>> all, Found<T> record) {
            if (all.stream().anyMatch(known -> known.isCopiedBy(record))) {
                copy(record);
            } else {
                all.add(record);
            }
        }

        private void copy(Found<?> record) {
            if (!copies.contains(record.place())) { // a batch has several entries
                copies.add(record.place());
            }
        }

        void mark(RedriveMark mark) {
            marks.put(RedriveMark.place(mark.letterPartition(), mark.letterOffset()), mark.newOffset());
        }

        /** -1 if it was not redriven. */
        long newOffset(DeadLetter letter) {
            return marks.getOrDefault(RedriveMark.place(letter.partition(), letter.offset()), -1L);
        }

        /** True without rollout and letter, on which all else depends. */
        boolean isEmpty() {
            return rollouts.isEmpty() && letters.isEmpty();
        }

        boolean hasRollout(int partition, long offset) {
            return rollouts.stream().anyMatch(found -> found.isAt(partition, offset));
        }

        boolean hasTrajectory(int partition, long offset) {
            return trajectories.stream().anyMatch(found -> found.isAt(partition, offset));
        }

        boolean hasScore(String topic, int partition, long offset) {
            return scores.stream().anyMatch(found -> found.topic().equals(topic) && found.isAt(partition, offset));
        }

        /** True if every rollout is in a batch, dropped or refused. */
        boolean allDecided() {
            return rollouts.stream()
                    .allMatch(rollout -> isRefused(rollout)
                            || entries.stream()
                                    .anyMatch(e -> rollout.isAt(
                                            e.entry().getRolloutPartition(),
                                            e.entry().getRolloutOffset()))
                            || outcomes.stream()
                                    .anyMatch(o -> rollout.isAt(
                                            o.value().getSource().getPartition(),
                                            o.value().getSource().getOffset())));
        }

        private boolean isRefused(Found<Rollout> rollout) {
            return letters.stream()
                    .anyMatch(letter -> letter.sourceTopic().equals(topics.rollouts())
                            && rollout.isAt(letter.sourcePartition(), letter.sourceOffset()));
        }

        boolean allJoined() {
            return rollouts.stream().allMatch(this::isJoined);
        }

        boolean allJoinedOrRefused() {
            return rollouts.stream().allMatch(rollout -> isJoined(rollout) || isRefused(rollout));
        }

        private boolean isJoined(Found<Rollout> rollout) {
            return trajectories.stream()
                    .map(found -> found.value().getRolloutSource())
                    .anyMatch(source -> rollout.isAt(source.getPartition(), source.getOffset()));
        }

        boolean allScored() {
            return rollouts.stream().allMatch(this::isScored);
        }

        private boolean isScored(Found<Rollout> rollout) {
            return scores.stream()
                    .filter(found -> found.topic().equals(topics.scores()))
                    .map(found -> found.value().getRolloutSource())
                    .anyMatch(source -> rollout.isAt(source.getPartition(), source.getOffset()));
        }

        OptionalLong firstRolloutMs() {
            return rollouts.stream().mapToLong(Found::timestampMs).min();
        }

        OptionalLong lastOutcomeMs() {
            return outcomes.stream().mapToLong(Found::timestampMs).max();
        }

        /** Time of the last batch or outcome. */
        OptionalLong lastDecidedMs() {
            return LongStream.concat(
                            entries.stream().mapToLong(found -> found.batch().timestampMs()),
                            outcomes.stream().mapToLong(Found::timestampMs))
                    .max();
        }

        GroupTrace trace(String groupId, Optional<Found<PromptRequest>> prompt, String newestGroup, TopicScan scan) {
            rollouts.sort(Comparator.comparingInt(
                            (Found<Rollout> found) -> found.value().getSampleIndex())
                    .thenComparingLong(Found::offset));
            return new GroupTrace(
                    groupId,
                    prompt,
                    new GroupTrace.Inputs(rollouts, scores, rewards, trajectories),
                    new GroupTrace.Decisions(
                            entries,
                            steps,
                            outcomes,
                            letters.stream()
                                    .map(letter -> new FoundDeadLetter(letter, newOffset(letter)))
                                    .toList()),
                    copies,
                    new GroupTrace.Search(newestGroup, scan.records(), scan.bytes()));
        }
    }
}
