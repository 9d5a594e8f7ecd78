package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import java.util.List;
import java.util.Optional;

/**
 * Result of trying patches on the last batches.
 *
 * @param isCut the time limit ended it early
 * @param recorded the recorded course
 */
public record Trial(
        Cause cause,
        TrialLimit limit,
        Batches batches,
        double seconds,
        boolean isCut,
        TrialCourse recorded,
        List<TrialCourse> patched) {

    /**
     * True if the last step has neither the cause nor a more severe one. Recorded lengths surge under every patch:
     * it counts as fixed if the rate would have been lowered.
     */
    public boolean isMended(TrialCourse course) {
        if (cause == Cause.LENGTH_SURGE) {
            return course.guardedSteps() > 0 && recorded.guardedSteps() == 0;
        }
        return batches.count() > 0
                && course.diagnoses().last().isPresent()
                && !course.endsWith(cause)
                && course.diagnoses().last().get().branches().stream()
                        .noneMatch(branch -> branch.cause().compareTo(cause) < 0 && !recorded.endsWith(branch.cause()));
    }

    /**
     * The batches of a trial.
     *
     * @param first -1 if there is none
     * @param stalenessMean recorded, in versions over trainable tokens
     * @param notAsRecorded those that the run's own algorithm does not reproduce; their patches are not compared with
     *     the real run
     */
    public record Batches(long count, long rollouts, long first, long last, double stalenessMean, long notAsRecorded) {}

    /** How often the alarm clears without a patch. */
    public AlarmPersistence unpatched() {
        return AlarmPersistence.of(recorded.diagnoses().causeAt());
    }

    /** The first, so smallest, patch that clears the cause. */
    public Optional<TrialCourse> smallest() {
        return patched.stream().filter(this::isMended).findFirst();
    }

    /**
     * How often an alarm clears by itself: the baseline for a patch.
     *
     * @param followed steps with the alarm and a next step
     * @param gone next steps without it
     */
    public record AlarmPersistence(int followed, int gone) {

        /** @param alarms by step, in order */
        static AlarmPersistence of(List<Boolean> alarms) {
            int followed = 0;
            int gone = 0;
            for (int i = 0; i + 1 < alarms.size(); i++) {
                if (alarms.get(i)) {
                    followed++;
                    gone += alarms.get(i + 1) ? 0 : 1;
                }
            }
            return new AlarmPersistence(followed, gone);
        }

        /** True if it cleared at least once. */
        public boolean goesByItself() {
            return gone > 0;
        }

        /** False for an alarm shorter than the tree's window, which may be one noisy batch. */
        public boolean isKnown() {
            return goesByItself() || followed >= DiagnosticsCourse.WINDOW;
        }
    }
}
