package dev.millrace.runtime.report;

import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import java.util.List;

/** Rollouts that can be trained on or measured: excludes those whose environment or verifier failed. */
final class JudgedRollouts {
    private JudgedRollouts() {}

    /** @throws RefusedRequestException if one has failed */
    static List<Rollout> require(List<Rollout> rollouts) {
        for (Rollout rollout : rollouts) {
            if (rollout.getFinishReason() == FinishReason.FAILED) {
                throw new RefusedRequestException("a response to the prompt of group " + rollout.getGroupId()
                        + " was sampled, but its episode failed: " + rollout.getError()
                        + "; fix that and retry");
            }
        }
        return rollouts;
    }
}
