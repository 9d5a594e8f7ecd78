package dev.millrace.schemas.run;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The chain of a policy's manifests in one epoch: the rule for valid versions, shared by all readers.
 *
 * <p>The first is version 0, or in a later epoch the parent version in the claim. Each next one has the
 * next number, names the one before it as its parent, and, if it is a delta, has its base on the chain; for a reader that
 * keeps no hashes, it is of a later batch instead. A manifest that is ahead waits for those before it: after compaction, a
 * manifest that was rewritten under its key lies behind its successors. The wait ends with a tombstone, or when the log is
 * read to its end.
 *
 * <p>The chain does not verify weights; loaders do. Not thread-safe.
 *
 * @param <T> the reader's value per manifest
 */
public final class ManifestChain<T> {
    private static final long OF_NO_BATCH = -1;
    private static final int MOST_AHEAD = 1 << 14;

    private final long first;
    private final Optional<Ancestor> parent;
    private final int kept;
    private final UnaryOperator<T> light;
    private final NavigableMap<Long, Link> links = new TreeMap<>();
    private final NavigableMap<Long, List<Waiting<T>>> ahead = new TreeMap<>();
    private @Nullable Link tip;
    private long forgottenUpTo = -1;
    private long lightUpTo = -1;
    private boolean settled;

    /**
     * The fields of a manifest that decide whether it extends a chain.
     *
     * @param sha256 of its weights; null for a reader that identifies versions by batch instead of hash
     * @param baseVersion base version of a delta; null for whole weights
     */
    public record Link(
            long version,
            long parentVersion,
            @Nullable Integer parentEpoch,
            long batchId,
            @Nullable String sha256,
            @Nullable Long baseVersion,
            @Nullable String baseSha256) {
        public static Link of(PolicyVersion manifest) {
            TensorLocation weights = manifest.getWeights();
            return new Link(
                    manifest.getVersion(),
                    manifest.getParentVersion(),
                    manifest.getParentEpoch(),
                    manifest.getBatchId(),
                    weights.getSha256(),
                    weights.getBaseVersion(),
                    weights.getBaseSha256());
        }

        /** Returns a link without hashes, for a manifest whose parent the reader has checked. */
        public static Link ofBatch(long version, long batchId) {
            return new Link(version, version - 1, null, batchId, null, null, null);
        }

        /** The required parent: the previous version, or for an epoch's first manifest the same version. */
        public long dueParent() {
            return parentEpoch == null ? version - 1 : version;
        }

        private boolean isSame(Link other) {
            return sha256 == null ? batchId == other.batchId : sha256.equals(other.sha256);
        }
    }

    /**
     * Result of offering a manifest. Without versions and reason it waits, or is a copy of a valid one.
     *
     * @param versions newly valid or replaced ones, in order
     * @param whyNot why it does not extend the chain, as a clause; empty otherwise
     */
    public record Taken<T>(NavigableMap<Long, T> versions, Optional<String> whyNot) {}

    /** A manifest without predecessor, and why it does not extend the chain. */
    public record Refused<T>(long version, T value, String why) {}

    private record Waiting<T>(Link link, T value) {}

    /** @param parent version that the epoch branched from, per the run's claim; empty for a run's first epoch */
    public ManifestChain(Optional<Ancestor> parent) {
        this(parent, Integer.MAX_VALUE, value -> value);
    }

    /**
     * A chain that drops old links.
     *
     * @param kept number of newest links to keep, at least 1
     * @param light shrinks a waiting value that can no longer be among the {@code kept} newest
     */
    public ManifestChain(Optional<Ancestor> parent, int kept, UnaryOperator<T> light) {
        this(parent.map(Ancestor::version).orElse(0L), parent, kept, light);
    }

    private ManifestChain(long first, Optional<Ancestor> parent, int kept, UnaryOperator<T> light) {
        this.first = first;
        this.parent = parent;
        this.kept = kept;
        this.light = light;
    }

    /** A chain of {@link Link#ofBatch links without hashes} that begins with this version. */
    public static <T> ManifestChain<T> ofBatches(long first) {
        return new ManifestChain<>(first, Optional.empty(), Integer.MAX_VALUE, value -> value);
    }

