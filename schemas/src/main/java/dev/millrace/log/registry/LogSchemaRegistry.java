package dev.millrace.log.registry;

import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;

/**
 * A registry on the log itself: a compacted topic of one partition in Confluent's own layout.
 *
 * <p>The creator of a run opens it with {@link #writing} and registers the run's schemas; other processes open it
 * with {@link #reading} and is told about new ids by the topic. Writers of several runs on one cluster exclude each
 * other, ids count up across all of them, and a topic that a running registry writes to is refused.
 *
 * <p>Thread-safe. An id that is not known yet costs one request to the broker, an id that cannot exist costs none,
 * so that a flood of garbage records is no flood of requests.
 */
public final class LogSchemaRegistry implements SchemaRegistry {
    /** How new versions are checked: old readers read new records and the other way round. */
    static final String LEVEL = "FULL";
    /** Ids are given one after the other, so that one that is further ahead than this was never given. */
    private static final int FARTHEST_AHEAD = 1_000;

    private final SchemaLogState state = new SchemaLogState();
    private final ConcurrentMap<Integer, Schema> parsed = new ConcurrentHashMap<>();
    private final String topic;
    private final boolean mayWrite;
    private final LogTable table;

    private LogSchemaRegistry(Map<String, Object> clientProperties, String topic, boolean mayWrite, long timeoutMs) {
        this.topic = topic;
        this.mayWrite = mayWrite;
        this.table = new LogTable(clientProperties, topic, timeoutMs, state::accept);
        try {
            catchUp();
        } catch (SchemaRegistryException e) {
            table.close();
            throw e;
        }
    }

    /**
     * Opens the registry to register schemas.
     *
     * @param topic must exist, with one partition, compacted
     * @param timeoutMs limit of every call
     */
    public static LogSchemaRegistry writing(Map<String, Object> clientProperties, String topic, long timeoutMs) {
        return new LogSchemaRegistry(clientProperties, topic, true, timeoutMs);
    }

    /** Opens the registry to look up what others registered. */
    public static LogSchemaRegistry reading(Map<String, Object> clientProperties, String topic, long timeoutMs) {
        return new LogSchemaRegistry(clientProperties, topic, false, timeoutMs);
    }

