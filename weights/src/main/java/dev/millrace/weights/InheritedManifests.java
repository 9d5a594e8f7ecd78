package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The versions of older epochs that are the policy's past in this one: those before the versions from which it and its ancestors
 * went on. They can be loaded; none of them is ever the newest. What the older epochs published after the branch is passed over.
 *
 * <p>Not thread-safe.
 */
final class InheritedManifests {
    private final EpochLineage lineage;
    private final Map<Integer, ManifestHistory> chains = new LinkedHashMap<>();

    /** @param kept manifests of each epoch, at most; the newest before the branch */
    InheritedManifests(EpochLineage lineage, int kept) {
        this.lineage = lineage;
        EpochLineage younger = lineage;
        for (Ancestor ancestor : lineage.ancestors()) {
            younger = younger.ofParent();
            chains.put(ancestor.epoch(), new ManifestHistory(younger.parent(), kept));
        }
    }

    /** Takes a manifest of an older epoch if it is of this one's past and extends that epoch's chain. */
    void add(PolicyVersion manifest, long offset) {
        ManifestHistory chain = chains.get(manifest.getEpoch());
        if (chain != null && lineage.inherits(manifest.getEpoch(), manifest.getVersion())) {
            chain.add(manifest, offset);
        }
    }

    /** The log is read to its end. */
    void settle() {
        chains.values().forEach(ManifestHistory::settle);
    }

    Optional<PolicyVersion> find(long version) {
        return chains.entrySet().stream()
                .filter(chain -> lineage.inherits(chain.getKey(), version))
                .flatMap(chain -> chain.getValue().find(version).stream())
                .findFirst();
    }
}
