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
 * Manifests on {@code policy-versions} that do not extend the run's chain, and the records that repair the topic.
 *
 * <p>Each one goes to the dead letters. Compaction keeps only the last record of a key, so the learner then writes the
 * chain's own manifest of that version again, or a tombstone if the chain has none. A foreign record that is followed
 * by such a record is settled, so that each dead letter is written once over all restarts. Any thread may add offsets;
 * one thread does the rest.
 */
public final class ForeignManifests {
    private static final String ALARM = "foreign-manifest";

    private final LogConnection connection;
    private final String topic;
    private final Duration limit;
    private final AvroSerde<PolicyVersion> serde;
    private final Set<Long> found = new ConcurrentSkipListSet<>();
    /** Hashes of the weights that this learner has published: before its restart, and since. */
    private final Set<String> earlier;

    private final Set<String> made = new HashSet<>();
    private long counted;

    /**
     * @param earlier hashes of the weights that this learner published before its restart
     * @param longest time to read the topic without progress
     */
    public ForeignManifests(LogConnection connection, Set<String> earlier, Duration limit) {
        this.earlier = Set.copyOf(earlier);
        this.connection = connection;
        this.topic = connection.topics().policyVersions();
        this.limit = limit;
        this.serde = AvroSerde.of(PolicyVersion.class, connection.registry());
    }

    /** Adds the offset of a manifest that does not extend the chain. */
    public void add(long offset) {
        found.add(offset);
    }

    /** Records a manifest that the learner has published. */
    public void made(PolicyVersion manifest) {
        made.add(manifest.getWeights().getSha256());
    }

    /** Returns the hashes of the weights that the learner has published since its restart. */
    public Set<String> made() {
        return Set.copyOf(made);
    }

    /** Whether all added manifests were handled. */
    public boolean isEmpty() {
        return found.isEmpty();
    }

    /**
     * Returns the records to write in one transaction for the manifests added since the last call.
     *
     * @param newest the learner's newest version: keys of later versions get a tombstone
     * @return empty if {@code newest} or another version that the learner published is among them: the log was
     *     truncated, a version's transaction was aborted, or another writer published that version first
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

    /** Returns the record that the key must have last. */
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
        try (LogReader log = new LogReader(connection.as("foreign-manifests"))) {
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
