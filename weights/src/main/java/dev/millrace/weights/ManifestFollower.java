package dev.millrace.weights;

import dev.millrace.log.ClientKind;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows {@code policy-versions} on its own thread and keeps the newest manifests of the chain.
 *
 * <p>Skips and counts manifests that do not extend the chain. A truncated log, as after a power loss, is read again
 * from the truncation or from its beginning; until its end is reached, earlier manifests stay valid.
 *
 * <p>The consumer belongs to that thread. State for other threads is guarded by this object's monitor, which the thread
 * notifies after every change.
 */
final class ManifestFollower implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ManifestFollower.class);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(10);

    private final String topic;
    private final RunIdentity run;
    private final EpochLineage lineage;
    private final LogReader log;
    private final Deserializer<PolicyVersion> manifests;
    private final Thread thread;
    private final InheritedManifests past;
    private final int keptManifests;
    private final LongConsumer onForeign;
    private ManifestHistory history;
    /** The chain of a log that is read again; null otherwise. Belongs to the thread. */
    private @Nullable ManifestHistory rebuilt;
    /** The log's end offsets when the current read began. Belongs to the thread. */
    private Map<TopicPartition, Long> ends = Map.of();

    /**
     * True if the rest of a fetch must be ignored because the log is read from its beginning again. Belongs to the
     * thread.
     */
    private boolean restarted;
    /** Offset of the last record of each partition. Belongs to the thread. */
    private final Map<Integer, Long> readUpTo = new HashMap<>();

    private boolean caughtUp;
    private long refused;
    private long foreign;
    private @Nullable Throwable failure;
    private volatile boolean closed;
    /** The thread's progress, for the message of a wait that times out. */
    private volatile String progress = "nothing of it was read yet";

    /**
     * @param onForeign receives, on the following thread, the offset of each manifest that does not extend the chain,
     *     and of every other record under a key of the run
     */
    ManifestFollower(LogConnection connection, int keptManifests, LongConsumer onForeign) {
        this.onForeign = onForeign;
        this.topic = connection.topics().policyVersions();
        this.run = connection.run();
        this.lineage = connection.lineage();
        this.keptManifests = keptManifests;
        this.history = new ManifestHistory(lineage.parent(), keptManifests);
        this.past = new InheritedManifests(lineage, keptManifests);
        this.manifests =
                AvroSerde.of(PolicyVersion.class, connection.registry()).deserializer();
        this.log = LogReader.following(connection.as("manifests"));
        this.thread = new Thread(this::follow, ClientKind.id(connection.clientProperties(), "policy-feed"));
        thread.setDaemon(true);
        thread.start();
    }

    private void follow() {
        try (log) {
            List<TopicPartition> partitions = log.fromBeginning(topic);
            ends = log.consumer().endOffsets(partitions);
            log.follow(this::accept, () -> {
                restarted = false;
                partitions.forEach(this::noticeCut);
                progress = partitions.stream()
                        .map(p -> p + " was read to offset " + log.position(p))
                        .collect(Collectors.joining(", "));
                if (!ends.isEmpty() && log.hasReached(ends)) {
                    markCaughtUp();
                }
            });
        } catch (RuntimeException | Error e) { // errors too: callers must not wait for a thread that has ended
            fail(e);
        }
    }

    private synchronized void accept(ConsumerRecord<byte[], byte[]> record) {
        if (restarted) {
            return;
        }
        Long before = readUpTo.put(record.partition(), record.offset());
        if (before != null && record.offset() <= before && !cutOff(record.partition(), record.offset(), before)) {
            return;
        }
        if (record.value() == null) {
            ownKey(record).ifPresent(key -> chain().deleted(key.version()));
            return;
        }
        try {
            PolicyVersion manifest = manifests.deserialize(record.topic(), record.value());
            if (run.runId().equals(manifest.getRunId())
                    && run.policyId().equals(manifest.getPolicyId())
                    && manifest.getEpoch() < run.epoch()) {
                past.add(manifest, record.offset());
                return;
            }
            if (!run.owns(manifest.getRunId(), manifest.getEpoch())
                    || !run.policyId().equals(manifest.getPolicyId())) {
                refuse(
                        record,
                        "it is of run " + manifest.getRunId() + " epoch " + manifest.getEpoch() + " policy "
                                + manifest.getPolicyId() + ", not of " + run.runId() + " epoch " + run.epoch()
                                + " policy "
                                + run.policyId());
                return;
            }
            chain().add(manifest, record.offset()).ifPresent(why -> passOver(record.offset(), why));
            notifyAll();
        } catch (MalformedRecordException e) {
            refuse(record, String.valueOf(e.getMessage()));
        }
    }

    /** Detects a truncated log without new records: the consumer silently resets to the log's end. */
    private synchronized void noticeCut(TopicPartition partition) {
        Long before = readUpTo.get(partition.partition());
        long position = log.position(partition);
        if (before != null && position <= before && cutOff(partition.partition(), position, before)) {
            readUpTo.put(partition.partition(), position - 1);
            notifyAll();
        }
    }

    /**
     * Handles a log truncated below the read position: reads again from there or from its beginning.
     *
     * @return whether it is read from there, so that the record at this offset is the first one read again
     */
    private boolean cutOff(int partition, long offset, long before) {
        LOG.warn(
                "{}-{} lost records that were read, from offset {} or earlier up to offset {}; uses the records there now",
                topic,
                partition,
                offset,
                before);
        ends = log.consumer().endOffsets(log.consumer().assignment());
        Optional<ManifestHistory> kept = history.before(offset);
        rebuilt = kept.orElseGet(() -> new ManifestHistory(lineage.parent(), keptManifests));
        if (kept.isEmpty()) {
            log.consumer().seekToBeginning(log.consumer().assignment());
            readUpTo.clear();
            restarted = true;
        }
        return kept.isPresent();
    }

    private void passOver(long offset, String why) {
        foreign++;
        if (Long.bitCount(foreign) == 1) {
            LOG.warn(
                    "skipped {} manifests that do not extend this run's chain, last {}@{}: {}",
                    foreign,
                    topic,
                    offset,
                    why);
        }
        onForeign.accept(offset);
    }

    private void refuse(ConsumerRecord<byte[], byte[]> record, String why) {
        refused++;
        if (Long.bitCount(refused)
                == 1) { // the 1st, 2nd, 4th, 8th...: keeps the log short if a topic is full of another run's records
            LOG.warn("refused {} records, last {}-{}@{}: {}", refused, topic, record.partition(), record.offset(), why);
        }
        if (ownKey(record).isPresent()) { // compaction may have left only this one
            onForeign.accept(record.offset());
        }
    }

    private Optional<VersionKey> ownKey(ConsumerRecord<byte[], byte[]> record) {
        return VersionKey.parse(record.key()).filter(key -> key.equals(VersionKey.of(run, key.version())));
    }

    private ManifestHistory chain() {
        return rebuilt == null ? history : rebuilt;
    }

    private synchronized void markCaughtUp() {
        ends = Map.of();
        if (rebuilt != null) {
            history = rebuilt;
            rebuilt = null;
        }
        past.settle();
        history.settle().forEach(this::passOver);
        caughtUp = true;
        notifyAll();
    }

    private synchronized void fail(Throwable e) {
        failure = e;
        notifyAll();
    }

    synchronized Optional<PolicyVersion> newest() {
        requireRunning();
        return history.newest();
    }

    synchronized PolicyVersion manifest(long version) {
        requireRunning();
        Optional<PolicyVersion> inherited = past.find(version);
        return inherited.isPresent() ? inherited.get() : history.get(version);
    }

    /** Read progress of {@code policy-versions}, as a clause. */
    String progress() {
        return progress;
    }

    synchronized void awaitCaughtUp(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!caughtUp) {
            if (!waitUntil(deadline)) {
                throw new VersionUnavailableException(topic + " could not be read to its end within " + limit.toMillis()
                        + " ms (read_timeout_ms); " + progress + "; is the broker reachable?");
            }
        }
        requireRunning();
    }

    synchronized Optional<PolicyVersion> awaitNewerThan(long version, Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (true) {
            Optional<PolicyVersion> newer = newest().filter(newest -> newest.getVersion() > version);
            if (newer.isPresent() || !waitUntil(deadline)) {
                return newer;
            }
        }
    }

    synchronized Optional<PolicyVersion> awaitOther(PolicyVersion served, Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (true) {
            Optional<PolicyVersion> other =
                    newest().filter(newest -> newest.getVersion() > served.getVersion() || !history.has(served));
            if (other.isPresent() || !waitUntil(deadline)) {
                return other;
            }
        }
    }

    /** Waits for a change; false if the deadline has passed. The caller holds the monitor. */
    @SuppressWarnings("WaitNotInLoop") // callers check again in a loop
    private boolean waitUntil(long deadlineNanos) {
        requireRunning();
        long leftMs = (deadlineNanos - System.nanoTime()) / 1_000_000;
        if (leftMs <= 0) {
            return false;
        }
        try {
            wait(leftMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for " + topic, e);
        }
        return true;
    }

    private void requireRunning() {
        if (failure != null) {
            throw new IllegalStateException("following " + topic + " has stopped: " + failure.getMessage(), failure);
        }
        if (closed) {
            throw new IllegalStateException("following " + topic + " has stopped: the feed was closed");
        }
    }

    @Override
    public void close() {
        closed = true;
        log.stop();
        synchronized (this) {
            notifyAll();
        }
        try {
            thread.join(CLOSE_LIMIT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            LOG.warn("the thread that follows {} did not end within {} ms", topic, CLOSE_LIMIT.toMillis());
        }
    }

    /**
     * The versions of older epochs that this epoch inherits: those before the versions from which it and its ancestors
     * branched. They can be loaded, but are never the newest. Versions that an older epoch published after the branch
     * are skipped.
     *
     * <p>Not thread-safe.
     */
    static final class InheritedManifests {
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

        /** Takes a manifest of an older epoch if this epoch inherits it and it extends that epoch's chain. */
        void add(PolicyVersion manifest, long offset) {
            ManifestHistory chain = chains.get(manifest.getEpoch());
            if (chain != null && lineage.inherits(manifest.getEpoch(), manifest.getVersion())) {
                chain.add(manifest, offset);
            }
        }

        /** Call when the log is read to its end. */
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
}
