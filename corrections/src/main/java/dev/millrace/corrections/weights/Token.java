package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.WeightRule;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * Importance weights, one per token: verl's {@code rollout_is=token}.
 *
 * <p>With one number as its threshold a weight is truncated there ({@link TokenTruncatedWeights}); with two, joined by an
 * underscore, one outside them is 0 ({@link TokenBandWeights}, IcePop). It reports as {@code token_tis} and
 * {@code token_icepop}, with verl's metrics of its weights. Unit: token.
 *
 * @param threshold {@code upper}, at least 1, or {@code lower_upper} around 1; finite
 * @param batchNormalize divide weights by their batch mean
 */
public record Token(String threshold, boolean batchNormalize) implements RatioWeights {
    public Token {
        WeightRule.of("threshold", WeightRule.Level.TOKEN, threshold).requireOneWithin("threshold=" + threshold);
    }

    public static Token defaults() {
        return new Token("2.0", false);
    }

    @Override
    public String name() {
        return rule() instanceof WeightRule.Truncate ? "token_tis" : "token_icepop";
    }

    @Override
    public WeightMethod method() {
        WeightRule rule = rule();
        return rule instanceof WeightRule.Truncate
                ? new TokenTruncatedWeights(rule.upper())
                : new TokenBandWeights(rule.lower(), rule.upper());
    }

    @Override
    public OptionalDouble cap() {
        return rule() instanceof WeightRule.Truncate ? OptionalDouble.of(rule().upper()) : OptionalDouble.empty();
    }

    @Override
    public Map<String, Double> measures(TokenBatch batch, LogRatio ratio) {
        return RuleMeasures.of(rule(), batchNormalize, batch, ratio);
    }

    @Override
    public WeightSummary weighAndMeasure(
            TokenBatch batch, LogRatio ratio, float[] weights, Map<String, Double> measures) {
        if (batch.trainedTokens() == 0 || !(method() instanceof TokenTruncatedWeights method)) {
            return RatioWeights.super.weighAndMeasure(batch, ratio, weights, measures);
        }
        TokenTruncatedWeights.Pass pass = method.pass(weights);
        measures.putAll(RuleMeasures.of(rule(), batchNormalize, batch, ratio, pass));
        return pass.summary();
    }

    private WeightRule rule() {
        return WeightRule.of("threshold", WeightRule.Level.TOKEN, threshold);
    }
}
