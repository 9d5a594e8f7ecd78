package dev.millrace.learner.step;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Trains on a batch: {@code epochs × minibatches} AdamW steps on
 * {@code loss = Σ_s c_s Σ_t w_t ℓ(log π(y_t), A) − β Σ_s c_s Σ_t H_t}, with c the aggregation's coefficients and w the
 * trajectories' importance weights; the learning rate is the schedule's times the batch's step scale.
 *
 * <p>Used by one thread, except {@link #cancel()}. Weights and optimiser are changed in place; after an exception they
 * are of no version and must be thrown away.
 */
public final class BatchOptimizer implements AutoCloseable {
    private final StepConfig config;
    private final DecoderShape shape;
    private final LearningRate learningRate;
    private final Objective objective;
    private final GradientShards shards;
    private final Gradients gradients;

    public BatchOptimizer(Engine engine, DecoderShape shape, StepConfig config) {
        this.config = config;
        this.shape = shape;
        this.learningRate = new LearningRate(config.optimizer());
        this.objective = config.objective().objective();
        this.shards = new GradientShards(engine, shape, config.tokensPerMicrobatch(), config.shards());
        this.gradients = new Gradients(shape);
    }

    /** An optimiser before its first step. */
    public AdamW newOptimizer() {
        return new AdamW(config.optimizer().adamW(), shape);
    }

    /**
     * Trains on a batch. One without a trained token changes nothing, the optimiser's step count included, and says so
     * in the metric {@code skipped_update}.
     *
     * @throws NonFiniteStepException if loss, gradient or weights are not finite
     * @throws java.util.concurrent.CancellationException after {@link #cancel()}
     */
    public StepReport train(TrainingBatch batch, Weights weights, AdamW optimizer) {
        List<Member> trained = batch.trained();
        UpdateMeans means = new UpdateMeans();
        double rate = 0;
        if (!trained.isEmpty()) {
            for (int epoch = 0; epoch < config.epochs(); epoch++) {
                for (List<Member> part : minibatches(trained)) {
                    rate = update(batch, new Minibatch(part), weights, optimizer, means);
                }
            }
            requireFinite(batch, weights, optimizer.state());
        }
        return new StepReport(means.updates(), rate, means.values());
    }

    /** Stretches of the members whose lengths differ by at most one; fewer than asked for if there are too few members. */
    private List<List<Member>> minibatches(List<Member> members) {
        int count = Math.min(config.minibatches(), members.size());
        return IntStream.range(0, count)
            .mapToObj(i -> members.subList(cut(members, i, count), cut(members, i + 1, count)))
            .toList();
    }

    private static int cut(List<Member> members, int i, int count) {
        return Math.toIntExact((long) members.size() * i / count);
    }

    private double update(TrainingBatch batch, Minibatch minibatch, Weights weights, AdamW optimizer, UpdateMeans means) {
        means.beginUpdate();
        try {
            differentiate(batch, minibatch, weights, means);
        } catch (NonFiniteMemberException e) {
            throw nonFinite(batch, minibatch, e.member(), e);
        } catch (NonFiniteLogProbException e) {
            throw nonFinite(batch, minibatch, e.sequence(), e);
        }
        clip(batch, means);
        long start = System.nanoTime();
        double rate = learningRate.at(optimizer.state().steps()) * batch.batch().getStepScale();
        optimizer.step(weights, gradients, rate);
        means.addSeconds("optimizer", start);
        return rate;
    }

    private static NonFiniteStepException nonFinite(
            TrainingBatch batch, Minibatch minibatch, int member, RuntimeException e) {
        return new NonFiniteStepException(batch.batch().getBatchId(),
            "rollout " + minibatch.members().get(member).entry().getRolloutId() + ": " + e.getMessage(), e);
    }

    private void differentiate(TrainingBatch batch, Minibatch minibatch, Weights weights, UpdateMeans means) {
        TokenBatch layout = minibatch.layout();
        float[] anchor = minibatch.proximal();
        if (config.objective().needsCurrentLogProbs()) {
            long start = System.nanoTime();
            anchor = shards.score(weights, minibatch).logProbs();
            means.addSeconds("forward", start);
        }
        // for an objective linear in the log-probs any finite ones give the coefficients, and the real ones come out of the
        // backward pass
        ObjectiveResult result = objective.evaluate(minibatch.input(config.objective().kind(), anchor));
        double entropyCoefficient = config.entropy().coefficient(batch.meanReward());
        double[] aggregation = config.objective().perMinibatch().coefficients(layout);
        float[] entropyCoefficients = entropyCoefficients(layout, aggregation, entropyCoefficient);
        long start = System.nanoTime();
        GradientShards.Scores scores =
            shards.differentiate(weights, minibatch, result.gradient(), entropyCoefficients, gradients);
        means.addSeconds("gradient", start);
        if (!config.objective().needsCurrentLogProbs()) {
            result = objective.evaluate(minibatch.input(config.objective().kind(), scores.logProbs()));
        }
        double loss = new LossMetrics(minibatch, scores, result, aggregation, entropyCoefficient).addTo(means);
        if (!Double.isFinite(loss)) {
            throw new NonFiniteStepException(batch.batch().getBatchId(), "the loss is " + loss, null);
        }
    }

    private static float[] entropyCoefficients(TokenBatch layout, double[] aggregation, double bonus) {
        float[] coefficients = new float[layout.tokenCount()];
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                coefficients[t] = layout.isTrained(t) ? (float) (-bonus * aggregation[s]) : 0f;
            }
        }
        return coefficients;
    }

    private void clip(TrainingBatch batch, UpdateMeans means) {
        double norm = gradients.l2Norm();
        if (!Double.isFinite(norm)) {
            throw new NonFiniteStepException(batch.batch().getBatchId(), firstNonFiniteGradient(norm), null);
        }
        double bound = config.optimizer().maxGradNorm();
        boolean clipped = bound > 0 && norm > bound;
        if (clipped) {
            gradients.scale((float) (bound / norm));
        }
        means.add("grad_norm", norm);
        means.add("grad_clipped", clipped ? 1 : 0);
    }

    private String firstNonFiniteGradient(double norm) {
        for (TensorSpec spec : gradients.specs()) {
            float[] gradient = gradients.tensor(spec.name());
            for (int i = 0; i < gradient.length; i++) {
                if (!Float.isFinite(gradient[i])) {
                    return "the gradient of " + spec.name() + " is " + gradient[i] + " at element " + i;
                }
            }
        }
        return "the norm of the gradient is " + norm + ", although every element is finite";
    }

    /** Moments too: an infinite second moment would freeze its weight for good, and no weight would show it. */
    private static void requireFinite(TrainingBatch batch, Weights weights, AdamW.State optimizer) {
        requireFinite(batch, weights.tensors(), "");
        requireFinite(batch, optimizer.first(), "the first moment of ");
        requireFinite(batch, optimizer.second(), "the second moment of ");
    }

    private static void requireFinite(TrainingBatch batch, TensorSet tensors, String what) {
        for (TensorSpec spec : tensors.specs()) {
            FloatBuffer tensor = tensors.tensor(spec.name());
            while (tensor.hasRemaining()) {
                float value = tensor.get();
                if (!Float.isFinite(value)) {
                    throw new NonFiniteStepException(batch.batch().getBatchId(), "the step made " + what + spec.name() + " "
                        + value + " at element " + (tensor.position() - 1), null);
                }
            }
        }
    }

    /** Gives up the batch being trained on, and every later one; from any thread. */
    public void cancel() {
        shards.cancel();
    }

    @Override
    public void close() {
        shards.close();
    }
}
