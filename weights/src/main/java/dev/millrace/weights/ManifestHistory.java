package dev.millrace.weights;

import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.ManifestChain;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The newest manifests of one epoch's {@link ManifestChain}; at most {@code kept} are kept in full.
 *
 * <p>Not thread-safe.
 */
final class ManifestHistory {
    private final ManifestChain<Kept> chain;
    private final int kept;
    private final NavigableMap<Long, Kept> byVersion = new TreeMap<>();
    /** The base of the newest version, an adapter, if the base is older than the kept versions. */
    private @Nullable Kept base;

    /** @param stateOffset offset of the copy with the optimizer's state; {@code offset} without one */
    private record Kept(PolicyVersion manifest, long offset, long stateOffset) {
        Kept(PolicyVersion manifest, long offset) {
            this(manifest, offset, offset);
        }

        /** Returns the same manifest with the optimizer's state of a copy. */
        Kept withStateOf(Kept copy) {
            return new Kept(copy.manifest(), offset, copy.offset());
        }

        /** Returns the manifest as it was before a later offset. */
        Kept before(long end) {
            return stateOffset < end ? this : new Kept(withoutState(manifest), offset);
        }

        /** Returns the manifest without its tensors and optimizer's state. */
        Kept light() {
            return new Kept(
                    PolicyVersion.newBuilder(manifest)
                            .setWeights(TensorLocation.newBuilder(manifest.getWeights())
                                    .setTensors(List.of())
                                    .build())
                            .setOptimizer(null)
                            .build(),
                    offset);
        }

        long version() {
            return manifest.getVersion();
        }

        String hash() {
            return manifest.getWeights().getSha256();
        }
    }

    /** @param parent version that the epoch branched from, per the run's claim; empty for a run's first epoch */
    ManifestHistory(Optional<Ancestor> parent, int kept) {
        this(new ManifestChain<>(parent, kept, Kept::light), kept);
    }

    private ManifestHistory(ManifestChain<Kept> chain, int kept) {
        this.chain = chain;
        this.kept = kept;
    }

    /**
     * Takes a manifest of this epoch if it extends the chain.
     *
     * @return reason for a refusal, as a clause; empty if it extends the chain or is a copy
     */
    Optional<String> add(PolicyVersion manifest, long offset) {
        Kept offered = new Kept(manifest, offset);
        ManifestChain.Taken<Kept> taken = chain.add(ManifestChain.Link.of(manifest), offered);
        if (taken.versions().isEmpty() && taken.whyNot().isEmpty()) {
            takeState(offered);
        }
        taken.versions().values().forEach(this::keep);
        return taken.whyNot();
    }

    /** The key of a version has a tombstone. */
    void deleted(long version) {
        chain.deleted(version);
    }

    /**
     * Call when the log is read to its end: from now on manifests come in order.
     *
     * @return offsets of waiting manifests without predecessors, with reasons
     */
    Map<Long, String> settle() {
        Map<Long, String> foreign = new TreeMap<>();
        chain.settle().forEach(refused -> foreign.put(refused.value().offset(), refused.why()));
        return foreign;
    }

    /**
     * Returns the history before an offset, as after a truncation there.
     *
     * @return empty if it is no longer kept, so that everything must be read again
     */
    Optional<ManifestHistory> before(long offset) {
        NavigableMap<Long, Kept> left = new TreeMap<>(byVersion);
        left.values().removeIf(each -> each.offset() >= offset);
        if (left.isEmpty()) {
            return Optional.empty();
        }
        ManifestHistory cut = new ManifestHistory(chain.only(left.keySet()), kept);
        cut.base = base == null || base.offset() >= offset ? null : base.before(offset);
        left.forEach((version, each) -> cut.byVersion.put(version, each.before(offset)));
        return Optional.of(cut);
    }

    /** Handles a copy with the optimizer's state, which a stopping learner writes for its last version. */
    private void takeState(Kept copy) {
        Kept known = byVersion.get(copy.version());
        if (known != null
                && copy.manifest().getOptimizer() != null
                && known.manifest().getOptimizer() == null
                && withoutState(copy.manifest()).equals(known.manifest())) {
            byVersion.put(known.version(), known.withStateOf(copy));
        }
    }

    private static PolicyVersion withoutState(PolicyVersion manifest) {
        return PolicyVersion.newBuilder(manifest).setOptimizer(null).build();
    }

