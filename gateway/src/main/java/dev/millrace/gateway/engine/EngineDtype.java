package dev.millrace.gateway.engine;

/** What an engine computes in. */
public enum EngineDtype {
    F32("float32"),
    BF16("bfloat16"),
    F16("float16");

    private final String torchName;

    EngineDtype(String torchName) {
        this.torchName = torchName;
    }

    /** As torch and both engines call it. */
    String torchName() {
        return torchName;
    }
}
