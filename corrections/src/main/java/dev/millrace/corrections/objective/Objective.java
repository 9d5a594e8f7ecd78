package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Optional;

/**
 * A loss over the log-probs of the sampled tokens. Every kind is a validated record whose components are its settings, so
 * that a setting exists only where it is read. Immutable and thread-safe; O(tokens) in time.
 *
 * <p>In all kinds that take them, the batch's importance weights multiply a token's loss and are not differentiated.
 */
public interface Objective {

    /** What it is called in messages: its kind, unless it says otherwise. */
    default String name() {
        return StageSettings.kindOf(getClass());
    }

    /** On what the objective's own ratio acts; importance weights in the input have a unit of their own. */
    default CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    /** The policy that the objective's ratio is taken to; its log-probs are the input's proximal ones. */
    default Anchor anchor() {
        return Anchor.PROXIMAL;
    }

    /**
     * Returns the ratio that importance weights must use with this loss; empty if the loss corrects by itself and takes
     * none.
     */
    default Optional<RatioKind> weightsCompare() {
        return anchor().weightsCompare();
    }

    /** How far above 1 it lets a ratio go, where that is a setting of that name; NaN where it is none. */
    default double clipRatioHigh() {
        return Double.NaN;
    }

    /** How its source aggregates token losses: what {@link LossAggregation.AsPublished} stands for. */
    default LossAggregation publishedAggregation() {
        return new LossAggregation.TokenMean();
    }

    /**
     * True if the loss is linear in the current log-probs. Its gradient is then known without a forward pass. It has no
     * trust region, so it is right for only one step on a batch.
     */
    default boolean linear() {
        return false;
    }

    /**
     * True if nothing but the plain policy gradient is left where the current policy is the anchor: all that the objective
     * does is about the distance between the two. Clipping, gates and leashes are so; an objective that picks tokens,
     * lengths or targets of its own is not.
     */
    default boolean isPolicyGradientAtAnchor() {
        return true;
    }

    /** True if a decision is about whole groups, so that no group may be cut into minibatches. */
    default boolean needsWholeGroups() {
        return false;
    }

    /** True if the advantages have to be those of the KL-regularised optimum. */
    default boolean regressesOnOptimalAdvantage() {
        return false;
    }

    /** What is to be remembered after an update with this result; objectives without a memory change nothing. */
    default ControlState remembered(ControlState controls, ObjectiveResult result) {
        return controls;
    }

    /**
     * The loss and its derivative with respect to the current policy's log-probs.
     *
     * @throws IllegalArgumentException if the objective needs a vector that {@code input} lacks, or {@code input} holds
     *     nothing it could be a mean of
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming the first offending sequence and token
     */
    ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts);

    /** The policy gradient under the batch's importance weights. */
    static Objective defaults() {
        return new Reinforce();
    }
}
