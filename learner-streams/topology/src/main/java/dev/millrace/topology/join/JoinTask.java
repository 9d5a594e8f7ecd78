package dev.millrace.topology.join;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.CreditCheck;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.TrajectoryNotes;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import dev.millrace.topology.join.JoinTask.DeduplicationEntry.Announcement;
import dev.millrace.topology.state.ActivityClock;
import dev.millrace.topology.state.CompactBytes;
import dev.millrace.topology.state.RecordTimestampExtractor;
import dev.millrace.topology.task.DecisionTask;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.topology.task.TaskOutput;
import dev.millrace.topology.task.TaskRecords;
import dev.millrace.topology.task.Wait;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Joins each rollout with its partners: score, reward, reference score, teacher score, as configured.
 *
 * <p>Each rollout leaves exactly once: as a trajectory, as an outcome, or as a dead letter. {@link RolloutDecision}, {@link
 * FoundPartner}, {@link PartnerDecision} and {@link PairCheck} decide; this class applies their decisions.
 *
 * <p>A partner is checked against its rollout as soon as they meet, so that another one can replace it. Missing values are
 * checked when all partners are there, so the outcome does not depend on their order.
 */
public final class JoinTask implements DecisionTask<Arrival> {
    /** Names of the stores. */
    public static final String PENDING = "pending";

    public static final String SEEN = "seen";

    private static final String NOT_KEPT = "retention deleted its record; raise the topic's retention above ";

    private final JoinConfig config;
    private final Algorithm algorithm;
    /** Inputs of the algorithm's stages. */
    private final Set<StageInput> inputs;

    private final RunContext context;
    private final Map<JoinSide, RecordReader<Arrival>> readers;
    /** Kinds that a rollout waits for; the first missing one names the outcome. */
    private final Set<JoinSide> partners;

    private final RecordFetcher fetcher;
    private final PendingStore pending;
    private final DeduplicationStore seen;
    private final ActivityClock clock;
    private final TaskRecords records;
    private final Serializer<Trajectory> trajectories;
    /** Largest record timestamp so far. */
    private long streamTimeMs;

    private long reportedPending;
    /** Number of rollouts that have left, for any reason; the progress of a wait. */
    private long left;

    private final int partition;
    /** By kind, the arrival time of the newest record on the activity clock. */
    private final Map<JoinSide, Long> newestMs = new EnumMap<>(JoinSide.class);

    /** @param readers decode records that are fetched again, for rollouts and each configured kind of partner */
    public JoinTask(
            JoinConfig config,
            Algorithm algorithm,
            RunContext context,
            Map<JoinSide, RecordReader<Arrival>> readers,
            int partition,
            Function<String, KeyValueStore<Bytes, byte[]>> stores,
            Consumer<TaskOutput> sink) {
        this.config = config;
        this.algorithm = algorithm;
        this.inputs = algorithm.inputs();
        this.context = context;
        this.readers = readers;
        this.partition = partition;
        this.partners = config.partners();
        this.fetcher = context.fetchers().get();
        this.pending = new PendingStore(stores.apply(PENDING), this::readAgain, config.payloadCacheBytes());
        this.seen = new DeduplicationStore(stores.apply(SEEN), config.dedupeRetentionMs(), config.dedupeGroups());
        this.clock = new ActivityClock(config.maxGapMs(), Math.max(pending.newestSinceMs(), seen.newestTouchedMs()));
        this.records = new TaskRecords(context, "join", sink);
        this.trajectories = AvroSerde.of(Trajectory.class, context.registry()).serializer();
        reportPending();
    }

    @Override
    public void take(Arrival arrival, long timestampMs) {
        streamTimeMs = Math.max(streamTimeMs, timestampMs);
        clock.record(timestampMs);
        expire(streamTimeMs);
        newestMs.put(arrival.kind(), clock.nowMs());
        if (arrival instanceof RolloutArrival rollout) {
            take(rollout);
        } else {
            take((PartnerArrival) arrival);
        }
        reportPending();
    }

