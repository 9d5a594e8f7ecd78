package dev.millrace.weights;

import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The chain of a policy's manifests in one epoch. Accepts manifests that extend the chain and ignores all others.
 *
 * <p>The first is version 0, or in a later epoch the version that the claim names as its parent. Each next one has the
 * next number, names the one before it as its parent, and, if it is a delta, has its base on the chain. A manifest that
 * is ahead waits for those before it: after compaction, a manifest that was rewritten under its key lies behind its
 * successors. At most {@code kept} of the newest are kept whole.
 *
 * <p>Not thread-safe.
 */
final class ManifestHistory {
    private final Optional<Ancestor> parent;
    private final int kept;
    private final NavigableMap<Long, Taken> byVersion = new TreeMap<>();
    private final NavigableMap<Long, List<Taken>> ahead = new TreeMap<>();
    private @Nullable Taken tip;
    /** The base of the newest version, an adapter, if the base is older than the kept versions. */
    private @Nullable Taken base;

    private long forgottenUpTo = -1;
    private long lightUpTo = -1;
    private boolean settled;

    /**
     * @param offset its offset on the log
     * @param stateOffset offset of the copy that has the optimiser's state; {@code offset} if there is no such copy
     */
    private record Taken(PolicyVersion manifest, long offset, long stateOffset) {
        Taken(PolicyVersion manifest, long offset) {
            this(manifest, offset, offset);
        }

        /** Returns the same manifest with the optimiser's state of a copy. */
        Taken withStateOf(Taken copy) {
            return new Taken(copy.manifest(), offset, copy.offset());
        }

        /** Returns the manifest as it was before a later offset. */
        Taken before(long end) {
            return stateOffset < end ? this : new Taken(withoutState(manifest), offset);
        }

        long version() {
            return manifest.getVersion();
        }

        String hash() {
            return manifest.getWeights().getSha256();
        }
    }

    /** @param parent what the epoch began from, as the run's claim says; empty for a run's first epoch */
    ManifestHistory(Optional<Ancestor> parent, int kept) {
        this.parent = parent;
        this.kept = kept;
    }

    /**
     * Takes a manifest of this epoch if it extends the chain.
     *
     * @param offset its offset on the log
     * @return why it does not, as a clause; empty if it does, or is a copy of one that did
     */
    Optional<String> add(PolicyVersion manifest, long offset) {
        Taken offered = new Taken(manifest, offset);
        if (tip != null && offered.version() <= tip.version()) {
            return known(offered);
        }
        if (isNext(offered)) {
            take(offered);
            return Optional.empty();
        }
        if (offered.version() >= dueVersion() && !settled) {
            ahead.computeIfAbsent(offered.version(), version -> new ArrayList<>())
                    .add(offered);
            lighten();
            return Optional.empty();
        }
        return Optional.of(whyNotNext(manifest));
    }

    /**
     * The log is read to its end: from here on manifests come in their order.
     *
     * @return those that were ahead and to which nothing led, as offsets and why
     */
    Map<Long, String> settle() {
        settled = true;
        Map<Long, String> foreign = new TreeMap<>();
        ahead.values().forEach(same -> same.forEach(one -> foreign.put(one.offset(), whyNotNext(one.manifest()))));
        ahead.clear();
        return foreign;
    }

    /**
     * What lies before an offset, as after a log was cut off there.
     *
     * @return empty if that has been forgotten, so that all must be read again
     */
    Optional<ManifestHistory> before(long offset) {
        ManifestHistory cut = new ManifestHistory(parent, kept);
        cut.forgottenUpTo = forgottenUpTo;
        cut.settled = settled;
        cut.base = base == null || base.offset() >= offset ? null : base.before(offset);
        for (Taken taken : byVersion.values()) {
            if (taken.offset() < offset) {
                cut.byVersion.put(taken.version(), taken.before(offset));
                cut.tip = cut.byVersion.get(taken.version());
            }
        }
        return cut.tip == null ? Optional.empty() : Optional.of(cut);
    }

    private Optional<String> known(Taken offered) {
        Taken known = byVersion.get(offered.version());
        if (known == null || known.hash().equals(offered.hash())) {
            if (known != null && isWithState(offered.manifest(), known.manifest())) {
                byVersion.put(known.version(), known.withStateOf(offered));
                tip = Objects.requireNonNull(byVersion.lastEntry()).getValue();
            }
            return Optional.empty();
        }
        if (tip != null && known.version() == tip.version() && isConfirmed(offered)) {
            // compaction had left a foreign one alone under this key, until the right one was written again
            byVersion.remove(known.version());
            tip = byVersion.isEmpty() ? null : byVersion.lastEntry().getValue();
            boolean isRight = isNext(offered);
            take(isRight ? offered : known);
            if (isRight) {
                return Optional.empty();
            }
        }
        return Optional.of("version " + offered.version() + " has the weights " + known.hash()
                + " on the chain, this one says " + offered.hash());
    }

    /** A learner that stops writes the manifest of its last version once more, with the optimiser's state. */
    private static boolean isWithState(PolicyVersion copy, PolicyVersion known) {
        return copy.getOptimizer() != null
                && known.getOptimizer() == null
                && withoutState(copy).equals(known);
    }

