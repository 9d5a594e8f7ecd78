package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.AdmissionCounts;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Admission's access to the log: writes prompts, reads records that settle samples, and stores samples in flight.
 *
 * <p>One transaction commits prompts, changes of {@link ReleasedSamples} and read offsets to the topic {@code
 * admission}, so a restart reads one table and continues there. The group's offsets are committed too, for lag
 * monitoring. A second admission of the run fences the first. Confined to one thread, except {@link #wakeup()}.
 */
final class ControllerLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ControllerLog.class);
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    private final LogConnection connection;
    private final RunIdentity run;
    private final LogReader log;
    private final TransactionalWriter writer;
    private final Serializer<PromptRequest> prompts;
    private final Serializer<Admission> entries;
    private final List<TopicPartition> followed;
    private final TopicPartition batches;
    private final int promptPartitions;
    /** By partition, the offset behind the newest request: a restart looks there for requests that the table lacks. */
    private final Map<TopicPartition, Long> promptEnds = new HashMap<>();

    /** Of what was read last of each partition. */
    private final Map<TopicPartition, Optional<Integer>> leaderEpochs = new HashMap<>();

    private Map<TopicPartition, Long> rolloutFloor = Map.of();
    private List<String> ofOlderEpochs = List.of();

    ControllerLog(LogConnection connection) {
        this.connection = connection;
        this.run = connection.run();
        String group = connection.scoped("admission-" + run.epoch());
        this.log = LogReader.following(connection, Map.of("group.id", group, "client.id", "admission"));
        this.writer =
                TransactionalWriter.of(connection, group, TRANSACTION_TIMEOUT_MS, Map.of("client.id", "admission"));
        this.prompts = AvroSerde.of(PromptRequest.class, connection.registry()).serializer();
        this.entries = AvroSerde.of(Admission.class, connection.registry()).serializer();
        this.followed = new ArrayList<>(log.partitionsOf(connection.topics().outcomes()));
        followed.addAll(log.partitionsOf(connection.topics().deadLetters()));
        followed.addAll(log.partitionsOf(connection.topics().trainingLog()));
        this.batches = log.partitionsOf(connection.topics().batches()).get(0);
        followed.add(batches);
        this.promptPartitions = log.partitionsOf(connection.topics().prompts()).size();
    }

    /**
     * Takes over from the previous admission.
     *
     * @param room most samples in flight, for a damaged log
     * @return state of the last admission of this run and epoch; {@link #poll} continues after it. Empty if stopped
     *     before
     */
    Optional<ReleasedSamples> open(long room, BooleanSupplier stopped) {
        AtomicReference<ReleasedSamples> place = new AtomicReference<>();
        return writer.takeOver(stopped, () -> place.set(read(room)))
                ? Optional.ofNullable(place.get())
                : Optional.empty();
    }

    /**
     * As {@link #open}, after a failure.
     *
     * @throws RuntimeException the failure, if waiting does not mend it
     */
    Optional<ReleasedSamples> reopen(RuntimeException failure, long room, BooleanSupplier stopped) {
        AtomicReference<ReleasedSamples> place = new AtomicReference<>();
        return writer.recover(failure, stopped, () -> place.set(read(room)))
                ? Optional.ofNullable(place.get())
                : Optional.empty();
    }

    /** After taking over, which aborts an open transaction. */
    private ReleasedSamples read(long room) {
        AdmissionTable table = AdmissionTable.read(connection);
        ofOlderEpochs = table.keysOfOlderEpochs();
        Optional<AdmissionCounts> counts = table.counts();
        Map<String, Long> positions = counts.map(AdmissionCounts::getPositions).orElse(Map.of());
        ReleasedSamples samples =
                counts.map(c -> new ReleasedSamples(table.groups(), c)).orElseGet(ReleasedSamples::new);

        Consumer<byte[], byte[]> consumer = log.consumer();
        List<TopicPartition> servings = log.partitionsOf(connection.topics().serving());
        List<TopicPartition> all = new ArrayList<>(followed);
        all.addAll(servings);
        consumer.assign(all);
        consumer.seekToEnd(servings); // what scorers said before was judged before, and is kept nowhere
        Map<TopicPartition, Long> begins = consumer.beginningOffsets(followed);
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(followed));
        leaderEpochs.clear();
        for (TopicPartition partition : followed) {
            long beginning = Math.max(
                    connection.lineage().beginning(partition.topic(), partition.partition()),
                    begins.getOrDefault(partition, 0L));
            seek(partition, positions.getOrDefault(partition.toString(), beginning), committed.get(partition));
        }
        boolean isWhole = counts.isPresent()
                || begins.entrySet().stream()
                        .allMatch(begin -> begin.getValue()
                                <= connection
                                        .lineage()
                                        .beginning(
                                                begin.getKey().topic(),
                                                begin.getKey().partition()));
        PriorPrompts prior = PriorPrompts.read(connection, positions, isWhole ? Long.MAX_VALUE : room);
        prior.releasedFrom(samples.nextOrdinal()).forEach(request -> {
            AdmittedGroup group = new AdmittedGroup(
                    request.groupId(), request.samples(), request.admittedVersion(), request.releasedAtMs());
            group.lies(request.partition(), request.offset());
            samples.released(group, request.ordinal());
        });
        samples.usedOrdinalsBelow(prior.nextOrdinal());
        place(samples, prior);
        if (samples.groupsUnderWay().stream().anyMatch(group -> group.partition() < 0)) {
            place(samples, PriorPrompts.read(connection, Map.of(), Long.MAX_VALUE)); // an earlier form did not keep it
        }
        rolloutFloor = floorOf(positions);
        promptEnds.putAll(prior.ends());
        if (!isWhole && !prior.isEmpty()) {
            LOG.warn(
                    "admission's table no longer exists and outcomes or batches were deleted already: counts the"
                            + " newest requests as in flight, {} samples; long-settled ones occupy their budget: if"
                            + " no prompt is released any more, {} starts a new epoch without them",
                    samples.underWay(),
                    connection.command("rollback --to-version N"));
        }
        return samples;
    }

    /** The group also has the leader epoch, to detect where a truncated log diverges. */
    private void seek(TopicPartition partition, long position, @Nullable OffsetAndMetadata committed) {
        if (committed != null && committed.offset() == position) {
            log.consumer().seek(partition, committed);
            leaderEpochs.put(partition, committed.leaderEpoch());
        } else {
            log.consumer().seek(partition, position);
        }
    }

    /** Requests of the last transaction lie where only the topic says. */
    private static void place(ReleasedSamples samples, PriorPrompts prior) {
        for (PriorPrompts.Request request : prior.releasedFrom(0)) {
            samples.underWay(request.groupId())
                    .filter(group -> group.partition() < 0 && group.releasedAtMs() == request.releasedAtMs())
                    .ifPresent(group -> samples.placed(request.groupId(), request.partition(), request.offset()));
        }
    }

    private Map<TopicPartition, Long> floorOf(Map<String, Long> positions) {
        Map<TopicPartition, Long> floor = new HashMap<>();
        for (TopicPartition partition : log.partitionsOf(connection.topics().rollouts())) {
            Long from = positions.get(partition.toString());
            if (from != null) {
                floor.put(partition, from);
            }
        }
        return floor;
    }

    /** The first offsets of rollouts of samples under way; a missing partition starts at its beginning. */
    Map<TopicPartition, Long> rolloutFloor() {
        return rolloutFloor;
    }

    /** Whether the topics that say what is settled were read up to here. */
    boolean hasRead(Map<TopicPartition, Long> ends) {
        return log.hasReached(ends);
    }

    ConsumerRecords<byte[], byte[]> poll(Duration limit) {
        ConsumerRecords<byte[], byte[]> records = log.consumer().poll(limit);
        records.nextOffsets().forEach((partition, next) -> leaderEpochs.put(partition, next.leaderEpoch()));
        return records;
    }

    /** How many partitions requests are spread over. */
    int promptPartitions() {
        return promptPartitions;
    }

    /** A request and where it goes: to a partition, or by its key where that is null. */
    record Outgoing(PromptRequest request, @Nullable Integer partition) {}

    /**
     * Writes requests and changes atomically.
     *
     * @param floor first offsets of rollouts in flight
     * @throws KafkaException if the outcome is a failure or unknown: {@link #reopen} resolves it
     */
    void write(
            List<Outgoing> requests,
            ReleasedSamples samples,
            List<Quarantine> quarantines,
            Map<TopicPartition, Long> floor) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : followed) {
            offsets.put(partition, next(partition, log.position(partition)));
        }
        samples.firstWaitingBatch().ifPresent(offset -> offsets.put(batches, next(batches, offset)));
        Map<String, Long> positions = new HashMap<>();
        offsets.forEach((partition, at) -> positions.put(partition.toString(), at.offset()));
        promptEnds.forEach((partition, end) -> positions.put(partition.toString(), end));
        floor.forEach((partition, from) -> positions.put(partition.toString(), from));
        Map<String, Optional<AdmittedGroup>> changes = samples.takeChanges();
        Admission counts = new Admission(run.runId(), run.epoch(), null, samples.counts(positions), null);
        Map<String, Future<RecordMetadata>> sent = new LinkedHashMap<>();
        writer.write(out -> {
            requests.forEach(request -> sent.put(request.request().getGroupId(), send(out, request)));
            ofOlderEpochs.forEach(key -> keep(out, key, null));
            changes.forEach((groupId, group) -> keep(
                    out,
                    groupId,
                    group.map(g -> new Admission(run.runId(), run.epoch(), g.record(), null, null))
                            .orElse(null)));
            keep(out, AdmissionTable.countsKey(run), counts);
            quarantines.forEach(quarantine -> keep(
                    out,
                    Quarantines.key(quarantine.getGeneratorId()),
                    new Admission(run.runId(), run.epoch(), null, null, quarantine)));
            out.sendOffsetsToTransaction(offsets, log.consumer().groupMetadata());
        });
        ofOlderEpochs = List.of();
        sent.forEach((groupId, metadata) -> placed(samples, groupId, metadata));
    }

    private OffsetAndMetadata next(TopicPartition partition, long offset) {
        return new OffsetAndMetadata(offset, leaderEpochs.getOrDefault(partition, Optional.empty()), "");
    }

    private Future<RecordMetadata> send(Producer<byte[], byte[]> out, Outgoing outgoing) {
        String topic = connection.topics().prompts();
        PromptRequest request = outgoing.request();
        return out.send(new ProducerRecord<>(
                topic,
                outgoing.partition(),
                request.getGroupId().getBytes(StandardCharsets.UTF_8),
                prompts.serialize(topic, request)));
    }

    private void keep(Producer<byte[], byte[]> out, String key, @Nullable Admission entry) {
        String topic = connection.topics().admission();
        out.send(new ProducerRecord<>(
                topic, key.getBytes(StandardCharsets.UTF_8), entry == null ? null : entries.serialize(topic, entry)));
    }

    private void placed(ReleasedSamples samples, String groupId, Future<RecordMetadata> sent) {
        try {
            RecordMetadata at = sent.get(); // known since the commit
            samples.placed(groupId, at.partition(), at.offset());
            promptEnds.merge(new TopicPartition(at.topic(), at.partition()), at.offset() + 1, Math::max);
        } catch (ExecutionException e) {
            throw new KafkaException("a request was not written", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while releasing prompts", e);
        }
    }

    void wakeup() {
        log.wakeup();
    }

    @Override
    public void close() {
        writer.close();
        log.close();
    }

    /** The current state of the topic {@code admission}: the groups of this epoch and its counts. */
    static final class AdmissionTable {
        private static final Logger LOG = LoggerFactory.getLogger(AdmissionTable.class);
        private static final String COUNTS = "counts/";

        private final RunIdentity run;
        private final Map<String, AdmittedGroup> groups = new LinkedHashMap<>();
        private final Map<String, Integer> epochs = new LinkedHashMap<>();
        private @Nullable AdmissionCounts counts;

        private AdmissionTable(RunIdentity run) {
            this.run = run;
        }

        static AdmissionTable read(LogConnection connection) {
            AdmissionTable table = new AdmissionTable(connection.run());
            Deserializer<Admission> entries =
                    AvroSerde.of(Admission.class, connection.registry()).deserializer();
            try (LogReader log = new LogReader(connection.as("table"))) {
                List<TopicPartition> partitions =
                        log.fromBeginning(connection.topics().admission());
                Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
                if (!log.readTo(
                        ends,
                        ReadLimit.withoutProgress(connection.patience()),
                        record -> table.take(record, entries))) {
                    throw new KafkaException("the requests in flight could not be read: no record came for "
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
                        "skipped unreadable record {}-{}@{}: {}",
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

    /**
     * Requests on the prompts topic that admission's table lacks: all of an older format's run, or those after a
     * table cut by a broker crash.
     */
    static final class PriorPrompts {
        private static final Logger LOG = LoggerFactory.getLogger(PriorPrompts.class);

        /** A request of this epoch as it lies on the topic. */
        record Request(
                String groupId,
                long ordinal,
                int samples,
                long admittedVersion,
                long releasedAtMs,
                int partition,
                long offset) {}

        private final TreeMap<Long, Request> requests = new TreeMap<>();
        private final Map<TopicPartition, Long> ends;
        private long nextOrdinal;

        private PriorPrompts(Map<TopicPartition, Long> ends) {
            this.ends = ends;
        }

        /**
         * Reads to what is committed now.
         *
         * @param positions by topic-partition: from where on; from the beginning where it says nothing
         * @param room samples of the newest requests that are kept, at least
         */
        static PriorPrompts read(LogConnection connection, Map<String, Long> positions, long room) {
            Deserializer<PromptRequest> prompts =
                    AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
            try (LogReader log = new LogReader(connection.as("prompts"))) {
                List<TopicPartition> partitions =
                        log.fromBeginning(connection.topics().prompts());
                Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
                for (TopicPartition partition : partitions) {
                    Long from = positions.get(partition.toString());
                    if (from != null) { // a log that lost its end begins there anew
                        log.consumer().seek(partition, Math.min(from, Objects.requireNonNull(ends.get(partition))));
                    }
                }
                PriorPrompts prior = new PriorPrompts(ends);
                boolean isRead = log.readTo(ends, ReadLimit.withoutProgress(connection.patience()), record -> {
                    PromptRequest prompt = decoded(prompts, record);
                    if (prompt != null) {
                        prior.take(prompt, record, connection.run());
                    }
                });
                if (!isRead) {
                    throw new KafkaException("the earlier prompts of the run could not be read: no record came for "
                            + connection.patience().toSeconds() + " s, at " + log.progress() + " of " + ends);
                }
                prior.keep(room);
                return prior;
            }
        }

        private void take(PromptRequest prompt, ConsumerRecord<byte[], byte[]> record, RunIdentity run) {
            if (!prompt.getRunId().equals(run.runId()) || prompt.getOrdinal() < 0) {
                return;
            }
            boolean isOurs = RequestName.parse(prompt.getGroupId())
                    .filter(name -> name.epoch() == prompt.getEpoch() && name.ordinal() == prompt.getOrdinal())
                    .isPresent();
            if (!isOurs) {
                return; // released by another program, which counts what it released itself
            }
            nextOrdinal = Math.max(nextOrdinal, prompt.getOrdinal() + 1);
            if (prompt.getEpoch() == run.epoch() && prompt.getSamples() > 0) {
                requests.put(
                        prompt.getOrdinal(),
                        new Request(
                                prompt.getGroupId(),
                                prompt.getOrdinal(),
                                prompt.getSamples(),
                                prompt.getAdmittedVersion(),
                                prompt.getReleasedAtMs(),
                                record.partition(),
                                record.offset()));
            }
        }

        private void keep(long room) {
            long samples = 0;
            for (Request request : new ArrayList<>(requests.descendingMap().values())) {
                if (samples >= room) {
                    requests.remove(request.ordinal());
                }
                samples += request.samples();
            }
        }

        /** Requests of this epoch with this ordinal or a later one, in their order. */
        List<Request> releasedFrom(long ordinal) {
            return List.copyOf(requests.tailMap(ordinal, true).values());
        }

        /** One more than the highest ordinal of the run that was read, in any epoch. */
        long nextOrdinal() {
            return nextOrdinal;
        }

        boolean isEmpty() {
            return requests.isEmpty();
        }

        Map<TopicPartition, Long> ends() {
            return ends;
        }

        private static @Nullable PromptRequest decoded(
                Deserializer<PromptRequest> prompts, ConsumerRecord<byte[], byte[]> record) {
            try {
                return prompts.deserialize(record.topic(), record.value());
            } catch (MalformedRecordException e) { // the generator refuses it with its reason
                LOG.warn(
                        "skipped unreadable record {}-{}@{}: {}",
                        record.topic(),
                        record.partition(),
                        record.offset(),
                        e.getMessage());
                return null;
            }
        }
    }
}
