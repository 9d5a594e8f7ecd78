package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.GradientPower;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.stage.ControlState;
import java.util.Arrays;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * Input of one optimiser step: the response tokens of some members, packed one after the other, and one element per
 * token of every vector.
 *
 * <p>Packed position p is the same token in {@link #sequences()}, whose scored tokens are the responses, and in
 * {@link #layout()}. The returned arrays are shared and must not be written.
 */
final class Minibatch {
    private final StepMembers members;
    private final StepStart.Started start;
    private final Shard sequences;
    private final TokenBatch layout;
    private final float[] advantages;
    private final float[] weights;
    private final float[] behavior;
    private final float[] old;
    private final float[] proximal;

    /** @param indices of members with a trained token, ascending; at least one */
    Minibatch(StepMembers members, StepStart.Started start, int[] indices) {
        this.members = members;
        this.start = start;
        this.sequences = members.select(indices);
        this.layout = layout(start.decision().left(), indices);
        this.advantages = sequences.pick(start.decision().decided().perToken());
        this.weights = sequences.pick(start.decision().decided().weights());
        this.behavior = sequences.pick(members.behavior());
        this.old = sequences.pick(start.decision().old());
        this.proximal = sequences.pick(start.decision().proximal());
    }

    private static TokenBatch layout(TokenBatch whole, int[] indices) {
        int[] offsets = new int[indices.length + 1];
        for (int s = 0; s < indices.length; s++) {
            offsets[s + 1] = offsets[s] + whole.length(indices[s]);
        }
        byte[] mask = new byte[offsets[indices.length]];
        int[] groups = new int[indices.length];
        for (int s = 0; s < indices.length; s++) {
            groups[s] = whole.group(indices[s]);
            whole.copyMask(whole.start(indices[s]), mask, offsets[s], whole.length(indices[s]));
        }
        return new TokenBatch(offsets, mask, groups);
    }

    /** The objective's input for log-probs of the policy being differentiated. */
    ObjectiveInput input(Objective objective, float[] current) {
        ObjectiveInput input = ObjectiveInput.of(layout, current, advantages)
                .withBehavior(behavior)
                .withProximal(
                        switch (objective.anchor()) {
                            case PROXIMAL -> proximal;
                            case OLD -> old;
                            case BEHAVIOR -> behavior;
                        });
        return objective.weightsCompare().isPresent() ? input.withWeights(weights) : input;
    }

    /** How much of the gradient is noise, under the weights in force. */
    GradientPower power(GradientShards.Scores scores) {
        return GradientPower.of(
                layout, scores.logProbs(), scores.sumSquaredProbs(), advantages, weights, OptionalDouble.empty());
    }

    /** The same with every weight 1. */
    GradientPower powerUnweighted(GradientShards.Scores scores) {
        float[] ones = new float[weights.length];
        Arrays.fill(ones, 1f);
        return GradientPower.of(
                layout, scores.logProbs(), scores.sumSquaredProbs(), advantages, ones, OptionalDouble.empty());
    }

    /** What the loss of this minibatch is divided by. */
    UpdateFacts facts(LossAggregation aggregation, long optimizerSteps, ControlState controls) {
        StepDecision decision = start.decision();
        // with several minibatches each gets its share of what the second-moment mask took
        long before = Math.round((double) decision.tokensBeforeMomentMask()
                * layout.trainedTokens()
                / decision.left().trainedTokens());
        GlobalBatch whole = decision.whole(layout);
        return new UpdateFacts(
                aggregation, whole, Math.max(Math.round(whole.tokens()), before), optimizerSteps, controls);
    }

    /** Log-probs of the step's starting weights, if all of them were computed; else null. */
    float @Nullable [] startLogProbs() {
        CurrentLogProbs current = start.current();
        return current != null && current.all() ? sequences.pick(current.values()) : null;
    }

    /** Log-probs of the reference; null without a divergence from it. */
    float @Nullable [] reference() {
        float[] reference = start.reference();
        return reference == null ? null : sequences.pick(reference);
    }

    /** The batch's index of this minibatch's i-th member. */
    int member(int i) {
        return sequences.member(i);
    }

    String rolloutId(int i) {
        return members.rolloutId(member(i));
    }

    Shard sequences() {
        return sequences;
    }

    TokenBatch layout() {
        return layout;
    }

    float[] behavior() {
        return behavior;
    }

    float[] proximal() {
        return proximal;
    }
}
