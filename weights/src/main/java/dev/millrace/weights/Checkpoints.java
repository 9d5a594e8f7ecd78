package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import java.util.function.LongFunction;

/**
 * Versions from which training can continue: those that were published with the optimizer's state, and a run's first,
 * whose state is all zeros. A learner relearns the versions in between.
 */
public final class Checkpoints {
    private Checkpoints() {}

    /** Returns whether the optimizer's state of a version is available. */
    public static boolean is(PolicyVersion manifest) {
        return manifest.getOptimizer() != null || manifest.getBatchId() < 0;
    }

    /**
     * The newest checkpoint that is not newer than a version.
     *
     * @param manifests by version; throws {@link VersionUnavailableException} for an unknown one
     * @throws VersionUnavailableException if it is no longer known
     */
    public static PolicyVersion atOrBefore(LongFunction<PolicyVersion> manifests, long version) {
        PolicyVersion manifest = manifests.apply(version);
        while (!is(manifest)) {
            manifest = manifests.apply(manifest.getVersion() - 1);
        }
        return manifest;
    }
}
