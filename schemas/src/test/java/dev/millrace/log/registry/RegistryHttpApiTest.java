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
    void shouldRefuseToWrite() throws Exception {
        HttpRequest post = HttpRequest.newBuilder(URI.create(address + "/subjects/x/versions"))
                .POST(HttpRequest.BodyPublishers.ofString("{\"schema\":\"\\\"int\\\"\"}"))
                .build();

        assertThat(send(post)).startsWith("405 ").contains("read-only");
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
                    .hasMessageContaining("status 405");
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

    private static String send(HttpRequest request) throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        return response.statusCode() + " " + response.body();
    }
}
