package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Set;
import java.util.SortedMap;

/**
 * On-policy distillation: the log-prob of a teacher against the policy's own, and GRPO's advantage at a weight,
 * {@code A_t = a · (R − mean)/(std + 1e-6) + log teacher_t − log proximal_t}.
 *
 * <p>Unit: token. Over the policy's own tokens, the gradient of the second term is that of the token's
 * {@code KL(policy‖teacher)}, negated. Tokens of an older policy need weights for that. The log ratio is bounded to ±20.
 * {@code reverse_kl} reports its mean over the batch's trained tokens, negated: an estimate of the divergence under the
 * policy that sampled.
 *
 * <p>The loss of {@code kl.kind=in_loss} against a reference that is the teacher has the same gradient at the first update.
 *
 * <p>Source: Xu et al. 2025, KDRL (arXiv 2506.08946); a = 0 is tinker-cookbook's on-policy distillation.
 *
 * @param outcomeWeight a; finite, at least 0; 0 reads no rewards
 */
public record Distillation(double outcomeWeight) implements TokenEstimator {
    static final Set<StageInput> INPUTS = Set.of(StageInput.TEACHER, StageInput.PROXIMAL);

    public Distillation {
        if (!(outcomeWeight >= 0 && outcomeWeight < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("outcome_weight must be finite and at least 0: " + outcomeWeight);
        }
    }

    public static Distillation defaults() {
        return new Distillation(0);
    }

    @Override
    public Set<StageInput> inputs() {
        return INPUTS;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        float[] advantages = perToken(batch);
        return batch.tokenAdvantage(this, advantages, report(this, batch, advantages));
    }

    @Override
    public float[] perToken(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        double[] taught = taught(batch);
        double[] outcomes = outcomeWeight == 0
                ? new double[tokens.sequenceCount()]
                : new Grpo(true).perSequence(tokens, batch.rewards());
        float[] advantages = new float[taught.length];
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                advantages[t] = tokens.isTrained(t) ? (float) (outcomeWeight * outcomes[s] + taught[t]) : 0f;
            }
        }
        return advantages;
    }

    /** One per packed token: {@code log teacher − log proximal}, 0 at context tokens. */
    static double[] taught(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        float[] teacher = batch.facts().vector(StageInput.TEACHER);
        float[] proximal = batch.facts().vector(StageInput.PROXIMAL);
        tokens.requireFinite(StageInput.TEACHER.text(), teacher);
        tokens.requireFinite(StageInput.PROXIMAL.text(), proximal);
        double[] taught = new double[tokens.tokenCount()];
        for (int t = 0; t < taught.length; t++) {
            taught[t] = tokens.isTrained(t) ? LogRatio.bounded((double) teacher[t] - proximal[t]) : 0;
        }
        return taught;
    }

    static SortedMap<String, Double> report(TokenEstimator by, StageBatch batch, float[] advantages) {
        SortedMap<String, Double> values = AdvantageReport.ofTokens(by, batch, advantages);
        double sum = 0;
        for (double nats : taught(batch)) {
            sum -= nats;
        }
        values.put(
                "reverse_kl", sum / batch.facts().tokens().trainedTokens()); // not finite, so left out, without tokens
        return values;
    }
}
