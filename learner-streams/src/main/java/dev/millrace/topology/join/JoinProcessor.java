package dev.millrace.topology.join;

import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.deadletter.Refusal;
import dev.millrace.schemas.deadletter.RefusalReason;
import dev.millrace.schemas.deadletter.RefusedException;
import dev.millrace.topology.fetch.RecordFetcher;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import dev.millrace.topology.join.GroupMemory.Announcement;
import dev.millrace.topology.join.Waiting.Kind;
import dev.millrace.topology.outcome.OutcomeReason;
import dev.millrace.topology.state.ActivityClock;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Brings every rollout together with its score, or says why it cannot.
 *
 * <p>Each rollout that arrives leaves exactly once: as a trajectory, as an outcome, or as a dead letter. The decisions
 * are {@link RolloutDecision}, {@link ScoreDecision} and {@link PairCheck}; this carries them out.
 */
final class JoinProcessor extends ContextualProcessor<Object, Arrival, Object, Object> {
    static final String PENDING = "pending";
    static final String SEEN = "seen";
    private static final Duration TICK = Duration.ofSeconds(1);
    private static final String NOT_KEPT = "its record is no longer kept by the log; raise the topic's retention above ";

    private final JoinSettings settings;
    private final JoinConfig config;
    private final JoinNodes nodes;
    private final TrajectoryMaker maker;

    private RecordFetcher fetcher;
    private PendingStore pending;
    private SeenGroups seen;
    private ActivityClock clock;
    private JoinOutput out;
    private long reportedPending;

    JoinProcessor(JoinSettings settings, JoinNodes nodes) {
        this.settings = settings;
        this.config = settings.config();
        this.nodes = nodes;
        this.maker = new TrajectoryMaker(settings.run(), settings.weighting());
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
        super.init(context);
        int partition = context.taskId().partition();
        fetcher = settings.fetchers().get();
        pending = new PendingStore(context.getStateStore(PENDING), new LogPayloads(fetcher,
            Map.of(Kind.ROLLOUT, new TopicPartition(settings.topics().rollouts(), partition),
                Kind.SCORE, new TopicPartition(settings.topics().scores(), partition)),
            Map.of(Kind.ROLLOUT, settings.rollouts(), Kind.SCORE, settings.scores())), config.payloadCacheBytes());
        seen = new SeenGroups(context.getStateStore(SEEN), config.dedupeRetentionMs(), config.dedupeGroups());
        clock = new ActivityClock(config.maxGapMs(), Math.max(pending.newestSinceMs(), seen.newestTouchedMs()),
            context.currentSystemTimeMs());
        out = new JoinOutput(context, settings, nodes);
        reportPending();
        context.schedule(TICK, PunctuationType.WALL_CLOCK_TIME, this::tick);
    }

    @Override
    public void process(Record<Object, Arrival> record) {
        clock.record(record.timestamp());
        expire(context().currentStreamTimeMs());
        if (record.value() instanceof RolloutArrival rollout) {
            take(rollout);
        } else {
            take((ScoreArrival) record.value());
        }
        reportPending();
    }

    private void tick(long wallClockMs) {
        if (clock.tick(wallClockMs)) {
            expire(wallClockMs);
            reportPending();
        }
    }

    private void take(RolloutArrival rollout) {
        GroupMemory group = seen.recall(rollout.name().groupId());
        Optional<Waiting> score = pending.find(Kind.SCORE, rollout.name().rolloutId());
        Announcement announced = Announcement.of(rollout.rollout());
        switch (RolloutDecision.of(rollout, announced, group, score)) {
            case DUPLICATE -> {
                out.leave(OutcomeReason.DUPLICATE, rollout, "a rollout of this name has been there before");
                return;
            }
            case REFUSE_SIBLING -> {
                out.refuse(rollout, Refusal.of(RefusalReason.SIBLINGS, "group_id",
                    "siblings must agree: the group's first rollout has " + group.announced() + ", this one " + announced));
                return;
            }
            case JOIN -> joinWaitingScore(rollout, score.get(), group);
            case WAIT_AND_DROP_SCORE -> {
                dropScore(score.get(), group, rollout, "it scores the record at offset " + score.get().scoredOffset()
                    + "; the rollout that was taken lies at " + rollout.offset());
                pending.add(rollout, clock.nowMs());
            }
            case LEAVE_UNSCORED -> out.leave(OutcomeReason.UNSCORED, rollout, "its score came before it and left already");
            case WAIT -> {
                group.forgetScore(rollout.name().sampleIndex()); // of a record that was put back the first coming's score
                pending.add(rollout, clock.nowMs());
            }
        }
        group.addRollout(rollout.name().sampleIndex(), announced);
        seen.remember(rollout.name().groupId(), group, clock.nowMs());
    }

