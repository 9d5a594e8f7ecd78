package dev.millrace.replay.retrain;

import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepMetrics;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.OtherRewards;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.weights.VersionHash;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * One variant on its way: weights, optimiser and controls, beginning with a recorded version's.
 *
 * <p>Used by one thread. After a step that failed it must only be closed.
 */
final class VariantTraining implements AutoCloseable {
    private final BatchOptimizer optimizer;
    private final AdamW adamW;
    private final Weights weights;
    /** By what batches are decided; empty where the recorded decisions are this variant's. */
    private final Optional<RecomputedBatch> decisions;
    /** Where its rollouts come from; empty where they are the recorded ones. */
    private final Optional<FreshRollouts.OfCourse> rollouts;
    /** What they are worth; empty where that is as recorded, or as their environment says. */
    private final Optional<OtherRewards> rewards;

    private ControlState controls;
    private String sha256;

    /** What its policy makes of a batch's tokens, before the step. */
    private record Judged(double kl, double reward, double ess) {}

    /**
     * @param isRecorded whether its corrections are the run's
     * @param live empty where it learns from the recorded rollouts
     * @param others rewards, for a variant that sees them
     * @param weights copied
     * @param state copied
     */
    VariantTraining(
            Engine engine,
            DecoderShape shape,
            Variant variant,
            boolean isRecorded,
            Optional<FreshRolloutOptions> live,
            Optional<OtherRewards> others,
            Weights weights,
            AdamW.State state,
            PolicyVersion from) {
        this.optimizer = new BatchOptimizer(engine, shape, variant.lora(), variant.step(), variant.algorithm());
        this.adamW = optimizer.newOptimizer();
        adamW.restore(state);
        this.weights = optimizer.trainable(weights.copy());
        this.rewards = others.filter(any -> variant.isRewarded());
        this.decisions = isRecorded && live.isEmpty() && rewards.isEmpty()
                ? Optional.empty()
                : Optional.of(new RecomputedBatch(variant.algorithm()));
        this.rollouts = live.map(of -> of.sampling().variant(weights, of.draws()));
        this.controls = new ControlState(from.getControls());
        this.sha256 = VersionHash.of(weights);
    }

    BatchOptimizer optimizer() {
        return optimizer;
    }

    Weights weights() {
        return weights;
    }

    String sha256() {
        return sha256;
    }

    float[] logProbs(TrainingBatch batch) {
        return optimizer.logProbs(batch, weights);
    }

    /**
     * Takes the step.
     *
     * @param startsAsRecorded whether its weights are the run's of that version
     * @param own log-probs of its policy
     * @param recorded those of the run's policy of the same version
     * @throws InconsistentBatchException if a stage of the variant cannot decide about the batch
     */
    VariantStep take(RecordedStep step, boolean startsAsRecorded, float[] own, float[] recorded) {
        TrainingBatch batch = batch(step.batch());
        // what this policy would earn with the recorded rollouts, under the rewards that it sees
        Judged judged = judge(rewards.isPresent() && rollouts.isEmpty() ? batch : step.batch(), own, recorded);
        optimizer.departFromRecord(!startsAsRecorded && rollouts.isEmpty());
        StepReport report = optimizer.train(batch, step.from(), controls, weights, adamW);
        report.failure().ifPresent(why -> {
            throw new InconsistentBatchException(why);
        });
        controls = report.controls();
        sha256 = VersionHash.of(weights);
        rollouts.ifPresent(of -> of.made(weights));
        StepMetrics metrics = report.metrics();
        return new VariantStep(
                sha256.equals(step.made().getWeights().getSha256()),
                sha256,
                metrics.orNaN(StepMetric.LOSS),
                metrics.orNaN(StepMetric.GRAD_NORM),
                // the objective's own, where it clips
                metrics.byName().getOrDefault(StepMetric.CLIP_FRACTION.key(), Double.NaN),
                report.figures().essRatio(),
                report.figures().secondMoment(),
                report.learningRate(),
                report.tokensTrained(),
                batch.meanReward(),
                asRecorded(step.batch(), batch),
                judged.kl(),
                judged.reward(),
                judged.ess(),
                Double.NaN);
    }

    private TrainingBatch batch(TrainingBatch recorded) {
        if (decisions.isEmpty()) {
            return recorded;
        }
        List<Trajectory> trajectories = rollouts.isPresent()
                ? rollouts.get().trajectories(recorded)
                : recorded.members().stream().map(Member::trajectory).toList();
        return decisions.get().of(recorded, rewards.isPresent() ? rewards.get().of(trajectories) : trajectories);
    }

    /** Members whose rollouts, rewards and log-probs are the recorded ones, bit for bit. */
    private static int asRecorded(TrainingBatch recorded, TrainingBatch learnt) {
        return (int) IntStream.range(0, recorded.members().size())
                .filter(s -> {
                    Trajectory one = recorded.members().get(s).trajectory();
                    Trajectory other = learnt.members().get(s).trajectory();
                    return one.getResponseTokens().equals(other.getResponseTokens())
                            && one.getReward() == other.getReward()
                            && one.getBehaviorLogProbs().equals(other.getBehaviorLogProbs())
                            && Objects.equals(one.getOldLogProbs(), other.getOldLogProbs())
                            && one.getProximalLogProbs().equals(other.getProximalLogProbs());
                })
                .count();
    }

    private static Judged judge(TrainingBatch batch, float[] own, float[] recorded) {
        int members = batch.members().size();
        double[] logWeights = new double[members];
        double kl = 0;
        long tokens = 0;
        int packed = 0;
        for (int s = 0; s < members; s++) {
            var trajectory = batch.members().get(s).trajectory();
            for (int t = 0; t < PackedMask.length(trajectory.getMask()); t++, packed++) {
                if (PackedMask.get(trajectory.getMask(), t) == 1) {
                    double logRatio = LogRatio.bounded((double) own[packed] - recorded[packed]);
                    kl += logRatio * logRatio / 2;
                    logWeights[s] += (double) own[packed] - PackedFloats.get(trajectory.getBehaviorLogProbs(), t);
                    tokens++;
                }
            }
        }
        if (tokens == 0) {
            return new Judged(Double.NaN, Double.NaN, Double.NaN);
        }
        double largest = Arrays.stream(logWeights).max().orElseThrow(); // a common factor does not change the estimate
        double sum = 0;
        double rewards = 0;
        for (int s = 0; s < members; s++) {
            double weight = Math.exp(logWeights[s] - largest);
            sum += weight;
            rewards += weight * batch.members().get(s).entry().getReward();
        }
        return new Judged(
                kl / tokens,
                rewards / sum,
                EffectiveSampleSize.ofRaw(logWeights).ratio());
    }

    @Override
    public void close() {
        optimizer.close();
    }
}
