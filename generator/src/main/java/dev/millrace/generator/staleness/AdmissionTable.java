package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.AdmissionCounts;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The topic {@code admission} as it is now: the groups of this epoch and its counts. */
final class AdmissionTable {
    private static final Logger LOG = LoggerFactory.getLogger(AdmissionTable.class);
    private static final String COUNTS = "counts/";

    private final RunIdentity run;
    private final Map<String, AdmittedGroup> groups = new LinkedHashMap<>();
    private final Map<String, Integer> epochs = new LinkedHashMap<>();
    private @Nullable AdmissionCounts counts;

    private AdmissionTable(RunIdentity run) {
        this.run = run;
    }

    /** Reads what is committed now. */
    static AdmissionTable read(LogConnection connection) {
        AdmissionTable table = new AdmissionTable(connection.run());
        Deserializer<Admission> entries =
                AvroSerde.of(Admission.class, connection.registry()).deserializer();
        try (LogReader log = new LogReader(connection)) {
            List<TopicPartition> partitions =
                    log.fromBeginning(connection.topics().admission());
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
            if (!log.readTo(
                    ends, ReadLimit.withoutProgress(connection.patience()), record -> table.take(record, entries))) {
                throw new KafkaException("what is under way could not be read: no record came for "
                        + connection.patience().toSeconds() + " s, at " + log.progress() + " of " + ends);
            }
        }
        return table;
    }

    private void take(ConsumerRecord<byte[], byte[]> record, Deserializer<Admission> entries) {
        if (record.key() == null) {
            return; // nobody's
        }
        String key = new String(record.key(), StandardCharsets.UTF_8);
        if (Quarantines.isKey(key)) {
            return; // not an epoch's: GeneratorWatch has it
        }
        if (record.value() == null) {
            groups.remove(key);
            epochs.remove(key);
            counts = key.equals(countsKey(run)) ? null : counts;
            return;
        }
        Admission entry;
        try {
            entry = entries.deserialize(record.topic(), record.value());
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "passed over, because it cannot be read: {}-{}@{}: {}",
                    record.topic(),
                    record.partition(),
                    record.offset(),
                    e.getMessage());
            return;
        }
        if (!entry.getRunId().equals(run.runId())) {
            return;
        }
        if (entry.getEpoch() != run.epoch()) {
            epochs.put(key, entry.getEpoch());
        } else if (entry.getGroup() != null && entry.getGroup().getGroupId().equals(key)) {
            groups.put(key, new AdmittedGroup(entry.getGroup()));
        } else if (entry.getCounts() != null && key.equals(countsKey(run))) {
            counts = entry.getCounts();
        }
    }

    /** The key of an epoch's counts. */
    static String countsKey(RunIdentity run) {
        return COUNTS + run.epoch();
    }

    Collection<AdmittedGroup> groups() {
        return new ArrayList<>(groups.values());
    }

    /** Empty if no admission of this epoch has written. */
    Optional<AdmissionCounts> counts() {
        return Optional.ofNullable(counts);
    }

    /** Groups that an older epoch left under way, which nobody waits for any more. */
    List<String> keysOfOlderEpochs() {
        return epochs.entrySet().stream()
                .filter(entry ->
                        entry.getValue() < run.epoch() && !entry.getKey().startsWith(COUNTS))
                .map(Map.Entry::getKey)
                .toList();
    }
}