    @Override
    public boolean idle(long countedMs, long wallClockMs) {
        clock.idle(countedMs);
        expire(wallClockMs);
        reportPending();
        return false; // every expiry makes a record
    }

    @Override
    public long nowMs() {
        return clock.nowMs();
    }

    private void take(RolloutArrival rollout) {
        DeduplicationEntry group = seen.get(rollout.name().groupId());
        Announcement announced = Announcement.of(rollout.rollout());
        switch (RolloutDecision.of(rollout, announced, group)) {
            case DUPLICATE ->
                leave(OutcomeReason.DUPLICATE, rollout, streamTimeMs, "duplicate of a rollout with the same id");
            case REFUSE_SIBLING ->
                refuse(
                        rollout,
                        Refusal.of(
                                RefusalReason.SIBLINGS,
                                "group_id",
                                "siblings must agree: the group's first rollout has " + group.announced()
                                        + ", this one " + announced));
            case TAKE -> {
                joinPending(rollout, group);
                group.addRollout(rollout.name().sampleIndex(), announced);
                seen.put(rollout.name().groupId(), group, clock.nowMs());
            }
        }
    }

    /** Joins a rollout with the partners that arrived before it; it leaves or waits for the rest. */
    private void joinPending(RolloutArrival rollout, DeduplicationEntry group) {
        PendingJoin pendingJoin = new PendingJoin(rollout);
        Optional<JoinSide> left = Optional.empty();
        boolean complete = true;
        for (JoinSide kind : partners) {
            Optional<PendingRecord> waiting = pending.find(kind, rollout.name().rolloutId());
            boolean here = switch (FoundPartner.of(kind, rollout, group, waiting)) {
                case WAITS -> join(pendingJoin, waiting.get(), group);
                case OF_ANOTHER_RECORD -> {
                    dropPartner(
                            waiting.get(),
                            group,
                            rollout,
                            "it references the record at offset "
                                    + waiting.get().aboutOffset() + "; the accepted rollout is at " + rollout.offset());
                    yield false;
                }
                case HAS_LEFT -> {
                    left = left.or(() -> Optional.of(kind));
                    yield false;
                }
                case NOT_YET -> {
                    group.forgetPartner(
                            kind, rollout.name().sampleIndex()); // the partner of a redriven rollout's first record
                    yield false;
                }
            };
            complete &= here;
        }
        if (left.isPresent()) {
            dropPartners(rollout.name().rolloutId());
            leave(
                    left.get().missing(),
                    rollout,
                    streamTimeMs,
                    "its " + left.get().noun() + " was received before and already dropped");
        } else if (complete) {
            dropPartners(rollout.name().rolloutId());
            complete(pendingJoin);
        } else {
            pending.add(rollout, clock.nowMs());
        }
    }

    /** Adds a waiting partner to the join; false if it was dropped. */
    private boolean join(PendingJoin pendingJoin, PendingRecord waiting, DeduplicationEntry group) {
        RolloutArrival rollout = pendingJoin.rollout();
        Optional<Arrival> payload = pending.payload(waiting);
        if (payload.isEmpty()) {
            dropPartner(waiting, group, rollout, NOT_KEPT + "orphan_after_ms");
            return false;
        }
        PartnerArrival partner = (PartnerArrival) payload.get();
        if (!fits(rollout, partner)) {
            pending.remove(waiting);
            group.forgetPartner(waiting.kind(), rollout.name().sampleIndex());
            return false;
        }
        pendingJoin.add(partner);
        return true;
    }

