package dev.millrace.generator.sampling;

import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.VersionSpan;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An answer, token for token. Vectors have one entry per token and are not to be written.
 *
 * @param tokens as they were sampled, one at least, the stop token or the tokens of the stop text among them
 * @param spans which version sampled which of them, without a gap
 * @param trace what the draws were made from; null where sampling did not ask
 * @param cachedTokens of the prompt that came from a cache; -1 where the engine does not say
 */
public record SampledTurn(
        int[] tokens,
        LogProbs logProbs,
        List<VersionSpan> spans,
        @Nullable SamplingTrace trace,
        FinishReason finishReason,
        Times times,
        int cachedTokens) {

    /**
     * Log-probs of its tokens.
     *
     * @param sampled under {@code distribution}
     * @param tempered before truncation; empty where nothing was truncated
     */
    public record LogProbs(float[] sampled, LogProbDistribution distribution, float[] tempered) {}

    /** When it was sampled. */
    public record Times(long startedAtMs, long firstTokenAtMs, long finishedAtMs) {}

    public SampledTurn {
        spans = List.copyOf(spans);
    }
}
