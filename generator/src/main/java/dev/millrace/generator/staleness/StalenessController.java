package dev.millrace.generator.staleness;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.AdmissionCounts;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role admission: enforces eta by releasing prompts only while {@link StalenessCapacity} has room.
 *
 * <p>Requests follow the order of their ordinals. A request is a function of the task and its ordinal; one that resamples a
 * group takes the prompt of its first request. A run has one admission: a second one fences the first, which then fails.
 * After a restart or a failed transaction it resumes from the last commit.
 *
 * <p>Registers {@link AdmissionMeters}.
 */
public final class StalenessController implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StalenessController.class);
    private static final Duration POLL = Duration.ofMillis(5);
    private static final int MAX_PROMPTS_PER_TRANSACTION = 1000;
    /** Commits settled samples after this time even if no prompt is released. */
    private static final Duration KEEP_AFTER = Duration.ofSeconds(1);

    private static final String RESAMPLE = "resample";
    /** Outcomes that replacement samples are likely to meet too. */
    private static final Set<String> FAILED = Set.of("unfinished", "stage-failed");
    /** Outcomes of groups with equal rewards. */
    private static final Set<String> ALIKE = Set.of("zero-variance", RESAMPLE);

    private final LogConnection connection;
    private final StalenessControllerConfig config;
    private final PromptDataset prompts;
    private final PromptRequests requests;
    private final Clock clock;
    private final Pulse pulse;
    private final PolicyFeed feed;
    private final StalenessCapacity gate;
    private final ControllerLog log;
    private final SampleEvents events;
    private final RefusalPause refusals;
    private final GeneratorWatch generators;
    private final LostSamples lost;
    private volatile boolean stopped;
    private ReleasedSamples samples = new ReleasedSamples();
    private long alikeSinceVersion;
    private long writtenAt = System.nanoTime();
    private final AdmissionMeters meters;

    /**
     * @param task source of the prompts
     * @param feed read for manifests only; not closed
     */
    public StalenessController(
            LogConnection connection,
            PolicyFeed feed,
            Task task,
            StalenessControllerConfig config,
            MeterRegistry registry,
            Clock clock) {
        this(connection, feed, task, config, false, registry, clock);
    }

    /**
     * @param task source of the prompts
     * @param feed read for manifests only; not closed
     * @param recordsRouting whether generators record the experts of each token
     */
    public StalenessController(
            LogConnection connection,
            PolicyFeed feed,
            Task task,
            StalenessControllerConfig config,
            boolean recordsRouting,
            MeterRegistry registry,
            Clock clock) {
        this.connection = connection;
        this.feed = feed;
        this.config = config;
        this.prompts = task.prompts();
        this.clock = clock;
        this.requests = new PromptRequests(connection.run(), task, config.sampling(), recordsRouting);
        this.gate = new StalenessCapacity(config.eta(), config.batchSequences(), config.groupSize());
        this.pulse = connection.alarms().begin("admission");
        this.log = new ControllerLog(connection);
        this.events = new SampleEvents(connection, config);
        this.refusals = new RefusalPause(
                (long) config.deadLetterLimitBatches() * config.batchSequences(), config.batchSequences());
        this.generators = new GeneratorWatch(connection, config.quarantine(), clock);
        this.meters = new AdmissionMeters(registry);
        this.lost = new LostSamples(connection, connection.limit(config.releaseAgainAfterMs()), meters.lostOnLog());
    }

    /**
     * Releases prompts until {@link #stop()}.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws dev.millrace.log.transaction.TakenOverException if another admission has taken over
     * @throws dev.millrace.log.PatienceOverException if the log was away for too long
     * @throws IllegalStateException if the policy learns nothing from its prompts any more
     */
    public void run() {
        try {
            config.sampling().notice().ifPresent(notice -> LOG.warn("admission.sampling: {}", notice));
            Optional<PolicyVersion> first =
                    feed.awaitFirst(connection.limit(config.firstVersionTimeoutMs()), () -> stopped);
            if (first.isEmpty()) {
                return;
            }
            pulse.turn();
            PolicyVersion newest = first.get();
            if (!goesOnWith(log.open(2 * gate.room(), () -> stopped), newest)) {
                return;
            }
            LOG.info(
                    "admission continues with request {}: {} samples in flight; of this epoch {} were released, {} lost, {} consumed",
                    samples.nextOrdinal(),
                    samples.underWay(),
                    samples.released(),
                    samples.lost(),
                    samples.consumed());
            while (!stopped) {
                pulse.turn(Optional.empty());
                for (ConsumerRecord<byte[], byte[]> record : log.poll(POLL)) {
                    events.in(record).ifPresent(this::apply);
                    events.blame(record)
                            .ifPresent(blame -> generators.refused(blame.generatorId(), blame.of(), blame.reason()));
                    events.compared(record).forEach(generators::compared);
                }
                newest = follow(newest);
                if (generators.followLifts()) {
                    refusals.progress();
                }
                lost.look(samples, newest.getVersion(), log::hasRead, System.nanoTime());
                if (!released(newest)) {
                    return;
                }
                show();
            }
        } catch (WakeupException e) {
            if (!stopped) {
                throw e;
            }
        }
    }

    /** Resumes from the recorded state; false if stopped before it was found. */
    private boolean goesOnWith(Optional<ReleasedSamples> found, PolicyVersion newest) {
        found.ifPresent(place -> {
            samples = place;
            generators.begin();
            lost.begin(log.rolloutFloor());
            consumed(newest);
            show();
        });
        return found.isPresent();
    }

    /** Releases prompts; if the transaction fails, drops uncommitted state and reads it again. False if stopped. */
    private boolean released(PolicyVersion newest) {
        try {
            release(newest.getVersion());
            return true;
        } catch (KafkaException e) {
            return goesOnWith(log.reopen(e, 2 * gate.room(), () -> stopped), newest);
        }
    }

    private void show() {
        meters.show(samples, generators.size());
    }

    /** Skips a new epoch's first version: its batch belongs to the older epoch. */
    private void consumed(PolicyVersion version) {
        if (version.getParentEpoch() == null) {
            samples.consumedThrough(version.getBatchId());
        }
    }

    private void apply(SampleEvent event) {
        if (event instanceof SampleEvent.Left left) {
            if (samples.left(left.sample())) {
                countAlike(left);
                if (FAILED.contains(left.reason())) {
                    refusals.refused(1, left.reason() + ": " + left.sample().groupId());
                }
            }
        } else if (event instanceof SampleEvent.Refused refused) {
            if (samples.refused(refused.sample())) {
                refusals.refused(1, refused.reason());
            }
        } else if (event instanceof SampleEvent.Quarantined quarantined) {
            samples.quarantined(quarantined.sample());
        } else if (event instanceof SampleEvent.RequestRefused refused) {
            refusals.refused(samples.requestRefused(refused.groupId()), refused.reason());
        } else if (event instanceof SampleEvent.Redriven redriven) {
            samples.redriven(redriven.sample());
        } else if (event instanceof SampleEvent.RequestRedriven redriven) {
            samples.requestRedriven(redriven.groupId());
        } else if (event instanceof SampleEvent.Batched batch) {
            samples.batched(batch);
        } else if (event instanceof SampleEvent.Starved starved) {
            samples.starved(starved.batchId());
        } else {
            samples.countUnknown();
        }
    }

    private void countAlike(SampleEvent.Left left) {
        if (!ALIKE.contains(left.reason())) {
            return;
        }
        alikeSinceVersion++;
        if (alikeSinceVersion > (long) config.zeroVarianceLimitBatches() * config.batchSequences()) {
            throw new IllegalStateException(
                    alikeSinceVersion + " samples were dropped because their groups had equal rewards while no new"
                            + " policy version appeared, more than the " + config.zeroVarianceLimitBatches()
                            + " batches of zero_variance_limit_batches; the policy learns nothing from these"
                            + " prompts: end the run,"
                            + " change the task, or set topology.groups.zero_variance=keep");
        }
        if (left.reason().equals(RESAMPLE)) {
            events.again(left.sample().groupId()).filter(samples::addResample).ifPresent(added -> meters.resampled());
        }
    }

    private PolicyVersion follow(PolicyVersion known) {
        PolicyVersion newest = feed.newest().orElse(known);
        if (newest.getVersion() != known.getVersion()) {
            consumed(newest);
            refusals.progress();
            generators.progress();
            alikeSinceVersion = 0;
        }
        return newest;
    }

    private void release(long admittedVersion) {
        samples.takeHard().stream().filter(samples::addResample).forEach(added -> meters.resampled());
        List<ControllerLog.Outgoing> outgoing = new ArrayList<>(again(admittedVersion));
        long groups = refusals.mayRelease(System.nanoTime())
                ? Math.min(MAX_PROMPTS_PER_TRANSACTION, gate.releasableGroups(samples.underWay()))
                : 0;
        long next = samples.nextOrdinal();
        for (long ordinal = next; ordinal < next + groups; ordinal++) {
            RequestName name = nameOf(ordinal);
            PromptRequest request = request(name, config.groupSize(), admittedVersion);
            outgoing.add(new ControllerLog.Outgoing(request, null));
            samples.released(
                    new AdmittedGroup(name.groupId(), config.groupSize(), admittedVersion, request.getReleasedAtMs()),
                    ordinal);
        }
        boolean isLongAgo = System.nanoTime() - writtenAt > KEEP_AFTER.toNanos();
        if (!outgoing.isEmpty() || !generators.unwritten().isEmpty() || samples.hasChanges() && isLongAgo) {
            write(outgoing);
        }
    }

    private PromptRequest request(RequestName name, int groupSize, long admittedVersion) {
        Prompt prompt = prompts.prompt(config.taskSeed(), name.prompt());
        return requests.of(name.groupId(), name.ordinal(), prompt, groupSize, admittedVersion, clock.millis());
    }

    /** Requests for lost groups, released again under the same name on another partition. */
    private List<ControllerLog.Outgoing> again(long admittedVersion) {
        List<ControllerLog.Outgoing> outgoing = new ArrayList<>();
        while (outgoing.size() < MAX_PROMPTS_PER_TRANSACTION) {
            Optional<AdmittedGroup> due = samples.takeDue();
            if (due.isEmpty()) {
                break;
            }
            AdmittedGroup group = due.get();
            RequestName.parse(group.groupId()).ifPresent(name -> {
                PromptRequest request = request(name, group.samples(), admittedVersion);
                Integer elsewhere = group.partition() < 0
                        ? null
                        : Integer.valueOf((group.partition() + 1) % log.promptPartitions());
                outgoing.add(new ControllerLog.Outgoing(request, elsewhere));
                samples.releasedAgain(group, request.getReleasedAtMs());
            });
        }
        return outgoing;
    }

    private RequestName nameOf(long ordinal) {
        int epoch = connection.run().epoch();
        return samples.takeResample()
                .map(again -> new RequestName(epoch, ordinal, again.prompt(), again.attempt()))
                .orElseGet(() -> RequestName.first(epoch, ordinal));
    }

    /** Commits requests with the counts that admitted them. */
    private void write(List<ControllerLog.Outgoing> outgoing) {
        log.write(outgoing, samples, generators.unwritten(), lost.floor());
        generators.written();
        writtenAt = System.nanoTime();
    }

    /** Makes {@link #run()} return after the transaction it is in. Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
        log.wakeup();
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        lost.close();
        generators.close();
        log.close();
    }

    /**
     * Pauses releases after more refused or failed samples than the limit without a new policy version.
     *
     * <p>A wrong vocabulary or a broken verifier would refuse every further release too. So admission probes with one batch a
     * minute; a new version ends the pause. Confined to admission's thread.
     */
    static final class RefusalPause {
        private static final Logger LOG = LoggerFactory.getLogger(RefusalPause.class);
        private static final Duration TRY_AGAIN = Duration.ofSeconds(60);

        private final long limit;
        private final long trial;
        private long sinceVersion;
        private boolean isPaused;
        private long pausedAt;

        /**
         * @param limit samples that may be refused while no new version appears
         * @param trial samples to probe with after each pause
         */
        RefusalPause(long limit, long trial) {
            this.limit = limit;
            this.trial = trial;
        }

        void refused(long samples, String reason) {
            sinceVersion += samples;
            if (sinceVersion > limit && !isPaused) {
                isPaused = true;
                pausedAt = System.nanoTime();
                LOG.warn(
                        "{} samples were refused, unfinished or dropped with a failed batch while no new policy"
                                + " version appeared, more than the dead_letter_limit_batches: releases one batch"
                                + " of prompts every {} s until a version appears; see millrace dead-letters list"
                                + " and millrace trace; the last is {}",
                        sinceVersion,
                        TRY_AGAIN.toSeconds(),
                        reason);
            }
        }

        void progress() {
            if (isPaused) {
                LOG.info("a new policy version appeared: releases prompts as before");
            }
            sinceVersion = 0;
            isPaused = false;
        }

        boolean mayRelease(long nowNanos) {
            if (isPaused && nowNanos - pausedAt > TRY_AGAIN.toNanos()) {
                isPaused = false;
                sinceVersion = Math.max(0, limit - trial);
            }
            return !isPaused;
        }
    }

    /**
     * Meters of admission: its thread calls {@link #show}, scrapers read.
     *
     * <p>Gauges {@code millrace.admission.released.samples}, {@code .lost.samples}, {@code .settled.samples} (consumed by the learner, or
     * lost), {@code .released.again.samples}, {@code .under.way.samples} and {@code .unknown.records}, all of this epoch, and {@code
     * .quarantined.generators}; counters {@code millrace.admission.resampled} (prompts released once more) and {@code .lost.on.log}.
     */
    static final class AdmissionMeters {
        private final Counter resampled;
        private final Counter lostOnLog;
        private volatile AdmissionCounts counts = new ReleasedSamples().counts(Map.of());
        private volatile long underWay;
        private volatile int inQuarantine;

        AdmissionMeters(MeterRegistry meters) {
            gauge(meters, "released.samples", "samples released, lost ones included", AdmissionCounts::getReleased);
            gauge(meters, "lost.samples", "samples dropped before a batch", AdmissionCounts::getLost);
            gauge(
                    meters,
                    "settled.samples",
                    "samples that the learner consumed or that were lost",
                    shown -> shown.getConsumed() + shown.getLost());
            gauge(
                    meters,
                    "unknown.records",
                    "records about a sample that was never released or already settled",
                    AdmissionCounts::getUnknown);
            Gauge.builder("millrace.admission.under.way.samples", this, shown -> shown.underWay)
                    .description("samples that were released and not settled")
                    .register(meters);
            gauge(
                    meters,
                    "released.again.samples",
                    "samples that were released again under the same name",
                    AdmissionCounts::getReleasedAgain);
            Gauge.builder("millrace.admission.quarantined.generators", this, shown -> shown.inQuarantine)
                    .description("generators in quarantine")
                    .register(meters);
            this.resampled = Counter.builder("millrace.admission.resampled")
                    .description("prompts resampled because their samples had equal rewards")
                    .register(meters);
            this.lostOnLog = Counter.builder("millrace.admission.lost.on.log")
                    .description("samples released again because the log lost them")
                    .register(meters);
        }

        private void gauge(
                MeterRegistry meters, String name, String description, ToDoubleFunction<AdmissionCounts> value) {
            Gauge.builder("millrace.admission." + name, this, shown -> value.applyAsDouble(shown.counts))
                    .description(description)
                    .register(meters);
        }

        void show(ReleasedSamples samples, int generatorsInQuarantine) {
            counts = samples.counts(Map.of());
            underWay = samples.underWay();
            inQuarantine = generatorsInQuarantine;
        }

        void resampled() {
            resampled.increment();
        }

        Counter lostOnLog() {
            return lostOnLog;
        }
    }

    /**
     * Decides how many prompts may be released: as long as {@code floor((N - C - 1) / B) <= eta}.
     *
     * <p>N counts the released samples, the next group included, minus lost ones; C the samples that the learner has consumed,
     * starved batches included; B the samples of a batch. N - C samples are in flight. At most eta more batches are trained
     * before a sample that is released now, so its staleness is at most eta versions. If every batch has exactly B samples,
     * C = version * B and this is AReaL's rule {@code floor((N - 1) / B) <= version + eta} (Fu et al. 2025, arXiv 2505.24298,
     * section 5.1). Counting samples instead of versions keeps the bound for batches of other sizes.
     *
     * <p>Immutable and thread-safe.
     */
    static final class StalenessCapacity {
        private final long roomSamples;
        private final int groupSize;

        /**
         * @param eta versions a sample may be behind, at least 0
         * @param batchSamples B, at least 1
         * @param groupSize samples of one prompt, at least 1; only whole groups are released
         */
        StalenessCapacity(int eta, int batchSamples, int groupSize) {
            this.roomSamples = (eta + 1L) * batchSamples;
            this.groupSize = groupSize;
        }

        long room() {
            return roomSamples;
        }

        /**
         * Whole groups that may be released now.
         *
         * @param underWay N - C: samples released and not settled
         */
        long releasableGroups(long underWay) {
            return Math.max(0, (roomSamples - underWay) / groupSize);
        }
    }

    /**
     * Parses records of {@code outcomes}, {@code dead-letters}, {@code batches} and {@code training-log} into events of samples;
     * {@link ReleasedSamples} knows which of them are in flight.
     *
     * <p>An outcome settles one sample, except duplicates and orphan partners. A refused rollout or trajectory settles its sample,
     * a refused request all samples of its group; a redrive mark undoes that. Ignored are rollouts under a key other than their
     * group id, records of another run or epoch, and undecodable records.
     */
    static final class SampleEvents {
        private static final Logger LOG = LoggerFactory.getLogger(SampleEvents.class);
        private static final Set<String> SURPLUS =
                Set.of("duplicate", "orphan-score", "orphan-reward", "orphan-reference", "orphan-teacher");

        private final RunTopics topics;
        private final RunIdentity run;
        private final StalenessControllerConfig config;
        private final Deserializer<Outcome> outcomes;
        private final Deserializer<PromptRequest> prompts;
        private final Deserializer<Rollout> rollouts;
        private final Deserializer<LearnerBatch> batches;
        private final Deserializer<TrainingStep> steps;
        private final Deserializer<Serving> servings;

        SampleEvents(LogConnection connection, StalenessControllerConfig config) {
            this.topics = connection.topics();
            this.run = connection.run();
            this.config = config;
            this.outcomes = AvroSerde.of(Outcome.class, connection.registry()).deserializer();
            this.prompts =
                    AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
            this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
            this.batches =
                    AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
            this.steps = AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
            this.servings = AvroSerde.of(Serving.class, connection.registry()).deserializer();
        }

        /** The event of a record; empty if it has none. */
        Optional<SampleEvent> in(ConsumerRecord<byte[], byte[]> record) {
            try {
                if (record.topic().equals(topics.deadLetters())) {
                    return ofDeadLetter(record);
                }
                if (record.value() == null || record.topic().equals(topics.serving())) {
                    return Optional.empty();
                }
                if (record.topic().equals(topics.outcomes())) {
                    return ofOutcome(outcomes.deserialize(record.topic(), record.value()));
                }
                return record.topic().equals(topics.batches())
                        ? ofBatch(batches.deserialize(record.topic(), record.value()), record.offset())
                        : ofStep(steps.deserialize(record.topic(), record.value()));
            } catch (MalformedRecordException e) {
                LOG.warn(
                        "skipped unreadable record {}-{}@{}: {}",
                        record.topic(),
                        record.partition(),
                        record.offset(),
                        e.getMessage());
                return Optional.empty();
            }
        }

        private Optional<SampleEvent> ofOutcome(Outcome outcome) {
            if (!run.owns(outcome.getRunId(), outcome.getEpoch()) || SURPLUS.contains(outcome.getReason())) {
                return Optional.empty();
            }
            return Optional.of(named(outcome.getRolloutId())
                    .<SampleEvent>map(sample -> new SampleEvent.Left(sample, outcome.getReason()))
                    .orElse(new SampleEvent.Nameless()));
        }

        private Optional<SampleEvent> ofBatch(LearnerBatch batch, long offset) {
            if (!run.owns(batch.getRunId(), batch.getEpoch()) || !run.policyId().equals(batch.getPolicyId())) {
                return Optional.empty();
            }
            List<SampleName> samples = new ArrayList<>(batch.getEntries().size());
            for (BatchEntry entry : batch.getEntries()) {
                named(entry.getRolloutId()).ifPresent(samples::add);
            }
            return Optional.of(new SampleEvent.Batched(batch.getBatchId(), offset, samples, hard(batch)));
        }

        private List<ResampleRequest> hard(LearnerBatch batch) {
            if (config.resampleBelow() == 0) { // off, also for negative rewards
                return List.of();
            }
            Map<String, DoubleSummaryStatistics> rewards = new LinkedHashMap<>();
            for (BatchEntry entry : batch.getEntries()) {
                rewards.computeIfAbsent(entry.getGroupId(), group -> new DoubleSummaryStatistics())
                        .accept(entry.getReward());
            }
            return rewards.entrySet().stream()
                    .filter(group -> group.getValue().getAverage() < config.resampleBelow())
                    .flatMap(group -> again(group.getKey()).stream())
                    .toList();
        }

        /** The next request for a group's prompt; empty after {@code max_resamples}. */
        private Optional<ResampleRequest> again(String groupId) {
            return RequestName.parse(groupId)
                    .filter(name -> name.attempt() < config.maxResamples())
                    .map(name -> new ResampleRequest(name.prompt(), name.attempt() + 1));
        }

        private Optional<SampleEvent> ofStep(TrainingStep step) {
            return step.getStarved() && run.owns(step.getRunId(), step.getEpoch())
                    ? Optional.of(new SampleEvent.Starved(step.getBatchId()))
                    : Optional.empty(); // its manifest tells
        }

        private Optional<SampleEvent> ofDeadLetter(ConsumerRecord<byte[], byte[]> record) {
            if (!run.owns(
                    DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.RUN_ID),
                    DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH))) {
                return Optional.empty();
            }
            String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
            Optional<RedriveMark> redriven = RedriveMark.of(record);
            if (topics.prompts().equals(source)) {
                String groupId = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
                return redriven.isPresent()
                        ? Optional.of(new SampleEvent.RequestRedriven(groupId))
                        : ofRequest(record, groupId);
            }
            if (!topics.rollouts().equals(source) && !topics.trajectories().equals(source)) {
                return Optional
                        .empty(); // a refused score leaves its rollout unscored, and that has an outcome of its own
            }
            Optional<SampleName> sample = named(DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.ROLLOUT_ID));
            if (redriven.isPresent()) {
                return sample.map(SampleEvent.Redriven::new);
            }
            String reason = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON);
            if (sample.isEmpty() || RefusalReason.WRONG_KEY.code().equals(reason)) {
                return Optional.of(new SampleEvent.Nameless());
            }
            return Optional.of(
                    RefusalReason.QUARANTINED.code().equals(reason)
                            ? new SampleEvent.Quarantined(sample.get())
                            : new SampleEvent.Refused(sample.get(), reasonOf(record)));
        }

        /**
         * A generator that sent a refused rollout.
         *
         * @param of records that it sent since its previous refused one
         */
        record Blame(String generatorId, long of, String reason) {}

        /** The sender of a refused rollout of this run; empty for other records and unknown senders. */
        Optional<Blame> blame(ConsumerRecord<byte[], byte[]> record) {
            String of = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SENDER_RECORDS);
            if (!record.topic().equals(topics.deadLetters())
                    || record.value() == null
                    || !of.matches("\\d{1,18}")
                    || !topics.rollouts()
                            .equals(DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC))
                    || !run.owns(
                            DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.RUN_ID),
                            DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH))) {
                return Optional.empty();
            }
            try {
                return Optional.of(new Blame(
                        rollouts.deserialize(topics.rollouts(), record.value()).getGeneratorId(),
                        Long.parseLong(of),
                        reasonOf(record)));
            } catch (MalformedRecordException e) {
                return Optional.empty(); // unknown sender
            }
        }

        /** A scorer's comparisons of the generators' log-probs; empty for other records. */
        List<ComparedLogProbs> compared(ConsumerRecord<byte[], byte[]> record) {
            if (!record.topic().equals(topics.serving()) || record.value() == null) {
                return List.of();
            }
            try {
                Serving serving = servings.deserialize(record.topic(), record.value());
                return run.owns(serving.getRunId(), serving.getEpoch()) && serving.getRole() == ServerRole.SCORER
                        ? serving.getCompared()
                        : List.of();
            } catch (MalformedRecordException e) {
                return List.of(); // the reader of the serving records reports it
            }
        }

        private Optional<SampleEvent> ofRequest(ConsumerRecord<byte[], byte[]> record, String groupId) {
            PromptRequest prompt = prompts.deserialize(topics.prompts(), record.value());
            return Optional.of(
                    run.owns(prompt.getRunId(), prompt.getEpoch())
                                    && prompt.getGroupId().equals(groupId)
                            ? new SampleEvent.RequestRefused(groupId, reasonOf(record))
                            : new SampleEvent.Nameless());
        }

        /** Parses a rollout id; empty if malformed. */
        static Optional<SampleName> named(String rolloutId) {
            int slash = rolloutId.lastIndexOf('/');
            try {
                return slash < 0
                        ? Optional.empty()
                        : Optional.of(
                                SampleName.of(rolloutId, rolloutId.substring(0, slash), RolloutLimits.LARGEST_GROUP));
            } catch (RefusedException e) {
                return Optional.empty();
            }
        }

        private static String reasonOf(ConsumerRecord<byte[], byte[]> record) {
            return DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON) + ": "
                    + DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.MESSAGE);
        }
    }
}