    private void take(PartnerArrival partner) {
        DeduplicationEntry group = seen.get(partner.name().groupId());
        Optional<PendingRecord> rollout =
                pending.find(JoinSide.ROLLOUT, partner.name().rolloutId());
        switch (PartnerDecision.of(partner, group, rollout)) {
            case DUPLICATE -> {
                leave(
                        OutcomeReason.DUPLICATE,
                        partner,
                        streamTimeMs,
                        "its rollout has a " + partner.kind().noun() + " already");
                return;
            }
            case OF_A_REPETITION -> {
                leave(
                        OutcomeReason.DUPLICATE,
                        partner,
                        streamTimeMs,
                        "it references the record at offset " + partner.aboutOffset()
                                + "; the accepted rollout is at "
                                + rollout.get().offset());
                return;
            }
            case TOO_LATE ->
                leave(partner.kind().orphan(), partner, streamTimeMs, "its rollout was dropped before it arrived");
            case MEET -> {
                if (!joinPendingRollout(partner, rollout.get())) {
                    return;
                }
            }
            case WAIT -> pending.add(partner, clock.nowMs());
        }
        group.addPartner(partner.kind(), partner.name().sampleIndex());
        seen.put(partner.name().groupId(), group, clock.nowMs());
    }

    /**
     * Joins a partner to its waiting rollout, which leaves or continues to wait for the others; false if the partner
     * does not fit.
     */
    private boolean joinPendingRollout(PartnerArrival partner, PendingRecord waiting) {
        Optional<Arrival> payload = pending.payload(waiting);
        if (payload.isEmpty()) {
            dropPartners(waiting.rolloutId());
            pending.remove(waiting);
            leave(partner.kind().missing(), waiting, streamTimeMs, NOT_KEPT + "unscored_after_ms");
            return true;
        }
        RolloutArrival rollout = (RolloutArrival) payload.get();
        if (!fits(rollout, partner)) {
            return false;
        }
        Optional<PendingJoin> pendingJoin = gather(rollout, partner);
        if (pendingJoin.isPresent()) {
            dropPartners(waiting.rolloutId());
            pending.remove(waiting);
            complete(pendingJoin.get());
        } else {
            pending.add(partner, clock.nowMs());
        }
        return true;
    }

    /** Returns the rollout with all its partners after the last one has arrived; empty if one is still missing. */
    private Optional<PendingJoin> gather(RolloutArrival rollout, PartnerArrival last) {
        PendingJoin pendingJoin = new PendingJoin(rollout);
        for (JoinSide kind : partners) {
            if (kind != last.kind()) {
                Optional<PendingRecord> waiting =
                        pending.find(kind, rollout.name().rolloutId());
                if (waiting.isEmpty()) {
                    return Optional.empty();
                }
                // the log deleted a partner that had arrived: the deadline reports it as missing
                Optional<Arrival> payload = pending.payload(waiting.get());
                if (payload.isEmpty()) {
                    return Optional.empty();
                }
                pendingJoin.add((PartnerArrival) payload.get());
            }
        }
        pendingJoin.add(last);
        return Optional.of(pendingJoin);
    }

    private boolean fits(RolloutArrival rollout, PartnerArrival partner) {
        try {
            PairCheck.requireFit(rollout.rollout(), partner);
            return true;
        } catch (RefusedException e) {
            refuse(partner, e.refusal());
            return false;
        }
    }

    /** Emits the trajectory of a complete join, or the outcome if a partner lacks its values. */
    private void complete(PendingJoin join) {
        left++;
        for (PartnerArrival partner : join.partners()) {
            String unavailable = partner.unavailable();
            if (unavailable != null && !canProceedWithout(partner, join)) {
                leave(
                        partner.kind() == JoinSide.REWARD
                                ? OutcomeReason.REWARD_UNAVAILABLE
                                : OutcomeReason.VERSION_UNAVAILABLE,
                        join.rollout(),
                        streamTimeMs,
                        unavailable);
                return;
            }
        }
        if (join.isWithoutVerdict()) {
            leave(OutcomeReason.UNFINISHED, join.rollout(), streamTimeMs, join.unfinished());
            return;
        }
        Trajectory trajectory = join.trajectory(context.run(), inputs, this::at);
        Optional<Refusal> twoCritics = PendingJoin.twoCritics(trajectory);
        if (twoCritics.isPresent()) {
            refuse(join.rollout(), twoCritics.get());
            return;
        }
        Optional<StageInput> missing = TrajectoryNotes.of(trajectory, inputs).missing();
        if (missing.isPresent()) {
            refuse(join.rollout(), PendingJoin.missing(missing.get()));
            return;
        }
        String topic = context.topics().trajectories();
        byte[] bytes = trajectories.serialize(topic, trajectory);
        if (bytes.length > context.maxValueBytes()) {
            refuse(
                    join.rollout(),
                    Refusal.of(
                            RefusalReason.TOO_LARGE,
                            "response_tokens",
                            "its trajectory would take " + bytes.length + " bytes, a record may take "
                                    + context.maxValueBytes()
                                    + "; raise max_record_bytes and the topic's max.message.bytes, or lower max_tokens"));
            return;
        }
        context.meters().joined();
        records.write(
                topic,
                join.rollout().name().groupId(),
                bytes,
                RecordTimestampExtractor.header(join.completeMs())); // the latest of their timestamps
    }

