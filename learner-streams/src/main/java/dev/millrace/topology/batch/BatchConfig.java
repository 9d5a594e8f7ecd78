package dev.millrace.topology.batch;

/**
 * When a batch is cut.
 *
 * @param sequences a batch is cut once at least so many sequences are ready, in whole groups
 */
public record BatchConfig(int sequences) {
    public BatchConfig {
        if (sequences < 1) {
            throw new IllegalArgumentException("sequences must be at least 1: " + sequences);
        }
    }

    /** 256 sequences. */
    public static BatchConfig defaults() {
        return new BatchConfig(256);
    }
}
