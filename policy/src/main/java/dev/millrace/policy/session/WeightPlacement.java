package dev.millrace.policy.session;

/** How an engine that generates gets at weights. Decides the last bits of what it computes, like a number of threads. */
public enum WeightPlacement {
    /** {@link #PACKED} on a CUDA device, {@link #FED} on the CPU. */
    AUTO,
    /**
     * With every call, in place: new weights cost nothing, and one copy serves all roles of a process. On a CUDA device all of
     * them are copied in at each call.
     */
    FED,
    /**
     * Compiled into the graphs when a version is loaded, while sampling continues: the runtime packs them for its
     * products, or copies them to the device once. Takes twice the weights' float32 bytes for each resident version
     * (one copy for prompts, one for tokens) and a compilation for each version.
     */
    PACKED;

    /** Whether graphs on that device are compiled with the weights inside. */
    public boolean packsOn(Device device) {
        return this == PACKED || this == AUTO && device.kind() == Device.Kind.CUDA;
    }
}
