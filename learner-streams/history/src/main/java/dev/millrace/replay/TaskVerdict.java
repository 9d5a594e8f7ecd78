package dev.millrace.replay;

import java.util.Map;
import java.util.Optional;

/**
 * Result of replaying one task.
 *
 * @param task such as {@code join-3}
 * @param same records reproduced byte for byte, by topic
 * @param beginnings starts on its stores; 1 without restart or move
 * @param difference the first one
 * @param gap missing part of the record that ended the replay
 */
public record TaskVerdict(
        String task,
        Map<String, Long> same,
        long taken,
        int beginnings,
        Optional<ReplayDifference> difference,
        Optional<String> gap) {

    /** True if everything was reproduced. */
    public boolean isProved() {
        return difference.isEmpty() && gap.isEmpty();
    }
}