    private void take(ScoreArrival score) {
        GroupMemory group = seen.recall(score.name().groupId());
        Optional<Waiting> rollout = pending.find(Kind.ROLLOUT, score.name().rolloutId());
        switch (ScoreDecision.of(score, group, rollout)) {
            case DUPLICATE -> {
                out.leave(OutcomeReason.DUPLICATE, score, "its rollout has a score already");
                return;
            }
            case OF_A_REPETITION -> {
                out.leave(OutcomeReason.DUPLICATE, score, "it scores the record at offset " + score.scoredOffset()
                    + "; the rollout that was taken lies at " + rollout.get().offset());
                return;
            }
            case TOO_LATE -> out.leave(OutcomeReason.ORPHAN_SCORE, score, "its rollout left before it came");
            case JOIN -> {
                if (!joinWaitingRollout(score, rollout.get())) {
                    return;
                }
            }
            case WAIT -> pending.add(score, clock.nowMs());
        }
        group.addScore(score.name().sampleIndex());
        seen.remember(score.name().groupId(), group, clock.nowMs());
    }

    private void joinWaitingScore(RolloutArrival rollout, Waiting waiting, GroupMemory group) {
        Optional<Arrival> score = pending.payload(waiting);
        if (score.isEmpty()) {
            dropScore(waiting, group, rollout, NOT_KEPT + "orphan_after_ms");
            pending.add(rollout, clock.nowMs());
            return;
        }
        pending.drop(waiting);
        if (!join(rollout, (ScoreArrival) score.get())) {
            group.forgetScore(rollout.name().sampleIndex());
            pending.add(rollout, clock.nowMs());
        }
    }

    /** False if the score is refused; its rollout then goes on waiting for another. */
    private boolean joinWaitingRollout(ScoreArrival score, Waiting waiting) {
        Optional<Arrival> rollout = pending.payload(waiting);
        if (rollout.isEmpty()) {
            pending.drop(waiting);
            out.leave(OutcomeReason.UNSCORED, waiting, context().currentStreamTimeMs(), NOT_KEPT + "unscored_after_ms");
            return true;
        }
        if (!join((RolloutArrival) rollout.get(), score)) {
            return false;
        }
        pending.drop(waiting);
        return true;
    }

    /** Decides about a pair; false if the score is refused. */
    private boolean join(RolloutArrival rollout, ScoreArrival score) {
        if (score.score().getUnavailable() != null) {
            out.leave(OutcomeReason.VERSION_UNAVAILABLE, rollout, score.score().getUnavailable());
            return true;
        }
        try {
            PairCheck.requireFit(rollout.rollout(), score.score());
        } catch (RefusedException e) {
            out.refuse(score, e.refusal());
            return false;
        }
        Trajectory trajectory =
            maker.make(rollout, out.at(Kind.ROLLOUT, rollout.offset()), score, out.at(Kind.SCORE, score.offset()));
        byte[] bytes = settings.trajectories().serialize(settings.topics().trajectories(), trajectory);
        if (bytes.length > settings.maxRecordBytes()) {
            out.refuse(rollout, Refusal.of(RefusalReason.TOO_LARGE, "response_tokens",
                "its trajectory would take " + bytes.length + " bytes, a record may take " + settings.maxRecordBytes()
                    + "; raise max_record_bytes and the topic's max.message.bytes, or lower max_tokens"));
        } else {
            out.joined(rollout, bytes, Math.max(rollout.timestampMs(), score.timestampMs()));
        }
        return true;
    }

    private void dropScore(Waiting score, GroupMemory group, RolloutArrival rollout, String detail) {
        pending.drop(score);
        group.forgetScore(rollout.name().sampleIndex());
        out.leave(OutcomeReason.ORPHAN_SCORE, score, context().currentStreamTimeMs(), detail);
    }

    private void expire(long decidedAtMs) {
        expire(Kind.ROLLOUT, config.unscoredAfterMs(), OutcomeReason.UNSCORED, decidedAtMs);
        expire(Kind.SCORE, config.orphanAfterMs(), OutcomeReason.ORPHAN_SCORE, decidedAtMs);
        seen.forgetOlder(clock.nowMs());
    }

    private void expire(Kind kind, long afterMs, OutcomeReason reason, long decidedAtMs) {
        Optional<Waiting> oldest = pending.oldest(kind);
        while (oldest.isPresent() && clock.nowMs() - oldest.get().sinceMs() >= afterMs) {
            long waitedMs = clock.nowMs() - oldest.get().sinceMs();
            pending.drop(oldest.get());
            out.leave(reason, oldest.get(), decidedAtMs,
                "its partner did not come within " + afterMs + " ms of activity: it waited " + waitedMs + " ms");
            oldest = pending.oldest(kind);
        }
    }

    private void reportPending() {
        settings.meters().pendingRollouts(pending.size(Kind.ROLLOUT) - reportedPending);
        reportedPending = pending.size(Kind.ROLLOUT);
    }

    @Override
    public void close() {
        settings.meters().pendingRollouts(-reportedPending);
        reportedPending = 0;
        fetcher.close();
    }
}