    /** Whether a score lacks only its old log-probs, and the configuration continues without them. */
    private boolean canProceedWithout(PartnerArrival partner, PendingJoin join) {
        return partner.kind() == JoinSide.SCORE
                && algorithm.missingOldLogProbs().goesOn()
                && join.scored(PolicyRole.PROXIMAL).isPresent();
    }

    private LogCoordinates at(Arrival arrival) {
        return at(arrival.kind(), arrival.offset());
    }

    private LogCoordinates at(JoinSide kind, long offset) {
        return new LogCoordinates(kind.topic(context.topics()), partition, offset);
    }

    private void leave(OutcomeReason reason, Arrival arrival, long decidedAtMs, String detail) {
        leave(reason, PendingRecord.of(arrival, 0), decidedAtMs, detail);
    }

    private void leave(OutcomeReason reason, PendingRecord waiting, long decidedAtMs, String detail) {
        records.leave(
                reason,
                waiting.groupId(),
                waiting.rolloutId(),
                waiting.newestVersion(),
                at(waiting.kind(), waiting.offset()),
                decidedAtMs,
                detail);
    }

    private void refuse(Arrival arrival, Refusal refusal) {
        records.refuse(arrival.raw(), at(arrival), arrival.name().rolloutId(), refusal);
    }

    /** Fetches waiting records of one kind again, in offset order; leaves out those that the log has deleted. */
    private List<Arrival> readAgain(JoinSide kind, List<PendingRecord> waiting) {
        TopicPartition source = new TopicPartition(kind.topic(context.topics()), partition);
        RecordReader<Arrival> reader = Objects.requireNonNull(readers.get(kind), kind::name);
        long[] offsets = waiting.stream().mapToLong(PendingRecord::offset).toArray();
        List<Arrival> arrivals = new ArrayList<>(offsets.length);
        int at = 0;
        for (ConsumerRecord<byte[], byte[]> record : fetcher.fetch(source, offsets)) {
            while (waiting.get(at).offset() != record.offset()) {
                at++;
            }
            // the timestamp of its first arrival, where an invalid one was replaced
            Record<byte[], byte[]> raw =
                    new Record<>(record.key(), record.value(), waiting.get(at).timestampMs(), record.headers());
            try {
                arrivals.add(
                        reader.read(raw, record.partition(), record.offset()).orElseThrow());
            } catch (RefusedException e) {
                throw new IllegalStateException(
                        "the record at " + source + "@" + record.offset()
                                + " was accepted on arrival and is refused now: " + e.getMessage()
                                + "; was the run's tokenizer_hash, vocabulary_size or max_group_size changed?",
                        e);
            }
        }
        return arrivals;
    }

    private void dropPartner(PendingRecord partner, DeduplicationEntry group, RolloutArrival rollout, String detail) {
        pending.remove(partner);
        group.forgetPartner(partner.kind(), rollout.name().sampleIndex());
        leave(partner.kind().orphan(), partner, streamTimeMs, detail);
    }

    /** Removes the partners of a rollout that leaves; its outcome accounts for them. */
    private void dropPartners(String rolloutId) {
        for (JoinSide kind : partners) {
            pending.find(kind, rolloutId).ifPresent(pending::remove);
        }
    }

