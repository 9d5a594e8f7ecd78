package dev.millrace.log.run;

/**
 * How a run's topics are made, and what existing ones must have.
 *
 * @param partitions partitions of prompts, rollouts, joined topics, sessions and outcomes, 1 to 1000; policy topics
 *     have one
 * @param replicationFactor replicas, 1 to 9; -1 is the cluster's default
 * @param minInsyncReplicas 1 to {@code replication_factor}; -1 is the cluster's default
 * @param recordRetentionMs retention of rollouts, joined topics, sessions, batches, training log, outcomes and dead
 *     letters; -1 for ever
 * @param passingRetentionMs retention of prompts and trajectories; -1 for ever
 * @param weightsRetentionBytes least retention of weights; -1 for all, 0 by the model's size
 * @param optimizerRetentionBytes least retention of optimiser state; -1 for all, 0 by the model's size
 * @param maxRecordBytes largest record batch, 1 MiB to 256 MiB
 * @param schemasTopic schemas topic without a registry
 * @param timeoutMs timeout of cluster requests, at least 1000
 */
public record TopicsConfig(
        int partitions,
        int replicationFactor,
        int minInsyncReplicas,
        long recordRetentionMs,
        long passingRetentionMs,
        long weightsRetentionBytes,
        long optimizerRetentionBytes,
        int maxRecordBytes,
        String schemasTopic,
        long timeoutMs) {

    /** Everything is needed, however much that will be. */
    public static final long ALL = Long.MAX_VALUE;

    private static final long DAY_MS = 24L * 60 * 60 * 1000;
    private static final long GIB = 1L << 30;
    private static final int MIN_RECORD_BYTES = 1 << 20;
    private static final int MAX_RECORD_BYTES = 256 << 20;

    public TopicsConfig {
        requireBetween("partitions", partitions, 1, 1000);
        if (replicationFactor != -1) {
            requireBetween("replication_factor", replicationFactor, 1, 9);
        }
        if (minInsyncReplicas != -1) {
            requireBetween("min_insync_replicas", minInsyncReplicas, 1, 9);
            if (replicationFactor != -1 && minInsyncReplicas > replicationFactor) {
                throw new IllegalArgumentException("min_insync_replicas must be at most replication_factor="
                        + replicationFactor + ", or nothing can be written: " + minInsyncReplicas);
            }
        }
        requireKept("record_retention_ms", recordRetentionMs);
        requireKept("passing_retention_ms", passingRetentionMs);
        requireKept("weights_retention_bytes", weightsRetentionBytes == 0 ? -1 : weightsRetentionBytes);
        requireKept("optimizer_retention_bytes", optimizerRetentionBytes == 0 ? -1 : optimizerRetentionBytes);
        requireBetween("max_record_bytes", maxRecordBytes, MIN_RECORD_BYTES, MAX_RECORD_BYTES);
        if (schemasTopic == null || !schemasTopic.matches("[A-Za-z0-9._-]{1,249}")) {
            throw new IllegalArgumentException(
                    "schemas_topic must be 1 to 249 letters, digits, '-', '_' or '.': " + schemasTopic);
        }
        requireBetween("timeout_ms", timeoutMs, 1_000, Integer.MAX_VALUE);
    }

    /** Four partitions, the cluster's replication, a month of training set, a week of the rest, weights by the model's size. */
    public static TopicsConfig defaults() {
        return new TopicsConfig(4, -1, -1, 30 * DAY_MS, 7 * DAY_MS, 0, 0, 8 << 20, "_schemas", 30_000);
    }

    public TopicsConfig withPartitions(int count) {
        return with(count, timeoutMs);
    }

    /** These, with another longest wait for the cluster. */
    public TopicsConfig withTimeoutMs(long milliseconds) {
        return with(partitions, milliseconds);
    }

    /** These, with no record deleted for its age or for the room it takes. */
    public TopicsConfig keptForEver() {
        return new TopicsConfig(
                partitions,
                replicationFactor,
                minInsyncReplicas,
                -1,
                -1,
                -1,
                -1,
                maxRecordBytes,
                schemasTopic,
                timeoutMs);
    }

    /**
     * Returns these settings with sizes resolved by the policy's size: room for twice the versions needed, at least 2 GiB.
     *
     * @param weights bytes of the versions that readers may reach back to, the newest included, or {@link #ALL}
     * @param optimizer bytes of the optimiser's states among them
     */
    public TopicsConfig sizedFor(long weights, long optimizer) {
        return new TopicsConfig(
                partitions,
                replicationFactor,
                minInsyncReplicas,
                recordRetentionMs,
                passingRetentionMs,
                sized(weightsRetentionBytes, weights),
                sized(optimizerRetentionBytes, optimizer),
                maxRecordBytes,
                schemasTopic,
                timeoutMs);
    }

    private static long sized(long given, long needed) {
        if (given == 0 && needed == ALL) {
            return -1;
        }
        return given == 0 ? Math.max(2 * GIB, 2 * needed) : given;
    }

    private TopicsConfig with(int count, long milliseconds) {
        return new TopicsConfig(
                count,
                replicationFactor,
                minInsyncReplicas,
                recordRetentionMs,
                passingRetentionMs,
                weightsRetentionBytes,
                optimizerRetentionBytes,
                maxRecordBytes,
                schemasTopic,
                milliseconds);
    }

    /**
     * Refuses a retention too small for the policy.
     *
     * @param weights as {@link #sizedFor} takes them
     * @param optimizer likewise
     */
    public void requireRoomFor(long weights, long optimizer) {
        requireRoom("weights_retention_bytes", weightsRetentionBytes, weights);
        requireRoom("optimizer_retention_bytes", optimizerRetentionBytes, optimizer);
    }

    private static void requireRoom(String key, long keptBytes, long needed) {
        if (keptBytes > 0 && keptBytes < needed && needed != ALL) {
            throw new IllegalArgumentException(key + " must be at least " + needed
                    + " to keep the versions that the run's roles may reach back to, or 0 to leave it to the model's size: "
                    + keptBytes);
        }
    }

    private static void requireBetween(String key, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(key + " must be between " + least + " and " + most + ": " + value);
        }
    }

    private static void requireKept(String key, long value) {
        if (value != -1 && value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1, or -1 for no limit: " + value);
        }
    }
}
