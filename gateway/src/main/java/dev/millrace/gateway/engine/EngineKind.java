package dev.millrace.gateway.engine;

/** Whose engine samples. */
public enum EngineKind {
    /** Millrace's own, in this process. */
    OWN,
    /** A vLLM server. */
    VLLM,
    /** An SGLang server. */
    SGLANG
}
