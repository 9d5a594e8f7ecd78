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
import dev.millrace.topology.task.DecisionSink;
import dev.millrace.topology.task.DecisionTask;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Brings every rollout together with its score, or says why it cannot.
 *
 * <p>Each rollout that arrives leaves exactly once: as a trajectory, as an outcome, or as a dead letter. The decisions
 * are {@link RolloutDecision}, {@link ScoreDecision} and {@link PairCheck}; this carries them out.
 */
final class JoinTask implements DecisionTask<Arrival> {
    static final String PENDING = "pending";
    static final String SEEN = "seen";
    private static final String NOT_KEPT = "its record is no longer kept by the log; raise the topic's retention above ";

    private final JoinSettings settings;
    private final JoinConfig config;
    private final TrajectoryMaker maker;

    private final RecordFetcher fetcher;
    private final PendingStore pending;
    private final SeenGroups seen;
    private final ActivityClock clock;
    private final JoinOutput out;
    /** The newest time that a record has shown. */
    private long streamTimeMs;
    private long reportedPending;

    JoinTask(JoinSettings settings, int partition, Function<String, KeyValueStore<Bytes, byte[]>> stores, DecisionSink sink) {
        this.settings = settings;
        this.config = settings.config();
        this.maker = new TrajectoryMaker(settings.run(), settings.weighting());
        this.fetcher = settings.fetchers().get();
        this.pending = new PendingStore(stores.apply(PENDING), new LogPayloads(fetcher,
            Map.of(Kind.ROLLOUT, new TopicPartition(settings.topics().rollouts(), partition),
                Kind.SCORE, new TopicPartition(settings.topics().scores(), partition)),
            Map.of(Kind.ROLLOUT, settings.rollouts(), Kind.SCORE, settings.scores())), config.payloadCacheBytes());
        this.seen = new SeenGroups(stores.apply(SEEN), config.dedupeRetentionMs(), config.dedupeGroups());
        this.clock = new ActivityClock(config.maxGapMs(), Math.max(pending.newestSinceMs(), seen.newestTouchedMs()));
        this.out = new JoinOutput(sink, settings, partition);
        reportPending();
    }

    @Override
    public void take(Arrival arrival, long timestampMs) {
        streamTimeMs = Math.max(streamTimeMs, timestampMs);
        clock.record(timestampMs);
        expire(streamTimeMs);
        if (arrival instanceof RolloutArrival rollout) {
            take(rollout);
        } else {
            take((ScoreArrival) arrival);
        }
        reportPending();
    }

    @Override
    public boolean idle(long countedMs, long wallClockMs) {
        clock.idle(countedMs);
        expire(wallClockMs);
        reportPending();
        return false; // whatever expires makes a record
    }

    @Override
    public long nowMs() {
        return clock.nowMs();
    }

    private void take(RolloutArrival rollout) {
        GroupMemory group = seen.recall(rollout.name().groupId());
        Optional<Waiting> score = pending.find(Kind.SCORE, rollout.name().rolloutId());
        Announcement announced = Announcement.of(rollout.rollout());
        switch (RolloutDecision.of(rollout, announced, group, score)) {
            case DUPLICATE -> {
                out.leave(OutcomeReason.DUPLICATE, rollout, streamTimeMs, "a rollout of this name has been there before");
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
            case LEAVE_UNSCORED -> out.leave(OutcomeReason.UNSCORED, rollout, streamTimeMs, "its score came before it and left already");
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
                out.leave(OutcomeReason.DUPLICATE, score, streamTimeMs, "its rollout has a score already");
                return;
            }
            case OF_A_REPETITION -> {
                out.leave(OutcomeReason.DUPLICATE, score, streamTimeMs, "it scores the record at offset " + score.scoredOffset()
                    + "; the rollout that was taken lies at " + rollout.get().offset());
                return;
            }
            case TOO_LATE -> out.leave(OutcomeReason.ORPHAN_SCORE, score, streamTimeMs, "its rollout left before it came");
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
            out.leave(OutcomeReason.UNSCORED, waiting, streamTimeMs, NOT_KEPT + "unscored_after_ms");
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
            out.leave(OutcomeReason.VERSION_UNAVAILABLE, rollout, streamTimeMs, score.score().getUnavailable());
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
        out.leave(OutcomeReason.ORPHAN_SCORE, score, streamTimeMs, detail);
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
