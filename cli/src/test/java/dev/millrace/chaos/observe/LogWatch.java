package dev.millrace.chaos.observe;

import dev.millrace.chaos.ChaosException;
import dev.millrace.chaos.garbage.Litter;
import dev.millrace.chaos.process.Part;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Reads what the roles commit, as it comes, and says when each of them last did something.
 *
 * <p>It sits behind the same network as everybody: when that is cut, it sees nothing either, and continues afterwards. One thread of
 * its own; every method may be called by any thread.
 */
public final class LogWatch implements AutoCloseable {
    private static final long PAUSE_MS = 200;
    private static final long LEAVE_MS = 15_000;

    /**
     * Since when something counts as new.
     *
     * @param nanos of {@link System#nanoTime()}
     * @param ends offset of each partition, below which nothing is new
     */
    public record Mark(long nanos, Map<TopicPartition, Long> ends) {
        /** From it to a later moment. */
        public double secondsTo(long laterNanos) {
            return (laterNanos - nanos) / 1e9;
        }

        /** The same offsets at a later moment. */
        public Mark now() {
            return new Mark(System.nanoTime(), ends);
        }
    }

    private record Seen(long nanos, TopicPartition partition, long offset, String generator) {}

    /** A prompt, and its samples that have come; one can come before it, for they are on other topics. */
    private static final class Prompt {
        private long sinceMs = Long.MAX_VALUE;
        private final List<Long> begunMs = new ArrayList<>();

        boolean isReleased() {
            return sinceMs < Long.MAX_VALUE;
        }
    }

    private final LogConnection connection;
    private final RunTopics topics;
    private final int groupSize;
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final Map<TopicPartition, Long> positions = new HashMap<>();
    private final Map<String, List<Seen>> seen = new HashMap<>();
    private final Map<String, Prompt> prompts = new HashMap<>();
    private final List<Long> killsMs = new ArrayList<>();
    private final Deserializer<Rollout> rollouts;
    private final Thread thread = new Thread(this::watch, "log watch");
    private long versions;
    private volatile boolean isHeld;
    private volatile boolean isOver;

    /** @param groupSize samples of each prompt */
    public LogWatch(LogConnection connection, int groupSize) {
        this.connection = connection;
        this.topics = connection.topics();
        this.groupSize = groupSize;
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        thread.setDaemon(true);
    }

    /** Begins to read, from the log's beginning. */
    public LogWatch start() {
        try (LogReader reader = reader()) {
            Arrays.stream(Part.values())
                    .map(part -> part.output(topics))
                    .distinct()
                    .forEach(topic -> partitions.addAll(reader.partitionsOf(topic)));
        }
        partitions.forEach(partition -> {
            positions.put(partition, 0L);
            seen.put(partition.topic(), new ArrayList<>());
        });
        thread.start();
        return this;
    }

    private List<Seen> of(String topic) {
        return Objects.requireNonNull(seen.get(topic), topic);
    }

    private LogReader reader() {
        return new LogReader(
                connection,
                Map.of(
                        ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 10_000,
                        ConsumerConfig.REQUEST_TIMEOUT_MS_CONFIG, 5_000,
                        ConsumerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 500,
                        ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 50));
    }

    private void watch() {
        while (!isOver) {
            if (isHeld) {
                pause();
                continue;
            }
            try (LogReader reader = reader()) {
                reader.consumer().assign(partitions);
                Map<TopicPartition, Long> ends = reader.consumer().endOffsets(partitions);
                synchronized (this) {
                    positions.replaceAll((partition, at) -> Math.min(at, ends.getOrDefault(partition, at)));
                    positions.forEach(reader.consumer()::seek);
                }
                reader.follow(this::note, () -> {
                    if (isOver || isHeld) {
                        reader.stop();
                    }
                });
            } catch (KafkaException awayOrCut) {
                pause();
            }
        }
    }

    /** Reads nothing while the log may lose its ends. */
    public void hold() {
        isHeld = true;
    }

