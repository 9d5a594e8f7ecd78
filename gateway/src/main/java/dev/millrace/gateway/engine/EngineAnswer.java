package dev.millrace.gateway.engine;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What an engine answered, read and found possible: as many log-probs as tokens, each of them possible.
 *
 * @param tokens as they were sampled, one at least
 * @param logProbs beside them
 * @param spans which version sampled which tokens, all of them and in order; empty where the engine does not say
 * @param label of the version that the engine had when the answer ended, which says nothing of its beginning where an update came
 *     between; null where the engine does not say
 * @param isCutOff whether it ended at its limit and not by itself
 * @param cachedTokens of the prompt; -1 where the engine does not say
 */
record EngineAnswer(
        int[] tokens,
        float[] logProbs,
        List<LabelSpan> spans,
        @Nullable String label,
        boolean isCutOff,
        int cachedTokens) {}