    /**
     * The texts of schemas by their ids, of records that were read without a cluster.
     *
     * @param records committed, of a topic of schemas, from its beginning
     */
    public static Map<Integer, String> texts(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        SchemaLogState state = new SchemaLogState();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            if (record.key() != null) {
                state.accept(new String(record.key(), StandardCharsets.UTF_8), record.value());
            }
        }
        return state.texts();
    }

    @Override
    public int idOf(String subject, Schema schema) {
        String text = PublishedSchema.text(schema);
        var known = state.find(subject, text);
        if (known.isEmpty() && mayWrite) {
            register(Map.of(subject, schema));
            known = state.find(subject, text);
        } else if (known.isEmpty()) {
            catchUp();
            known = state.find(subject, text);
        }
        return known.map(Registration::id)
                .orElseThrow(() -> new SchemaRegistryException(
                        "the schema of " + schema.getFullName() + " is not registered under " + subject
                                + " in topic " + topic
                                + "; the creator of the run registers it, so another version of Millrace"
                                + " may have created the run"));
    }

    /**
     * Registers many schemas in one transaction; those that are registered already stay as they are.
     *
     * @throws SchemaRegistryException if a schema is not compatible with the newest version of its subject, or if
     *     the topic has another owner
     */
    public void register(Map<String, Schema> schemas) {
        if (!mayWrite) {
            throw new SchemaRegistryException("topic " + topic + " is opened for reading only");
        }
        Map<String, String> texts = new LinkedHashMap<>();
        new TreeMap<>(schemas).forEach((subject, schema) -> texts.put(subject, PublishedSchema.text(schema)));
        try {
            table.append(() -> missing(texts));
        } catch (KafkaException e) {
            throw new SchemaRegistryException(
                    "schemas cannot be registered in topic " + topic + ": " + e.getMessage(), e);
        }
    }

    /**
     * Removes subjects in one transaction. An id keeps its schema for records that were written with it: a registration whose id no
     * other subject has stays on the topic, marked as deleted as Confluent's registry does.
     *
     * @throws SchemaRegistryException if the topic has another owner
     */
    public void remove(Set<String> subjects) {
        try {
            table.append(() -> removed(subjects));
        } catch (KafkaException e) {
            throw new SchemaRegistryException(
                    "schemas cannot be removed from topic " + topic + ": " + e.getMessage(), e);
        }
    }

    private Map<String, byte[]> removed(Set<String> subjects) {
        Set<Integer> elsewhere = state.subjects().stream()
                .filter(subject -> !subjects.contains(subject))
                .flatMap(subject -> state.versions(subject).values().stream())
                .map(Registration::id)
                .collect(Collectors.toSet());
        Map<String, byte[]> records = new LinkedHashMap<>();
        for (String subject : new TreeSet<>(subjects)) {
            for (Registration each : state.versions(subject).values()) {
                records.put(
                        SchemaLogRecords.schemaKey(each),
                        elsewhere.contains(each.id()) ? null : SchemaLogRecords.deletedValue(each));
            }
        }
        if (!records.isEmpty() && state.isOwnedByARegistry()) {
            throw new SchemaRegistryException("topic " + topic + " belongs to a schema registry that runs on it; "
                    + "set schema_registry_url to that registry's address, and it removes them");
        }
        return records;
    }

    @Override
    public Schema byId(int id) {
        Schema known = parsed.get(id);
        if (known == null) {
            known = parse(id);
            parsed.put(id, known);
        }
        return known;
    }

    /** What is registered; each look reads the topic to its end first, so that it shows what others registered. */
    public RegistryContents contents() {
        return new Fresh();
    }

    @Override
    public void close() {
        table.close();
    }

    private Schema parse(int id) {
        boolean possible = id > 0 && id <= state.newestId() + FARTHEST_AHEAD;
        if (possible && state.schemaText(id).isEmpty()) {
            catchUp();
        }
        state.otherType(id).ifPresent(type -> {
            throw new UnknownSchemaException(id, "is not an Avro schema but " + type);
        });
        String text = state.schemaText(id).orElseThrow(() -> new UnknownSchemaException(id));
        try {
            return new Schema.Parser().parse(text);
        } catch (RuntimeException e) { // Avro's parser has no common type for what it stumbles over
            throw new UnknownSchemaException(id, "cannot be read by itself: " + e.getMessage());
        }
    }

    private void catchUp() {
        try {
            table.catchUp();
        } catch (KafkaException e) {
            throw new SchemaRegistryException("topic " + topic + " cannot be read: " + e.getMessage(), e);
        }
    }

    /** The records that register what is not registered yet. */
    private Map<String, byte[]> missing(Map<String, String> texts) {
        Map<String, byte[]> records = new LinkedHashMap<>();
        int newestId = state.newestId();
        Map<String, Integer> newIds = new HashMap<>();
        for (Map.Entry<String, String> entry : texts.entrySet()) {
            String subject = entry.getKey();
            String text = entry.getValue();
            if (state.find(subject, text).isPresent()) {
                continue;
            }
            SortedMap<Integer, Registration> versions = state.versions(subject);
            int version = versions.isEmpty() ? 1 : versions.lastKey() + 1;
            if (!versions.isEmpty()) {
                CompatibilityRule.requireFull(subject, Objects.requireNonNull(versions.get(versions.lastKey())), text);
            }
            Integer id = newIds.computeIfAbsent(text, t -> state.idOfText(t).orElse(0));
            if (id == 0) {
                id = ++newestId;
                newIds.put(text, id);
            }
            Registration registration = new Registration(subject, version, id, text);
            records.put(SchemaLogRecords.schemaKey(registration), SchemaLogRecords.schemaValue(registration));
        }
        if (!state.isOwnedByARegistry()) {
            state.overwritten().forEach((key, kept) -> records.put(key, SchemaLogRecords.schemaValue(kept)));
        }
        if (!records.isEmpty() && state.isOwnedByARegistry()) {
            throw new SchemaRegistryException("topic " + topic + " belongs to a schema registry that runs on it; "
                    + "set schema_registry_url to that registry's address, or schemas_topic to another name");
        }
        if (!records.isEmpty() && state.isEmpty()) {
            records.put(SchemaLogRecords.configKey(), SchemaLogRecords.configValue(LEVEL));
        }
        return records;
    }

    /** The state, caught up before each answer. */
    private final class Fresh implements RegistryContents {
        @Override
        public List<String> subjects() {
            catchUp();
            return state.subjects();
        }

        @Override
        public SortedMap<Integer, Registration> versions(String subject) {
            catchUp();
            return state.versions(subject);
        }

        @Override
        public Optional<String> schemaText(int id) {
            if (state.schemaText(id).isEmpty()) {
                catchUp();
            }
            return state.schemaText(id);
        }

        @Override
        public String compatibilityLevel() {
            catchUp();
            return state.compatibilityLevel();
        }
    }

    /** What a new version of a schema must keep: old readers can read its records, and it can read old records. */
    static final class CompatibilityRule {
        private CompatibilityRule() {}

        static void requireFull(String subject, Registration previous, String text) {
            List<String> problems = problems(LEVEL, previous, new Schema.Parser().parse(text));
            if (!problems.isEmpty()) {
                throw new SchemaRegistryException("subject " + subject + ": " + problems.get(0)
                        + (problems.size() > 1 ? " and " + (problems.size() - 1) + " more" : "")
                        + "; another program, or another version of Millrace, has registered that version, so delete it there, or set"
                        + " topics.schemas_topic to the name of a topic of its own and begin another run");
            }
        }

        /**
         * Incompatibilities of a schema with a version; a sentence each.
         *
         * @param level in the Confluent protocol's words
         */
        static List<String> problems(String level, Registration previous, Schema after) {
            Schema before = new Schema.Parser().parse(previous.schema());
            List<String> problems = new ArrayList<>();
            if (level.startsWith("BACKWARD") || level.startsWith("FULL")) {
                add(problems, previous, "the new schema cannot read records of version ", after, before);
            }
            if (level.startsWith("FORWARD") || level.startsWith("FULL")) {
                add(problems, previous, "records of the new schema cannot be read by version ", before, after);
            }
            return problems;
        }

        private static void add(
                List<String> problems, Registration previous, String what, Schema reader, Schema writer) {
            SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
                    .getResult()
                    .getIncompatibilities()
                    .forEach(found -> problems.add(what + previous.version() + " (id " + previous.id() + "): "
                            + found.getType() + " at " + found.getLocation()));
        }
    }
}