    /** Reads on, from the log's ends where these lie before what was read. */
    public void resume() {
        isHeld = false;
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void note(ConsumerRecord<byte[], byte[]> record) {
        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
        positions.put(partition, record.offset() + 1);
        if (Litter.isLitter(record.headers())) {
            return;
        }
        String generator = "";
        if (record.topic().equals(topics.policyVersions())) {
            versions++;
        } else if (record.topic().equals(topics.prompts()) && record.key() != null) {
            Prompt prompt = prompt(new String(record.key(), StandardCharsets.UTF_8));
            prompt.sinceMs = Math.min(prompt.sinceMs, record.timestamp());
        } else if (record.topic().equals(topics.rollouts())) {
            generator = rollout(record);
        }
        of(record.topic()).add(new Seen(System.nanoTime(), partition, record.offset(), generator));
        notifyAll();
    }

    private Prompt prompt(String id) {
        return prompts.computeIfAbsent(id, name -> new Prompt());
    }

    private String rollout(ConsumerRecord<byte[], byte[]> record) {
        try {
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            if (rollout == null) {
                return "";
            }
            prompt(rollout.getGroupId()).begunMs.add(rollout.getStartedAtMs());
            return rollout.getGeneratorId();
        } catch (MalformedRecordException garbage) {
            return "";
        }
    }

    /**
     * Says that a generator was killed: what it had under way is lost, and is counted when it was made again.
     */
    public synchronized void generatorKilled() {
        killsMs.add(System.currentTimeMillis());
    }

    /**
     * Work that was lost with generators, in trajectory-seconds, at most: for each sample that had been asked for before one was
     * killed and was begun after that, the time from the one to the other, waiting included.
     */
    public synchronized double secondsLost() {
        long lostMs = 0;
        for (Prompt prompt : prompts.values()) {
            for (long begunMs : prompt.begunMs) {
                long killedMs = killsMs.stream()
                        .filter(ms -> prompt.sinceMs < ms && ms < begunMs)
                        .mapToLong(Long::longValue)
                        .max()
                        .orElse(prompt.sinceMs);
                lostMs += prompt.isReleased() ? killedMs - prompt.sinceMs : 0;
            }
        }
        return lostMs / 1e3;
    }

    /** Samples that were released and have not come. */
    public synchronized long open() {
        return prompts.values().stream()
                .filter(Prompt::isReleased)
                .mapToLong(prompt -> Math.max(0, groupSize - prompt.begunMs.size()))
                .sum();
    }

    /** Versions seen so far. */
    public synchronized long versions() {
        return versions;
    }

    /** Rollouts seen so far. */
    public synchronized long rollouts() {
        return of(topics.rollouts()).size();
    }

    /** From now on everything that lies behind the log's ends is new; asks the broker. */
    public Mark mark() {
        try (LogReader reader = reader()) {
            return new Mark(System.nanoTime(), reader.consumer().endOffsets(partitions));
        } catch (KafkaException e) {
            throw new ChaosException("the log's ends cannot be read: " + e.getMessage(), e);
        }
    }

    /** Everything behind the log's ends as they are now is new, from a moment that may have passed; asks the broker. */
    public Mark since(long nanos) {
        return new Mark(nanos, mark().ends());
    }

    /**
     * Waits for something new that a part committed.
     *
     * @param generator whose rollout it must be; empty for anybody's
     * @param count how many records
     * @return seconds from the mark to it; empty if the limit passed first
     */
    public synchronized Optional<Double> await(Part part, String generator, int count, Mark since, double limitSeconds)
            throws InterruptedException {
        long deadline = System.nanoTime() + (long) (limitSeconds * 1e9);
        List<Seen> ofTopic = of(part.output(topics));
        int from = ofTopic.size();
        while (from > 0 && ofTopic.get(from - 1).nanos >= since.nanos()) {
            from--;
        }
        int found = 0;
        while (true) {
            for (; from < ofTopic.size(); from++) {
                Seen one = ofTopic.get(from);
                Long end = since.ends().get(one.partition());
                if ((end == null || one.offset() >= end)
                        && (generator.isEmpty() || generator.equals(one.generator()))
                        && ++found == count) {
                    return Optional.of((one.nanos() - since.nanos()) / 1e9);
                }
            }
            long left = (deadline - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                return Optional.empty();
            }
            wait(left);
        }
    }

    /** Since when no version was seen, seconds. */
    public synchronized double secondsWithoutVersion() {
        List<Seen> all = of(topics.policyVersions());
        return all.isEmpty() ? 0 : (System.nanoTime() - all.get(all.size() - 1).nanos()) / 1e9;
    }

    @Override
    public void close() {
        isOver = true;
        try {
            thread.join(LEAVE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
