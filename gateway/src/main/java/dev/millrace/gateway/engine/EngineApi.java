package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.EngineIdentity;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Protocol of an engine kind. Version labels are the run's version numbers. Methods throw {@link EngineException}.
 * Thread-safe.
 */
sealed interface EngineApi permits VllmApi, SglangApi {
    /** Also checks the kind, and that updates are enabled. */
    EngineIdentity identity();

    /** Pauses answers until {@link #resume}. */
    void pause(WeightChange change);

    /**
     * Loads weights while paused.
     *
     * @param path of a Hugging Face directory, as the engine sees it
     */
    void load(String path, String label, WeightChange change);

    void resume();

    String label();

    boolean isSeeded();

    EngineCall call(TurnOrder order, String label);

    /** {@link EngineException.Kind#UNTRUE} for an impossible answer. */
    EngineAnswer read(JsonNode answer, TurnOrder order);

    /** What happens to answers in progress at a weight update. */
    enum WeightChange {
        /** Answers are awaited first. */
        DRAINED,
        /** Answers continue with recomputed KV caches. */
        RECOMPUTE,
        /** Answers continue with their KV caches. */
        KEEP
    }

    record EngineCall(String path, ObjectNode body) {}

    /**
     * A validated answer.
     *
     * @param tokens at least one
     * @param spans versions of all tokens, in order; empty if unknown
     * @param label version at the answer's end; null if unknown
     * @param isCutOff ended at its limit
     * @param cachedTokens of the prompt; -1 if unknown
     */
    record EngineAnswer(
            int[] tokens,
            float[] logProbs,
            List<LabelSpan> spans,
            @Nullable String label,
            boolean isCutOff,
            int cachedTokens) {}

    /**
     * Tokens sampled by one version.
     *
     * @param end behind the last
     */
    record LabelSpan(String label, int start, int end) {}
}