    private void expire(long decidedAtMs) {
        overdue(JoinSide.ROLLOUT, config.unscoredAfterMs(), rollout -> {
            left++;
            List<JoinSide> missing = missing(rollout.rolloutId());
            dropPartners(rollout.rolloutId());
            JoinSide first =
                    missing.isEmpty() ? JoinSide.SCORE : missing.get(0); // none: the log lost one that was there
            leave(
                    first.missing(),
                    rollout,
                    decidedAtMs,
                    "no "
                            + missing.stream().map(JoinSide::noun).collect(Collectors.joining(" and no "))
                            + " came within "
                            + waited(config.unscoredAfterMs(), rollout));
        });
        for (JoinSide kind : partners) {
            overdue(
                    kind,
                    config.orphanAfterMs(),
                    partner -> leave(
                            kind.orphan(),
                            partner,
                            decidedAtMs,
                            "no rollout came within " + waited(config.orphanAfterMs(), partner)));
        }
        seen.forgetOlder(clock.nowMs());
    }

    private String waited(long afterMs, PendingRecord waiting) {
        return afterMs + " ms of activity: it waited " + (clock.nowMs() - waiting.sinceMs()) + " ms";
    }

    /** Drops the records of a kind that have waited too long, and reports each. */
    private void overdue(JoinSide kind, long afterMs, Consumer<PendingRecord> say) {
        Optional<PendingRecord> oldest = pending.oldest(kind);
        while (oldest.isPresent() && clock.nowMs() - oldest.get().sinceMs() >= afterMs) {
            say.accept(oldest.get());
            pending.remove(oldest.get());
            oldest = pending.oldest(kind);
        }
    }

    @Override
    public List<Wait> waits() {
        Optional<PendingRecord> oldest = pending.oldest(JoinSide.ROLLOUT);
        if (oldest.isEmpty()) {
            return List.of();
        }
        List<JoinSide> missing = missing(oldest.get().rolloutId());
        String came = missing.stream()
                .map(kind -> "the last " + kind.noun()
                        + (newestMs.containsKey(kind)
                                ? " came " + (clock.nowMs() - newestMs.get(kind)) / 1000 + " s ago"
                                : " did not arrive since this task was assigned"))
                .collect(Collectors.joining(" and "));
        return List.of(new Wait(
                "join",
                partition,
                left,
                pending.size(JoinSide.ROLLOUT) + " rollouts wait, the oldest, "
                        + oldest.get().rolloutId() + ", for "
                        + (clock.nowMs() - oldest.get().sinceMs()) / 1000 + " s for its "
                        + missing.stream().map(JoinSide::noun).collect(Collectors.joining(" and ")) + "; " + came));
    }

    private List<JoinSide> missing(String rolloutId) {
        return partners.stream()
                .filter(kind -> pending.find(kind, rolloutId).isEmpty())
                .toList();
    }

    private void reportPending() {
        context.meters().pendingRollouts(pending.size(JoinSide.ROLLOUT) - reportedPending);
        reportedPending = pending.size(JoinSide.ROLLOUT);
    }

    @Override
    public void close() {
        context.meters().pendingRollouts(-reportedPending);
        reportedPending = 0;
        fetcher.close();
    }

    /**
     * State of one partner when its rollout arrives. A pure function.
     */
    enum FoundPartner {
        /** The partner waits. */
        WAITS,
        /** A partner of another record of this rollout waits; drop it. */
        OF_ANOTHER_RECORD,
        /** The partner left without the rollout. */
        HAS_LEFT,
        /** The partner has not arrived, or belonged to the refused record of a redriven rollout. */
        NOT_YET;

        static FoundPartner of(
                JoinSide partner, RolloutArrival rollout, DeduplicationEntry group, Optional<PendingRecord> waiting) {
            if (waiting.isPresent()) {
                return waiting.get().aboutOffset() == rollout.offset() ? WAITS : OF_ANOTHER_RECORD;
            }
            boolean hasBeen = group.has(partner, rollout.name().sampleIndex());
            return hasBeen && !rollout.isRedriven() ? HAS_LEFT : NOT_YET;
        }
    }