    private void keep(Kept next) {
        Map.Entry<Long, Kept> before = byVersion.lastEntry();
        Kept shared = before == null
                ? next
                : new Kept(SharedNames.with(next.manifest(), before.getValue().manifest()), next.offset());
        byVersion.put(shared.version(), shared);
        while (byVersion.size() > kept) {
            Kept forgotten = byVersion.pollFirstEntry().getValue();
            if (isBaseOf(forgotten, shared)) {
                base = forgotten;
            }
        }
    }

    private static boolean isBaseOf(Kept older, Kept newest) {
        AdapterBase of = newest.manifest().getAdapter();
        return of != null && of.getBaseVersion() == older.version();
    }

    /** Returns whether exactly this manifest is on the kept part of the chain. */
    boolean has(PolicyVersion manifest) {
        Kept known = byVersion.get(manifest.getVersion());
        return known == null
                ? manifest.getVersion() <= chain.forgottenUpTo()
                : known.hash().equals(manifest.getWeights().getSha256());
    }

    Optional<PolicyVersion> newest() {
        return byVersion.isEmpty()
                ? Optional.empty()
                : Optional.of(byVersion.lastEntry().getValue().manifest());
    }

    Optional<PolicyVersion> find(long version) {
        Kept known = byVersion.get(version);
        return Optional.ofNullable(known == null && base != null && base.version() == version ? base : known)
                .map(Kept::manifest);
    }

    /** @throws VersionUnavailableException saying whether it is not published yet or no longer kept */
    PolicyVersion get(long version) {
        Optional<PolicyVersion> known = find(version);
        if (known.isPresent()) {
            return known.get();
        }
        if (version <= chain.forgottenUpTo()) {
            throw new VersionUnavailableException("version " + version + " is older than the " + kept
                    + " newest manifests that are kept (kept_manifests)");
        }
        throw new VersionUnavailableException("version " + version + " is not among the published ones; the newest is "
                + (byVersion.isEmpty() ? "none" : byVersion.lastKey()));
    }

    /**
     * Shares tensor names, types and dimensions with the previous manifest: they would be more than half of the memory
     * of a thousand manifests.
     */
    static final class SharedNames {
        private SharedNames() {}

        /** An equal manifest. */
        static PolicyVersion with(PolicyVersion manifest, PolicyVersion before) {
            return new PolicyVersion(
                    same(manifest.getRunId(), before.getRunId()),
                    manifest.getEpoch(),
                    same(manifest.getPolicyId(), before.getPolicyId()),
                    manifest.getVersion(),
                    manifest.getParentVersion(),
                    manifest.getBatchId(),
                    same(manifest.getShape(), before.getShape()),
                    same(manifest.getTokenizerHash(), before.getTokenizerHash()),
                    with(manifest.getWeights(), before.getWeights()),
                    manifest.getOptimizer() == null || before.getOptimizer() == null
                            ? manifest.getOptimizer()
                            : with(manifest.getOptimizer(), before.getOptimizer()),
                    manifest.getOptimizerSteps(),
                    manifest.getRolloutsConsumed(),
                    manifest.getTokensTrained(),
                    manifest.getPublishedAtMs(),
                    manifest.getControls(),
                    manifest.getParentEpoch(),
                    manifest.getAdapter() == null || before.getAdapter() == null
                            ? manifest.getAdapter()
                            : same(manifest.getAdapter(), before.getAdapter()));
        }

        private static TensorLocation with(TensorLocation of, TensorLocation before) {
            List<TensorEntry> tensors = new ArrayList<>(of.getTensors().size());
            for (int i = 0; i < of.getTensors().size(); i++) {
                TensorEntry tensor = of.getTensors().get(i);
                tensors.add(
                        i < before.getTensors().size()
                                ? with(tensor, before.getTensors().get(i))
                                : tensor);
            }
            return new TensorLocation(
                    same(of.getTopic(), before.getTopic()),
                    of.getPartition(),
                    of.getFirstOffset(),
                    of.getLastOffset(),
                    tensors,
                    of.getSha256(),
                    of.getBaseVersion(),
                    of.getBaseSha256(),
                    of.getAnchorVersion(),
                    of.getUri());
        }

        private static TensorEntry with(TensorEntry tensor, TensorEntry before) {
            return new TensorEntry(
                    same(tensor.getName(), before.getName()),
                    same(tensor.getDtype(), before.getDtype()),
                    same(tensor.getDims(), before.getDims()),
                    tensor.getBytes(),
                    tensor.getChunks(),
                    same(tensor.getSha256(), before.getSha256()), // unchanged
                    tensor.getEncoding(),
                    tensor.getEncodedBytes());
        }

        private static <T> T same(T own, T other) {
            return own.equals(other) ? other : own;
        }
    }
}
