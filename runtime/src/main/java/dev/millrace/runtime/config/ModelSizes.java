package dev.millrace.runtime.config;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;

/**
 * What must be kept of a policy on the log: the versions that rollouts of a batch may name, the bases of their chains,
 * and the checkpoint from which a restarted learner relearns.
 *
 * @param weights bytes, each version counted as full; {@link TopicsConfig#ALL} to keep all
 * @param optimizer bytes of the optimizer's states
 */
public record ModelSizes(long weights, long optimizer) {
    private static final Duration STOP = Duration.ofSeconds(30);
    private static final long STATE_BYTES_A_SECOND = 16L << 20;

    /** A start-up message about the settings derived from the model's size; empty where every version is whole. */
    public static Optional<String> sentence(MillraceConfig config) {
        DecoderShape shape = config.shape();
        WeightsConfig weights = config.weights();
        VersionSize size = config.versionSize();
        int every = weights.checkpointEvery(size);
        if (every == 1) {
            return Optional.empty();
        }
        long parameters = shape.parameterCount();
        TopicsConfig topics = config.sizedTopics();
        if (size.isAdapter()) {
            return Optional.of(String.format(
                    Locale.ROOT,
                    "%,d parameters, and adapters train %,d instead, so: version 0 is %,d MB, once, and every other"
                            + " %.1f MB whole, every %dth;"
                            + " the optimiser's state is %.1f MB, with every %dth; the log keeps %s of versions and"
                            + " %s of optimizer states; a scorer keeps %d"
                            + " versions; each copy of the merged weights is %,d MB, the base of the adapters %,d"
                            + " MB in a process; this JVM has at most"
                            + " %,d MB of heap and as much off-heap (-Xmx)",
                    parameters,
                    size.parameters(),
                    megabytes(parameters * weights.dtype().bytes()),
                    weights.versionBytes(size) / 1e6,
                    weights.anchorEvery(size),
                    weights.stateBytes(size) / 1e6,
                    every,
                    kept(topics.weightsRetentionBytes()),
                    kept(topics.optimizerRetentionBytes()),
                    config.scorer().cachedVersions(parameters),
                    megabytes(Float.BYTES * parameters),
                    megabytes(parameters * weights.dtype().bytes()),
                    megabytes(Runtime.getRuntime().maxMemory())));
        }
        return Optional.of(String.format(
                Locale.ROOT,
                "%,d parameters, so: a version is %,d MB whole, every %dth; the optimiser's state is %,d MB, with"
                        + " every %dth; the log keeps %s of versions and %s of optimizer states; a scorer keeps %d"
                        + " versions; the learner has %,d MB in memory, each"
                        + " copy of the weights is %,d MB, and this JVM has at most %,d MB of heap and as much"
                        + " off-heap (-Xmx)",
                parameters,
                megabytes(parameters * weights.dtype().bytes()),
                weights.anchorEvery(size),
                megabytes(weights.stateBytes(size)),
                every,
                kept(topics.weightsRetentionBytes()),
                kept(topics.optimizerRetentionBytes()),
                config.scorer().cachedVersions(parameters),
                megabytes(2L * Float.BYTES * parameters + weights.stateBytes(size)),
                megabytes(Float.BYTES * parameters),
                megabytes(Runtime.getRuntime().maxMemory())));
    }

    /**
     * Time limit for an orderly stop: 30 s, plus the time to write the optimizer's state at 16 MiB a second where the
     * learner does so before it ends.
     */
    public static Duration stopLimit(MillraceConfig config) {
        WeightsConfig weights = config.weights();
        return weights.checkpointEvery(config.versionSize()) == 1
                ? STOP
                : STOP.plusSeconds(weights.stateBytes(config.versionSize()) / STATE_BYTES_A_SECOND);
    }

    /** Longest iteration of a role's loop: its patience plus its time to stop. */
    public static Duration turnLimit(MillraceConfig config) {
        return config.run().patience().plus(stopLimit(config));
    }

    private static String kept(long bytes) {
        return bytes == -1 ? "all" : String.format(Locale.ROOT, "%,d MB", megabytes(bytes));
    }

    private static long megabytes(long bytes) {
        return Math.round(bytes / 1e6);
    }

    static ModelSizes of(DecoderShape shape, Optional<LoraShape> lora, WeightsConfig config, Algorithm algorithm) {
        VersionSize size = VersionSize.of(shape, lora);
        long every = config.checkpointEvery(size);
        long versions =
                Math.min(Integer.MAX_VALUE, algorithm.staleness().maxVersions() + 1L + config.anchorEvery(size));
        // from the checkpoint before the oldest of them on
        long weights = size.isAdapter()
                ? TopicsConfig.ALL // adapters need the first version, so no version can be removed
                : Math.multiplyExact(config.versionBytes(size), versions + every - 1);
        long states = (versions + every - 1) / every;
        return new ModelSizes(weights, Math.multiplyExact(config.stateBytes(size), states));
    }
}
