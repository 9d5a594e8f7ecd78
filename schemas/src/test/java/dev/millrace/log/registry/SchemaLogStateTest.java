package dev.millrace.log.registry;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.registry.RegistryContents.Registration;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class SchemaLogStateTest {
    private final SchemaLogState state = new SchemaLogState();

    @Test
    void shouldWriteKeysAndValuesInConfluentsOwnLayout() {
        Registration registration = new Registration("s-value", 1, 7, "\"string\"");

        assertThat(SchemaLogRecords.schemaKey(registration))
                .isEqualTo("{\"keytype\":\"SCHEMA\",\"subject\":\"s-value\",\"version\":1,\"magic\":1}");
        assertThat(new String(SchemaLogRecords.schemaValue(registration), StandardCharsets.UTF_8))
                .isEqualTo("{\"subject\":\"s-value\",\"version\":1,\"id\":7,"
                        + "\"schema\":\"\\\"string\\\"\",\"deleted\":false}");
        assertThat(SchemaLogRecords.configKey()).isEqualTo("{\"keytype\":\"CONFIG\",\"subject\":null,\"magic\":0}");
        assertThat(new String(SchemaLogRecords.configValue("FULL"), StandardCharsets.UTF_8))
                .isEqualTo("{\"compatibilityLevel\":\"FULL\"}");
    }

    @Test
    void shouldReadWhatItWrites() {
        accept(new Registration("s-value", 1, 7, "\"string\""));
        accept(new Registration("s-value", 2, 9, "\"int\""));
        state.accept(SchemaLogRecords.configKey(), SchemaLogRecords.configValue("FULL"));

        assertThat(state.subjects()).containsExactly("s-value");
        assertThat(state.versions("s-value")).containsOnlyKeys(1, 2);
        assertThat(state.find("s-value", "\"int\"")).map(Registration::id).contains(9);
        assertThat(state.schemaText(7)).contains("\"string\"");
        assertThat(state.idOfText("\"int\"")).contains(9);
        assertThat(state.newestId()).isEqualTo(9);
        assertThat(state.compatibilityLevel()).isEqualTo("FULL");
        assertThat(state.isOwnedByARegistry()).isFalse();
    }

    @Test
    void shouldKeepDeletedSchemasReadableButNotRegistered() {
        accept(new Registration("soft-value", 1, 1, "\"string\""));
        accept(new Registration("hard-value", 1, 2, "\"int\""));
        accept(new Registration("subject-value", 1, 3, "\"long\""));
        accept(new Registration("subject-value", 2, 4, "\"double\""));

        accept(
                "{\"keytype\":\"SCHEMA\",\"subject\":\"soft-value\",\"version\":1,\"magic\":1}",
                "{\"subject\":\"soft-value\",\"version\":1,\"id\":1,\"schema\":\"\\\"string\\\"\",\"deleted\":true}");
        state.accept("{\"keytype\":\"SCHEMA\",\"subject\":\"hard-value\",\"version\":1,\"magic\":1}", null);
        accept(
                "{\"keytype\":\"DELETE_SUBJECT\",\"subject\":\"subject-value\",\"magic\":0}",
                "{\"subject\":\"subject-value\",\"version\":1}");

        assertThat(state.subjects()).containsExactly("subject-value");
        assertThat(state.versions("subject-value")).containsOnlyKeys(2);
        assertThat(state.schemaText(1)).contains("\"string\"");
        assertThat(state.schemaText(3)).contains("\"long\"");
    }

    @Test
    void shouldRecogniseATopicThatARegistryRunsOn() {
        state.accept("{\"keytype\":\"NOOP\",\"magic\":0}", null);

        assertThat(state.isOwnedByARegistry()).isTrue();
    }

    @Test
    void shouldNotOfferSchemasOfOtherTypes() {
        accept(
                "{\"keytype\":\"SCHEMA\",\"subject\":\"p-value\",\"version\":1,\"magic\":1}",
                "{\"subject\":\"p-value\",\"version\":1,\"id\":5,"
                        + "\"schemaType\":\"PROTOBUF\",\"schema\":\"x\",\"deleted\":false}");

        assertThat(state.schemaText(5)).isEmpty();
        assertThat(state.otherType(5)).contains("PROTOBUF");
        assertThat(state.newestId()).as("its id is taken").isEqualTo(5);
    }

    @Test
    void shouldPassOverWhatIsNoRecordOfARegistry() {
        accept("no json", "neither");
        accept("{\"keytype\":\"SOMETHING\"}", "{}");
        accept(new Registration("s-value", 1, 1, "\"string\""));

        assertThat(state.subjects()).containsExactly("s-value");
        assertThat(state.isEmpty()).isFalse();
    }

    private void accept(Registration registration) {
        state.accept(SchemaLogRecords.schemaKey(registration), SchemaLogRecords.schemaValue(registration));
    }

    private void accept(String key, String value) {
        state.accept(key, value.getBytes(StandardCharsets.UTF_8));
    }
}
