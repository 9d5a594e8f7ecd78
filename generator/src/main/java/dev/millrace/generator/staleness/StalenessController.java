package dev.millrace.generator.staleness;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.Task;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.WakeupException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that releases prompts, as fast as {@link StalenessCapacity} allows and no faster.
 *
 * <p>Requests are made in the order of their ordinals, each from the task and its ordinal alone; where a group was
 * rewarded alike and is to be sampled again, from the ordinal of its first request. One admission works
 * per run; a second one takes over from the first, which then fails. After a restart, and after a transaction that failed, it goes
 * on where the last one was committed.
 *
 * <p>Its meters are those of {@link AdmissionMeters}.
 */
public final class StalenessController implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StalenessController.class);
    private static final Duration POLL = Duration.ofMillis(5);
    private static final int MAX_PROMPTS_PER_TRANSACTION = 1000;
    /** What was settled is kept so long after at the latest, where nothing is released. */
    private static final Duration KEEP_AFTER = Duration.ofSeconds(1);

    private static final String RESAMPLE = "resample";
    /** Reasons that are likely to meet the samples released in place of those that left, too. */
    private static final Set<String> FAILED = Set.of("unfinished", "stage-failed");
    /** Samples that were all rewarded alike leave under these reasons. */
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
     * @param task whose prompts are released
     * @param feed stays the caller's; only its manifests are looked at
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
     * @param task as above
     * @param feed as above
     * @param recordsRouting whether rollouts are to say through which experts their tokens went
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
        this.events = new SampleEvents(connection);
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
                    "admission goes on with request {}: {} samples under way; of this epoch {} were released, {} lost, {} consumed",
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

    /** False if there is nothing to go on with, since it was stopped. */
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

    /** Where the log takes nothing, all that was not committed is forgotten, and read again. */
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

    /** A new epoch's first version repeats a batch of the older one, of which nothing is under way here. */
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
                    alikeSinceVersion + " samples left because their groups were rewarded alike while no"
                            + " new policy version appeared, more than the " + config.zeroVarianceLimitBatches()
                            + " batches of zero_variance_limit_batches; the policy learns nothing from these prompts any more: end the run,"
                            + " change the task, or set topology.groups.zero_variance=keep");
        }
        if (left.reason().equals(RESAMPLE)) {
            RequestName.parse(left.sample().groupId())
                    .filter(name -> name.attempt() < config.maxResamples())
                    .map(name -> new ResampleRequest(name.prompt(), name.attempt() + 1))
                    .filter(samples::addResample)
                    .ifPresent(added -> meters.resampled());
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

    /** Requests for groups that are to be released again under their names: to another partition than the last time. */
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

    /** What was counted goes along with what is released because of it. */
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
     * Holds releases back while nearly everything is refused or fails: more samples than the limit without a new policy version.
     *
     * <p>Whatever is wrong then, such as another vocabulary on one side or a verifier that answers garbage, releasing more only fills
     * the dead letters and the outcomes. Once a while a
     * batch's worth is released all the same, to see whether it has been mended; a new version ends the pause. Confined to
     * admission's thread.
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
         * @param trial of these, how many are forgiven after a while
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
                        "{} samples were refused, ended unfinished or left with a batch that failed while no new policy version appeared, more than the"
                                + " dead_letter_limit_batches: no prompts are released but one batch every {} s, until a version"
                                + " appears; millrace dead-letters list and millrace trace say what is wrong; the last is {}",
                        sinceVersion,
                        TRY_AGAIN.toSeconds(),
                        reason);
            }
        }

        /** A new version has appeared. */
        void progress() {
            if (isPaused) {
                LOG.info("a new policy version has appeared: prompts are released as before");
            }
            sinceVersion = 0;
            isPaused = false;
        }

        /** Whether prompts may be released now. */
        boolean mayRelease(long nowNanos) {
            if (isPaused && nowNanos - pausedAt > TRY_AGAIN.toNanos()) {
                isPaused = false;
                sinceVersion = Math.max(0, limit - trial);
            }
            return !isPaused;
        }
    }
}
