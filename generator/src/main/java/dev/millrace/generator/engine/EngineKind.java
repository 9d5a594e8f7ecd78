package dev.millrace.generator.engine;

/** Whose engine samples. */
public enum EngineKind {
    /** Millrace's own, in this process. */
    OWN,
    /** A vLLM server. */
    VLLM,
    /** An SGLang server. */
    SGLANG
}
