package dev.millrace.experiments;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.SequenceLogWeights;
import dev.millrace.replay.ScoredRollouts;

/**
 * How far the current policy is from the one that sampled, over every sampled token, whatever is masked later.
 *
 * @param essRatio     {@code (Σ w)² / (n Σ w²)} of the raw sequence weights w = current/behavior
 * @param secondMoment mean of {@code (log ρ)²} per token
 * @param kl           mean of {@code -log ρ} per token
 */
record Drift(double essRatio, double secondMoment, double kl) {

    static Drift of(ScoredRollouts scored) {
        TokenBatch tokens = scored.tokens();
        LogRatio ratio = LogRatio.anchor(scored.current(), scored.behavior());
        double squares = 0;
        double sum = 0;
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                if (tokens.isTrained(t)) {
                    double logRatio = ratio.finiteAt(tokens, s, t);
                    squares += logRatio * logRatio;
                    sum += logRatio;
                }
            }
        }
        return new Drift(
                EffectiveSampleSize.ofRaw(SequenceLogWeights.ofTrainedSequences(tokens, ratio))
                        .ratio(),
                squares / tokens.trainedTokens(),
                -sum / tokens.trainedTokens());
    }
}
