package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.schemas.PolicyVersion;

/**
 * A step that the run's learner took.
 *
 * @param from the version that it began with
 * @param batch what it learnt from, as recorded
 * @param made the version that it made
 */
record RecordedStep(long from, TrainingBatch batch, PolicyVersion made) {}
