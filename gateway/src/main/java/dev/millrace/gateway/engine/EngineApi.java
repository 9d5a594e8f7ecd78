package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.EngineIdentity;

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
}
