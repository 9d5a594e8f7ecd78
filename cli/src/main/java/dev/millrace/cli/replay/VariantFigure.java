package dev.millrace.cli.replay;

import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.replay.retrain.VariantStep;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * One of the numbers of a step learnt again, or of a gradient.
 *
 * @param key in CSV and JSON
 * @param title for people
 * @param of the number; NaN where there is none
 */
record VariantFigure<T>(String key, String title, ToDoubleFunction<T> of) {

    /** Of a step, in the order in which they are shown. */
    static final List<VariantFigure<VariantStep>> STEP = List.of(
            new VariantFigure<>("batch_reward", "reward of the batch that was learnt from", VariantStep::batchReward),
            new VariantFigure<>(
                    "rollouts_as_recorded",
                    "rollouts of the batch that are the recorded ones, bit for bit",
                    step -> step.rolloutsAsRecorded()),
            new VariantFigure<>(
                    "kl_to_recorded",
                    "KL to the recorded policy of the same version (k2, recorded tokens)",
                    VariantStep::klToRecorded),
            new VariantFigure<>(
                    "distance", "distance of the weights from the recorded ones (L2)", VariantStep::distance),
            new VariantFigure<>("ess_ratio", "ESS ratio, raw weights, as decided", VariantStep::essRatio),
            new VariantFigure<>(
                    "second_moment", "second moment before its mask (M2), as decided", VariantStep::secondMoment),
            new VariantFigure<>("grad_norm", "gradient norm before clipping", VariantStep::gradNorm),
            new VariantFigure<>("loss", "loss", VariantStep::loss),
            new VariantFigure<>("learning_rate", "learning rate, all controls included", VariantStep::learningRate),
            new VariantFigure<>("tokens_trained", "tokens trained on", step -> step.tokensTrained()),
            new VariantFigure<>(
                    "reward_estimate",
                    "reward of this policy, estimated from the batch by importance weights",
                    VariantStep::rewardEstimate),
            new VariantFigure<>("estimate_ess", "ESS ratio of that estimate", VariantStep::estimateEss));

    /** Of a gradient. */
    static final List<VariantFigure<VariantGradient>> GRADIENT = List.of(
            new VariantFigure<>(
                    "cosine_to_reference", "cosine to the on-policy gradient", VariantGradient::cosineToReference),
            new VariantFigure<>(
                    "sga_progress", "SGA progress, share of the true gradient's", VariantGradient::sgaProgress),
            new VariantFigure<>("alignment", "alignment <g, g'> / |g|^2", VariantGradient::alignment),
            new VariantFigure<>("cosine_to_update", "cosine to the recorded update", VariantGradient::cosineToUpdate),
            new VariantFigure<>("norm", "gradient norm", VariantGradient::norm),
            new VariantFigure<>("signal", "signal: squared norm less noise", VariantGradient::signal),
            new VariantFigure<>("noise", "noise: variance of the gradient", VariantGradient::noise),
            new VariantFigure<>("ess_ratio", "ESS ratio, raw weights", VariantGradient::essRatio),
            new VariantFigure<>("step_scale", "factor on the step", VariantGradient::stepScale),
            new VariantFigure<>("tokens_trained", "tokens trained on", gradient -> gradient.tokensTrained()));
}
