package dev.millrace.gateway;

/** Who says how the turns of a session are sampled. */
public enum SamplingSource {
    /**
     * The agent's first call, and for what it does not say the run. A later call that says otherwise is refused: a rollout has one
     * sampling.
     */
    AGENT,
    /** The run: {@code temperature}, {@code top_p}, {@code top_k} and {@code min_p} of calls are of no effect. */
    RUN
}
