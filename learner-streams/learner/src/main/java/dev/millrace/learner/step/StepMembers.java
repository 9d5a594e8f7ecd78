package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.stages.TrajectoryNotes;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * All members of a batch laid out for a step: their response tokens packed one after the other in the batch's order,
 * and every recorded vector with one element per packed token.
 *
 * <p>Packed position p is the same token in {@link #sequences()}, whose scored tokens are the responses, and in
 * {@link #own()}. The returned arrays are shared and must not be written.
 */
final class StepMembers {
    private final TrainingBatch batch;
    private final List<Member> members;
    private SequenceBatch sequences;
    private final TokenBatch own;
    private final float[] temperatures;
    private final float[] behavior;
    private final float[] old;
    private final boolean[] withoutOld;
    private final float[] proximal;

    StepMembers(TrainingBatch batch) {
        this.batch = batch;
        this.members = batch.members();
        this.sequences = sequences(members);
        this.own = own(members, sequences);
        this.temperatures = new float[members.size()];
        for (int s = 0; s < temperatures.length; s++) {
            temperatures[s] = (float) members.get(s).trajectory().getTemperature();
        }
        this.behavior = packed(Trajectory::getBehaviorLogProbs);
        this.old = packed(Trajectory::getOldLogProbs);
        this.withoutOld = new boolean[members.size()];
        for (int s = 0; s < withoutOld.length; s++) {
            withoutOld[s] = members.get(s).trajectory().getOldLogProbs() == null;
        }
        this.proximal = packed(Trajectory::getProximalLogProbs);
    }

    private static SequenceBatch sequences(List<Member> members) {
        int[][] tokens = new int[members.size()][];
        int[] firstScored = new int[members.size()];
        @Nullable SampledSupport[] kept = new SampledSupport[members.size()];
        @Nullable RoutedExperts[] routing = new RoutedExperts[members.size()];
        for (int s = 0; s < tokens.length; s++) {
            Trajectory trajectory = members.get(s).trajectory();
            KeptSupport support = trajectory.getKeptTokens();
            if (support != null) {
                kept[s] = new SampledSupport(
                        ComparedDistribution.keptCounts(support, trajectory.getMask()),
                        PackedInts.toArray(support.getTokenIds()));
            }
            RecordedRouting recorded = trajectory.getRouting();
            if (recorded != null) {
                routing[s] = RoutedExperts.of(
                        recorded.getLayers(),
                        recorded.getExpertsPerToken(),
                        recorded.getExperts(),
                        recorded.getWeights());
            }
            firstScored[s] = PackedInts.length(trajectory.getPromptTokens());
            tokens[s] = new int[firstScored[s] + PackedInts.length(trajectory.getResponseTokens())];
            PackedInts.copyTo(trajectory.getPromptTokens(), tokens[s], 0);
            PackedInts.copyTo(trajectory.getResponseTokens(), tokens[s], firstScored[s]);
        }
        return new SequenceBatch(tokens, firstScored, kept).routed(routing);
    }

    private static TokenBatch own(List<Member> members, SequenceBatch sequences) {
        byte[] mask = new byte[sequences.scoredCount()];
        int[] offsets = new int[members.size() + 1];
        int[] groups = new int[members.size()];
        Map<String, Integer> seen = new HashMap<>();
        for (int s = 0; s < members.size(); s++) {
            PackedMask.copyTo(members.get(s).trajectory().getMask(), mask, sequences.offset(s));
            offsets[s + 1] = sequences.offset(s + 1);
            groups[s] = seen.computeIfAbsent(members.get(s).entry().getGroupId(), absent -> seen.size());
        }
        return new TokenBatch(offsets, mask, groups);
    }

    /** A recorded vector of every member; NaN for the tokens of one without it. */
    float[] packed(Function<Trajectory, ByteBuffer> vector) {
        float[] values = new float[sequences.scoredCount()];
        for (int s = 0; s < members.size(); s++) {
            ByteBuffer recorded = vector.apply(members.get(s).trajectory());
            if (recorded == null) {
                Arrays.fill(values, sequences.offset(s), sequences.offset(s + 1), Float.NaN);
            } else {
                PackedFloats.copyTo(recorded, values, sequences.offset(s));
            }
        }
        return values;
    }

    byte[] recordedMask() {
        byte[] mask = new byte[sequences.scoredCount()];
        for (int s = 0; s < members.size(); s++) {
            PackedMask.copyTo(members.get(s).mask(), mask, sequences.offset(s));
        }
        return mask;
    }

    double[] recordedAdvantages() {
        return members.stream()
                .mapToDouble(member -> member.entry().getAdvantage())
                .toArray();
    }

    /** Returns the advantages per token that the batch decided, packed; empty if no member has advantages per token. */
    Optional<float[]> recordedTokenAdvantages() {
        if (members.stream().allMatch(member -> advantagesOfTokens(member) == null)) {
            return Optional.empty();
        }
        float[] advantages = new float[sequences.scoredCount()];
        for (int s = 0; s < members.size(); s++) {
            ByteBuffer ofTokens = advantagesOfTokens(members.get(s));
            if (ofTokens == null) {
                Arrays.fill(advantages, sequences.offset(s), sequences.offset(s + 1), (float)
                        members.get(s).entry().getAdvantage());
            } else {
                PackedFloats.copyTo(ofTokens, advantages, sequences.offset(s));
            }
        }
        return Optional.of(advantages);
    }

    private static @Nullable ByteBuffer advantagesOfTokens(Member member) {
        Credit credit = member.entry().getCredit();
        return credit == null ? null : credit.getTokenLevelAdvantages();
    }

    /** What else an algorithm reads of each member. */
    List<TrajectoryNotes> notes(Set<StageInput> inputs) {
        return members.stream()
                .map(member -> TrajectoryNotes.of(member.trajectory(), inputs))
                .toList();
    }

    /** The importance weights that the batch recorded; empty where one of the entries has none. */
    Optional<float[]> recordedWeights() {
        float[] weights = new float[sequences.scoredCount()];
        for (int s = 0; s < members.size(); s++) {
            ByteBuffer recorded = members.get(s).entry().getWeights();
            if (recorded == null) {
                return Optional.empty();
            }
            PackedFloats.copyTo(recorded, weights, sequences.offset(s));
        }
        return Optional.of(weights);
    }

    List<BatchEntry> entries() {
        return members.stream().map(Member::entry).toList();
    }

    BatchEntry entry(int member) {
        return members.get(member).entry();
    }

    double[] rewards() {
        return members.stream()
                .mapToDouble(member -> member.entry().getReward())
                .toArray();
    }

    BatchVersions versions() {
        return new BatchVersions(
                own,
                members.stream()
                        .map(member -> member.trajectory().getVersionSpans().stream()
                                .map(span -> new VersionSpan(span.getVersion(), span.getStart(), span.getEnd()))
                                .toList())
                        .toList());
    }

    /** The version under which each member was scored. */
    long[] proximalVersions() {
        return members.stream()
                .mapToLong(member -> member.trajectory().getProximalVersion())
                .toArray();
    }

    /** How long before the batch was assembled each member was finished: recorded times, so that a repeated step sees the same. */
    long[] agesMs() {
        return members.stream()
                .mapToLong(member ->
                        batch.batch().getAssembledAtMs() - member.trajectory().getFinishedAtMs())
                .toArray();
    }

    /** Indices of the members whose own mask leaves something to train on. */
    IntStream trainable() {
        return IntStream.range(0, members.size()).filter(s -> own.trainedTokens(s) > 0);
    }

    /**
     * From now on the tokens go through these experts.
     *
     * @param routing one per member; null where each pass chooses its own
     */
    void replay(@Nullable RoutedExperts[] routing) {
        sequences = sequences.routed(routing);
    }

    /** Some members' sequences as a batch of their own. */
    Shard select(int[] indices) {
        return new Shard(sequences, temperatures, indices);
    }

    /** Mean tokens of a response, context included; 0 without members. */
    double meanTokens() {
        return members.isEmpty() ? 0 : (double) sequences.scoredCount() / members.size();
    }

    /** Tokens of the longest response; 0 without members. */
    int maxTokens() {
        return IntStream.range(0, members.size())
                .map(s -> sequences.offset(s + 1) - sequences.offset(s))
                .max()
                .orElse(0);
    }

    TrainingBatch batch() {
        return batch;
    }

    int count() {
        return members.size();
    }

    String rolloutId(int member) {
        return members.get(member).entry().getRolloutId();
    }

    Trajectory trajectory(int member) {
        return members.get(member).trajectory();
    }

    SequenceBatch sequences() {
        return sequences;
    }

    /** The layout under the trajectories' own masks, with groups. */
    TokenBatch own() {
        return own;
    }

    float[] behavior() {
        return behavior;
    }

    /** NaN for the members without. */
    float[] old() {
        return old;
    }

    /** One per member: whether its old log-probs are missing. */
    boolean[] withoutOld() {
        return withoutOld;
    }

    float[] proximal() {
        return proximal;
    }
}
