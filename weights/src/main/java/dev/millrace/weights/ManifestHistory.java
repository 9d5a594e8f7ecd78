package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The newest manifests of one policy by version, at most so many of them.
 *
 * <p>Not thread-safe.
 */
final class ManifestHistory {
    private final NavigableMap<Long, PolicyVersion> byVersion = new TreeMap<>();
    private final int kept;
    private long forgottenUpTo = -1;

    ManifestHistory(int kept) {
        this.kept = kept;
    }

    /**
     * Adds a manifest.
     *
     * @throws IllegalStateException if the version is known with other weights: the run then has two histories
     */
    void add(PolicyVersion manifest) {
        PolicyVersion known = byVersion.get(manifest.getVersion());
        if (known != null
                && !known.getWeights().getSha256().equals(manifest.getWeights().getSha256())) {
            throw new IllegalStateException("version " + manifest.getVersion() + " of " + manifest.getPolicyId()
                    + " was published twice, with weights " + known.getWeights().getSha256() + " and "
                    + manifest.getWeights().getSha256() + ": two learners wrote to one run");
        }
        if (manifest.getVersion() <= forgottenUpTo) {
            return;
        }
        byVersion.put(manifest.getVersion(), manifest);
        while (byVersion.size() > kept) {
            forgottenUpTo = byVersion.pollFirstEntry().getKey();
        }
    }

    Optional<PolicyVersion> newest() {
        return byVersion.isEmpty()
                ? Optional.empty()
                : Optional.of(byVersion.lastEntry().getValue());
    }

    /** @throws VersionUnavailableException saying whether it is not there yet or no longer kept */
    PolicyVersion get(long version) {
        PolicyVersion manifest = byVersion.get(version);
        if (manifest != null) {
            return manifest;
        }
        if (version <= forgottenUpTo) {
            throw new VersionUnavailableException(
                    version,
                    "version " + version + " is older than the " + kept
                            + " newest manifests that are kept (kept_manifests)");
        }
        throw new VersionUnavailableException(
                version,
                "version " + version + " is not among the published ones; the newest is "
                        + (byVersion.isEmpty() ? "none" : byVersion.lastKey()));
    }
}
