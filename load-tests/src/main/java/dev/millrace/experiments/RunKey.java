package dev.millrace.experiments;

/** Which run of a grid. */
public record RunKey(int lag, Correction correction, long seed) {

    /** Name of its file, without the extension. */
    String name() {
        return "lag-" + lag + "." + correction.key() + ".seed-" + seed;
    }
}
