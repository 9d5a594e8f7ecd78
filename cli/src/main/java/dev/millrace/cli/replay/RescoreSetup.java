package dev.millrace.cli.replay;

import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.Rescorer;
import dev.millrace.replay.retrain.Rescoring;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import org.jspecify.annotations.Nullable;

/** What {@code --rescore} needs beside the run: its versions, and an engine. */
final class RescoreSetup implements AutoCloseable {
    private final @Nullable RecordedVersions versions;
    private final @Nullable Rescorer rescorer;

    /** @param text as it was given; null if it was not */
    RescoreSetup(@Nullable String text, ReplayedRun run) {
        if (text == null) {
            versions = null;
            rescorer = null;
            return;
        }
        Rescoring what;
        try {
            what = Rescoring.parse(text);
        } catch (IllegalArgumentException e) {
            throw new ConfigException("--rescore " + e.getMessage(), e);
        }
        MillraceConfig config = run.config();
        versions = new RecordedVersions(run.recorded(), config.weights());
        rescorer = new Rescorer(
                versions,
                what,
                new Engine(Device.parse(config.run().device()), 1),
                config.scorer().cachedVersions(versions.shape().parameterCount()),
                config.scorer().tokenBudget());
    }

    /** Null if nothing is computed again. */
    @Nullable
    Rescorer rescorer() {
        return rescorer;
    }

    /**
     * Whether the run's learner decided by what then is decided: its step's own log-probs, none of them interpolated, and no
     * penalty in the reward or in the advantages.
     */
    boolean isLearnersDecision(MillraceConfig config) {
        return rescorer != null
                && rescorer.what().isAtStep()
                && config.algorithm().mode() == Mode.DECOUPLED
                && !(config.algorithm().kl() instanceof KlConfig.InReward)
                && !(config.algorithm().kl() instanceof KlConfig.Centred)
                && config.algorithm().missingOldLogProbs() == MissingOldLogProbs.RECOMPUTE;
    }

    @Override
    public void close() {
        if (rescorer != null) {
            rescorer.close();
        }
        if (versions != null) {
            versions.close();
        }
    }
}
