package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The published versions of a run's policy, with verified weights.
 *
 * <p>Its own thread follows {@code policy-versions} (read_committed, from the beginning, without a group), so that
 * {@link #newest()} and {@link #manifest} return at once. Loading reads the chunks or objects that the manifests name,
 * from the version's anchor on, and checks every hash. Loads take turns on one consumer.
 *
 * <p>The feed refuses and counts records of another run, epoch or policy, and undecodable ones. It does the same with
 * manifests that do not extend the chain, such as a second manifest of a version. These do not stop the feed. An error that
 * stops it, such as a broker that rejects the client, is thrown by every later call.
 *
 * <p>Thread-safe. The creator of the feed closes it.
 */
public final class PolicyFeed implements AutoCloseable {
    private static final Duration GIVEN_UP_CHECK = Duration.ofMillis(100);

    private final ManifestFollower follower;
    private final ChunkReader chunks;
    private final VersionLoader versions;
    private final String place;
    private final Duration startLimit;
    private final BrokenVersionPolicy onBroken;
    private final String wayOut;
    private final long unservedMs;

    /** Connects and starts to follow; returns immediately. */
    public PolicyFeed(LogConnection connection, WeightsConfig config) {
        this(connection, config, offset -> {});
    }

    /**
     * As {@link #PolicyFeed(LogConnection, WeightsConfig)}, for the role that cleans up {@code policy-versions}.
     *
     * @param onForeign receives, on the following thread, the offset of each manifest that does not extend the run's
     *     chain, and of every other record under a key of the run
     */
    public PolicyFeed(LogConnection connection, WeightsConfig config, LongConsumer onForeign) {
        this.startLimit = connection.limit(config.readTimeoutMs());
        this.follower = new ManifestFollower(connection, config.keptManifests(), onForeign);
        this.chunks = new ChunkReader(connection, startLimit);
        this.versions = new VersionLoader(follower::manifest, chunks, connection.registry(), config);
        this.onBroken = config.onBrokenVersion();
        this.wayOut = connection.command("repair");
        this.unservedMs = config.unservedAlarmMs();
        this.place = connection.clientProperties().get("bootstrap.servers") + "/"
                + connection.topics().weights() + "/" + connection.run().runId() + "/"
                + connection.run().policyId();
    }

    /**
     * Connects to read one version by number: keeps manifests back to that one, where a following reader keeps {@code
     * kept_manifests}. Waits for committed records.
     *
     * @throws VersionUnavailableException as {@link #newestCommitted()}
     */
    public static PolicyFeed reaching(long version, LogConnection connection, WeightsConfig config) {
        PolicyFeed feed = new PolicyFeed(connection, config);
        long back = feed.newestCommitted()
                .map(newest -> newest.getVersion() - version)
                .orElse(0L);
        int needed = config.manifestsBackTo(back);
        if (needed <= config.keptManifests()) {
            return feed;
        }
        feed.close();
        return new PolicyFeed(connection, config.knowing(needed));
    }

    BrokenVersionPolicy onBroken() {
        return onBroken;
    }

    /** The command that names ways out if the newest version is broken. */
    String wayOut() {
        return wayOut;
    }

    /** The newest version seen so far; empty before the first was published or read. Never waits. */
    public Optional<PolicyVersion> newest() {
        return follower.newest();
    }

    /**
     * Records a turn of a server's loop, to detect an older version served for longer than {@code unserved_alarm_ms}.
     *
     * @param version served version; -1 for none
     */
    public void turned(Pulse server, long version) {
        server.turnServing(version, newest().map(PolicyVersion::getVersion).orElse(version), unservedMs);
    }

    /**
     * Returns the newest version, after reading everything committed when this feed was created; empty if there was
     * none.
     *
     * <p>A commit returns a moment before its records can be read. A caller that must know that there is no newer
     * version, such as a starting learner, therefore first initialises a producer under the publisher's transactional
     * id. This waits for the end of the last transaction.
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
        return follower.awaitNewerThan(version - 1, limit)
                .orElseThrow(() -> new VersionUnavailableException(
                        "version " + version + " was not published within " + limit.toMillis() + " ms; the newest is "
                                + newest().map(newest -> Long.toString(newest.getVersion()))
                                        .orElse("none") + " (" + follower.progress()
                                + "); is the learner running?"));
    }

    /**
     * Waits for the first version and returns the newest one, after reading everything committed when this feed was
     * created. For roles that start to serve.
     *
     * @param givenUp polled several times a second; true ends the wait
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
                throw new VersionUnavailableException("no policy version was published within " + limit.toMillis()
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
     * Waits for another version than the one served: a newer one, or the newest one if a truncated log lost the served
     * one; empty after the limit.
     */
    Optional<PolicyVersion> awaitOther(PolicyVersion served, Duration limit) {
        return follower.awaitOther(served, limit);
    }

    /**
     * The manifest of one version. Never waits.
     *
     * @throws VersionUnavailableException if it is not known: not published yet, or older than the manifests kept
     */
    public PolicyVersion manifest(long version) {
        return follower.manifest(version);
    }

    /**
     * Range of the weights topic that a version needs, and the part still there; empty if its weights are in an object
     * store.
     *
     * @throws VersionUnavailableException if its manifest is not known, or that of its anchor
     */
    public Optional<VersionStretch> stretch(long version) {
        Long of = manifest(version).getWeights().getAnchorVersion();
        long anchor = of == null ? version : of;
        TensorLocation location = manifest(anchor).getWeights();
        if (location.getUri() != null) {
            return Optional.empty();
        }
        long newest = newest().orElseThrow().getVersion();
        long bytes = 0;
        for (long each = anchor; each <= newest; each++) {
            for (TensorEntry tensor : manifest(each).getWeights().getTensors()) {
                bytes += tensor.getEncodedBytes() == null ? tensor.getBytes() : tensor.getEncodedBytes();
            }
        }
        return Optional.of(
                new VersionStretch(location.getTopic(), location.getFirstOffset(), chunks.begin(location), bytes));
    }

    /**
     * Loads a version's weights into new buffers owned by the caller: its anchor, and every delta since.
     *
     * @throws VersionUnavailableException if the version, its chunks, or those of a version in its delta chain are
     * missing
     * @throws CorruptVersionException if one of them contradicts its manifest, or the tensors do not fit the shape
     */
    public Weights load(long version) {
        return load(version, known -> null);
    }

    /**
     * Loads a version's weights into new buffers owned by the caller, starting from given weights if that saves reads:
     * from the previous version's, a version costs one delta.
     *
     * @param atHand loaded weights of a version, or null; read-only
     * @throws VersionUnavailableException as {@link #load(long)}
     * @throws CorruptVersionException as {@link #load(long)}
     */
    public Weights load(long version, LongFunction<@Nullable Weights> atHand) {
        return versions.load(version, atHand);
    }

    /**
     * The weights of a version as {@link #load(long, LongFunction)} gives them, shared with other roles of this
     * process; read-only.
     *
     * @throws VersionUnavailableException as {@link #load(long)}
     * @throws CorruptVersionException as {@link #load(long)}
     */
    public Weights shared(long version, LongFunction<@Nullable Weights> atHand) {
        PolicyVersion manifest = manifest(version);
        String identity = place + "/" + manifest.getEpoch() + "/" + version + "/"
                + manifest.getWeights().getSha256();
        return Shared.VERSIONS.get(identity, () -> load(version, atHand));
    }

    /**
     * Loads the optimizer's state after the step that made a version, into new buffers owned by the caller.
     *
     * @throws VersionUnavailableException as {@link #load(long)}, or if the version was published without it
     * @throws CorruptVersionException as {@link #load(long)}
     */
    public AdamW.State loadOptimizer(long version) {
        return versions.loadOptimizer(version);
    }

    public static DecoderShape shapeOf(PolicyVersion manifest) {
        return VersionLoader.shapeOf(manifest);
    }

    public static Dtype dtypeOf(PolicyVersion manifest) {
        return VersionLoader.dtypeOf(manifest);
    }

    /** Adapter shape in a manifest; empty for full weights. */
    public static Optional<LoraShape> adapterOf(PolicyVersion manifest) {
        return VersionLoader.adapterOf(manifest);
    }

    @Override
    public void close() {
        follower.close();
        chunks.close();
    }

    /**
     * Reads the chunks of a version at its manifest's location: assign, seek, poll to the last offset.
     *
     * <p>One consumer serves all reads, so they take turns. {@link #close()} may be called from any thread and ends a read
     * under way with a {@link org.apache.kafka.common.errors.WakeupException}.
     */
    static final class ChunkReader implements ChunkLog, AutoCloseable {
        /** Interval of checks whether missing chunks can still arrive. */
        private static final Duration LOOK = Duration.ofSeconds(2);

        private final LogConnection connection;
        private final LogReader log;
        private final Duration limit;

        /** @param limit longest wait without a new chunk of a version, while the log has it or cannot be asked */
        ChunkReader(LogConnection connection, Duration limit) {
            this.connection = connection;
            this.log = new LogReader(
                    connection.as("weights"),
                    Map.of(
                            "auto.offset.reset",
                            "none",
                            // after a version's last chunk the consumer sends a further fetch; the next read starts
                            // only when it returns
                            "fetch.max.wait.ms",
                            10,
                            "max.partition.fetch.bytes",
                            8 << 20));
            this.limit = limit;
        }

        /** Log start offset of a location's partition. */
        synchronized long begin(TensorLocation location) {
            return log.begin(new TopicPartition(location.getTopic(), location.getPartition()), limit);
        }

        /** @throws VersionUnavailableException if chunks are not on the log, or do not arrive within the limit */
        @Override
        public synchronized void read(PolicyVersion manifest, TensorLocation location, Taker taker) {
            TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
            log.from(partition, location.getFirstOffset());
            try {
                long since = System.nanoTime();
                long before = location.getFirstOffset();
                while (!readOn(partition, location, taker)) {
                    requireOnLog(manifest, location, partition);
                    if (log.position(partition) > before) {
                        before = log.position(partition);
                        since = System.nanoTime();
                    } else if (System.nanoTime() - since >= limit.toNanos()) {
                        throw new VersionUnavailableException("version " + manifest.getVersion()
                                + ": no record came from " + partition + " at offset " + log.position(partition)
                                + " within " + limit.toMillis()
                                + " ms; its chunks go on to offset " + location.getLastOffset());
                    }
                }
            } catch (OffsetOutOfRangeException e) {
                requireOnLog(manifest, location, partition);
                throw new VersionUnavailableException(
                        "version " + manifest.getVersion()
                                + " is no longer kept: its chunks were on " + location.getTopic() + "-"
                                + location.getPartition()
                                + " from offset " + location.getFirstOffset()
                                + ", and the log there now begins later (a larger retention of that topic keeps versions longer)",
                        e);
            }
        }

        /** False if no record arrived for a while. */
        private boolean readOn(TopicPartition partition, TensorLocation location, Taker taker) {
            Duration wait = LOOK.compareTo(limit) < 0 ? LOOK : limit;
            return log.readTo(
                    Map.of(partition, location.getLastOffset() + 1), ReadLimit.withoutProgress(wait), record -> {
                        if (record.offset() <= location.getLastOffset()) {
                            taker.take(record.topic(), record.partition(), record.offset(), record.value());
                        }
                    });
        }

        /**
         * Chunks are written before the manifest that names them, so chunks after the end of the log never arrive. Uses
         * the high watermark: a transaction marker may still follow the last commit.
         */
        private void requireOnLog(PolicyVersion manifest, TensorLocation location, TopicPartition partition) {
            long end;
            try (LogReader written =
                    new LogReader(connection.as("weights-written"), Map.of("isolation.level", "read_uncommitted"))) {
                end = written.end(partition, LOOK);
            } catch (TimeoutException away) {
                return;
            }
            if (end <= location.getLastOffset()) {
                throw new VersionUnavailableException(
                        "version " + manifest.getVersion() + " is lost: its chunks go on to offset "
                                + location.getLastOffset() + " of " + partition + ", and the log ends at offset "
                                + end);
            }
        }

        @Override
        public void close() {
            log.wakeup();
            synchronized (this) {
                log.close();
            }
        }
    }
}