    /** Checks whether a valid partner fits its valid rollout. A pure function. */
    static final class PairCheck {
        private PairCheck() {}

        /** @throws RefusedException naming the field that does not fit */
        static void requireFit(Rollout rollout, PartnerArrival partner) throws RefusedException {
            if (partner instanceof ScoreArrival score) {
                requireFit(rollout, score.score());
            } else if (partner instanceof RewardArrival reward) {
                requireFit(rollout, reward.reward());
            }
        }

        /** The credit must have the rollout's turns and tokens; a reward without credit fits any rollout. */
        private static void requireFit(Rollout rollout, Reward reward) throws RefusedException {
            try {
                CreditCheck.require(
                        reward.getCredit(),
                        rollout.getTurns().size(),
                        rollout.getMask().remaining(),
                        Double.MAX_VALUE);
            } catch (RefusedException e) {
                throw new RefusedException(new Refusal(
                        RefusalReason.MISFIT,
                        e.refusal().field(),
                        e.refusal().message(),
                        reward.getRunId(),
                        reward.getEpoch(),
                        reward.getRolloutId()));
            }
        }

        private static void requireFit(Rollout rollout, Score score) throws RefusedException {
            int tokens = rollout.getMask().remaining();
            for (LogProbVector vector : score.getVectors()) {
                int scored = vector.getLogProbs().remaining() / Float.BYTES;
                if (scored != tokens) {
                    throw mismatch(
                            score,
                            "vectors." + vector.getPolicy(),
                            "the rollout has " + tokens + " response tokens, the score " + scored);
                }
                if (vector.getTopLogProbs() != null) {
                    int rows = vector.getTopLogProbs().getRemainderLogProbs().remaining() / Float.BYTES;
                    if (rows != PackedMask.count(rollout.getMask())) {
                        throw mismatch(
                                score,
                                "vectors." + vector.getPolicy() + ".top_log_probs",
                                "the rollout has " + PackedMask.count(rollout.getMask())
                                        + " tokens to be trained on, the score top log-probs of " + rows);
                    }
                }
                if (vector.getTopLogProbs() != null) {
                    requireSameTokens(rollout, vector.getTopLogProbs(), score, vector.getPolicy());
                }
                if (vector.getPolicy() == PolicyRole.OLD) {
                    requireSameVersions(rollout.getVersionSpans(), vector.getVersionSpans(), tokens, score);
                }
            }
        }

        /** Distributions are compared entry by entry. */
        private static void requireSameTokens(Rollout rollout, TopLogProbs scored, Score score, PolicyRole policy)
                throws RefusedException {
            TopLogProbs named = rollout.getSamplingTrace() == null
                    ? null
                    : rollout.getSamplingTrace().getTopLogProbs();
            if (named != null
                    && (named.getK() != scored.getK() || !named.getTokenIds().equals(scored.getTokenIds()))) {
                throw mismatch(
                        score,
                        "vectors." + policy + ".top_log_probs.token_ids",
                        "the score has log-probs of other tokens than the " + named.getK()
                                + " at each position that the rollout names");
            }
        }

        private static void requireSameVersions(
                List<VersionSpan> sampled, List<VersionSpan> scored, int tokens, Score score) throws RefusedException {
            int i = 0;
            int j = 0;
            for (int t = 0;
                    t < tokens;
                    t = Math.min(sampled.get(i).getEnd(), scored.get(j).getEnd())) {
                while (sampled.get(i).getEnd() <= t) {
                    i++;
                }
                while (scored.get(j).getEnd() <= t) {
                    j++;
                }
                if (sampled.get(i).getVersion() != scored.get(j).getVersion()) {
                    throw mismatch(
                            score,
                            "vectors.OLD.version_spans",
                            "token " + t + " was sampled by version "
                                    + sampled.get(i).getVersion() + " and scored under version "
                                    + scored.get(j).getVersion());
                }
            }
        }

        private static RefusedException mismatch(Score score, String field, String sentence) {
            return new RefusedException(new Refusal(
                    RefusalReason.MISFIT, field, sentence, score.getRunId(), score.getEpoch(), score.getRolloutId()));
        }
    }

