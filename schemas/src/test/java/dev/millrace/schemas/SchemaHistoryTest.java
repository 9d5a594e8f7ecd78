package dev.millrace.schemas;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.SchemaCompatibility.SchemaIncompatibilityType;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SchemaHistoryTest {

    static Stream<Schema> current() {
        return SchemaHistory.current().stream();
    }

    static Stream<SchemaHistory.Version> versions() {
        return current().flatMap(schema -> SchemaHistory.of(schema.getName()).stream());
    }

    @Test
    void shouldCoverEveryRecord() {
        assertThat(SchemaHistory.current())
                .hasSize(15)
                .extracting(Schema::getName)
                .containsExactlyInAnyOrderElementsOf(Examples.all().stream()
                        .map(e -> e.getSchema().getName())
                        .toList());
        assertThat(versions()).hasSizeGreaterThanOrEqualTo(14);
    }

    @ParameterizedTest
    @MethodSource("current")
    void shouldHaveItsCurrentTextAsTheNewestVersion(Schema schema) {
        List<SchemaHistory.Version> versions = SchemaHistory.of(schema.getName());

        assertThat(versions).isNotEmpty();
        assertThat(SchemaDocumentation.withoutJavasNotes(schema).toString())
                .as(
                        "%s has changed: pin the new version with ./mvnw -pl schemas test -Dtest=PinRecords",
                        schema.getName())
                .isEqualTo(versions.get(versions.size() - 1).schema().toString());
    }

    @ParameterizedTest
    @MethodSource("versions")
    void shouldReadEveryOldVersionAndBeReadByIt(SchemaHistory.Version old) throws ClassNotFoundException {
        Schema now = currentOf(old.record());

        assertCompatible(now, old.schema());
        if (SchemaDocumentation.enumsWithoutDefault(old.schema()).isEmpty()) {
            assertCompatible(old.schema(), now);
        }
    }

    /**
     * The first version of these had enums without a default, so that a reader which has only that version cannot take
     * the symbols that came since. It is the only break there is, and no later version may join the list.
     */
    @Test
    void shouldBreakWithOldReadersOnlyOverEnumsThatHadNoDefault() throws ClassNotFoundException {
        Map<String, Set<SchemaIncompatibilityType>> broken = new TreeMap<>();
        for (SchemaHistory.Version old : versions().toList()) {
            var result = SchemaCompatibility.checkReaderWriterCompatibility(old.schema(), currentOf(old.record()));
            if (result.getType() != SchemaCompatibilityType.COMPATIBLE) {
                broken.put(
                        old.toString(),
                        result.getResult().getIncompatibilities().stream()
                                .map(Incompatibility::getType)
                                .collect(Collectors.toSet()));
            }
        }

        assertThat(broken.keySet()).containsExactly("PolicyVersion v1", "Rollout v1", "Score v1", "Serving v1");
        assertThat(broken.values())
                .allSatisfy(types -> assertThat(types)
                        .contains(SchemaIncompatibilityType.MISSING_ENUM_SYMBOLS)
                        // a union has no branch for a record with such an enum in it
                        .isSubsetOf(
                                SchemaIncompatibilityType.MISSING_ENUM_SYMBOLS,
                                SchemaIncompatibilityType.MISSING_UNION_BRANCH));
    }

    @ParameterizedTest
    @MethodSource("current")
    void shouldGiveEveryEnumADefaultThatNobodyWrites(Schema schema) {
        assertThat(SchemaDocumentation.enumsWithoutDefault(schema)).isEmpty();
    }

    @Test
    void shouldReadASymbolThatTheReaderDoesNotHaveAsUnknown() throws Exception {
        Schema now = SchemaDocumentation.withoutJavasNotes(Rollout.getClassSchema());
        Schema older = new Schema.Parser().parse(now.toString().replace("\"TIMEOUT\",", ""));
        AvroSerde<Rollout> serde = AvroSerde.of(Rollout.class, new InMemorySchemaRegistry());
        byte[] bytes = serde.serializer().serialize("x", Examples.rollout());

        assertCompatible(older, now);
        JsonNode seen = SchemaHistory.values(Arrays.copyOfRange(bytes, 5, bytes.length), now, older);
        assertThat(seen.path("finish_reason").asText()).isEqualTo("UNKNOWN");
    }

    @ParameterizedTest
    @MethodSource("versions")
    void shouldReadPinnedBytesAsTheValuesTheyWereMadeFrom(SchemaHistory.Version old) throws Exception {
        byte[] body = Arrays.copyOfRange(old.bytes(), 5, old.bytes().length);
        assertThat(old.bytes()).startsWith(0, 0, 0, 0, 1);
        assertThat(SchemaHistory.values(body, old.schema(), old.schema())).isEqualTo(old.values());

        InMemorySchemaRegistry registry = new InMemorySchemaRegistry();
        registry.idOf("x-value", old.schema());
        AvroSerde<SpecificRecord> serde = serde(old.record(), registry);
        SpecificRecord record = serde.deserializer().deserialize("x", old.bytes());

        assertThat(asVersion(serde, record, old.schema())).isEqualTo(old.values());
    }

    @ParameterizedTest
    @MethodSource("current")
    void shouldSayWhatEveryRecordFieldAndEnumMeans(Schema schema) {
        assertThat(SchemaDocumentation.undocumented(schema)).isEmpty();
    }

    @ParameterizedTest
    @MethodSource("current")
    void shouldPutPackedTypesOnBytesOnly(Schema schema) {
        assertThat(SchemaDocumentation.brokenLogicalTypes(schema)).isEmpty();
    }

    /** What a reader that still has the old schema sees of a record that is written now. */
    private static JsonNode asVersion(AvroSerde<SpecificRecord> serde, SpecificRecord record, Schema old)
            throws IOException {
        byte[] bytes = serde.serializer().serialize("x", record);
        return SchemaHistory.values(Arrays.copyOfRange(bytes, 5, bytes.length), record.getSchema(), old);
    }

    private static void assertCompatible(Schema reader, Schema writer) {
        var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
        assertThat(result.getType())
                .as("%s", result.getResult().getIncompatibilities())
                .isEqualTo(SchemaCompatibilityType.COMPATIBLE);
    }

    private static Schema currentOf(String record) throws ClassNotFoundException {
        return SpecificData.get().getSchema(type(record));
    }

    private static Class<?> type(String record) throws ClassNotFoundException {
        return Class.forName("dev.millrace.schemas." + record);
    }

    private static AvroSerde<SpecificRecord> serde(String record, InMemorySchemaRegistry registry)
            throws ClassNotFoundException {
        @SuppressWarnings("unchecked") // every record class is a SpecificRecord
        Class<SpecificRecord> type = (Class<SpecificRecord>) type(record);
        return AvroSerde.of(type, registry);
    }
}
