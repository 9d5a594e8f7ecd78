package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.EngineIdentity;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How one kind of engine is spoken to. Its own version labels are the run's version numbers.
 *
 * <p>Every method throws {@link EngineException}. Thread-safe.
 */
sealed interface EngineApi permits VllmApi, SglangApi {
    /** Who it is; finds out whether it is this kind of engine and set up for updates. */
    EngineIdentity identity();

    /** Nothing is computed from its answer on, until {@link #resume}. */
    void pause(WeightChange change);

    /**
     * Takes weights up, while it is paused.
     *
     * @param path of a Hugging Face directory, as the engine sees it
     * @param label of the version
     */
    void load(String path, String label, WeightChange change);

    void resume();

    /** Of the version that it says it has. */
    String label();

    /** Whether the seed of an order decides what is drawn. */
    boolean isSeeded();

    /**
     * Asks for an answer.
     *
     * @param label of the version that is loaded; what earlier versions left in the prefix cache is not used
     */
    EngineCall call(TurnOrder order, String label);

    /** Reads an answer to it; {@link EngineException.Kind#UNTRUE} where it cannot be one. */
    EngineAnswer read(JsonNode answer, TurnOrder order);

    /** What becomes of answers under way when an engine's weights change. */
    enum WeightChange {
        /** There are none: those that were begun have been waited for. */
        DRAINED,
        /** They go on, and what they have of keys and values is computed again with the new weights. */
        RECOMPUTE,
        /** They go on with the keys and values that they have. */
        KEEP
    }

    /**
     * A call that an answer is asked for with.
     *
     * @param path behind the engine's URL
     * @param body JSON
     */
    record EngineCall(String path, ObjectNode body) {}

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

    /**
     * Tokens of an answer that one version of the weights sampled, as the engine says.
     *
     * @param label of the version
     * @param start first token of the answer
     * @param end behind the last
     */
    record LabelSpan(String label, int start, int end) {}
}
