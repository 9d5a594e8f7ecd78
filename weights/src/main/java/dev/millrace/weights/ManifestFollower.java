package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Follows {@code policy-versions} on a thread of its own and keeps the newest manifests.
 *
 * <p>The consumer belongs to that thread. Everything that others ask is guarded by this object's monitor, which the
 * thread notifies after every change.
 */
final class ManifestFollower implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ManifestFollower.class);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(10);

    private final String topic;
    private final RunIdentity run;
    private final LogReader log;
    private final Deserializer<PolicyVersion> manifests;
    private final Thread thread;
    private final ManifestHistory history;
    private boolean caughtUp;
    private long refused;
    private @Nullable Throwable failure;
    private volatile boolean closed;
    /** For whoever waits in vain: how far the thread has come. */
    private volatile String progress = "nothing of it was read yet";

    ManifestFollower(LogConnection connection, int keptManifests) {
        this.topic = connection.topics().policyVersions();
        this.run = connection.run();
        this.history = new ManifestHistory(keptManifests);
        this.manifests =
                AvroSerde.of(PolicyVersion.class, connection.registry()).deserializer();
        this.log = new LogReader(connection);
        this.thread = new Thread(this::follow, "policy-feed");
        thread.setDaemon(true);
        thread.start();
    }

    private void follow() {
        try (log) {
            List<TopicPartition> partitions = log.fromBeginning(topic);
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
            log.follow(this::accept, () -> {
                progress = partitions.stream()
                        .map(p -> p + " was read to offset " + log.position(p))
                        .collect(Collectors.joining(", "));
                if (log.hasReached(ends)) {
                    becomeCaughtUp();
                }
            });
        } catch (RuntimeException | Error e) { // an error too: whoever waits must not wait for a thread that is gone
            fail(e);
        }
    }

    private synchronized void accept(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null) {
            return; // a tombstone: its version was removed, and its chunks with it
        }
        try {
            PolicyVersion manifest = manifests.deserialize(record.topic(), record.value());
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
            history.add(manifest);
            notifyAll();
        } catch (MalformedRecordException e) {
            refuse(record, String.valueOf(e.getMessage()));
        }
    }

    private void refuse(ConsumerRecord<byte[], byte[]> record, String why) {
        refused++;
        if (Long.bitCount(refused)
                == 1) { // the 1st, 2nd, 4th, 8th...: a topic full of another run's records stays readable
            LOG.warn("refused {} records, last {}-{}@{}: {}", refused, topic, record.partition(), record.offset(), why);
        }
    }

    private synchronized void becomeCaughtUp() {
        if (!caughtUp) {
            caughtUp = true;
            notifyAll();
        }
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
        return history.get(version);
    }

    /** How far {@code policy-versions} was read, as a clause. */
    String progress() {
        return progress;
    }

    synchronized long refusedRecords() {
        return refused;
    }

    synchronized void awaitCaughtUp(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!caughtUp) {
            if (!waitUntil(deadline)) {
                throw new VersionUnavailableException(
                        -1,
                        topic + " could not be read to its end within " + limit.toMillis() + " ms (read_timeout_ms); "
                                + progress + "; is the broker reachable?");
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

    /** Waits for a change; false if the deadline has passed. The caller holds the monitor. */
    @SuppressWarnings("WaitNotInLoop") // every caller looks again and comes back
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
}
