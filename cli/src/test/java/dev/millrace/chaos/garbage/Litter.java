package dev.millrace.chaos.garbage;

import dev.millrace.chaos.ChaosException;
import dev.millrace.chaos.check.EndChecks.Place;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.run.RunTopics;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Puts records on the log of a run that nobody should write, and remembers where.
 *
 * <p>Owned by one thread.
 */
public final class Litter {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final String MARK = "millrace.chaos";
    private static final int MOST_RECORDS = 20;
    private static final int MOST_BYTES = 300;
    private static final int LOOK_BACK = 20;

    /** What such a record is. */
    private enum Kind {
        /** Bytes that are drawn. */
        NOISE,
        /** No byte. */
        EMPTY,
        /** The beginning of a record that is there. */
        HALF,
        /** A record that is there, under another key. */
        OTHER_KEY,
        /** A record that is there, once more. */
        COPY
    }

    private final LogConnection connection;
    private final Set<Place> places = new HashSet<>();

    /** @param connection to the log of the run */
    public Litter(LogConnection connection) {
        this.connection = connection;
    }

    /** Where records were put. */
    public Set<Place> places() {
        return Set.copyOf(places);
    }

    /** Whether a record says of itself that nobody should have written it. */
    public static boolean isLitter(Headers headers) {
        return headers.lastHeader(MARK) != null;
    }

    /**
     * Puts some on a topic.
     *
     * @param topic with the run's prefix
     * @param seed of how many and what they are
     * @return what they were, in words
     */
    public String drop(String topic, long seed) throws InterruptedException {
        SplittableRandom random = new SplittableRandom(seed);
        List<Kind> kinds = isNewEachTime(topic) ? List.of(Kind.NOISE, Kind.EMPTY, Kind.HALF) : List.of(Kind.values());
        Kind kind = kinds.get(random.nextInt(kinds.size()));
        int count = 1 + random.nextInt(MOST_RECORDS);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(connection.producer(Map.of(
                ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class.getName(),
                ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class.getName())))) {
            int partitions = producer.partitionsFor(topic).size();
            TopicPartition partition = new TopicPartition(topic, random.nextInt(partitions));
            Optional<ConsumerRecord<byte[], byte[]>> there = last(partition, random);
            for (int i = 0; i < count; i++) {
                RecordMetadata put =
                        producer.send(record(kind, partition, there, random)).get();
                places.add(new Place(topic, put.partition(), put.offset()));
            }
        } catch (ExecutionException | KafkaException e) {
            throw new ChaosException("nothing could be put on " + topic + ": " + e.getMessage(), e);
        }
        return count + " times " + kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    /** Whether a whole record on the topic says something each time it comes: a prompt is asked for, a dead letter is one more. */
    private boolean isNewEachTime(String topic) {
        RunTopics topics = connection.topics();
        return Set.of(topics.prompts(), topics.deadLetters()).contains(topic);
    }

    /** One of the last records that are committed. */
    private Optional<ConsumerRecord<byte[], byte[]>> last(TopicPartition partition, SplittableRandom random) {
        try (LogReader reader = new LogReader(connection)) {
            reader.consumer().assign(List.of(partition));
            long end = reader.end(partition, LIMIT);
            reader.from(partition, Math.max(reader.begin(partition, LIMIT), end - 1 - random.nextInt(LOOK_BACK)));
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            reader.readTo(Map.of(partition, end), ReadLimit.within(LIMIT), records::add);
            return records.stream().filter(record -> record.value() != null).findFirst();
        }
    }

    private static ProducerRecord<byte[], byte[]> record(
            Kind kind,
            TopicPartition partition,
            Optional<ConsumerRecord<byte[], byte[]>> there,
            SplittableRandom random) {
        byte[] other = ("nobody-" + random.nextInt(1_000_000)).getBytes(StandardCharsets.UTF_8);
        byte[] noise = new byte[1 + random.nextInt(MOST_BYTES)];
        random.nextBytes(noise);
        byte[] value = there.map(ConsumerRecord::value).orElse(noise);
        byte[] key = there.map(ConsumerRecord::key).orElse(other);
        ProducerRecord<byte[], byte[]> record = switch (kind) {
            case NOISE -> of(partition, other, noise);
            case EMPTY -> of(partition, other, new byte[0]);
            case HALF -> of(partition, other, Arrays.copyOf(value, value.length / 2));
            case OTHER_KEY -> of(partition, other, value);
            case COPY -> of(partition, key, value);
        };
        there.ifPresent(one -> {
            for (Header header : one.headers()) {
                record.headers().add(header);
            }
        });
        record.headers().add(MARK, new byte[0]);
        return record;
    }

    private static ProducerRecord<byte[], byte[]> of(TopicPartition partition, byte[] key, byte[] value) {
        return new ProducerRecord<>(partition.topic(), partition.partition(), key, value);
    }
}