    /** Offers a manifest of this epoch, in the order of the log. */
    public Taken<T> add(Link offered, T value) {
        if (tip != null && offered.version() <= tip.version()) {
            return known(offered, value);
        }
        if (isNext(offered)) {
            if (offered.sha256() == null) {
                ahead.remove(offered.version());
            }
            return new Taken<>(take(offered, value), Optional.empty());
        }
        if (offered.version() >= due() && !settled) {
            List<Waiting<T>> same = ahead.computeIfAbsent(offered.version(), version -> new ArrayList<>());
            if (offered.sha256() == null) {
                same.clear(); // the last one of a key is valid
            }
            same.add(new Waiting<>(offered, value));
            lighten();
            return new Taken<>(Collections.emptyNavigableMap(), Optional.empty());
        }
        return new Taken<>(Collections.emptyNavigableMap(), Optional.of(whyNotNext(offered)));
    }

    /**
     * Begins an empty chain with a manifest that is known to be valid: from a store, or with deleted predecessors.
     *
     * @return newly valid versions
     */
    public NavigableMap<Long, T> begin(Link with, T value) {
        if (tip != null) {
            throw new IllegalStateException("the chain has begun and ends with version " + tip.version());
        }
        forgottenUpTo = with.version() - 1;
        return take(with, value);
    }

    /**
     * Begins with the oldest waiting manifest if the log no longer has the epoch's first.
     *
     * @return newly valid versions; none if the chain has begun, or none waits
     */
    public NavigableMap<Long, T> beginWithOldest() {
        if (tip != null || ahead.isEmpty()) {
            return Collections.emptyNavigableMap();
        }
        Waiting<T> oldest = ahead.pollFirstEntry().getValue().get(0);
        return begin(oldest.link(), oldest.value());
    }

    /** The newest valid version; empty without one. */
    public OptionalLong newest() {
        return tip == null ? OptionalLong.empty() : OptionalLong.of(tip.version());
    }

    /** Call when the log is read to its end: from now on manifests come in order. Returns those without predecessor. */
    public List<Refused<T>> settle() {
        settled = true;
        List<Refused<T>> refused = new ArrayList<>();
        ahead.values()
                .forEach(same -> same.forEach(
                        one -> refused.add(new Refused<>(one.link().version(), one.value(), whyNotNext(one.link())))));
        ahead.clear();
        return refused;
    }

    /** Handles a version's tombstone: stops waiting for it. A valid version stays. */
    public void deleted(long version) {
        ahead.remove(version);
    }

    /** Returns whether this version waits for its predecessors. */
    public boolean isAhead(long version) {
        return ahead.containsKey(version);
    }

    /** Drops the version that is farthest ahead if more than {@value #MOST_AHEAD} wait. */
    public OptionalLong giveUpFarthest() {
        return ahead.size() > MOST_AHEAD ? OptionalLong.of(ahead.pollLastEntry().getKey()) : OptionalLong.empty();
    }

    /** Drops the links of older versions, but never that of the newest. */
    public void forgetBefore(long version) {
        while (links.size() > 1 && links.firstKey() < version) {
            forgottenUpTo = links.pollFirstEntry().getKey();
        }
    }

    /** The newest version whose link is dropped; -1 if there is none. */
    public long forgottenUpTo() {
        return forgottenUpTo;
    }

    /** A chain of these versions alone, as after a truncation; at least one must be on this chain. */
    public ManifestChain<T> only(Set<Long> versions) {
        ManifestChain<T> cut = new ManifestChain<>(first, parent, kept, light);
        cut.forgottenUpTo = forgottenUpTo;
        cut.settled = settled;
        cut.links.putAll(links);
        cut.links.keySet().retainAll(versions);
        cut.tip = cut.links.lastEntry().getValue();
        return cut;
    }

    private Taken<T> known(Link offered, T value) {
        Link known = links.get(offered.version());
        if (known == null || known.isSame(offered)) {
            return new Taken<>(Collections.emptyNavigableMap(), Optional.empty());
        }
        if (known.sha256() == null ? isBetween(offered) : isInPlaceOf(known, offered)) {
            return new Taken<>(take(offered, value), Optional.empty());
        }
        return new Taken<>(
                Collections.emptyNavigableMap(),
                Optional.of(
                        known.sha256() == null
                                ? "version " + known.version() + " is of batch " + known.batchId()
                                        + " on the chain, this record says " + offered.batchId()
                                : "version " + known.version() + " has the weights " + known.sha256()
                                        + " on the chain, this record says " + offered.sha256()));
    }

    /** Without hashes: the chain's own manifest replaced a foreign one under its key, or the reverse. */
    private boolean isBetween(Link offered) {
        Map.Entry<Long, Link> before = links.lowerEntry(offered.version());
        Map.Entry<Long, Link> after = links.higherEntry(offered.version());
        return (before == null || isBehind(before.getValue(), offered))
                && (after == null || offered.batchId() < after.getValue().batchId());
    }