    /**
     * Decides about an arriving partner. A pure function.
     */
    enum PartnerDecision {
        /** The sample already has a partner of this kind. */
        DUPLICATE,
        /** It names a repeated record of the rollout. */
        OF_A_REPETITION,
        /** Its rollout waits. */
        MEET,
        /** Its rollout left without it. */
        TOO_LATE,
        /** Its rollout has not arrived. */
        WAIT;

        static PartnerDecision of(PartnerArrival partner, DeduplicationEntry group, Optional<PendingRecord> rollout) {
            int sample = partner.name().sampleIndex();
            if (group.has(partner.kind(), sample)) {
                return DUPLICATE;
            }
            if (rollout.isPresent()) {
                return rollout.get().offset() == partner.aboutOffset() ? MEET : OF_A_REPETITION;
            }
            return group.has(JoinSide.ROLLOUT, sample) ? TOO_LATE : WAIT;
        }
    }

    /**
     * Decides about an arriving rollout. A pure function.
     */
    enum RolloutDecision {
        /** Its group size, ordinal or prompt contradicts a sibling. */
        REFUSE_SIBLING,
        /** The sample already has a rollout. */
        DUPLICATE,
        /** It is the sample's first rollout. */
        TAKE;

        static RolloutDecision of(
                RolloutArrival rollout, DeduplicationEntry.Announcement announced, DeduplicationEntry group) {
            if (group.has(rollout.kind(), rollout.name().sampleIndex())) {
                return DUPLICATE;
            }
            return group.agreesWith(announced) ? TAKE : REFUSE_SIBLING;
        }
    }

    /**
     * The groups seen so far, for deduplication; bounded in time and in number.
     *
     * <p>About 40 bytes for a group of 8 in the store, and the same again in memory for the eviction order. Confined to one
     * task.
     */
    static final class DeduplicationStore {
        private record Entry(String groupId, long touchedMs) {}

        private final KeyValueStore<Bytes, byte[]> store;
        private final long retentionMs;
        private final int maxGroups;
        /** Each group once, in eviction order. */
        private final Deque<Entry> order = new ArrayDeque<>();

        private long newestTouchedMs;

