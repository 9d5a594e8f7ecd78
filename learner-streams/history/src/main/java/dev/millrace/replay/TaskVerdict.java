package dev.millrace.replay;

import java.util.Map;
import java.util.Optional;

/**
 * How far the replay of one task went, and whether it is the run.
 *
 * @param task such as {@code join-3}
 * @param same by topic: records that were made again byte for byte
 * @param taken records that the task took in
 * @param beginnings how often it began on its stores; 1 if it was never restarted or moved
 * @param difference the first one, if there is one
 * @param gap what is missing in the record, if the replay could not go on to its end
 */
public record TaskVerdict(
        String task,
        Map<String, Long> same,
        long taken,
        int beginnings,
        Optional<ReplayDifference> difference,
        Optional<String> gap) {

    /** True if all that the task made was made again. */
    public boolean isProved() {
        return difference.isEmpty() && gap.isEmpty();
    }
}
