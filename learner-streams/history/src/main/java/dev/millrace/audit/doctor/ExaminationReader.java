package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Examination.HeldOut;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.corrections.diagnostics.CorrectionInForce;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import dev.millrace.corrections.diagnostics.TreeBounds;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.log.Alarm;
import dev.millrace.log.EvaluationRecordReader;
import dev.millrace.log.Evaluations;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.ManifestChain;
import dev.millrace.schemas.run.ManifestChain.Link;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.BatchDiagnostics;
import dev.millrace.stages.RecordedFacts;
import dev.millrace.stages.StepDiagnostics;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Reads the input of a {@link Doctor}: ledger, serving state, and trajectories of the last {@value #BATCHES} batches
 * for the decision tree. All but the ledger cover the connection's epoch.
 */
public final class ExaminationReader {
    private static final int BATCHES = DiagnosticsCourse.WINDOW;

    private final RunRecords records;
    private final RunTopics topics;
    private final Duration patience;
    private final Clock clock;

    /** @param patience longest wait without records */
    public ExaminationReader(RunRecords records, Duration patience, Clock clock) {
        this.records = records;
        this.topics = records.topics();
        this.patience = patience;
        this.clock = clock;
    }

    /**
     * @param lags records left per role's consumer group
     * @param alarms last reported by the run's processes
     */
    public Examination read(Map<String, Long> lags, List<Alarm> alarms) {
        Account account = new LedgerReader(records).read(patience);
        try (TopicScan scan = records.scan(patience)) {
            ConsistentCut cut = scan.cut(List.of(
                    topics.serving(),
                    topics.evaluations(),
                    topics.policyVersions(),
                    topics.weights(),
                    topics.batches(),
                    topics.deadLetters(),
                    topics.trajectories()));
            Map<String, Serving> serving = new TreeMap<>();
            AvroRecordDeserializer<Serving> servings = deserializer(Serving.class);
            scan.read(
                    topics.serving(),
                    cut,
                    record -> TopicScan.readable(servings, record)
                            .filter(it -> owns(it.getRunId(), it.getEpoch()))
                            .ifPresent(it -> serving.put(it.getServerId(), it)));
            NavigableMap<Long, Chunks> versions = new TreeMap<>();
            ManifestChain<Chunks> chain = new ManifestChain<>(records.lineage().parent());
            AvroRecordDeserializer<PolicyVersion> manifests = deserializer(PolicyVersion.class);
            scan.read(
                    topics.policyVersions(),
                    cut,
                    record -> VersionKey.parse(record.key())
                            .filter(key -> key.equals(VersionKey.of(records.run(), key.version())))
                            .ifPresent(key -> {
                                if (record.value() == null) {
                                    chain.deleted(key.version());
                                }
                                TopicScan.readable(manifests, record)
                                        .filter(it ->
                                                owns(it.getRunId(), it.getEpoch()) && it.getVersion() == key.version())
                                        .ifPresent(it -> versions.putAll(chain.add(Link.of(it), Chunks.of(it))
                                                .versions()));
                            }));
            OptionalLong newest = chain.newest();
            OptionalLong stray = chain.settle().stream()
                    .mapToLong(ManifestChain.Refused::version)
                    .max();
            EvaluationRecordReader evaluated =
                    new EvaluationRecordReader(records.run(), records.lineage(), records.registry());
            if (cut.has(topics.evaluations())) {
                scan.read(topics.evaluations(), cut, evaluated::accept);
            }
            Evaluations evaluations = evaluated.evaluations();
            return new Examination(
                    records.run().epoch(),
                    account,
                    newest,
                    stray,
                    diagnosis(
                            scan,
                            cut,
                            account.steps().stream()
                                    .filter(step ->
                                            step.getEpoch() == records.run().epoch())
                                    .toList()),
                    new HeldOut(
                            evaluations,
                            evaluations
                                    .best()
                                    .map(best -> isKept(best.getVersion(), versions, cut))
                                    .orElse(true)),
                    new Examination.Observed(List.copyOf(serving.values()), lags, alarms, clock.millis()));
        }
    }

    /** Start of a version's weights on the log. */
    private record Chunks(@Nullable Long anchor, boolean inStore, int partition, long firstOffset) {
        static Chunks of(PolicyVersion manifest) {
            TensorLocation weights = manifest.getWeights();
            return new Chunks(
                    weights.getAnchorVersion(),
                    weights.getUri() != null,
                    weights.getPartition(),
                    weights.getFirstOffset());
        }
    }

    /** True if the log reaches back to the version's anchor; stored versions and those of older epochs count as kept. */
    private boolean isKept(long version, Map<Long, Chunks> versions, ConsistentCut cut) {
        return Optional.ofNullable(versions.get(version))
                .map(of -> of.anchor() == null ? of : versions.get(of.anchor()))
                .filter(anchor -> !anchor.inStore())
                .map(anchor -> {
                    TopicPartition partition = new TopicPartition(topics.weights(), anchor.partition());
                    return cut.has(partition) && cut.of(partition).begin() <= anchor.firstOffset();
                })
                .orElse(true);
    }

    private boolean owns(String runId, int epoch) {
        return records.run().owns(runId, epoch);
    }

    private <T extends SpecificRecord> AvroRecordDeserializer<T> deserializer(Class<T> type) {
        return AvroSerde.of(type, records.registry()).deserializer();
    }

    private Optional<Diagnosis> diagnosis(TopicScan scan, ConsistentCut cut, List<TrainingStep> steps) {
        Deque<LearnerBatch> last = new ArrayDeque<>();
        Set<Long> seen = new HashSet<>(); // one that is there once more is a copy
        RefusedPlaces refused = RefusedPlaces.read(scan, cut, topics.deadLetters(), Set.of(topics.batches()));
        TopicPartition partition = cut.partitions(topics.batches()).get(0);
        // a batch and the mark that ends its transaction take two offsets, or a few more
        long from = Math.max(cut.of(partition).begin(), cut.of(partition).end() - 4L * BATCHES);
        AvroRecordDeserializer<LearnerBatch> batches = deserializer(LearnerBatch.class);
        scan.readWhile(Map.of(partition, from), cut, record -> {
            TopicScan.readable(batches, record)
                    .filter(it ->
                            !refused.has(record) && owns(it.getRunId(), it.getEpoch()) && seen.add(it.getBatchId()))
                    .ifPresent(last::addLast);
            if (last.size() > BATCHES) {
                last.removeFirst();
            }
            return true;
        });
        Map<Place, Trajectory> trajectories = trajectories(scan, cut, last);
        Map<Long, TrainingStep> stepOf = new HashMap<>();
        steps.forEach(step -> stepOf.put(step.getBatchId(), step));
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        long first = last.isEmpty() ? Long.MAX_VALUE : last.peekFirst().getBatchId();
        steps.stream()
                .filter(step -> step.getBatchId() < first)
                .forEach(step -> course.add(Optional.empty(), StepDiagnostics.facts(step)));
        CorrectionInForce inForce = CorrectionInForce.NONE;
        for (LearnerBatch batch : last) {
            Optional<TrainingStep> step = Optional.ofNullable(stepOf.get(batch.getBatchId()));
            int[] members = IntStream.range(0, batch.getEntries().size())
                    .filter(i ->
                            trajectories.containsKey(Place.of(batch.getEntries().get(i))))
                    .toArray();
            List<Trajectory> there = Arrays.stream(members)
                    .mapToObj(i -> Objects.requireNonNull(
                            trajectories.get(Place.of(batch.getEntries().get(i)))))
                    .toList();
            StageFacts facts = RecordedFacts.of(batch, there);
            List<StageReport> reports = StepDiagnostics.reports(batch, step);
            inForce = StepDiagnostics.inForce(reports);
            course.add(
                    BatchDiagnostics.of(facts)
                            .map(show -> BatchDiagnostics.leaving(
                                    show, facts, StepDiagnostics.left(facts.tokens(), batch, members, step))),
                    step.map(StepDiagnostics::facts).orElseGet(() -> StepDiagnostics.facts(facts.tokens(), reports)));
        }
        return course.diagnose(inForce);
    }

    private record Place(int partition, long offset) {
        static Place of(BatchEntry entry) {
            return new Place(entry.getPartition(), entry.getOffset());
        }
    }

    private Map<Place, Trajectory> trajectories(TopicScan scan, ConsistentCut cut, Deque<LearnerBatch> batches) {
        Map<TopicPartition, Long> from = new HashMap<>();
        Set<Place> wanted = new HashSet<>();
        for (LearnerBatch batch : batches) {
            for (BatchEntry entry : batch.getEntries()) {
                TopicPartition partition = new TopicPartition(topics.trajectories(), entry.getPartition());
                if (cut.has(partition) && cut.of(partition).holds(entry.getOffset())) {
                    from.merge(partition, entry.getOffset(), Math::min);
                    wanted.add(Place.of(entry));
                }
            }
        }
        Map<Place, Trajectory> found = new HashMap<>();
        AvroRecordDeserializer<Trajectory> deserializer = deserializer(Trajectory.class);
        scan.readWhile(from, cut, record -> {
            Place place = new Place(record.partition(), record.offset());
            if (wanted.remove(place)) {
                TopicScan.readable(deserializer, record).ifPresent(it -> found.put(place, it));
            }
            return !wanted.isEmpty();
        });
        return found;
    }
}
