package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import java.util.function.LongFunction;

/**
 * Versions from which training can go on: those that were published with the optimiser's state, and a run's first, whose state is
 * nothing but zeros. What lies between them, a learner learns again.
 */
public final class Checkpoints {
    private Checkpoints() {}

    /** Whether the optimiser's state of a version can be had. */
    public static boolean is(PolicyVersion manifest) {
        return manifest.getOptimizer() != null || manifest.getBatchId() < 0;
    }

    /**
     * The newest checkpoint that is not newer than a version.
     *
     * @param manifests by version; throws {@link VersionUnavailableException} for one that is not known
     * @throws VersionUnavailableException if it is not known any more
     */
    public static PolicyVersion atOrBefore(LongFunction<PolicyVersion> manifests, long version) {
        PolicyVersion manifest = manifests.apply(version);
        while (!is(manifest)) {
            manifest = manifests.apply(manifest.getVersion() - 1);
        }
        return manifest;
    }
}
