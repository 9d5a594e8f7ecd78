package dev.millrace.scorer;

import dev.millrace.schemas.Rollout;

/** What became of a record on the rollouts topic. */
sealed interface RolloutReading {

    /**
     * A rollout that can be scored.
     *
     * @param rollout as it was read
     * @param partition it was read from
     * @param offset it was read at
     * @param tokens prompt and response
     * @param promptLength where the response begins
     * @param mask one per response token
     * @param temperature it was sampled at
     */
    record Scorable(
            Rollout rollout, int partition, long offset, int[] tokens, int promptLength, byte[] mask, float temperature)
            implements RolloutReading {

        int responseLength() {
            return mask.length;
        }
    }

    /**
     * One that cannot; the topology dead-letters it, from the same record.
     *
     * @param reason to count by
     * @param message one sentence
     */
    record Skipped(String reason, String message) implements RolloutReading {}
}
