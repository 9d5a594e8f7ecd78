package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.weights.store.ObjectStore;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.LongFunction;

/**
 * The published versions of a run's policy: which there are, and their weights, verified.
 *
 * <p>A thread of its own follows {@code policy-versions} (read_committed, from the beginning, in no group), so that
 * {@link #newest()} and {@link #manifest} answer at once. Loading reads chunks or objects from where the manifest says
 * they lie, from the version's anchor on, and checks every hash; loads take turns on one consumer.
 *
 * <p>Records of another run, epoch or policy are refused and counted, records that cannot be decoded likewise; neither
 * stops the feed. What does stop it, such as a broker that refuses us or two learners writing one version, is thrown by
 * every later call.
 *
 * <p>Thread-safe. Whoever made the feed closes it.
 */
public final class PolicyFeed implements AutoCloseable {
    private static final Duration GIVEN_UP_CHECK = Duration.ofMillis(100);

    private final ManifestFollower follower;
    private final ChunkReader chunks;
    private final StoredTensors stored;
    private final VersionChain chain;
    private final Duration startLimit;
    private final OnBrokenVersion onBroken;

    /** Connects and begins to follow; returns before anything is known. */
    public PolicyFeed(LogConnection connection, WeightsConfig config) {
        this.startLimit = Duration.ofMillis(config.readTimeoutMs());
        this.follower = new ManifestFollower(connection, config.keptManifests());
        this.chunks = new ChunkReader(connection, startLimit);
        this.stored = new StoredTensors(ObjectStore.of(config.store()));
        this.chain = new VersionChain(follower::manifest, this::read);
        this.onBroken = config.onBrokenVersion();
    }

    /** What a reader that follows the newest version does when one cannot be put together. */
    OnBrokenVersion onBroken() {
        return onBroken;
    }

    /** The newest version seen so far; empty before the first was published or read. Never waits. */
    public Optional<PolicyVersion> newest() {
        return follower.newest();
    }

    /**
     * The newest version after everything that could be read when this feed was made has been read; empty if there was
     * none.
     *
     * <p>A commit is answered a moment before what it commits can be read. A caller that must know that there is no
     * newer version, such as a learner that starts, therefore first initialises a producer under the transactional id of
     * whoever publishes: that waits for the end of the last transaction.
     *
     * @throws VersionUnavailableException if the log could not be read to its end within {@code read_timeout_ms}
     */
    public Optional<PolicyVersion> newestCommitted() {
        follower.awaitCaughtUp(startLimit);
        return follower.newest();
    }

    /**
     * Waits until a version not older than {@code version} is published and returns the newest one.
     *
     * @throws VersionUnavailableException if none is there within the limit
     */
    public PolicyVersion awaitAtLeast(long version, Duration limit) {
        return follower.awaitNewerThan(version - 1, limit).orElseThrow(() -> new VersionUnavailableException(version,
            "version " + version + " was not published within " + limit.toMillis() + " ms; the newest is "
                + newest().map(newest -> Long.toString(newest.getVersion())).orElse("none") + " (" + follower.progress()
                + "); is the learner running?"));
    }

