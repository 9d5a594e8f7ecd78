package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.PolicyPartition;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Manifests on {@code policy-versions} that do not extend the run's chain, and what is written because of them.
 *
 * <p>Each goes to the dead letters. Its key is then given back to whom it belongs, since of every key compaction keeps the last
 * record only: to the chain's own manifest of that version, which is written once more, or to nobody. A record behind which that
 * has happened is settled, so that each dead letter is written once, whenever a learner starts. Offsets are told by any thread; the rest
 * is one thread's.
 */
public final class ForeignManifests {
    private static final String ALARM = "foreign-manifest";

    private final LogConnection connection;
    private final String topic;
    private final Duration limit;
    private final AvroSerde<PolicyVersion> serde;
    private final Set<Long> found = new ConcurrentSkipListSet<>();
    /** Weights by hash that this learner has published: earlier, and since it began here. */
    private final Set<String> earlier;

    private final Set<String> made = new HashSet<>();
    private long counted;

    /**
     * @param earlier hashes of the weights that this learner published before it began again here
     * @param limit of reading the topic without a step forward
     */
    public ForeignManifests(LogConnection connection, Set<String> earlier, Duration limit) {
        this.earlier = Set.copyOf(earlier);
        this.connection = connection;
        this.topic = connection.topics().policyVersions();
        this.limit = limit;
        this.serde = AvroSerde.of(PolicyVersion.class, connection.registry());
    }

    /** A manifest that does not extend the chain lies at this offset. */
    public void add(long offset) {
        found.add(offset);
    }

    /** The learner has published this one. */
    public void made(PolicyVersion manifest) {
        made.add(manifest.getWeights().getSha256());
    }

    /** Hashes of the weights that it has published here. */
    public Set<String> made() {
        return Set.copyOf(made);
    }

    /** Whether there are some that were not looked at. */
    public boolean isEmpty() {
        return found.isEmpty();
    }

    /**
     * What is to be written, in one transaction, because of those that were told since the last call.
     *
     * @param newest version that the learner has: keys of later ones belong to nobody
     * @return empty if {@code newest} itself is one of them, or another that the learner has made: the log was cut off behind its
     *     back, a version of it was aborted, or somebody else has published that version before it
     */
    public Optional<List<ProducerRecord<byte[], byte[]>>> answers(PolicyFeed feed, PolicyVersion newest) {
        Set<Long> offsets = new TreeSet<>(found);
        if (offsets.isEmpty()) {
            return Optional.of(List.of());
        }
        List<ConsumerRecord<byte[], byte[]>> records = recordsFrom(Collections.min(offsets));
        Map<VersionKey, Long> settledAt = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            VersionKey.parse(record.key())
                    .filter(key -> !offsets.contains(record.offset()) && belongs(record, key, feed))
                    .ifPresent(key -> settledAt.put(key, record.offset()));
        }
        List<ProducerRecord<byte[], byte[]>> written = new ArrayList<>();
        Map<String, ProducerRecord<byte[], byte[]>> keys = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            Optional<VersionKey> key = VersionKey.parse(record.key());
            if (!offsets.contains(record.offset())
                    || key.isEmpty()
                    || !key.get()
                            .equals(VersionKey.of(connection.run(), key.get().version()))
                    || settledAt.getOrDefault(key.get(), -1L) > record.offset()) {
                continue; // what lies under another's key is refused by who reads that, and what is settled was written
            }
            Optional<PolicyVersion> manifest = manifest(record);
            if (manifest.filter(it -> isMade(it, newest)).isPresent()) {
                return Optional.empty();
            }
            if (manifest.filter(it -> earlier.contains(it.getWeights().getSha256()))
                    .isEmpty()) {
                report(record, key.get());
            }
            written.add(letter(record, key.get()));
            owner(feed, key.get(), newest.getVersion(), record.partition())
                    .ifPresent(rightful -> keys.put(key.get().toString(), rightful));
        }
        written.addAll(keys.values());
        found.removeAll(offsets);
        return Optional.of(written);
    }

    private boolean isMade(PolicyVersion manifest, PolicyVersion newest) {
        return made.contains(manifest.getWeights().getSha256())
                || manifest.getVersion() == newest.getVersion() && hasWeights(manifest, newest);
    }

    private static boolean hasWeights(PolicyVersion manifest, PolicyVersion of) {
        return manifest.getWeights().getSha256().equals(of.getWeights().getSha256());
    }

    private Optional<PolicyVersion> manifest(ConsumerRecord<byte[], byte[]> record) {
        try {
            return Optional.ofNullable(serde.deserializer().deserialize(topic, record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }

    private void report(ConsumerRecord<byte[], byte[]> record, VersionKey key) {
        counted++;
        connection
                .alarms()
                .raise(
                        ALARM,
                        topic,
                        counted
                                + " records do not extend the run's chain of versions and were passed over, the last under the"
                                + " key of version " + key.version() + " at offset " + record.offset()
                                + "; somebody else than the run's learner writes to this topic",
                        "stop whoever that is; the records are on "
                                + connection.topics().deadLetters() + ", and nothing of the run is lost");
    }

    private ProducerRecord<byte[], byte[]> letter(ConsumerRecord<byte[], byte[]> record, VersionKey key) {
        return DeadLetters.of(
                record,
                Refusal.of(
                        RefusalReason.IDENTITY,
                        "version",
                        "what is under the key of version " + key.version()
                                + " does not extend the run's chain of versions"),
                connection.run(),
                connection.topics().deadLetters());
    }

    /** The record that the key belongs to. */
    private Optional<ProducerRecord<byte[], byte[]>> owner(
            PolicyFeed feed, VersionKey key, long newest, int partition) {
        if (key.version() > newest) {
            return Optional.of(new ProducerRecord<>(topic, partition, key.bytes(), null));
        }
        try {
            byte[] manifest = serde.serializer().serialize(topic, feed.manifest(key.version()));
            return Optional.of(new ProducerRecord<>(topic, partition, key.bytes(), manifest));
        } catch (VersionUnavailableException e) {
            return Optional.empty(); // older than what is known
        }
    }

    private boolean belongs(ConsumerRecord<byte[], byte[]> record, VersionKey key, PolicyFeed feed) {
        if (record.value() == null) {
            return true;
        }
        try {
            PolicyVersion rightful = feed.manifest(key.version());
            return manifest(record).filter(found -> hasWeights(found, rightful)).isPresent();
        } catch (VersionUnavailableException e) {
            return false;
        }
    }

    private List<ConsumerRecord<byte[], byte[]>> recordsFrom(long offset) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (LogReader log = new LogReader(connection)) {
            TopicPartition partition = new TopicPartition(
                    topic,
                    PolicyPartition.of(
                            connection.run().policyId(), topic, log.consumer().partitionsFor(topic)));
            log.from(partition, offset);
            Map<TopicPartition, Long> end = Map.of(partition, log.end(partition, limit));
            if (!log.readTo(end, ReadLimit.withoutProgress(limit), records::add)) {
                throw new IllegalStateException(
                        partition + " could not be read to its end within " + limit.toMillis() + " ms");
            }
        }
        return records;
    }
}
