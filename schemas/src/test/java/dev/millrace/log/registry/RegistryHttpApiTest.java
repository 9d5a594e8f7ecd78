package dev.millrace.log.registry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RegistryHttpApiTest {
    private static final String TEXT = PublishedSchema.text(Serving.getClassSchema());

    private final SchemaLogState state = new SchemaLogState();
    private HttpServer server;
    private String address;

    @BeforeEach
    void startServer() throws Exception {
        accept(new Registration("millrace.serving-value", 1, 3, "\"string\""));
        accept(new Registration("millrace.serving-value", 2, 4, TEXT));
        accept(new Registration("odd/ subject+1", 1, 3, "\"string\""));
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        new RegistryHttpApi(state).mount(server::createContext);
        server.start();
        address = "http://127.0.0.1:" + server.getAddress().getPort();
    }

    @AfterEach
    void stopServer() {
        server.stop(0);
    }

    @Test
    void shouldServeWhatStockClientsAskFor() throws Exception {
        assertThat(get("/subjects")).isEqualTo("200 [\"millrace.serving-value\",\"odd/ subject+1\"]");
        assertThat(get("/subjects/millrace.serving-value/versions")).isEqualTo("200 [1,2]");
        assertThat(get("/subjects/odd%2F%20subject+1/versions")).isEqualTo("200 [1]");
        assertThat(get("/subjects/millrace.serving-value/versions/1"))
                .isEqualTo("200 {\"subject\":\"millrace.serving-value\",\"version\":1,"
                        + "\"id\":3,\"schema\":\"\\\"string\\\"\"}");
        assertThat(get("/subjects/millrace.serving-value/versions/latest")).contains("\"version\":2,\"id\":4");
        assertThat(get("/subjects/millrace.serving-value/versions/2/schema")).isEqualTo("200 " + TEXT);
        assertThat(get("/schemas/ids/3")).isEqualTo("200 {\"schema\":\"\\\"string\\\"\"}");
        assertThat(get("/schemas/types")).isEqualTo("200 [\"AVRO\"]");
        assertThat(get("/config")).isEqualTo("200 {\"compatibilityLevel\":\"BACKWARD\"}");
        assertThat(get("/mode")).isEqualTo("200 {\"mode\":\"READONLY\"}");
        assertThat(get("/schemas"))
                .startsWith("200 [{\"subject\":\"millrace.serving-value\",\"version\":1,")
                .contains("\"subject\":\"odd/ subject+1\"");
        assertThat(get("/schemas/ids/4/subjects")).isEqualTo("200 [\"millrace.serving-value\"]");
        assertThat(get("/schemas/ids/4/versions"))
                .isEqualTo("200 [{\"subject\":\"millrace.serving-value\",\"version\":2}]");
        assertThat(get("/schemas/ids/4/schema")).isEqualTo("200 " + TEXT);
        assertThat(get("/config/x?defaultToGlobal=true")).isEqualTo("200 {\"compatibilityLevel\":\"BACKWARD\"}");
        assertThat(get("/mode/x?defaultToGlobal=true")).isEqualTo("200 {\"mode\":\"READONLY\"}");
    }

    @Test
    void shouldAnswerWithTheProtocolsOwnErrors() throws Exception {
        assertThat(get("/subjects/x/versions"))
                .isEqualTo("404 {\"error_code\":40401,\"message\":\"Subject 'x' not found.\"}");
        assertThat(get("/subjects/millrace.serving-value/versions/9"))
                .isEqualTo("404 {\"error_code\":40402,\"message\":\"Version 9 not found.\"}");
        assertThat(get("/subjects/millrace.serving-value/versions/new")).startsWith("422 {\"error_code\":42202");
        assertThat(get("/schemas/ids/77")).isEqualTo("404 {\"error_code\":40403,\"message\":\"Schema 77 not found\"}");
        assertThat(get("/schemas/ids/x")).startsWith("422 {\"error_code\":42201");
        assertThat(get("/config/x")).startsWith("404 {\"error_code\":40408");
        assertThat(get("/subjectsandmore")).startsWith("404 {\"error_code\":404");
        assertThat(get("/mode/x")).startsWith("404 {\"error_code\":40409");
        assertThat(get("/config/x?defaultToGlobal=false")).startsWith("404 {\"error_code\":40408");
        assertThat(get("/schemas/ids/77/versions")).startsWith("404 {\"error_code\":40403");
        assertThat(get("/schemas/ids/4/more")).startsWith("404 {\"error_code\":404,");
        assertThat(get("/subjects/millrace.serving-value/versions/1/schema/more"))
                .startsWith("404 ");
    }

    @Test
    void shouldLookUpSchemas() throws Exception {
        String spaced = new ObjectMapper().readTree(TEXT).toPrettyString();

        assertThat(post("/subjects/millrace.serving-value", spaced))
                .startsWith("200 {\"subject\":\"millrace.serving-value\",\"version\":2,\"id\":4,\"schema\":");
        assertThat(post(
                        "/subjects/millrace.serving-value",
                        Serving.getClassSchema().toString()))
                .as("with Java's own notes")
                .contains("\"id\":4");
        assertThat(post("/subjects/odd%2F%20subject+1", "{\"type\":\"string\"}"))
                .contains("\"id\":3");
        assertThat(post("/subjects/x", TEXT))
                .isEqualTo("404 {\"error_code\":40401,\"message\":\"Subject 'x' not found.\"}");
        assertThat(post("/subjects/millrace.serving-value", "\"int\""))
                .isEqualTo("404 {\"error_code\":40403,\"message\":\"Schema not found\"}");
    }

    @Test
    void shouldCheckCompatibilityAtTheLevelOfTheRegistry() throws Exception {
        String versions = "/compatibility/subjects/millrace.serving-value/versions";
        String without =
                "{\"type\":\"record\",\"name\":\"Serving\",\"namespace\":\"dev.millrace.schemas\",\"fields\":[]}";

        assertThat(post(versions, TEXT)).isEqualTo("200 {\"is_compatible\":true}");
        assertThat(post(versions + "/latest", without))
                .as("BACKWARD: a new reader of old records")
                .isEqualTo("200 {\"is_compatible\":true}");
        assertThat(post(versions + "/1", TEXT)).isEqualTo("200 {\"is_compatible\":false}");
        assertThat(post(versions + "/1?verbose=true", TEXT))
                .contains(
                        "\"messages\":[\"the new schema cannot read records of version 1 (id 3): TYPE_MISMATCH at /\"]");
        state.accept(SchemaLogRecords.configKey(), SchemaLogRecords.configValue("FULL"));
        assertThat(post(versions + "/latest?verbose=true", without))
                .startsWith(
                        "200 {\"is_compatible\":false,\"messages\":[\"records of the new schema cannot be read by version 2");
        state.accept(SchemaLogRecords.configKey(), SchemaLogRecords.configValue("BACKWARD_TRANSITIVE"));
        assertThat(post(versions, TEXT)).isEqualTo("200 {\"is_compatible\":false}");
        assertThat(post("/compatibility/subjects/x/versions", TEXT)).isEqualTo("200 {\"is_compatible\":true}");
        assertThat(post("/compatibility/subjects/x/versions/latest", TEXT)).isEqualTo("200 {\"is_compatible\":true}");
        assertThat(post("/compatibility/subjects/x/versions/1", TEXT)).startsWith("404 {\"error_code\":40401");
        assertThat(post(versions + "/9", TEXT)).startsWith("404 {\"error_code\":40402");
        assertThat(post(versions + "/new", TEXT)).startsWith("422 {\"error_code\":42202");
        assertThat(get(versions)).startsWith("404 {\"error_code\":404,");
    }

    @Test
    void shouldRefuseBodiesThatHoldNoAvroSchema() throws Exception {
        String path = "/subjects/millrace.serving-value";

        assertThat(send(path, "POST", ""))
                .startsWith("422 {\"error_code\":42201")
                .contains("no text");
        assertThat(send(path, "POST", "{"))
                .startsWith("422 {\"error_code\":42201")
                .contains("not JSON");
        assertThat(post(path, "{\"type\":\"nothing\"}"))
                .startsWith("422 {\"error_code\":42201")
                .contains("MUST be a primitive type");
        assertThat(send(path, "POST", "{\"schemaType\":\"PROTOBUF\",\"schema\":\"\"}"))
                .startsWith("422 {\"error_code\":42201")
                .contains("schemaType must be AVRO: 'PROTOBUF'");
        assertThat(send(path, "POST", "{\"schema\":\"\\\"int\\\"\",\"references\":[{\"name\":\"a\"}]}"))
                .startsWith("422 {\"error_code\":42201")
                .contains("references");
        assertThat(send(path, "POST", " ".repeat((1 << 20) + 1)))
                .startsWith("422 {\"error_code\":42201")
                .contains("more than 1048576 bytes");
    }

    @Test
    void shouldAnswerRegistrationWithAKnownIdAndRefuseEveryChange() throws Exception {
        assertThat(post("/subjects/millrace.serving-value/versions", TEXT)).isEqualTo("200 {\"id\":4}");
        assertThat(post("/subjects/x/versions", "\"int\""))
                .startsWith(
                        "405 {\"error_code\":405,\"message\":\"the schema of int is not registered under 'x', and this registry is read-only");
        assertThat(state.subjects()).doesNotContain("x");
        assertThat(send("/subjects/millrace.serving-value", "DELETE", "")).startsWith("405 {\"error_code\":405");
        assertThat(send("/config", "PUT", "{\"compatibility\":\"NONE\"}")).startsWith("405 ");
        assertThat(post("/schemas/ids/3", TEXT)).startsWith("405 ");
    }

    @Test
    void shouldSayThatTheLogCannotBeRead() throws Exception {
        HttpServer broken = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        RegistryContents away = new RegistryContents() {
            @Override
            public List<String> subjects() {
                throw new SchemaRegistryException("topic _schemas cannot be read: no broker");
            }

            @Override
            public SortedMap<Integer, Registration> versions(String subject) {
                throw new SchemaRegistryException("topic _schemas cannot be read: no broker");
            }

            @Override
            public Optional<String> schemaText(int id) {
                throw new SchemaRegistryException("topic _schemas cannot be read: no broker");
            }

            @Override
            public String compatibilityLevel() {
                throw new SchemaRegistryException("topic _schemas cannot be read: no broker");
            }
        };
        new RegistryHttpApi(away).mount(broken::createContext);
        broken.start();
        address = "http://127.0.0.1:" + broken.getAddress().getPort();
        String expected = "500 {\"error_code\":50001,\"message\":\"topic _schemas cannot be read: no broker\"}";
        try {
            assertThat(get("/subjects")).isEqualTo(expected);
            assertThat(get("/schemas/ids/1")).isEqualTo(expected);
            assertThat(post("/subjects/x", TEXT)).isEqualTo(expected);
            assertThat(post("/compatibility/subjects/x/versions/latest", TEXT)).isEqualTo(expected);
        } finally {
            broken.stop(0);
        }
    }

    @Test
    void shouldServeOurOwnClient() {
        try (RestSchemaRegistry client = new RestSchemaRegistry(address, false, 5_000)) {
            assertThat(client.byId(4).getFullName()).isEqualTo("dev.millrace.schemas.Serving");
            assertThatThrownBy(() -> client.byId(5))
                    .isInstanceOf(UnknownSchemaException.class)
                    .hasMessage("no schema has id 5");
            assertThatThrownBy(() -> client.idOf("x-value", Rollout.getClassSchema()))
                    .isExactlyInstanceOf(SchemaRegistryException.class)
                    .hasMessageContaining("status 404")
                    .hasMessageContaining("40401");
            assertThat(client.idOf("millrace.serving-value", Serving.getClassSchema()))
                    .isEqualTo(4);
        }
    }

    @Test
    void shouldPublishSchemasWithoutJavasOwnNotesAndWithTheirDocumentation() throws Exception {
        assertThat(Rollout.getClassSchema().toString()).contains("avro.java.string");

        String published = PublishedSchema.text(Rollout.getClassSchema());

        assertThat(published)
                .doesNotContain("avro.java")
                .contains("Natural log of the probability")
                .contains("{\"name\":\"run_id\",\"type\":\"string\",")
                .contains("packed-float32");
        assertThat(new ObjectMapper().readTree(published).path("fields"))
                .hasSize(Rollout.getClassSchema().getFields().size());
    }

    private void accept(Registration registration) {
        state.accept(SchemaLogRecords.schemaKey(registration), SchemaLogRecords.schemaValue(registration));
    }

    private String get(String path) throws Exception {
        return send(HttpRequest.newBuilder(URI.create(address + path)).GET().build());
    }

    private String post(String path, String schema) throws Exception {
        return send(
                path,
                "POST",
                new ObjectMapper().createObjectNode().put("schema", schema).toString());
    }

    private String send(String path, String method, String body) throws Exception {
        return send(HttpRequest.newBuilder(URI.create(address + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build());
    }

    private static String send(HttpRequest request) throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        return response.statusCode() + " " + response.body();
    }
}
