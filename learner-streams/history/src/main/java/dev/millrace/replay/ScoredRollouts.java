package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.ReplayedRouting;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Rollouts with the current policy's packed log-probs; not to be written to.
 *
 * @param behavior log-probs in the distribution in which they are scored
 */
public record ScoredRollouts(List<Rollout> rollouts, TokenBatch tokens, float[] behavior, float[] current) {

    public static ScoredRollouts of(List<Rollout> rollouts, ScoringSession scoring, Weights weights) {
        int[][] sequences = new int[rollouts.size()][];
        int[] firstScored = new int[rollouts.size()];
        @Nullable SampledSupport[] kept = new SampledSupport[rollouts.size()];
        @Nullable RoutedExperts[] routing = new RoutedExperts[rollouts.size()];
        int[] offsets = new int[rollouts.size() + 1];
        for (int s = 0; s < sequences.length; s++) {
            Rollout rollout = rollouts.get(s);
            firstScored[s] = PackedInts.length(rollout.getPromptTokens());
            int response = PackedInts.length(rollout.getResponseTokens());
            sequences[s] = new int[firstScored[s] + response];
            PackedInts.copyTo(rollout.getPromptTokens(), sequences[s], 0);
            PackedInts.copyTo(rollout.getResponseTokens(), sequences[s], firstScored[s]);
            offsets[s + 1] = offsets[s] + response;
            routing[s] = ReplayedRouting.of(ComparedDistribution.routing(rollout));
            KeptSupport support = ComparedDistribution.keptTokens(rollout);
            if (support != null) {
                kept[s] = new SampledSupport(
                        ComparedDistribution.keptCounts(support, rollout.getMask()),
                        PackedInts.toArray(support.getTokenIds()));
            }
        }
        byte[] mask = new byte[offsets[sequences.length]];
        float[] behavior = new float[mask.length];
        for (int s = 0; s < sequences.length; s++) {
            PackedMask.copyTo(rollouts.get(s).getMask(), mask, offsets[s]);
            PackedFloats.copyTo(ComparedDistribution.behaviorLogProbs(rollouts.get(s)), behavior, offsets[s]);
        }
        float[] temperatures = new float[sequences.length];
        for (int s = 0; s < temperatures.length; s++) {
            temperatures[s] = (float) rollouts.get(s).getSampling().getTemperature();
        }
        float[] current = scoring.score(
                        weights, new SequenceBatch(sequences, firstScored, kept).routed(routing), temperatures)
                .logProbs();
        return new ScoredRollouts(rollouts, new TokenBatch(offsets, mask), behavior, current);
    }

    float[] of(float[] packed, int sequence) {
        return Arrays.copyOfRange(packed, tokens.start(sequence), tokens.end(sequence));
    }

    public double meanReward() {
        return rollouts.stream().mapToDouble(Rollout::getReward).average().orElseThrow();
    }
}
