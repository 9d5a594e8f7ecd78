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
 * @param logProbs under {@code distribution}
 * @param temperedLogProbs before truncation; empty where nothing was truncated
 * @param spans which version sampled which of them, without a gap
 * @param trace what the draws were made from; null where sampling did not ask
 * @param finishReason STOP or LENGTH
 * @param cachedTokens of the prompt that came from a cache; -1 where the engine does not say
 */
public record SampledTurn(
        int[] tokens,
        float[] logProbs,
        LogProbDistribution distribution,
        float[] temperedLogProbs,
        List<VersionSpan> spans,
        @Nullable SamplingTrace trace,
        FinishReason finishReason,
        long startedAtMs,
        long firstTokenAtMs,
        long finishedAtMs,
        int cachedTokens) {

    public SampledTurn {
        spans = List.copyOf(spans);
    }
}
