package dev.millrace.generator.staleness;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.errors.WakeupException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that releases prompts, as fast as {@link StalenessCapacity} allows and no faster.
 *
 * <p>Requests are made in the order of their ordinals, each from the task and its ordinal alone; where a group was
 * rewarded alike and is to be sampled again, from the ordinal of its first request. One admission works
 * per run; a second one takes over from the first, which then fails. After a restart it goes on where the last
 * transaction was committed.
 *
 * <p>Meters: gauges {@code millrace.admission.released.samples}, {@code millrace.admission.lost.samples} and
 * {@code millrace.admission.settled.samples} (consumed by the learner, or lost); counter
 * {@code millrace.admission.resampled} (prompts released once more).
 */
public final class StalenessController implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StalenessController.class);
    private static final Duration POLL = Duration.ofMillis(5);
    private static final int MAX_PROMPTS_PER_TRANSACTION = 1000;

    private final LogConnection connection;
    private final Task task;
    private final StalenessControllerConfig config;
    private final SamplingParameters sampling;
    private final PolicyFeed feed;
    private final Clock clock;
    private final StalenessCapacity gate;
    private final ControllerLog log;
    private final LostSamples lostSamples;
    private volatile boolean stopped;
    private final ConsumedSamples consumedSamples;
    private volatile ControllerState state = new ControllerState(0, 0, 0, 0);
    private long deadLetteredSinceVersion;
    private long alikeSinceVersion;
    private final Counter resampled;

    /**
     * @param task whose prompts are released
     * @param feed stays the caller's; only its manifests are looked at
     */
    public StalenessController(
            LogConnection connection,
            PolicyFeed feed,
            Task task,
            StalenessControllerConfig config,
            MeterRegistry meters,
            Clock clock) {
        this.connection = connection;
        this.feed = feed;
        this.task = task;
        this.config = config;
        this.sampling = samplingOf(config.sampling(), task);
        this.clock = clock;
        this.gate = new StalenessCapacity(config.eta(), config.batchSequences(), config.groupSize());
        this.log = new ControllerLog(connection);
        this.lostSamples = new LostSamples(connection);
        this.consumedSamples = new ConsumedSamples(connection);
        Gauge.builder("millrace.admission.released.samples", this, a -> a.state.released())
                .description("samples asked for, lost ones included")
                .register(meters);
        Gauge.builder("millrace.admission.lost.samples", this, a -> a.state.lost())
                .description("samples that will never reach a batch")
                .register(meters);
        Gauge.builder("millrace.admission.settled.samples", this, a -> a.state.consumed() + a.state.lost())
                .description("samples that the learner consumed or that were lost")
                .register(meters);
        this.resampled = Counter.builder("millrace.admission.resampled")
                .description("prompts released once more because their samples were rewarded alike")
                .register(meters);
    }

    private static SamplingParameters samplingOf(SamplingConfig config, Task task) {
        int maxTokens = config.maxTokens() == 0 ? task.responseTokens() : config.maxTokens();
        return SamplingParameters.newBuilder()
                .setTemperature(config.temperature())
                .setTopK(config.topK())
                .setTopP(config.topP())
                .setMaxTokens(maxTokens)
                .setSeed(config.seed())
                .setKeepSamplingMask(config.keepSamplingMask())
                .setTopLogProbs(config.topLogProbs())
                .build();
    }

    /**
     * Releases prompts until {@link #stop()}.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if the state of an earlier admission is gone, or samples are dead-lettered without end
     */
    public void run() {
        try {
            config.sampling().notice().ifPresent(notice -> LOG.warn("admission.sampling: {}", notice));
            Optional<PolicyVersion> first =
                    feed.awaitFirst(Duration.ofMillis(config.firstVersionTimeoutMs()), () -> stopped);
            if (first.isEmpty()) {
                return;
            }
            PolicyVersion newest = first.get();
            state = log.recover(newest.getRolloutsConsumed()).withConsumed(newest.getRolloutsConsumed());
            LOG.info(
                    "admission goes on with request {}: {} samples released, {} lost, {} consumed",
                    state.nextOrdinal(),
                    state.released(),
                    state.lost(),
                    state.consumed());
            while (!stopped) {
                for (ConsumerRecord<byte[], byte[]> record : log.poll(POLL)) {
                    if (consumedSamples.tells(record)) {
                        consumedSamples.in(record).ifPresent(this::consumed);
                    } else {
                        countLost(record);
                    }
                }
                newest = follow(newest);
                release(newest.getVersion());
            }
        } catch (WakeupException e) {
            if (!stopped) {
                throw e;
            }
        }
    }

    private void consumed(long samples) {
        state = state.withConsumed(samples);
    }

    private void countLost(ConsumerRecord<byte[], byte[]> record) {
        long lost = lostSamples.in(record);
        if (lost == 0) {
            return;
        }
        state = state.withLost(lost);
        if (lostSamples.isOfZeroVariance(record)) {
            countSilentlyLost(record, lost);
        }
        if (record.topic().equals(connection.topics().deadLetters())) {
            deadLetteredSinceVersion += lost;
            long limit = (long) config.deadLetterLimitBatches() * config.batchSequences();
            if (deadLetteredSinceVersion > limit) {
                throw new IllegalStateException(
                        deadLetteredSinceVersion + " samples were dead-lettered while no new policy"
                                + " version appeared, more than the " + config.deadLetterLimitBatches()
                                + " batches of dead_letter_limit_batches; the last is " + lostSamples.reasonOf(record));
            }
        }
    }

    private void countSilentlyLost(ConsumerRecord<byte[], byte[]> record, long lost) {
        alikeSinceVersion += lost;
        if (alikeSinceVersion > (long) config.zeroVarianceLimitBatches() * config.batchSequences()) {
            throw new IllegalStateException(
                    alikeSinceVersion + " samples left because their groups were rewarded alike while no"
                            + " new policy version appeared, more than the " + config.zeroVarianceLimitBatches()
                            + " batches of zero_variance_limit_batches; the policy learns nothing from these prompts any more: end the run,"
                            + " change the task, or set topology.groups.zero_variance=keep");
        }
        Optional<RequestName> again = lostSamples.toResample(record);
        if (again.isPresent() && again.get().attempt() < config.maxResamples() && state.hasRoomToSampleAgain()) {
            state = state.sampling(
                    new ResampleRequest(again.get().prompt(), again.get().attempt() + 1));
            resampled.increment();
        }
    }

    private PolicyVersion follow(PolicyVersion known) {
        PolicyVersion newest = feed.newest().orElse(known);
        if (newest.getVersion() != known.getVersion()) {
            consumed(newest.getRolloutsConsumed()); // of a trainer that does not say it in its training log
            deadLetteredSinceVersion = 0;
            alikeSinceVersion = 0;
        }
        return newest;
    }

    private void release(long admittedVersion) {
        long groups = Math.min(
                MAX_PROMPTS_PER_TRANSACTION, gate.releasableGroups(state.released(), state.lost(), state.consumed()));
        if (groups == 0) {
            return;
        }
        List<PromptRequest> prompts = new ArrayList<>((int) groups);
        for (long ordinal = state.nextOrdinal(); ordinal < state.nextOrdinal() + groups; ordinal++) {
            int place = (int) (ordinal - state.nextOrdinal());
            RequestName name = place < state.again().size()
                    ? new RequestName(
                            connection.run().epoch(),
                            ordinal,
                            state.again().get(place).prompt(),
                            state.again().get(place).attempt())
                    : RequestName.first(connection.run().epoch(), ordinal);
            prompts.add(request(name, admittedVersion));
        }
        ControllerState after = state.withReleased(groups, config.groupSize());
        log.release(prompts, after);
        state = after;
    }

    private PromptRequest request(RequestName name, long admittedVersion) {
        Prompt prompt = task.prompts().prompt(config.taskSeed(), name.prompt());
        return PromptRequest.newBuilder()
                .setRunId(connection.run().runId())
                .setEpoch(connection.run().epoch())
                .setGroupId(name.groupId())
                .setOrdinal(name.ordinal())
                .setEnvironment(task.environment().name())
                .setEnvironmentState(prompt.environmentState())
                .setPromptTokens(PackedInts.of(prompt.tokens()))
                .setSamples(config.groupSize())
                .setSampling(sampling)
                .setTokenizerHash(task.tokenizer().hash())
                .setAdmittedVersion(admittedVersion)
                .setReleasedAtMs(clock.millis())
                .build();
    }

    /** Makes {@link #run()} return after the transaction it is in. Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
        log.wakeup();
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        log.close();
    }
}