    private static PolicyVersion withoutState(PolicyVersion manifest) {
        return PolicyVersion.newBuilder(manifest).setOptimizer(null).build();
    }

    /** Whether a delta that waits is one against exactly these weights. */
    private boolean isConfirmed(Taken offered) {
        return ahead.getOrDefault(offered.version() + 1, List.of()).stream()
                .anyMatch(next ->
                        offered.hash().equals(next.manifest().getWeights().getBaseSha256()));
    }

    private long dueVersion() {
        return tip == null ? parent.map(Ancestor::version).orElse(0L) : tip.version() + 1;
    }

    private boolean isNext(Taken offered) {
        PolicyVersion manifest = offered.manifest();
        TensorLocation weights = manifest.getWeights();
        if (offered.version() != dueVersion()) {
            return false;
        }
        if (tip == null) {
            return weights.getBaseVersion() == null
                    && parent.map(begun -> Objects.equals(manifest.getParentEpoch(), begun.epoch())
                                    && begun.weightsSha256().equals(offered.hash()))
                            .orElse(manifest.getParentEpoch() == null);
        }
        return manifest.getParentEpoch() == null
                && manifest.getParentVersion() == tip.version()
                && (weights.getBaseVersion() == null || isBase(weights));
    }

    private boolean isBase(TensorLocation weights) {
        Taken base = byVersion.get(weights.getBaseVersion());
        return base != null ? base.hash().equals(weights.getBaseSha256()) : weights.getBaseVersion() <= forgottenUpTo;
    }

    private String whyNotNext(PolicyVersion manifest) {
        TensorLocation weights = manifest.getWeights();
        String says = "version " + manifest.getVersion() + " of parent " + manifest.getParentVersion()
                + (weights.getBaseVersion() == null
                        ? ""
                        : ", a delta against version " + weights.getBaseVersion() + " with the weights "
                                + weights.getBaseSha256());
        return tip == null
                ? "the epoch begins with version " + dueVersion()
                        + parent.map(begun -> " of epoch " + begun.epoch() + ", which has the weights "
                                        + begun.weightsSha256())
                                .orElse("")
                        + ", and this is " + says
                : "version " + dueVersion() + " is next, after version " + tip.version() + " with the weights "
                        + tip.hash() + ", and this is " + says;
    }

    private void take(Taken next) {
        Taken taken = next;
        while (taken != null) {
            if (tip != null) {
                taken = new Taken(SharedNames.with(taken.manifest(), tip.manifest()), taken.offset());
            }
            byVersion.put(taken.version(), taken);
            tip = taken;
            while (byVersion.size() > kept) {
                Taken forgotten = byVersion.pollFirstEntry().getValue();
                forgottenUpTo = forgotten.version();
                if (isBaseOf(forgotten, tip)) {
                    base = forgotten;
                }
            }
            List<Taken> waiting = ahead.getOrDefault(dueVersion(), new ArrayList<>());
            taken = waiting.stream().filter(this::isNext).findFirst().orElse(null);
            waiting.remove(taken);
        }
    }

    private static boolean isBaseOf(Taken older, Taken newest) {
        AdapterBase of = newest.manifest().getAdapter();
        return of != null && of.getBaseVersion() == older.version();
    }

    /** Of those that wait, only the newest can still be among the newest of the chain. */
    private void lighten() {
        if (ahead.size() > kept) {
            Map.Entry<Long, List<Taken>> oldest = ahead.higherEntry(lightUpTo);
            if (oldest != null) {
                oldest.getValue().replaceAll(ManifestHistory::light);
                lightUpTo = oldest.getKey();
            }
        }
    }

    private static Taken light(Taken taken) {
        return new Taken(
                PolicyVersion.newBuilder(taken.manifest())
                        .setWeights(TensorLocation.newBuilder(taken.manifest().getWeights())
                                .setTensors(List.of())
                                .build())
                        .setOptimizer(null)
                        .build(),
                taken.offset());
    }

    /** Whether exactly this manifest is on the chain, as far as the chain is kept. */
    boolean has(PolicyVersion manifest) {
        Taken taken = byVersion.get(manifest.getVersion());
        return taken == null
                ? manifest.getVersion() <= forgottenUpTo
                : taken.hash().equals(manifest.getWeights().getSha256());
    }

    Optional<PolicyVersion> newest() {
        return Optional.ofNullable(tip).map(Taken::manifest);
    }

    Optional<PolicyVersion> find(long version) {
        Taken kept = byVersion.get(version);
        return Optional.ofNullable(kept == null && base != null && base.version() == version ? base : kept)
                .map(Taken::manifest);
    }

    /** @throws VersionUnavailableException saying whether it is not there yet or no longer kept */
    PolicyVersion get(long version) {
        Optional<PolicyVersion> known = find(version);
        if (known.isPresent()) {
            return known.get();
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
                        + (tip == null ? "none" : tip.version()));
    }

    /**
     * A manifest that has what it has in common with the one before it, the names, types and dimensions of its tensors, as the same
     * objects: of a thousand manifests that are kept, these would be more than half.
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
                    same(tensor.getSha256(), before.getSha256()), // of one that did not change
                    tensor.getEncoding(),
                    tensor.getEncodedBytes());
        }

        private static <T> T same(T own, T other) {
            return own.equals(other) ? other : own;
        }
    }
}
