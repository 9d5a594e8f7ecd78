package dev.millrace.cli.replay;

import dev.millrace.counterfactual.CourseGradient;
import dev.millrace.counterfactual.CourseStep;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * One of the numbers of a step learnt again, or of a gradient.
 *
 * @param key in CSV and JSON
 * @param title for people
 * @param of the number; NaN where there is none
 */
record CourseFigure<T>(String key, String title, ToDoubleFunction<T> of) {

    /** Of a step, in the order in which they are shown. */
    static final List<CourseFigure<CourseStep>> STEP = List.of(
            new CourseFigure<>("batch_reward", "reward of the batch that was learnt from", CourseStep::batchReward),
            new CourseFigure<>(
                    "rollouts_as_recorded",
                    "rollouts of the batch that are the recorded ones, bit for bit",
                    step -> step.rolloutsAsRecorded()),
            new CourseFigure<>(
                    "kl_to_recorded",
                    "KL to the recorded policy of the same version (k2, recorded tokens)",
                    CourseStep::klToRecorded),
            new CourseFigure<>("distance", "distance of the weights from the recorded ones (L2)", CourseStep::distance),
            new CourseFigure<>("ess_ratio", "ESS ratio, raw weights, as decided", CourseStep::essRatio),
            new CourseFigure<>(
                    "second_moment", "second moment before its mask (M2), as decided", CourseStep::secondMoment),
            new CourseFigure<>("grad_norm", "gradient norm before clipping", CourseStep::gradNorm),
            new CourseFigure<>("loss", "loss", CourseStep::loss),
            new CourseFigure<>("learning_rate", "learning rate, all controls included", CourseStep::learningRate),
            new CourseFigure<>("tokens_trained", "tokens trained on", step -> step.tokensTrained()),
            new CourseFigure<>(
                    "reward_estimate",
                    "reward of this policy, estimated from the batch by importance weights",
                    CourseStep::rewardEstimate),
            new CourseFigure<>("estimate_ess", "ESS ratio of that estimate", CourseStep::estimateEss));

    /** Of a gradient. */
    static final List<CourseFigure<CourseGradient>> GRADIENT = List.of(
            new CourseFigure<>(
                    "cosine_to_reference", "cosine to the on-policy gradient", CourseGradient::cosineToReference),
            new CourseFigure<>(
                    "sga_progress", "SGA progress, share of the true gradient's", CourseGradient::sgaProgress),
            new CourseFigure<>("alignment", "alignment <g, g'> / |g|^2", CourseGradient::alignment),
            new CourseFigure<>("cosine_to_update", "cosine to the recorded update", CourseGradient::cosineToUpdate),
            new CourseFigure<>("norm", "gradient norm", CourseGradient::norm),
            new CourseFigure<>("signal", "signal: squared norm less noise", CourseGradient::signal),
            new CourseFigure<>("noise", "noise: variance of the gradient", CourseGradient::noise),
            new CourseFigure<>("ess_ratio", "ESS ratio, raw weights", CourseGradient::essRatio),
            new CourseFigure<>("step_scale", "factor on the step", CourseGradient::stepScale),
            new CourseFigure<>("tokens_trained", "tokens trained on", gradient -> gradient.tokensTrained()));
}
