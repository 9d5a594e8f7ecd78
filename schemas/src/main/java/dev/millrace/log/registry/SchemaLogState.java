package dev.millrace.log.registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the records of a {@code _schemas} topic add up to. One thread feeds it, any thread reads it.
 *
 * <p>Understands what Confluent's registry writes: SCHEMA, CONFIG, DELETE_SUBJECT, and NOOP, which only a running
 * registry writes and which therefore tells that the topic has another owner.
 */
final class SchemaLogState implements RegistryContents {
    private static final Logger LOG = LoggerFactory.getLogger(SchemaLogState.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String DEFAULT_LEVEL = "BACKWARD";

    private final ConcurrentMap<Integer, String> textById = new ConcurrentHashMap<>();
    private final ConcurrentMap<Integer, String> otherTypeById = new ConcurrentHashMap<>();
    private final ConcurrentNavigableMap<String, ConcurrentNavigableMap<Integer, Registration>> subjects =
            new ConcurrentSkipListMap<>();
    private final ConcurrentMap<String, Registration> overwritten = new ConcurrentHashMap<>();
    private volatile String level = DEFAULT_LEVEL;
    private volatile int newestId;
    private volatile boolean empty = true;
    private volatile boolean ownedByARegistry;

    /** Takes in one record; null value deletes. */
    void accept(String key, byte[] value) {
        empty = false;
        try {
            JsonNode parsed = JSON.readTree(key);
            switch (parsed.path("keytype").asText()) {
                case "SCHEMA" -> acceptSchema(parsed, value);
                case "CONFIG" -> acceptConfig(parsed, value);
                case "DELETE_SUBJECT" -> acceptDeletion(value);
                case "NOOP" -> ownedByARegistry = true;
                default -> LOG.debug("skipped a record of the schema log that is not about schemas: {}", key);
            }
        } catch (IOException e) {
            LOG.warn("skipped a record of the schema log that is not JSON, key '{}': {}", key, e.getMessage());
        }
    }

    @Override
    public List<String> subjects() {
        return List.copyOf(subjects.keySet());
    }

    @Override
    public SortedMap<Integer, Registration> versions(String subject) {
        ConcurrentNavigableMap<Integer, Registration> versions = subjects.get(subject);
        return versions == null ? Collections.emptySortedMap() : Collections.unmodifiableSortedMap(versions);
    }

    @Override
    public Optional<String> schemaText(int id) {
        return Optional.ofNullable(textById.get(id));
    }

    @Override
    public String compatibilityLevel() {
        return level;
    }

    /** Every schema that was given an id. */
    Map<Integer, String> texts() {
        return Map.copyOf(textById);
    }

    /** Registrations whose newest record has another schema, by the record's key. */
    Map<String, Registration> overwritten() {
        return Map.copyOf(overwritten);
    }

    /** The type of a schema that is none of Avro, such as PROTOBUF. */
    Optional<String> otherType(int id) {
        return Optional.ofNullable(otherTypeById.get(id));
    }

    /** The id of a schema text under any subject. */
    Optional<Integer> idOfText(String text) {
        return textById.entrySet().stream()
                .filter(entry -> entry.getValue().equals(text))
                .map(Map.Entry::getKey)
                .min(Comparator.naturalOrder());
    }

    Optional<Registration> find(String subject, String text) {
        return versions(subject).values().stream()
                .filter(r -> r.schema().equals(text))
                .findFirst();
    }

    /** Highest id ever given; 0 if there is none. */
    int newestId() {
        return newestId;
    }

    boolean isEmpty() {
        return empty;
    }

    boolean isOwnedByARegistry() {
        return ownedByARegistry;
    }

    private void acceptSchema(JsonNode key, byte[] value) throws IOException {
        String subject = key.path("subject").asText();
        int version = key.path("version").asInt();
        JsonNode body = value == null ? null : JSON.readTree(value);
        if (body == null || body.path("deleted").asBoolean()) {
            forget(subject, version);
        }
        if (body == null) {
            return;
        }
        int id = body.path("id").asInt();
        String text = body.path("schema").asText();
        String type = body.path("schemaType").asText("AVRO");
        newestId = Math.max(newestId, id);
        if (!type.equals("AVRO")) {
            otherTypeById.put(id, type);
            return;
        }
        String before =
                textById.putIfAbsent(id, text); // also of a deleted version: records written with it stay readable
        Registration kept = versions(subject).get(version);
        if (before != null && !before.equals(text)
                || kept != null && !kept.schema().equals(text)) {
            LOG.warn(
                    "the schema log gives version {} of {}, id {}, a different schema than before; ids never"
                            + " change, so the record is skipped",
                    version,
                    subject,
                    id);
            if (kept != null) {
                overwritten.put(SchemaLogRecords.schemaKey(kept), kept);
            }
            return;
        }
        if (kept != null) {
            overwritten.remove(SchemaLogRecords.schemaKey(kept));
        }
        if (!body.path("deleted").asBoolean()) {
            subjects.computeIfAbsent(subject, s -> new ConcurrentSkipListMap<>())
                    .put(version, new Registration(subject, version, id, text));
        }
    }

    private void acceptConfig(JsonNode key, byte[] value) throws IOException {
        if (key.path("subject").isNull() || key.path("subject").isMissingNode()) {
            level = value == null
                    ? DEFAULT_LEVEL
                    : JSON.readTree(value).path("compatibilityLevel").asText(DEFAULT_LEVEL);
        }
    }

    private void acceptDeletion(byte[] value) throws IOException {
        if (value == null) {
            return;
        }
        JsonNode body = JSON.readTree(value);
        int upTo = body.path("version").asInt();
        String subject = body.path("subject").asText();
        versions(subject).keySet().stream()
                .filter(version -> version <= upTo)
                .toList()
                .forEach(version -> forget(subject, version));
    }

    private void forget(String subject, int version) {
        ConcurrentNavigableMap<Integer, Registration> versions = subjects.get(subject);
        if (versions != null) {
            Registration gone = versions.remove(version);
            if (gone != null) {
                overwritten.remove(SchemaLogRecords.schemaKey(gone));
            }
            if (versions.isEmpty()) {
                subjects.remove(subject);
            }
        }
    }
}
