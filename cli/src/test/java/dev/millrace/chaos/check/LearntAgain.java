package dev.millrace.chaos.check;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.report.RetrainRecord;
import dev.millrace.replay.retrain.Retraining;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.replay.retrain.VersionInterval;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.List;
import java.util.Optional;

/** Whether the weights of a run are those that are learnt again from its own batches. */
final class LearntAgain {
    private static final String PROMISE = "the weights equal those learnt again from the run's batches";
    /** Number of starting versions to try where the log has lost something. */
    private static final int PARTS = 8;

    private final LogConnection connection;
    private final MillraceConfig config;

    LearntAgain(LogConnection connection, MillraceConfig config) {
        this.connection = connection;
        this.config = config;
    }

    /** @param hasLost whether the log has lost what the first steps rest on */
    Check look(boolean hasLost) {
        String whyNot = "";
        for (int part = 0; part < (hasLost ? PARTS : 1); part++) {
            try (LiveRun run = new LiveRun(connection, Optional.empty());
                    RecordedVersions versions = new RecordedVersions(run, config.weights())) {
                long oldest = versions.oldest().orElse(0);
                long newest = versions.newest().orElse(0);
                return learnt(
                        run,
                        versions,
                        VersionInterval.of(oldest + part * (newest - oldest) / PARTS, newest, versions),
                        whyNot);
            } catch (RuntimeException e) {
                whyNot = whyNot.isEmpty() ? String.valueOf(e.getMessage()) : whyNot;
            }
        }
        return new Check(PROMISE, false, "they could not be learnt again: " + whyNot);
    }

    private Check learnt(LiveRun run, RecordedVersions versions, VersionInterval steps, String whyNotBefore) {
        RetrainRecord found = new RetrainRecord(List.of("recorded"));
        new Retraining(
                        run,
                        versions,
                        new Engine(Device.parse(config.run().device()), 1),
                        List.of(new Variant(
                                "recorded", config.algorithm(), config.learner().step(), config.adapter())),
                        Optional.empty(),
                        Optional.empty(),
                        Integer.MAX_VALUE)
                .replay(steps, found);
        return new Check(
                PROMISE,
                found.parted().isEmpty() && steps.steps() > 0,
                found.parted().isEmpty()
                        ? "bit for bit, " + steps.steps() + " steps"
                                + (whyNotBefore.isEmpty()
                                        ? ""
                                        : " from version " + steps.from() + " on; not from the first on: "
                                                + whyNotBefore)
                        : "they part at version " + found.parted().getAsLong());
    }
}
