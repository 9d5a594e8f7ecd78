package dev.millrace.replay.retrain;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.VersionHash;
import java.util.OptionalLong;

/**
 * The optimiser's state after the step that made a version. Only some versions were published with it; that of another is learnt from the
 * newest of these before it, by the run's own settings.
 */
final class StateOfVersion {
    private final Engine engine;
    private final RecordedVersions versions;
    private final RecordedSteps steps;
    private final Variant own;

    /** @param own the run's settings */
    StateOfVersion(Engine engine, RecordedVersions versions, RecordedSteps steps, Variant own) {
        this.engine = engine;
        this.versions = versions;
        this.steps = steps;
        this.own = own;
    }

    /**
     * In buffers that belong to the caller.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if the log does not hold what that needs
     * @throws ArchiveException if a batch is not there, or other weights come out than were recorded
     */
    AdamW.State of(long version) {
        PolicyVersion checkpoint = Checkpoints.atOrBefore(versions::manifest, version);
        long from = checkpoint.getVersion();
        AdamW.State state = versions.loadOptimizer(from);
        if (from == version) {
            return state;
        }
        VersionInterval before = VersionInterval.of(from, version, versions);
        steps.requireAll(before);
        try (BatchOptimizer optimizer =
                new BatchOptimizer(engine, versions.shape(), own.lora(), own.step(), own.algorithm())) {
            OptionalLong reference = optimizer.referenceVersion();
            if (reference.isPresent()) {
                optimizer.useReference(versions.load(reference.getAsLong(), none -> null));
            }
            AdamW adamW = optimizer.newOptimizer();
            adamW.restore(state);
            Weights weights = optimizer.trainable(versions.load(from, none -> null));
            ControlState[] controls = {new ControlState(checkpoint.getControls())};
            steps.forEach(before, every -> true, step -> {
                StepReport report = optimizer.train(step.batch(), step.from(), controls[0], weights, adamW);
                controls[0] = report.controls();
                requireRecorded(step, VersionHash.of(weights), from, version);
            });
            return adamW.state();
        }
    }

    private static void requireRecorded(RecordedStep step, String found, long checkpoint, long wanted) {
        String recorded = step.made().getWeights().getSha256();
        if (!recorded.equals(found)) {
            throw new ArchiveException("the optimiser's state of version " + wanted
                    + " is to be learnt again from version " + checkpoint + ", and here the step on batch "
                    + step.batch().batch().getBatchId() + " makes the weights " + found + " in place of " + recorded
                    + ": another kind of processor, another release or other settings; begin with --from-version "
                    + checkpoint);
        }
    }
}
