package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.workloads.topology.LoadException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** Takes a sample of the lags twice a second, on a thread of its own, until closed. */
public final class LagSampler implements AutoCloseable {
    private static final long EVERY_MS = 500;

    private final Admin admin;
    private final String group;
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final BatchView batches;
    private final LongSupplier versions;
    private final Map<TopicPartition, PartitionLag> lags = new HashMap<>();
    private final List<LagSample> samples = new ArrayList<>();
    private final Thread thread;
    private long lastNanos;
    private long lastRollouts;

    /**
     * @param partitionCount of rollouts and scores
     * @param batches that have been seen
     * @param versions that were made from batches
     */
    public LagSampler(LogConnection connection, int partitionCount, BatchView batches, LongSupplier versions) {
        this.admin = Admin.create(connection.admin());
        this.group = connection.group("topology");
        for (int p = 0; p < partitionCount; p++) {
            partitions.add(new TopicPartition(connection.topics().rollouts(), p));
            partitions.add(new TopicPartition(connection.topics().scores(), p));
        }
        partitions.add(new TopicPartition(connection.topics().trajectories(), 0));
        partitions.forEach(partition -> lags.put(partition, new PartitionLag()));
        this.batches = batches;
        this.versions = versions;
        this.thread = new Thread(this::sample, "lag sampler");
        thread.setDaemon(true);
    }

    /** Begins; times of samples count from now. */
    public void start() {
        thread.start();
    }

    private void sample() {
        long began = System.nanoTime();
        lastNanos = began;
        lastRollouts = batches.rollouts();
        try {
            while (!Thread.currentThread().isInterrupted()) {
                LagSample sample = take(began);
                synchronized (samples) {
                    samples.add(sample);
                }
                Thread.sleep(EVERY_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        } catch (ExecutionException e) {
            throw new LoadException(
                    "the lag cannot be asked for: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        }
    }

    private LagSample take(long began) throws ExecutionException, InterruptedException {
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        partitions.forEach(partition -> latest.put(partition, OffsetSpec.latest()));
        var committed = admin.listConsumerGroupOffsets(group)
                .partitionsToOffsetAndMetadata()
                .get();
        var ends = admin.listOffsets(latest).all().get();
        long now = System.nanoTime();
        Map<String, Long> records = new TreeMap<>();
        Map<String, Double> seconds = new TreeMap<>();
        for (TopicPartition partition : partitions) {
            PartitionLag lag = Objects.requireNonNull(lags.get(partition));
            lag.end(now, Objects.requireNonNull(ends.get(partition)).offset());
            lag.committed(
                    committed.get(partition) == null
                            ? 0
                            : committed.get(partition).offset());
            records.put(partition.toString(), lag.records());
            seconds.put(partition.toString(), lag.seconds(now));
        }
        long rollouts = batches.rollouts();
        double rate = now == lastNanos ? 0 : (rollouts - lastRollouts) * 1e9 / (now - lastNanos);
        lastNanos = now;
        lastRollouts = rollouts;
        return new LagSample(
                (now - began) / 1e9,
                records,
                seconds,
                batches.versionsInFlight(),
                batches.versionsInQueue(),
                batches.count() - versions.getAsLong(),
                rate);
    }

    /** Those taken so far. */
    public List<LagSample> samples() {
        synchronized (samples) {
            return List.copyOf(samples);
        }
    }

    @Override
    public void close() {
        thread.interrupt();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        admin.close();
    }
}
