package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;

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
 * <p>A sequence's loss counts the sum of its tokens' coefficients, so under {@link LossAggregation.SeqMeanTokenMean}, the
 * paper's, the loss is divided by the number of sequences that have a trained token. verl always divides by all sequences
 * and floors weights at 1e-10.
 *
 * <p>Source: Zhao et al. 2025 (arXiv 2507.20673).
 *
 * @param anchor policy to compare with
 * @param clipRatioLow lower clip: log ratio {@code -clip_ratio_low}
 * @param clipRatioHigh upper clip: log ratio {@code clip_ratio_high}
 */
public record Gmpo(Anchor anchor, double clipRatioLow, double clipRatioHigh) implements SequenceObjective {
    public Gmpo {
        atLeastZero("clip_ratio_low", clipRatioLow);
        atLeastZero("clip_ratio_high", clipRatioHigh);
    }

    public static Gmpo defaults() {
        return new Gmpo(Anchor.PROXIMAL, 0.4, 0.4);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new Evaluation(input, input.requireProximal("GMPO")).run(facts.coefficients(input.batch()));
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
        private final ActedOn.Tally acted = new ActedOn.Tally();

        Evaluation(ObjectiveInput input, float[] proximal) {
            this.input = input;
            this.batch = input.batch();
            this.proximal = proximal;
            this.gradient = new float[batch.tokenCount()];
            this.clipFlags = new byte[gradient.length];
        }

        ObjectiveResult run(double[] coefficients) {
            double loss = 0.0;
            for (int s = 0; s < batch.sequenceCount(); s++) {
                loss += batch.trainedTokens(s) == 0 ? 0.0 : sequence(s, coefficients[s] * batch.trainedTokens(s));
            }
            int trained = Math.max(1, batch.trainedTokens());
            Map<String, Double> metrics = new LinkedHashMap<>();
            metrics.put(ObjectiveResult.CLIPPED_FRACTION, (double) clippedPositive / trained);
            metrics.put(ObjectiveResult.APPROX_KL, -logRatios / trained);
            metrics.put(ObjectiveResult.LOWER_CLIPPED_FRACTION, (double) clippedNegative / trained);
            return new ObjectiveResult(loss, gradient, clipFlags, acted.done(), metrics);
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
                    logWeightSum += Math.log(input.weight(t));
                    count(s, t, delta, advantage);
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

        private void count(int s, int t, double delta, double advantage) {
            boolean outside = delta != clipped(delta);
            logRatios += delta;
            clippedPositive += outside && advantage > 0 ? 1 : 0;
            clippedNegative += outside && advantage < 0 ? 1 : 0;
            acted.add(s, outside && advantage != 0 ? 1 : 0);
            clipFlags[t] = !outside || advantage == 0
                    ? 0
                    : advantage > 0 ? ObjectiveResult.CLIPPED : ObjectiveResult.LOWER_CLIPPED;
        }

        private boolean silenced(double delta, double advantage) {
            return advantage > 0 && delta > clipRatioHigh || advantage < 0 && delta < -clipRatioLow;
        }

        private double clipped(double delta) {
            return Math.max(-clipRatioLow, Math.min(clipRatioHigh, delta));
        }
    }
}