    /** Compaction had kept only a foreign one under this key, until the right one was written again. */
    private boolean isInPlaceOf(Link known, Link offered) {
        Link newest = Objects.requireNonNull(tip);
        if (known.version() != newest.version() || !isConfirmed(offered)) {
            return false;
        }
        links.remove(known.version());
        tip = links.isEmpty() ? null : links.lastEntry().getValue();
        boolean isRight = isNext(offered);
        links.put(known.version(), known);
        tip = newest;
        return isRight;
    }

    /** Returns whether a waiting delta has exactly these weights as base. */
    private boolean isConfirmed(Link offered) {
        String sha256 = offered.sha256();
        return sha256 != null
                && ahead.getOrDefault(offered.version() + 1, List.of()).stream()
                        .anyMatch(next -> sha256.equals(next.link().baseSha256()));
    }

    private long due() {
        return tip == null ? first : tip.version() + 1;
    }

    private boolean isNext(Link offered) {
        if (offered.version() != due()) {
            return false;
        }
        if (tip == null) {
            return offered.sha256() == null
                    || offered.baseVersion() == null
                            && parent.map(begun -> Objects.equals(offered.parentEpoch(), begun.epoch())
                                            && begun.weightsSha256().equals(offered.sha256()))
                                    .orElse(offered.parentEpoch() == null);
        }
        return offered.parentEpoch() == null
                && offered.parentVersion() == offered.dueParent()
                && (offered.sha256() == null
                        ? isBehind(tip, offered)
                        : offered.baseVersion() == null || isBase(offered));
    }

    /** Returns whether a version has a later batch than its predecessor; initial weights have none. */
    private static boolean isBehind(Link before, Link version) {
        return version.batchId() > before.batchId()
                || version.batchId() == OF_NO_BATCH && before.batchId() == OF_NO_BATCH;
    }

    private boolean isBase(Link delta) {
        long version = Objects.requireNonNull(delta.baseVersion());
        Link base = links.get(version);
        return base != null ? Objects.equals(base.sha256(), delta.baseSha256()) : version <= forgottenUpTo;
    }

    private String whyNotNext(Link offered) {
        String says = "version " + offered.version() + " of parent " + offered.parentVersion()
                + (offered.baseVersion() == null
                        ? ""
                        : ", a delta against version " + offered.baseVersion() + " with the weights "
                                + offered.baseSha256());
        if (tip == null) {
            return "the epoch begins with version " + due()
                    + parent.map(begun ->
                                    " of epoch " + begun.epoch() + ", which has the weights " + begun.weightsSha256())
                            .orElse("")
                    + ", and this is " + says;
        }
        return "version " + due() + " is due, after version " + tip.version()
                + (tip.sha256() == null ? " of batch " + tip.batchId() : " with the weights " + tip.sha256())
                + ", and this is " + says
                + (tip.sha256() == null ? " and batch " + offered.batchId() : "");
    }

    private NavigableMap<Long, T> take(Link next, T value) {
        NavigableMap<Long, T> taken = new TreeMap<>();
        Waiting<T> due = new Waiting<>(next, value);
        while (due != null) {
            links.put(due.link().version(), due.link());
            taken.put(due.link().version(), due.value());
            tip = links.lastEntry().getValue();
            while (links.size() > kept) {
                forgottenUpTo = links.pollFirstEntry().getKey();
            }
            due = nextWaiting();
        }
        return taken;
    }

    private @Nullable Waiting<T> nextWaiting() {
        List<Waiting<T>> waiting = ahead.getOrDefault(due(), List.of());
        List<Waiting<T>> extending =
                waiting.stream().filter(one -> isNext(one.link())).toList();
        if (extending.isEmpty()) {
            return null;
        }
        Waiting<T> next = extending.stream()
                .filter(one -> isConfirmed(one.link()))
                .findFirst()
                .orElse(extending.get(0));
        waiting.remove(next);
        if (waiting.isEmpty()) {
            ahead.remove(next.link().version());
        }
        return next;
    }

    /** Of the waiting ones, only the newest can still be among the newest of the chain. */
    private void lighten() {
        if (ahead.size() > kept) {
            Map.Entry<Long, List<Waiting<T>>> oldest = ahead.higherEntry(lightUpTo);
            if (oldest != null) {
                oldest.getValue().replaceAll(one -> new Waiting<>(one.link(), light.apply(one.value())));
                lightUpTo = oldest.getKey();
            }
        }
    }
}
