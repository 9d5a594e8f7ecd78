package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * GMPO: the geometric mean of token ratios, each clipped by itself before the mean:
 * {@code ℓ = −A exp(mean_t x_t)}, {@code x_t = sgn(A_t) min(sgn(A_t) δ_t, sgn(A_t) clip(δ_t, −ε_low, ε_high))},
 * {@code δ_t = current − proximal}.
 *
 * <p>Unit of correction: sequence, clipped per token and in log space: above {@code ε_high} where the advantage is
 * positive, below {@code −ε_low} where it is negative. One wild token moves the geometric mean little, so the range can
 * be wider than PPO's. Unclipped tokens receive {@code −A s / n}, clipped ones 0. {@code A} is the mean advantage of
 * the trained tokens. Token weights enter as their geometric mean over the sequence, so one weight of 0 silences the
 * sequence. Metrics: approximate KL, and the fractions of tokens outside the range with positive and with negative
 * advantage.
 *
 * <p>The loss is divided by the number of sequences that have a trained token. verl divides by all sequences and floors
 * weights at 1e-10: {@link #asReference} reproduces that.
 *
 * <p>Source: Zhao et al. 2025 (arXiv 2507.20673).
 */
public final class Gmpo implements Objective {
    private static final double REFERENCE_WEIGHT_FLOOR = 1e-10;

    private final ClipRange logRange;
    private final GlobalBatch whole;
    private final double weightFloor;
    private final boolean countsEverySequence;

    private Gmpo(ClipRange logRange, GlobalBatch whole, double weightFloor, boolean countsEverySequence) {
        this.logRange = logRange;
        this.whole = whole;
        this.weightFloor = weightFloor;
        this.countsEverySequence = countsEverySequence;
    }

    /** @param logRange how far a log ratio moves freely below and above 0 */
    public Gmpo(ClipRange logRange, GlobalBatch whole) {
        this(logRange, whole, 0.0, false);
    }

    /** verl's {@code geo_mean}: fully masked sequences count in the mean, weights are floored at 1e-10. */
    public static Gmpo asReference(ClipRange logRange) {
        return new Gmpo(logRange, GlobalBatch.WHOLE, REFERENCE_WEIGHT_FLOOR, true);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        return new Evaluation(input, input.requireProximal("GMPO")).run();
    }

    private final class Evaluation {
        private final ObjectiveInput input;
        private final TokenBatch batch;
        private final float[] proximal;
        private final float[] gradient;
        private final byte[] clipFlags;
        private double logRatios;
        private long clippedPositive;
        private long clippedNegative;

        Evaluation(ObjectiveInput input, float[] proximal) {
            this.input = input;
            this.batch = input.batch();
            this.proximal = proximal;
            this.gradient = new float[batch.tokenCount()];
            this.clipFlags = new byte[gradient.length];
        }

        ObjectiveResult run() {
            double[] coefficients = countsEverySequence
                    ? new LossAggregation.SequenceMeanTokenSum(
                                    new GlobalBatch(GlobalBatch.OF_THIS_BATCH, Math.max(1, batch.sequenceCount()), 1))
                            .coefficients(batch)
                    : new LossAggregation.SequenceMeanTokenSum(whole).coefficients(batch);
            double loss = 0.0;
            for (int s = 0; s < batch.sequenceCount(); s++) {
                loss += batch.trainedTokens(s) == 0 ? 0.0 : sequence(s, coefficients[s]);
            }
            int trained = Math.max(1, batch.trainedTokens());
            Map<String, Double> metrics = new LinkedHashMap<>();
            metrics.put(ObjectiveResult.CLIPPED_FRACTION, (double) clippedPositive / trained);
            metrics.put(ObjectiveResult.APPROX_KL, -logRatios / trained);
            metrics.put(ObjectiveResult.LOWER_CLIPPED_FRACTION, (double) clippedNegative / trained);
            return new ObjectiveResult(loss, gradient, clipFlags, metrics);
        }

        private double sequence(int s, double coefficient) {
            double logSum = 0.0;
            double advantageSum = 0.0;
            double logWeightSum = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double delta = (double) input.current()[t] - proximal[t];
                    double advantage = input.advantages()[t];
                    logSum += silenced(delta, advantage) ? clipped(delta) : advantage == 0 ? 0.0 : delta;
                    advantageSum += advantage;
                    logWeightSum += Math.log(input.weight(t) + weightFloor);
                    count(t, delta, advantage);
                }
            }
            int trained = batch.trainedTokens(s);
            double ratio = Math.exp(logSum / trained);
            double weight = input.hasWeights() ? Math.exp(logWeightSum / trained) : 1.0;
            double loss = -coefficient * weight * (advantageSum / trained) * ratio;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double delta = (double) input.current()[t] - proximal[t];
                    double advantage = input.advantages()[t];
                    boolean flows = advantage != 0 && !silenced(delta, advantage);
                    gradient[t] = flows ? TokenwiseLoss.finiteGradient(batch, s, t, loss / trained) : 0f;
                }
            }
            return loss;
        }

        private void count(int t, double delta, double advantage) {
            boolean outside = delta != clipped(delta);
            logRatios += delta;
            clippedPositive += outside && advantage > 0 ? 1 : 0;
            clippedNegative += outside && advantage < 0 ? 1 : 0;
            clipFlags[t] = !outside || advantage == 0
                    ? 0
                    : advantage > 0 ? ObjectiveResult.CLIPPED : ObjectiveResult.LOWER_CLIPPED;
        }

        private boolean silenced(double delta, double advantage) {
            return advantage > 0 && delta > logRange.high() || advantage < 0 && delta < -logRange.low();
        }

        private double clipped(double delta) {
            return Math.max(-logRange.low(), Math.min(logRange.high(), delta));
        }
    }
}
