package dev.millrace.replay;

import dev.millrace.replay.retrain.Agreement;
import java.util.Optional;

/**
 * What came of computing a batch's log-probs again.
 *
 * @param agreement with the recorded ones
 * @param isAsTrained whether the run's own corrections then decide what the learner's log says the step did; empty where that
 *     is not to be expected
 */
public record RescoredStep(Agreement agreement, Optional<Boolean> isAsTrained) {}