    /**
     * Waits for the first version and returns the newest one, after everything committed when this feed was made has been
     * read: what a role does that begins to serve.
     *
     * @param givenUp looked at several times a second; true ends the wait
     * @return empty if the wait was given up
     * @throws VersionUnavailableException if none is there within the limit
     */
    public Optional<PolicyVersion> awaitFirst(Duration limit, BooleanSupplier givenUp) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!givenUp.getAsBoolean()) {
            if (follower.awaitNewerThan(-1, GIVEN_UP_CHECK).isPresent()) {
                return newestCommitted();
            }
            if (System.nanoTime() - deadline > 0) {
                throw new VersionUnavailableException(0, "no policy version was published within " + limit.toMillis()
                    + " ms (" + follower.progress() + "); is the learner running?");
            }
        }
        return Optional.empty();
    }

    /** Waits until a version newer than {@code version} is published; empty if the limit passed without one. */
    public Optional<PolicyVersion> awaitNewerThan(long version, Duration limit) {
        return follower.awaitNewerThan(version, limit);
    }

    /**
     * The manifest of one version. Never waits.
     *
     * @throws VersionUnavailableException if it is not known: not published yet, or older than the manifests kept
     */
    public PolicyVersion manifest(long version) {
        return follower.manifest(version);
    }

    /** Records on {@code policy-versions} that were not taken: another run's, or not to be decoded. */
    public long refusedRecords() {
        return follower.refusedRecords();
    }

    /**
     * The weights of a version in new buffers that belong to the caller: its anchor, and every delta since.
     *
     * @throws VersionUnavailableException if the version, its chunks, or those of a version that it is a delta against
     *     cannot be had
     * @throws CorruptVersionException if one of them is not what its manifest says, or the tensors are not the shape's
     */
    public Weights load(long version) {
        return load(version, known -> null);
    }

    /**
     * The weights of a version in new buffers that belong to the caller, made from others that are at hand where that
     * spares reading: those of the version before it, and the newest version costs one delta.
     *
     * @param atHand weights of a version as {@link #load(long)} gave them, or null; not written
     * @throws VersionUnavailableException as {@link #load(long)}
     * @throws CorruptVersionException as {@link #load(long)}
     */
    public Weights load(long version, LongFunction<Weights> atHand) {
        PolicyVersion manifest = manifest(version);
        Weights weights = Weights.zeros(shapeOf(manifest));
        chain.load(manifest, weights.tensors().specs(), atHand).forEach(weights::load);
        return weights;
    }

    /**
     * Overwrites weights that the caller owns with those of a version; they are untouched if it fails.
     *
     * @throws VersionUnavailableException as {@link #load(long)}
     * @throws CorruptVersionException as {@link #load(long)}, or if the version is of another shape than {@code into}
     */
    public void load(long version, Weights into) {
        PolicyVersion manifest = manifest(version);
        DecoderShape published = shapeOf(manifest);
        if (!published.equals(into.shape())) {
            throw new CorruptVersionException(version, "version " + version + " is of the shape " + manifest.getShape()
                + ", not of the expected " + ShapeText.of(into.shape()));
        }
        chain.load(manifest, into.tensors().specs(), known -> null).forEach(into::load);
    }

    /**
     * The optimiser's state after the step that made a version, in new buffers that belong to the caller.
     *
     * @throws VersionUnavailableException as {@link #load(long)}, or if the version was published without it
     * @throws CorruptVersionException as {@link #load(long)}
     */
    public AdamW.State loadOptimizer(long version) {
        PolicyVersion manifest = manifest(version);
        if (manifest.getOptimizer() == null) {
            throw new VersionUnavailableException(version, "version " + version
                + " was published without the optimiser's state, so training cannot go on from it");
        }
        DecoderShape shape = shapeOf(manifest);
        return OptimizerTensors.state(shape, manifest.getOptimizerSteps(),
            read(manifest, manifest.getOptimizer(), OptimizerTensors.specs(shape), name -> {
                throw new CorruptVersionException(version, "version " + version
                    + " has a delta in the optimiser's state, which is always written whole: " + name);
            }));
    }

    /** The shape that a manifest declares. */
    public static DecoderShape shapeOf(PolicyVersion manifest) {
        try {
            return ShapeText.parse(manifest.getShape());
        } catch (IllegalArgumentException e) {
            throw new CorruptVersionException(manifest.getVersion(),
                "version " + manifest.getVersion() + " declares no usable shape: " + e.getMessage());
        }
    }

    private Map<String, ByteBuffer> read(PolicyVersion manifest, TensorLocation location, List<TensorSpec> expected,
                                         Function<String, ByteBuffer> base) {
        PublishedTensors published = new PublishedTensors(manifest, location);
        published.require(expected);
        Map<String, ByteBuffer> encoded = location.getUri() == null ? chunks.read(published) : stored.read(published);
        return published.verified(encoded, base);
    }

    @Override
    public void close() {
        follower.close();
        chunks.close();
    }
}
