package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.Cause;
import java.util.List;
import java.util.Optional;

/**
 * Result of applying patches to the last batches of a run: the same rollouts and batches, with other decisions.
 *
 * @param cause the cause that the patches address
 * @param limit bound of the trial
 * @param steps number of batches decided again
 * @param rollouts in them
 * @param firstBatch the first of them; -1 if there is none
 * @param lastBatch the last
 * @param stalenessMean in versions, over their trainable tokens, as recorded
 * @param seconds that it took
 * @param isCut whether its time was over before all batches were decided
 * @param notAsRecorded batches that the run's own algorithm does not reproduce: for these a patch is not compared with
 *     the real run
 * @param recorded the recorded run
 * @param patched one for each patch, in their order
 */
public record Trial(
        Cause cause,
        TrialLimit limit,
        long steps,
        long rollouts,
        long firstBatch,
        long lastBatch,
        double stalenessMean,
        double seconds,
        boolean isCut,
        long notAsRecorded,
        TrialCourse recorded,
        List<TrialCourse> patched) {
    public Trial {
        patched = List.copyOf(patched);
    }

    /**
     * Whether a patch answers the cause: it is not named at the last step any more, and none that is more severe in its place. The
     * recorded lengths surge under every patch; that is answered where the rate would have been lowered.
     */
    public boolean isMended(TrialCourse course) {
        if (cause == Cause.LENGTH_SURGE) {
            return course.guardedSteps() > 0 && recorded.guardedSteps() == 0;
        }
        return steps > 0
                && course.last().isPresent()
                && !course.endsWith(cause)
                && course.last().get().branches().stream()
                        .noneMatch(branch -> branch.cause().compareTo(cause) < 0 && !recorded.endsWith(branch.cause()));
    }

    /** Whether the alarm goes by itself, as far as the run as it went shows it. */
    public AlarmPersistence unpatched() {
        return AlarmPersistence.of(recorded.causeAt());
    }

    /** The first of the patches, so the smallest, that answers the cause. */
    public Optional<TrialCourse> smallest() {
        return patched.stream().filter(this::isMended).findFirst();
    }
}