        DeduplicationStore(KeyValueStore<Bytes, byte[]> store, long retentionMs, int maxGroups) {
            this.store = store;
            this.retentionMs = retentionMs;
            this.maxGroups = maxGroups;
            List<Entry> found = new ArrayList<>();
            try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<Bytes, byte[]> entry = all.next();
                    found.add(new Entry(
                            new String(entry.key.get(), StandardCharsets.UTF_8),
                            DeduplicationEntry.fromBytes(entry.value).touchedMs()));
                }
            }
            found.sort(Comparator.comparingLong(Entry::touchedMs).thenComparing(Entry::groupId));
            for (Entry entry : found) {
                order.add(entry);
                newestTouchedMs = entry.touchedMs();
            }
        }

        /** Newest time of all groups; 0 if empty. */
        long newestTouchedMs() {
            return newestTouchedMs;
        }

        /** The entry of a group; empty for an unknown one. */
        DeduplicationEntry get(String groupId) {
            byte[] value = store.get(key(groupId));
            return value == null ? new DeduplicationEntry() : DeduplicationEntry.fromBytes(value);
        }

        /** Stores the current state of a group. */
        void put(String groupId, DeduplicationEntry memory, long nowMs) {
            if (memory.isNew()) {
                order.addLast(new Entry(groupId, nowMs));
            }
            memory.touch(nowMs);
            newestTouchedMs = Math.max(newestTouchedMs, nowMs);
            store.put(key(groupId), memory.toBytes());
            while (order.size() > maxGroups) {
                store.delete(key(order.removeFirst().groupId()));
            }
        }

        /** Evicts groups without a record for the retention time. */
        void forgetOlder(long nowMs) {
            while (!order.isEmpty() && order.peekFirst().touchedMs() + retentionMs <= nowMs) {
                Entry oldest = order.removeFirst();
                long touchedMs = get(oldest.groupId()).touchedMs();
                if (touchedMs + retentionMs <= nowMs) {
                    store.delete(key(oldest.groupId()));
                } else {
                    order.addLast(new Entry(oldest.groupId(), touchedMs));
                }
            }
        }

        private static Bytes key(String groupId) {
            return Bytes.wrap(groupId.getBytes(StandardCharsets.UTF_8));
        }
    }

    /**
     * One group of the deduplication store: the fields that its rollouts share, and which samples have arrived.
     *
     * <p>Each rollout and partner sets one bit, which stays after the join. Mutable, confined to one task.
     */
    static final class DeduplicationEntry {
        private static final byte FORMAT = 2;
        private static final long UNKNOWN = -1;

        private Announcement announced = new Announcement((int) UNKNOWN, UNKNOWN, 0);
        private long touchedMs = UNKNOWN;
        /** By kind: the samples that have arrived. */
        private final BitSet[] been = new BitSet[JoinSide.values().length];

        DeduplicationEntry() {
            Arrays.setAll(been, kind -> new BitSet());
        }

        /**
         * The fields that all rollouts of a group share. Prompts of an agent may differ, such as by the time of day: their hash
         * is 0.
         */
        record Announcement(int groupSize, long ordinal, int promptHash) {

            static Announcement of(Rollout rollout) {
                if (rollout.getSampler() != null && rollout.getSampler().getAgent() != null) {
                    return new Announcement(rollout.getGroupSize(), rollout.getOrdinal(), 0);
                }
                CRC32 prompt = new CRC32();
                prompt.update(rollout.getPromptTokens().duplicate());
                return new Announcement(rollout.getGroupSize(), rollout.getOrdinal(), (int) prompt.getValue());
            }

            @Override
            public String toString() {
                return "group_size " + groupSize + ", ordinal " + ordinal + ", prompt hash " + promptHash;
            }
        }

        /** True unless an earlier rollout of the group contradicts. */
        boolean agreesWith(Announcement other) {
            return announced.groupSize() == UNKNOWN || announced.equals(other);
        }

        Announcement announced() {
            return announced;
        }

        /** True if a record of this kind has arrived for a sample. */
        boolean has(JoinSide kind, int sample) {
            return been[kind.ordinal()].get(sample);
        }

        void addRollout(int sample, Announcement its) {
            announced = its;
            been[JoinSide.ROLLOUT.ordinal()].set(sample);
        }

        void addPartner(JoinSide kind, int sample) {
            been[kind.ordinal()].set(sample);
        }

        /** Forgets a dropped partner, so that another may arrive. */
        void forgetPartner(JoinSide kind, int sample) {
            been[kind.ordinal()].clear(sample);
        }

        long touchedMs() {
            return touchedMs;
        }

        /** True until it is stored. */
        boolean isNew() {
            return touchedMs == UNKNOWN;
        }

        void touch(long nowMs) {
            touchedMs = nowMs;
        }

        byte[] toBytes() {
            int kinds = been.length;
            while (kinds > 0 && been[kinds - 1].isEmpty()) {
                kinds--;
            }
            CompactBytes.Writer writer = new CompactBytes.Writer(FORMAT)
                    .number(announced.groupSize())
                    .number(announced.ordinal())
                    .number(announced.promptHash())
                    .number(touchedMs)
                    .number(kinds);
            for (int kind = 0; kind < kinds; kind++) {
                writer.bytes(been[kind].toByteArray());
            }
            return writer.toByteArray();
        }

        static DeduplicationEntry fromBytes(byte[] value) {
            CompactBytes.Reader reader = new CompactBytes.Reader(value, FORMAT, JoinTask.SEEN);
            DeduplicationEntry memory = new DeduplicationEntry();
            memory.announced = new Announcement((int) reader.number(), reader.number(), (int) reader.number());
            memory.touchedMs = reader.number();
            int kinds = (int) reader.number();
            for (int kind = 0; kind < kinds; kind++) {
                memory.been[kind] = BitSet.valueOf(reader.bytes());
            }
            return memory;
        }
    }
}
